"""The instants that a person enters as a wall-clock time, in the zone of the page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cloudsched.dashboard.times import write_time
from cloudsched.dashboard.words import shorten

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

_FORMAT = "%Y-%m-%dT%H:%M"


@dataclass(frozen=True, slots=True)
class EnteredInstant:
    """An instant of an address, and how its field shows it."""

    iso: str = ""
    """The instant for the API. Empty if none was given, or nothing can be read."""
    value: str = ""
    """The wall-clock time, as the field has it."""
    note: str = ""
    """What there is to say: the clock skips or repeats that time, or it is none."""


def read_instant(text: str, zone: ZoneInfo) -> EnteredInstant:
    """Return an instant that is written with an offset, or as a wall-clock time in a zone.

    A time that the clock skips means the one after the gap, and of one that comes twice the first is meant.
    """
    if not text:
        return EnteredInstant()
    try:
        entered = datetime.fromisoformat(text)
        if entered.tzinfo is not None:
            return EnteredInstant(entered.astimezone(UTC).isoformat(), f"{entered.astimezone(zone):{_FORMAT}}")
        first = entered.replace(tzinfo=zone).astimezone(UTC)
        second = entered.replace(tzinfo=zone, fold=1).astimezone(UTC)
    except (ValueError, OverflowError):
        return EnteredInstant(note=f"“{shorten(text, 40)}” is no time, and was left out.")
    meant = first.astimezone(zone)
    note = ""
    if meant.replace(tzinfo=None, fold=0) != entered:
        note = f"The clock skips {entered:%H:%M} on that day in {zone.key}: {write_time(meant)} is meant."
    elif first != second:
        note = f"The clock shows {entered:%H:%M} twice on that day in {zone.key}: {write_time(meant)} is meant."
    return EnteredInstant(first.isoformat(), f"{entered:{_FORMAT}}", note)


def write_notes(*entered: EnteredInstant) -> str:
    """Return what there is to say of several."""
    return " ".join(each.note for each in entered if each.note)
