"""Natural-language schedules: how often they are read correctly or silently wrong, compared with other libraries.

    python -m benchmarks.language [--alone]

The phrases are a collection that people typed into schedulers, if it lies next to the checkout; the English rows of
`tests.language.judge`, which have titles (those that are clear, and the others, which have to be asked or refused); and
1,000 that are generated, whose dates come from a plain walk over the calendar. The rivals are those of
`benchmarks.machine`; ``--alone`` leaves them out.
A phrase is right if the schedule is the intended one, wrong if it is another one without a warning, and otherwise
refused. For phrases that mean nothing or are ambiguous, every schedule is wrong. Times are CPU time in milliseconds:
of a generated phrase, the median and the 99th percentile, and of ours a draft of 4,000 characters, and the first phrase
of a process with its imports.
"""

from __future__ import annotations

import sys
import warnings
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from functools import partial
from importlib import import_module
from importlib.metadata import distributions
from random import Random
from statistics import median, quantiles
from time import thread_time
from timeit import timeit
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.coldstart import measure_import
from benchmarks.machine import find_site_packages
from tests.language import judge as judged
from tests.language import paraphrases
from tests.language.collected_phrases import CASES, judge, parse_now
from tests.language.walk import NOW, ZONE

from cloudsched import App, Settings
from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import CloudschedError
from cloudsched.language import read
from cloudsched.testing import Simulation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KINDS = ("recurring", "once", "refuse", "ask")
COUNT = 1000
FIRST = """\
import datetime as d; from cloudsched.language import read; read("at 9", now=d.datetime.now(d.UTC), timezone="UTC")"""


class Phrase(NamedTuple):
    """One phrase, with its current time and time zone."""

    text: str
    now: datetime
    zone: str


Reader = Callable[[Phrase], Schedule | None]


def read_ours(phrase: Phrase) -> Schedule | None:
    """Read a phrase with this project."""
    return read(phrase.text, now=phrase.now, timezone=phrase.zone).schedule


def read_with_recurrent(phrase: Phrase) -> Schedule | None:
    """Read a phrase with recurrent."""
    found = import_module("recurrent").RecurringEvent(now_date=phrase.now.replace(tzinfo=None)).parse(phrase.text)
    if isinstance(found, datetime):
        return Schedule.once(found.replace(tzinfo=load_tzinfo(phrase.zone)), timezone=phrase.zone)
    return _run_rules(found, phrase)


def read_with_chronologia(phrase: Phrase) -> Schedule | None:
    """Read a phrase with chronologia."""
    module = import_module("chronologia")
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


def _run_rules(rule: str | None, phrase: Phrase) -> Schedule | None:
    if not rule:
        return None
    lines = rule.replace("RRULE:", "\nRRULE:").splitlines()
    dtstart = next((line.partition(":")[2] for line in lines if line.startswith("DTSTART")), None)
    text = next((line.removeprefix("RRULE:") for line in lines if "FREQ" in line), None)
    exdates = [date for line in lines if line.startswith("EXDATE") for date in line.partition(":")[2].split(",")]
    if text is None:
        return None
    schedule = Schedule(
        rrule=text.replace("Z", "") if "UNTIL" in text else text, dtstart=dtstart, timezone=phrase.zone, exdates=exdates
    )
    return schedule.anchor(phrase.now)


def _try(reader: Reader, phrase: Phrase) -> Schedule | None:
    """Read one phrase; an exception counts as not understood."""
    try:
        return reader(phrase)
    except Exception:  # noqa: BLE001 -- rivals raise what they like
        return None


def list_readers(folder: Path | None) -> dict[str, Reader]:
    """Return ours and the rivals that are installed in a folder, by name and version."""
    if folder is None:
        return {"cloudsched": read_ours}
    sys.path.append(str(folder))
    versions = {one.metadata["Name"]: one.version for one in distributions(path=[str(folder)])}
    rivals = {"recurrent": read_with_recurrent, "chronologia": read_with_chronologia}
    found = {f"{name} {versions[name]}": partial(_try, each) for name, each in rivals.items() if name in versions}
    return {"cloudsched": read_ours, **found}


def score_collected(reader: Reader) -> Counter[tuple[str, str]]:
    """Return the score over the firm phrases of the collection."""
    return Counter(
        (case["kind"], _judge(judge, case, reader(Phrase(case["phrase"], parse_now(case), case["zone"]))))
        for case in CASES
        if case["firm"]
    )


def _judge(judge: Callable[..., str], case: dict[str, Any], schedule: Schedule | None) -> str:
    try:
        return judge(case, schedule)
    except CloudschedError:
        return "wrong"


def score_titled(reader: Reader) -> Counter[tuple[str, str]]:
    """Return the score over the English rows with titles: those that are clear, and those that are not."""
    score: Counter[tuple[str, str]] = Counter()
    for case in (case for _, cases in judged.list_groups() for case in cases if case["lang"] == "en"):
        now = datetime.fromisoformat(case["now"]).replace(tzinfo=load_tzinfo(case["zone"]))
        schedule = reader(Phrase(case["phrase"], now, case["zone"]))
        is_clear = case["group"] == "clear"
        verdict = "refused" if schedule is None else _judge(judged.judge_schedule, case, schedule)
        is_right = verdict == "right" or (verdict == "refused" and not is_clear)
        score["titled" if is_clear else "unclear", "right" if is_right else verdict] += 1
    return score


def score_generated(reader: Reader) -> tuple[Counter[str], list[float]]:
    """Return the score over phrases from templates, and the time of each."""
    zone = load_tzinfo(ZONE)
    now = NOW.replace(tzinfo=zone)
    times: list[float] = []
    score: Counter[str] = Counter()
    for one in generate():
        begin = thread_time()
        schedule = reader(Phrase(one.text, now, ZONE))
        times.append(1000 * (thread_time() - begin))
        if schedule is None:
            score["refused"] += 1
            continue
        try:
            found = schedule.upcoming(now, len(one.expected) + one.ends)
        except CloudschedError:
            found = []
        local = tuple(at.astimezone(zone).replace(tzinfo=None).isoformat() for at in found)
        score["right" if local == one.expected else "wrong"] += 1
    return score, times


def generate() -> Iterator[paraphrases.Paraphrase]:
    """Yield the same phrases each time."""
    return paraphrases.make(Random(2026), COUNT, ["en"])  # noqa: S311 -- repeatable


def time_draft() -> float:
    """Return the seconds of a draft of the longest text."""
    text = ", ".join(one.text for one in generate())[:4000]
    with Simulation(App(Settings())) as sim:
        return timeit(lambda: sim.app.draft(text, timezone=ZONE, owner="ada"), timer=thread_time, number=1)


def main() -> None:
    """Print the scores."""
    parser = ArgumentParser(description="How plain words are read, beside other engines")
    parser.add_argument("--alone", action="store_true", help="without other libraries")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    columns = [*(KINDS if CASES else ()), "titled", "unclear"]
    print("right % / silently wrong %")
    print(f"{'':24}" + "".join(f"{kind:>15}" for kind in columns) + f"{'generated':>15}{'median':>8}{'99 %':>8}")
    for name, reader in list_readers(None if options.alone else find_site_packages()).items():
        line = f"{name:24}"
        score = score_titled(reader) + (score_collected(reader) if CASES else Counter())
        for kind in columns:
            total = sum(count for (of, _), count in score.items() if of == kind)
            line += f"{100 * score[kind, 'right'] / total:8.1f} /{100 * score[kind, 'wrong'] / total:5.1f}"
        generated, times = score_generated(reader)
        right, wrong = (100 * generated[verdict] / COUNT for verdict in ("right", "wrong"))
        print(f"{line}{right:8.1f} /{wrong:5.1f}{median(times):8.2f}{quantiles(times, n=100)[-1]:8.2f}")
    print(f"4,000 characters {time_draft():.3f} s, first phrase {measure_import(FIRST, sys.executable):.3f} s")


if __name__ == "__main__":
    main()
