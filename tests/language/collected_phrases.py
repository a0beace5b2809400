"""Score the reading of a collected phrase by the collection's own rules.

Its phrases are from the public tests and manuals that ``source`` names. ``expect`` has what a careful person would make
of each: ``instants`` are the next local times after ``now``, ``dates`` the same without a time, and a ``rule`` has a
free phase. Careful people agree where ``firm`` is true.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.domain.schedules.schedule import Schedule

CASES: list[dict[str, Any]] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


def parse_now(case: dict[str, Any]) -> datetime:
    """Return the moment at which the phrase was typed."""
    return datetime.fromisoformat(case["now"]).replace(tzinfo=load_tzinfo(case["zone"]))


def judge(case: dict[str, Any], schedule: Schedule | None) -> str:
    """Return ``right``, ``wrong`` (silently) or ``refused``; if no schedule is expected, none is right."""
    if case["kind"] in {"refuse", "ask"}:
        return "wrong" if schedule is not None else "right"
    if schedule is None:
        return "refused"
    fits = _is_once if case["kind"] == "once" else _is_recurring
    return "right" if fits(case, schedule) else "wrong"


def _is_once(case: dict[str, Any], schedule: Schedule) -> bool:
    found = [_to_local(at, case) for at in schedule.upcoming(parse_now(case), 2)]
    expected = case["expect"]["at"]
    return len(found) == 1 and found[0][: len(expected)] == expected


def _is_recurring(case: dict[str, Any], schedule: Schedule) -> bool:
    expect, now = case["expect"], parse_now(case)
    first = expect["first"]
    begin = now
    if expect["compare"] == "rule":
        dtstart = expect.get("anchor") or expect["dtstart"]
        begin = datetime.fromisoformat(dtstart).replace(tzinfo=load_tzinfo(case["zone"])) - timedelta(seconds=1)
        if schedule.at is not None:
            return False
        schedule = Schedule.model_validate({**schedule.model_dump(), "dtstart": dtstart})
    elif expect["compare"] == "dates":
        begin = now.replace(hour=0, minute=0, second=0) - timedelta(seconds=1)
        if first[0] > now.date().isoformat():
            begin += timedelta(days=1)
    found = [_to_local(at, case)[: len(first[0])] for at in schedule.upcoming(begin, len(first))]
    if found != first:
        return False
    if not expect.get("last"):
        return True
    everything = schedule.upcoming(
        datetime.fromisoformat(first[0]).replace(tzinfo=load_tzinfo(case["zone"])) - timedelta(days=1),
        expect["total"] + 2,
    )
    return bool(len(everything) == expect["total"] and _to_local(everything[-1], case)[:10] == expect["last"][:10])


def _to_local(at: datetime, case: dict[str, Any]) -> str:
    return at.astimezone(load_tzinfo(case["zone"])).replace(tzinfo=None).isoformat()
