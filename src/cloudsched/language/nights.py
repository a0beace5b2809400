"""Nights: "Friday night at 1" is early on Saturday, and "the night to Saturday at 23:00" late on Friday."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from cloudsched.domain.schedules.words import English
from cloudsched.language.messages import say, say_all
from cloudsched.language.nodes import DAY, Pick
from cloudsched.language.result import Option, Refused

if TYPE_CHECKING:
    from cloudsched.language.groups import Group
    from cloudsched.language.nodes import Clock
    from cloudsched.language.phrase_context import Context

_NIGHT: Final = 3
_DAWN: Final = 6
"""The hour before which a time belongs to the night that began on the day before."""


def find_shift(group: Group, context: Context) -> int:
    """Return by how many days the times of a group come after the day that is named, or that names their night."""
    part = group.part
    if group.midnight:
        return _ask_midnight(group, group.midnight, context)
    is_night = (part is not None and part.part == _NIGHT) or any(clock.part == _NIGHT for clock in group.clocks)
    has_day = group.days or group.relatives or (part is not None and part.today)
    if not is_night or not has_day or not group.clocks or any(clock.named for clock in group.clocks):
        return 0
    times = context.resolve_times(group.clocks, _NIGHT)
    early = {time.hour < _DAWN for time in times}
    if len(early) > 1:
        raise Refused("inexpressible", group.clocks[0].span, "say the times before and after midnight one by one")
    return early.pop() - (part is not None and part.is_ending)


def _ask_midnight(group: Group, clock: Clock, context: Context) -> int:
    """Ask whether midnight ends a day. It starts a day by its date or its number, and today's is still to come."""
    is_today = any(node.kind == "day" and not node.count for node in group.relatives)
    if is_today or (group.part is not None and group.part.today):
        return 1
    kinds = {pick.what for days in group.days for pick in days.picks}
    is_eve = any((date.month, date.day) == (12, 31) for days in group.days for date in days.dates)
    if group.relatives or is_eve or (0 < len(kinds) < DAY and DAY not in kinds):
        if len(group.clocks) > 1:
            raise Refused("too-vague", clock.span, "write 00:00 and say on which day")
        options = (Option("the midnight at the start of the day", 0), Option("the midnight at the end of the day", 1))
        return context.pick("midnight", clock.span, options)
    return 0


def move_weekdays(group: Group, shift: int, context: Context) -> None:
    """Move the days of a group that repeats by so many days."""
    for at, days in enumerate(group.days if shift else ()):
        if not days.is_weekly:
            raise Refused("inexpressible", days.span)
        moved = [(pick.what + shift) % 7 for pick in days.picks]
        days_said = say_all([say(English.weekdays[day]) for day in moved])
        context.assume(say("That is on {days}, in the night.", days=days_said))
        group.days[at] = replace(days, picks=tuple(Pick(0, day) for day in moved), business=False)
