"""Rates such as "twice a week" and "biweekly", which say how often but not when."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cloudsched.language.groups import Group
from cloudsched.language.nodes import DAY, Clock, Days, Months, Pick, Repeat, Unit
from cloudsched.language.refusals import Option, Refused

if TYPE_CHECKING:
    from cloudsched.language.context import Context


def resolve_bi(group: Group, repeat: Repeat, context: Context) -> Group:
    """Resolve "biweekly", which is ambiguous: every two weeks, or twice a week."""
    unit = repeat.unit.name.lower()
    every = replace(group, repeat=replace(repeat, loose=""))
    often = replace(repeat, interval=1, rate=2, loose="")
    names = (f"every two {unit}s", f"twice a {unit}")
    options: tuple[Option, ...] = (Option(names[0], every), Option(names[1], _spread_evenly(group, often)))
    if repeat.unit == Unit.HOUR or group.days:
        options = options[:1]
    chosen = context.choices.pick("bi", repeat.span, options)
    assert isinstance(chosen, Group)  # noqa: S101 -- one of those above
    return chosen


def resolve_rate(group: Group, repeat: Repeat, context: Context) -> Group:
    """Resolve "twice a week": use the days or times that the phrase names, or ask for them."""
    once = replace(group, repeat=replace(repeat, rate=1))
    named = len(group.clocks) if repeat.unit == Unit.DAY else sum(len(d.picks) + len(d.dates) for d in group.days)
    if repeat.unit >= Unit.DAY and named:
        if named != repeat.rate or repeat.interval > 1:
            raise Refused(
                "contradiction", repeat.span, f"it says {repeat.rate} times but names {named}; make them agree"
            )
        return once
    if repeat.unit < Unit.DAY or repeat.rate > 12 or group.window:
        raise Refused("too-vague", repeat.span, "list the times")
    spread = _spread_evenly(group, repeat)
    chosen = context.choices.pick("rate", repeat.span, (Option("spread evenly", spread),))
    assert isinstance(chosen, Group)  # noqa: S101 -- the one above
    return chosen


def _spread_evenly(group: Group, repeat: Repeat) -> Group:
    """Return the group with its days or times spread evenly, to offer as a suggestion."""
    count = repeat.rate
    once = replace(repeat, rate=1)
    if repeat.unit == Unit.DAY:
        hours = [9 + round(step * 9 / max(count - 1, 1)) for step in range(count)]
        return replace(group, repeat=once, clocks=[Clock(hour, exact=True) for hour in hours])
    if repeat.unit in (Unit.WEEK, Unit.FORTNIGHT):
        picks = tuple(Pick(0, day * 7 // count) for day in range(min(count, 7)))
    elif repeat.unit == Unit.MONTH:
        picks = tuple(Pick(1 + step * 28 // count, DAY) for step in range(count))
    else:
        months = tuple(1 + step * 12 // count for step in range(count))
        return replace(group, repeat=once, months=Months(months), days=[Days((Pick(1, DAY),), on=True)])
    return replace(group, repeat=once, days=[Days(picks, on=True, plural=True)])
