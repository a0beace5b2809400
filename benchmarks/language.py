"""Natural-language schedules: how often they are read correctly or silently wrong, compared with other libraries.

    python -m benchmarks.language [--phrases N] [--alone]

The phrases are a collection that people typed into schedulers, if it lies next to the checkout; the English rows of
`tests.language.judge`, which have titles (those that are clear, and the others, which have to be asked or refused); and
1,000 that are generated, whose dates come from a plain walk over the calendar. The rivals are those of
`benchmarks.machine`; ``--alone`` leaves them out.
A phrase is right if the schedule is the
intended one, wrong if it is another one without a warning, and otherwise refused. For phrases that mean nothing or are
ambiguous, every schedule is wrong. Times are CPU time for
one phrase, in milliseconds.
"""

from __future__ import annotations

import sys
import warnings
from argparse import ArgumentParser
from collections import Counter
from datetime import datetime
from importlib import import_module
from importlib.metadata import distributions
from random import Random
from time import thread_time
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.machine import find_site_packages
from tests.language import judge as judged
from tests.language import paraphrases
from tests.language.collected_phrases import CASES, judge, parse_now
from tests.language.walk import NOW, ZONE

from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import CloudschedError
from cloudsched.language import read

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

KINDS = ("recurring", "once", "refuse", "ask")


class Phrase(NamedTuple):
    """One phrase, with its current time and time zone."""

    text: str
    now: datetime
    zone: str


def run_ours(phrases: Sequence[Phrase]) -> list[Schedule | None]:
    """Read phrases with this project."""
    return [read(phrase.text, now=phrase.now, timezone=phrase.zone).schedule for phrase in phrases]


def run_recurrent(phrases: Sequence[Phrase]) -> list[Schedule | None]:
    """Read phrases with recurrent."""
    event = import_module("recurrent").RecurringEvent

    def one(phrase: Phrase) -> Schedule | None:
        found = event(now_date=phrase.now.replace(tzinfo=None)).parse(phrase.text)
        if isinstance(found, datetime):
            return Schedule.once(found.replace(tzinfo=load_tzinfo(phrase.zone)), timezone=phrase.zone)
        return _run_rules(found, phrase)

    return [_try_reader(one, phrase) for phrase in phrases]


def run_chronologia(phrases: Sequence[Phrase]) -> list[Schedule | None]:
    """Read phrases with chronologia."""
    module = import_module("chronologia")

    def one(phrase: Phrase) -> Schedule | None:
        anchor = phrase.now.replace(tzinfo=None)
        found = module.extract_recurrence(phrase.text, "en-us", anchor)
        if found is not None:
            return _run_rules(found.recurrence.to_string(), phrase)
        span = module.extract_timespan(phrase.text, "en-us", anchor)
        if span is None:
            return None
        at = span.span.start
        local = datetime(at.year, at.month, at.day, at.hour or 0, at.minute or 0, at.second or 0)  # noqa: DTZ001 -- local
        return Schedule.once(local.replace(tzinfo=load_tzinfo(phrase.zone)), timezone=phrase.zone)

    return [_try_reader(one, phrase) for phrase in phrases]


def _run_rules(rule: str | None, phrase: Phrase) -> Schedule | None:
    if not rule:
        return None
    lines = rule.replace("RRULE:", "\nRRULE:").splitlines() if "\n" not in rule else rule.splitlines()
    dtstart = next((line.partition(":")[2] for line in lines if line.startswith("DTSTART")), None)
    text = next((line.removeprefix("RRULE:") for line in lines if "FREQ" in line), None)
    exdates = [date for line in lines if line.startswith("EXDATE") for date in line.partition(":")[2].split(",")]
    if text is None:
        return None
    schedule = Schedule(
        rrule=text.replace("Z", "") if "UNTIL" in text else text, dtstart=dtstart, timezone=phrase.zone, exdates=exdates
    )
    return schedule.anchor(phrase.now)


def _try_reader(one: Callable[[Phrase], Schedule | None], phrase: Phrase) -> Schedule | None:
    """Read one phrase; an exception counts as not understood."""
    try:
        return one(phrase)
    except CloudschedError:
        return None
    except Exception:  # noqa: BLE001 -- rivals raise what they like
        return None


def list_readers(folder: Path | None) -> dict[str, Callable[[Sequence[Phrase]], list[Schedule | None]]]:
    """Return ours and the rivals that are installed in a folder, by name and version."""
    found: dict[str, Callable[[Sequence[Phrase]], list[Schedule | None]]] = {"cloudsched": run_ours}
    if folder is None:
        return found
    sys.path.append(str(folder))
    versions = {one.metadata["Name"]: one.version for one in distributions(path=[str(folder)])}
    if "recurrent" in versions:
        found[f"recurrent {versions['recurrent']}"] = run_recurrent
    if "chronologia" in versions:
        found[f"chronologia {versions['chronologia']}"] = run_chronologia
    return found


def score_collected(reader: Callable[[Sequence[Phrase]], list[Schedule | None]]) -> Counter[tuple[str, str]]:
    """Return the score over the firm phrases of the collection."""
    firm = [case for case in CASES if case["firm"]]
    schedules = reader([Phrase(case["phrase"], parse_now(case), case["zone"]) for case in firm])
    return Counter((case["kind"], _judge_case(case, one)) for case, one in zip(firm, schedules, strict=True))


def _judge_case(case: dict[str, Any], schedule: Schedule | None) -> str:
    try:
        return judge(case, schedule)
    except CloudschedError:
        return "wrong"


def score_titled(reader: Callable[[Sequence[Phrase]], list[Schedule | None]]) -> Counter[tuple[str, str]]:
    """Return the score over the English rows with titles: those that are clear, and those that are not."""
    rows = [case for _, cases in judged.list_groups() for case in cases if case["lang"] == "en"]
    nows = [datetime.fromisoformat(case["now"]).replace(tzinfo=load_tzinfo(case["zone"])) for case in rows]
    schedules = reader([Phrase(case["phrase"], now, case["zone"]) for case, now in zip(rows, nows, strict=True)])
    score: Counter[tuple[str, str]] = Counter()
    for case, schedule in zip(rows, schedules, strict=True):
        is_clear = case["group"] == "clear"
        try:
            verdict = judged.judge_schedule(case, schedule) if schedule is not None else "refused"
        except CloudschedError:
            verdict = "wrong"
        is_right = verdict == "right" or (verdict == "refused" and not is_clear)
        score["titled" if is_clear else "unclear", "right" if is_right else verdict] += 1
    return score


def score_generated(
    reader: Callable[[Sequence[Phrase]], list[Schedule | None]], count: int
) -> tuple[Counter[str], float]:
    """Return the score over phrases from templates, and the CPU time that one takes."""
    zone = load_tzinfo(ZONE)
    now = NOW.replace(tzinfo=zone)
    phrases = list(paraphrases.make(Random(2026), count, ["en"]))  # noqa: S311 -- repeatable
    asked = [Phrase(one.text, now, ZONE) for one in phrases]
    reader(asked[:20])
    begin = thread_time()
    schedules = reader(asked)
    taken = (thread_time() - begin) / count * 1000
    score: Counter[str] = Counter()
    for one, schedule in zip(phrases, schedules, strict=True):
        if schedule is None:
            score["refused"] += 1
            continue
        try:
            found = schedule.upcoming(now, len(one.expected) + one.ends)
        except CloudschedError:
            found = []
        local = tuple(at.astimezone(zone).replace(tzinfo=None).isoformat() for at in found)
        score["right" if local == one.expected else "wrong"] += 1
    return score, taken


def main() -> None:
    """Print the scores."""
    parser = ArgumentParser(description="How plain words are read, beside other engines")
    parser.add_argument("--alone", action="store_true", help="without other libraries")
    parser.add_argument("--phrases", type=int, default=1000, help="how many phrases to generate")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    columns = [*(KINDS if CASES else ()), "titled", "unclear"]
    print("right % / silently wrong %")
    print(f"{'':24}" + "".join(f"{kind:>15}" for kind in columns) + f"{'generated':>15}{'ms':>8}")
    for name, reader in list_readers(None if options.alone else find_site_packages()).items():
        line = f"{name:24}"
        score = score_titled(reader) + (score_collected(reader) if CASES else Counter())
        for kind in columns:
            total = sum(count for (of, _), count in score.items() if of == kind)
            line += f"{100 * score[kind, 'right'] / total:8.1f} /{100 * score[kind, 'wrong'] / total:5.1f}"
        from_templates, taken = score_generated(reader, options.phrases)
        right, wrong = (100 * from_templates[verdict] / options.phrases for verdict in ("right", "wrong"))
        print(f"{line}{right:8.1f} /{wrong:5.1f}" + f"{taken:8.2f}")


if __name__ == "__main__":
    main()
