"""Phrases that others wrote: how many are read rightly, asked back, refused, or silently wrong.

    python -m benchmarks.language_judges [--show wrong,refused] [--judge fresh]

The judges lie next to the checkout, in ``shared/plain-language``: phrases by people's habits (``fresh``), phrases of
schedulers (``cases``), and the specifications of Microsoft's Recognizers-Text (``English-DateParser`` and so on), of
which those that name an instant still to come, or a repetition, are phrases for a scheduler.

A phrase with several acceptable answers is right with any of them. A schedule that is none of them is wrong: nobody
would notice it.
"""

from __future__ import annotations

import json
import re
from argparse import ArgumentParser
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.language_scoring import CASES, COLLECTED, judge, parse_now

from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.errors import CloudschedError
from cloudsched.language import read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cloudsched.domain.schedules.schedule import Schedule
    from cloudsched.language import Reading

FOLDER = COLLECTED.parent
LANGUAGES = {"English": "en-US", "German": "de", "French": "fr", "Spanish": "es"}
VERDICTS = ("right", "asked", "refused", "wrong")


class Judged(NamedTuple):
    """One phrase, how it is to be read, and whether the answer is acceptable."""

    judge: str
    phrase: str
    locale: str
    now: datetime
    zone: str
    accept: Callable[[Reading], str]
    current: str = ""


def list_fresh(path: Path = FOLDER / "fresh.json") -> Iterator[Judged]:
    """Yield the phrases that people wrote by habit; the firm ones, and those in which careful people differ."""
    if not path.exists():
        return
    content = json.loads(path.read_text(encoding="utf-8"))
    now = datetime.fromisoformat(content["now"]).replace(tzinfo=load_tzinfo(content["zone"]))
    for case in content["cases"]:
        kind = "updates" if case.get("current") else case["locale"]
        name = f"{path.stem} {kind}, {'firm' if case['firm'] else 'soft'}"
        accepted = case["accepted"]

        def accept(reading: Reading, accepted: list[dict[str, Any]] = accepted) -> str:
            return accept_any(reading, accepted, now)

        yield Judged(name, case["phrase"], case["locale"], now, content["zone"], accept, case.get("current", ""))


def accept_any(reading: Reading, accepted: list[dict[str, Any]], now: datetime) -> str:
    """Return ``right`` if the reading is one of those that are acceptable; else what it is."""
    answers = {each["answer"] for each in accepted if "answer" in each}
    if reading.schedule is None:
        word = "question" if reading.kind == "question" else "refusal"
        fine = word in answers or ("question" in answers and word == "refusal")
        return "right" if fine else "asked" if word == "question" else "refused"
    return "right" if any(_fits(reading.schedule, each, now) for each in accepted if "answer" not in each) else "wrong"


def _fits(schedule: Schedule, answer: dict[str, Any], now: datetime) -> bool:
    zone = load_tzinfo("Europe/Berlin")
    if "occurrences" not in answer:
        found = [at.astimezone(zone) for at in schedule.upcoming(now, 4)]
        if "everyMinutes" in answer:
            plain = [at.replace(tzinfo=None) for at in found]
            step = timedelta(minutes=answer["everyMinutes"])
            shown = {later.astimezone() - earlier.astimezone() for earlier, later in pairwise(found)}
            local = {later - earlier for earlier, later in pairwise(plain)}
            return len(found) == 4 and (shown == {step} or local == {step})
        months = [at.year * 12 + at.month for at in found]
        gaps = {later - earlier for earlier, later in pairwise(months)}
        return gaps == {answer["everyMonths"]} and all(at.day == answer.get("onDay", at.day) for at in found)
    expected = answer["occurrences"]
    count = len(expected) + bool(answer.get("ends"))
    found_texts = [at.astimezone(zone).replace(tzinfo=None).isoformat() for at in schedule.upcoming(now, count)]
    if answer.get("ends") and answer.get("total", len(expected)) not in {None, len(expected)}:
        total = answer["total"]
        if len(schedule.upcoming(now, total + 1)) != total:
            return False
        found_texts = found_texts[: len(expected)]
    return bool([text[: len(expected[0])] for text in found_texts] == expected)


def list_cases() -> Iterator[Judged]:
    """Yield the firm phrases of schedulers and calendars."""
    for case in CASES:
        if not case["firm"] or case["kind"] == "update":
            continue

        def accept(reading: Reading, case: dict[str, Any] = case) -> str:
            try:
                verdict = judge(case, reading.schedule)
            except CloudschedError:
                verdict = "wrong"
            return "asked" if verdict == "refused" and reading.kind == "question" else verdict

        yield Judged(f"cases {case['kind']}", case["phrase"], "en", parse_now(case), case["zone"], accept)


def list_recognizers() -> Iterator[Judged]:
    """Yield what Recognizers-Text finds in sentences: instants still to come, and repetitions."""
    for path in sorted((FOLDER / "recognizers-text").glob("*.json")):
        language, _, parser = path.stem.partition("-")
        if parser == "TimeParser":
            continue
        for spec in json.loads(path.read_text(encoding="utf-8-sig")):
            reference = spec.get("Context", {}).get("ReferenceDateTime", "")[:19]
            if not reference and parser != "SetParser":
                continue  # what it expects depends on the day on which the test runs
            reference = reference or "2016-11-07T00:00:00"
            now = datetime.fromisoformat(reference).replace(tzinfo=load_tzinfo("UTC"))
            for result in spec.get("Results", ()):
                one = _read_result(path.stem, result, now, LANGUAGES[language])
                if one is not None:
                    yield one


def _read_result(stem: str, result: dict[str, Any], now: datetime, locale: str) -> Judged | None:
    value = result.get("Value") or result.get("Resolution") or {}
    phrase = result.get("Text", "")
    future = value.get("FutureResolution", {})
    if "set" in future:
        return Judged(f"{stem} recurring", phrase, locale, now, "UTC", _accept_repeated(value["Timex"]))
    wanted = future.get("date") or future.get("dateTime")
    if "values" in value:  # a model names each of its values
        of_type = [each for each in value["values"] if each.get("type") in {"date", "datetime"} and "value" in each]
        sets = [each for each in value["values"] if each.get("type") == "set"]
        if sets:
            return Judged(f"{stem} recurring", phrase, locale, now, "UTC", _accept_repeated(sets[0]["timex"]))
        wanted = of_type[-1]["value"] if of_type else None
    if not wanted or wanted.startswith("0001"):
        return None
    text = wanted.replace(" ", "T")
    bound = now.replace(tzinfo=None).isoformat()
    is_past = text <= bound[: len(text)] if len(text) > 10 else text < bound[:10]
    if is_past:
        return None
    return Judged(f"{stem} once", phrase, locale, now, "UTC", lambda reading: _accept_instant(reading, text, now))


def _accept_instant(reading: Reading, wanted: str, now: datetime) -> str:
    if reading.schedule is None:
        texts = [_to_text(one.schedule.anchored(now), now)[: len(wanted)] for one in reading.readings]
        return "asked" if wanted in texts else "refused"
    is_one = len(reading.schedule.upcoming(now, 2)) == 1
    return "right" if is_one and _to_text(reading.schedule, now)[: len(wanted)] == wanted else "wrong"


def _to_text(schedule: Schedule, now: datetime) -> str:
    found = schedule.upcoming(now, 1)
    return found[0].replace(tzinfo=None, microsecond=0).isoformat() if found else ""


_UNITS = {"Y": 8766, "M": 730.5, "W": 168, "D": 24, "TH": 1, "TM": 1 / 60, "TS": 1 / 3600}


def _accept_repeated(timex: str) -> Callable[[Reading], str]:
    """Return what compares the distance and the weekday or the time of a repetition."""

    def accept(reading: Reading) -> str:
        if reading.schedule is None:
            return "asked" if reading.kind == "question" else "refused"
        found = reading.schedule.anchored(_EARLY).upcoming(_EARLY, 9)
        if len(found) < 3:
            return "wrong"
        hours = (found[-1] - found[0]).total_seconds() / 3600 / (len(found) - 1)
        length = re.fullmatch(r"P(T?)([\d.]+)([YMWDHS])", timex)
        if length:
            unit = _UNITS[length[1] + length[3]]
            wanted = float(length[2]) * unit
            return "right" if abs(hours - wanted) < 0.12 * wanted else "wrong"
        weekday = re.match(r"XXXX-WXX-(\d)", timex)
        if weekday and {at.isoweekday() for at in found} != {int(weekday[1])}:
            return "wrong"
        clock = re.search(r"T(\d\d)(?::(\d\d))?(?::(\d\d))?$", timex)
        if clock and {(at.hour, at.minute) for at in found} != {(int(clock[1]), int(clock[2] or 0))}:
            return "wrong"
        return "right"

    return accept


_EARLY = datetime(2017, 1, 2, 0, 0, tzinfo=load_tzinfo("UTC"))


def read_one(one: Judged) -> str:
    """Return the verdict on one phrase."""
    current = None
    try:
        if one.current:
            current = read(one.current, now=one.now, timezone=one.zone).schedule
        reading = read(one.phrase, now=one.now, timezone=one.zone, locale=one.locale, current=current)
        if reading.schedule is not None:
            reading = replace(reading, schedule=reading.schedule.anchored(one.now))
        return one.accept(reading)
    except ValueError:
        return "refused"  # the language is not known


def list_all() -> Iterator[Judged]:
    """Yield the phrases of every judge."""
    yield from list_fresh()
    yield from list_cases()
    yield from list_recognizers()


def main() -> None:
    """Print a table."""
    parser = ArgumentParser(description="How phrases that others wrote are read")
    parser.add_argument("--show", default="", help="which verdicts to list, such as wrong,refused")
    parser.add_argument("--judge", default="", help="only the judges that begin with this")
    parser.add_argument("--file", type=Path, help="another file of the form of fresh.json")
    options = parser.parse_args()
    shown = set(options.show.split(","))
    scores: dict[str, Counter[str]] = {}
    phrases = list_all() if options.file is None else list_fresh(options.file)
    for one in phrases:
        if not one.judge.startswith(options.judge):
            continue
        verdict = read_one(one)
        scores.setdefault(one.judge, Counter())[verdict] += 1
        if verdict in shown:
            print(f"{verdict:8} {one.judge:32} {one.phrase!r} {one.now:%Y-%m-%dT%H:%M} {one.current}")
    print(f"{'':40}{'n':>6}" + "".join(f"{verdict:>9}" for verdict in VERDICTS))
    for name, score in scores.items():
        print(f"{name:40}{score.total():6}" + "".join(f"{score[verdict]:9}" for verdict in VERDICTS))


if __name__ == "__main__":
    main()
