"""Read from a changed schedule which of its occurrences was moved, from when to when, or left out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_DAY_LENGTH: Final = len("2027-01-01")
_ALONE: Final = ("at", "local", "dtstart")
"""The fields that name the time of a schedule with one occurrence."""
_DATES: Final = ("exdates", "rdates")


class MovedRun(NamedTuple):
    """The times of an occurrence before and after a change, as the schedule names them. Empty for none."""

    before: str
    after: str

    @property
    def is_whole(self) -> bool:
        """Return whether it is known from when to when."""
        return bool(self.before and self.after)

    def write(self) -> tuple[str, str]:
        """Return both in words, such as ``2027-03-30 03:30`` and ``04:30``. The same day is written once."""
        before, after = (each[:16].replace("T", " ") + each[19:] for each in self)
        if before[:_DAY_LENGTH] == after[:_DAY_LENGTH]:
            after = after[_DAY_LENGTH:].strip() or after
        return before, after


def find_move(before: str | None, after: str | None) -> MovedRun:
    """Return what was moved between two schedules as JSON: one time that is gone, and one that is new.

    Empty if more than that has changed.
    """
    old, new = (_read(each) for each in (before, after))
    is_alone = not (old.keys() | new.keys()) & {"rrule", "rdates", "calendars"}
    may_differ = _ALONE if is_alone else _DATES
    kept_before, kept_after = ({name: each[name] for name in each if name not in may_differ} for each in (old, new))
    if kept_before != kept_after:
        return MovedRun("", "")
    if is_alone:
        gone, come = _list_times(old), _list_times(new)
    else:
        (left_out, left_in), (added, removed) = (_compare(old, new, name) for name in ("exdates", "rdates"))
        gone, come = left_out | removed, left_in | added
    return MovedRun(*(next(iter(each)) if len(each) == 1 else "" for each in (gone, come)))


def _compare(old: Mapping[str, Any], new: Mapping[str, Any], name: str) -> tuple[set[str], set[str]]:
    """Return the dates of a list that only the new schedule has, and those that only the old one has."""
    before, after = ({*map(str, each.get(name, ()))} for each in (old, new))
    return after - before, before - after


def _read(text: str | None) -> Mapping[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:  # cut, since it was too long to keep
        return {}
    return found if isinstance(found, dict) else {}


def _list_times(schedule: Mapping[str, Any]) -> set[str]:
    """Return the time of a schedule with one occurrence."""
    return {str(schedule[name]) for name in _ALONE if schedule.get(name)}
