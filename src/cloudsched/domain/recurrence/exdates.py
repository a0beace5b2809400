"""The exceptions of a schedule: an EXDATE names an occurrence, and a change of the zone moves it along.

A date is a whole day, and stays one. In another zone, an occurrence has the same local time. One in elapsed
time keeps its distance from the start where that local time is none of its times. An RDATE with an offset
stays where it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.recurrence.iso8601 import Moment, parse_moment
from cloudsched.domain.recurrence.recurrence_set import Dates, first_instant, list_instants

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.recurrence.recurrence_set import Recurrence
    from cloudsched.domain.recurrence.wall_clock import WallClock


def name_occurrence(base: Recurrence, instant: int) -> str:
    """Return the EXDATE of one occurrence: its local time, or its instant if that time is ambiguous."""
    read = base.read(instant)
    if read is None:
        return _name(base.clock, instant, _show(base.clock, instant))
    return _name(base.clock, instant, read[0])


def name_instant(clock: WallClock, instant: int) -> str:
    """Return the RDATE of an instant: its local time, or the instant itself if that time is ambiguous."""
    return _name(clock, instant, _show(clock, instant))


def change_zone(exdates: Sequence[str], here: Recurrence, there: Recurrence, start: int) -> tuple[str, ...]:
    """Return the EXDATEs of the same occurrences in another zone. The start is the local time in both."""
    shift = first_instant(there.clock, start) - first_instant(here.clock, start)
    dated = [each for each in here.streams if isinstance(each, Dates) and not each.is_local]

    def move(instant: int) -> str:
        read = here.read(instant)
        if read is not None:
            wall, is_second = read
            images = there.clock.instants(wall) or (instant,)
            return _name(there.clock, images[-int(is_second)], wall)
        images = (*there.clock.instants(_show(here.clock, instant)), instant + shift)
        if any(each.first_from(instant) == instant for each in dated):
            images = (instant,)
        image = next((each for each in images if there.first_from(each) == each), images[-1])
        return _name(there.clock, image, _show(there.clock, image))

    texts: list[str] = []
    for text in exdates:
        moment = parse_moment(text, "exdates")
        if moment.is_date or (moment.offset is None and here.is_local):
            texts.append(text)
        else:
            texts += map(move, list_instants(moment, here.clock, 0))
    return tuple(dict.fromkeys(texts))


def keep_instants(exdates: Sequence[str], clock: WallClock) -> tuple[str, ...]:
    """Return the EXDATEs as instants, for occurrences that stay where they are when the zone changes."""
    texts: list[str] = []
    for text in exdates:
        moment = parse_moment(text, "exdates")
        if moment.is_date:
            texts.append(text)
        else:
            texts += (_format(each, 0) for each in list_instants(moment, clock, 0))
    return tuple(texts)


def _name(clock: WallClock, instant: int, wall: int) -> str:
    is_alone = clock.instants(wall) in {(instant,), ()}  # of a gap that is skipped there are none
    if is_alone:
        return _format(wall, None)
    return _format(instant, 0)


def _show(clock: WallClock, instant: int) -> int:
    return instant + clock.zone.offset_at(instant)


def _format(seconds: int, offset: int | None) -> str:
    return Moment(seconds, offset, is_date=False).isoformat()
