"""Changes that count occurrences or name the parts that they replace, and orders without a change.

"Skip the next three" is a change. "Cancel my reminder" is an `Order`.

All other changes in phrases are in `updates`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from cloudsched.language.groups import Group, build_plan
from cloudsched.language.lexicon import Cursor, Matches, Token, is_plain
from cloudsched.language.messages import say
from cloudsched.language.nodes import Clause, Clock, Length, Period, Span, Stretch
from cloudsched.language.phrase_context import NOON, Context, is_bare, list_times
from cloudsched.language.result import Option, Refused
from cloudsched.language.rows import Rule
from cloudsched.language.single_moves import move_one, names_day
from cloudsched.language.updates import (
    anchor,
    apply_group,
    change_schedule,
    leave_out,
    remove,
    shift_schedule,
    take_apart,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cloudsched.domain.schedules.schedule import Schedule
    from cloudsched.language.grammar import Parser
    from cloudsched.language.recurrences import Builder

    Change = Callable[[Schedule, Context], Schedule]

_MOST_SKIPPED = 50
"""The largest number of occurrences that may be left out one by one."""

_VERBS = {1: "cancel", 2: "delete", 3: "pause", 4: "resume"}


class Order(NamedTuple):
    """An order to do something to an existing task. It makes no task.

    Attributes:
        verb: ``change``, ``cancel``, ``delete``, ``pause`` or ``resume``.
        is_own: They call it the user's own: "my report".
        is_task: They call it a task, a reminder or the like, so that they cannot be about anything else.
        is_timing: The verb only means that something is to run at another time, as "verschiebe" does.
    """

    verb: str
    what: str
    is_own: bool = False
    is_task: bool = False
    is_timing: bool = False


def find_order(text: str, c: Cursor) -> Order | None:
    """Return the order in a text whose verb, at its head or its end, changes or ends something. None without one."""
    tokens = c.tokens
    c.skip("polite", "intro", "wish", "comma")
    is_task, end = c.take("stop-reminding") is not None, len(tokens)
    verb = ("cancel", False) if is_task else _take_verb(c)
    if verb is None:
        begin = c.at
        c.at = end = max(len(tokens) - 1, begin)
        verb, c.at = _take_verb(c), begin
    if verb is None:
        return None
    begin, is_own = c.at, False
    while (owned := c.take("own")) is not None or c.take("article") is not None:
        is_own = is_own or (owned is not None and owned.value == 1)
    name, is_timing = verb
    is_named = c.at > begin or name != "change"  # "update tasks" is work
    noun = c.take("task-noun")
    is_whole = noun is not None and (c.at >= end or c.sees("onto") or not is_plain(c.matches[c.at]))
    is_task = is_task or (is_named and (is_whole or (begin < end and "task-noun" in c.matches[end - 1])))
    what = text[tokens[begin].start : tokens[end - 1].end] if begin < end else ""
    return Order(name, what, is_own, is_task, is_timing)


def _take_verb(c: Cursor) -> tuple[str, bool] | None:
    """Return a verb of change or cancellation, and whether it changes the time. None if there is none here."""
    if (verb := c.take("cancel-verb")) is not None:
        return _VERBS[verb.value], False
    verb = c.take("change-verb")
    return None if verb is None else ("change", verb.value > 1)


def find_open_time(
    tokens: Sequence[Token], matches: Sequence[Matches], kinds: Sequence[str] = ("occasion", "condition")
) -> Span | None:
    """Return the words that name a time by an event, "before the meeting", or a condition, "when it rains".

    Nobody here can tell when that is. None without such words of the `kinds`.
    """
    at = 0
    while at < len(tokens):
        here = matches[at]
        if "idiom" in here:
            at = here["idiom"].end
            continue
        is_open = any(kind in here and (kind == "occasion" or here[kind].value == 1) for kind in kinds)
        if is_open and "-" not in {each.text for each in tokens[max(at - 1, 0) : at + 2]}:  # "after-work drinks"
            return tokens[at].start, tokens[-1].end
        at += 1
    return None


def find_change(parser: Parser) -> Change | None:
    """Return the change that a phrase asks for. None if the phrase is not a change."""
    c = parser.cursor
    c.at = 0
    c.skip("polite")
    change: Change | None = parse_counted(c)
    c.skip("polite", "stop", "skip-end")
    if change is not None and c.ended:
        return change
    return _parse_move_next(parser) or _parse_exchange(parser) or _parse_edit(parser)


def _skip_next(current: Schedule, context: Context, *, count: int) -> Schedule:
    """Leave out the next occurrences by their times: another one of that day is not meant."""
    if count > _MOST_SKIPPED:
        raise Refused("no-update", hint=say("at most {count} can be skipped at once", count=_MOST_SKIPPED))
    left = anchor(current, context)
    following = left.upcoming(context.now, count)
    if len(following) < count:
        raise Refused("no-update", hint=say("it runs only {count} times more", count=len(following)))
    for at in following:
        left = left.leave_out(at)
    return left


def _skip_stretch(stretch: Stretch | Period) -> Change:
    return lambda current, context: leave_out(take_apart(current, context), stretch)


def _shift(length: Length, direction: int) -> Change:
    return partial(shift_schedule, by=length, direction=direction)


_skip_one = partial(partial, _skip_next, count=1)
parse_counted = Rule(
    "counted_change",
    ("skip|no-more stretch=@stretch", _skip_stretch),
    ("stretch=@stretch skip-after", _skip_stretch),  # the verb comes last, as in German
    (
        "skip|no-more [article] [next|the-next] count=@number !unit|weekday|weekdays|month [times|one]",
        lambda count: partial(_skip_next, count=count) if count > 1 else None,
    ),
    ("skip|no-more [article] [next|the-next] one [times|one]", _skip_one),
    ("skip|no-more [article] one|next|the-next [times|one]", _skip_one),
    ("[by] direction=postpone [by|onto|at] length=@length", _shift),
    ("[by] [make] [by|onto|at] length=@length direction=shift", _shift),
)
"""Skip the next ones, or a stretch of days, or shift all times: "skip the next three", "an hour later"."""


def _parse_move_next(parser: Parser) -> Change | None:
    """Parse ``move the next one to tomorrow at 10``. Only with "once" may it be a weekday, or a time alone."""
    c = parser.cursor
    c.at = 0
    if c.take("relocate") is None or c.take("one") is None:
        return None
    is_once = c.take("twice") is not None
    if not c.skip("to", "onto"):
        return None
    read = parser.parse_between(c.at, len(parser.tokens), bare=True)
    if read is None:
        return None
    plan = build_plan(read)
    if len(plan.groups) > 1 or plan.recurs or plan.ends or plan.start:
        return None
    group = plan.groups[0]
    may_repeat = not is_once and not names_day(group)
    if may_repeat and not group.days:
        return None

    def move(current: Schedule, context: Context) -> Schedule:
        if current.is_single_time:
            return change_schedule(current, context, read)
        if may_repeat:
            days = {day for draft in take_apart(current, context).drafts for day in draft.weekdays}
            if len(days) == 1 or not _is_one(group, context):  # a single new day hardly replaces several
                return change_schedule(current, context, read)
        return move_one(current, context, None, group, is_once=is_once)

    return move


def _parse_exchange(parser: Parser) -> Change | None:
    """Parse a replacement: ``at 9:30 instead of 9``, ``move it from Friday to Monday``."""
    found = _find_parts(parser)
    if found is None:
        return None
    new, replaced, is_of = found

    def exchange(current: Schedule, context: Context) -> Schedule:
        if current.is_single_time:
            return change_schedule(current, context, new)
        old_group, new_group = build_plan(replaced).groups[-1], build_plan(new).groups[-1]
        # "tomorrow's", "Monday's", or a day with a new time alone
        is_day = old_group.days and not old_group.has_times and (is_of or not new_group.has_days)
        if names_day(old_group) or (is_day and (not old_group.days[0].marked or _is_one(old_group, context))):
            return move_one(current, context, old_group, new_group)
        edit = take_apart(current, context)
        if old_group.clocks and new_group.clocks and not (old_group.has_days or new_group.has_days):
            _exchange_times(edit, old_group.clocks, new_group.clocks, context)
            return edit.build()
        if not old_group.days or old_group.has_times:
            raise Refused("no-update")
        named = {pick.what for days in old_group.days for pick in days.picks if not pick.nth}
        own = {day for draft in edit.drafts for nth, day in draft.weekdays if not nth}
        if named == own:
            return change_schedule(current, context, new)
        if not named < own or not new_group.days:
            raise Refused("no-update", hint="it runs on other days than these; say on which it should run")
        if _is_one(old_group, context):
            return move_one(current, context, old_group, new_group)
        for draft in edit.drafts:
            draft.weekdays = [day for day in draft.weekdays if day[1] not in named]
        return apply_group(edit, build_plan(new), adds=True)

    return exchange


def _is_one(group: Group, context: Context) -> bool:
    """Return whether the next occurrence alone is meant, or each."""
    options = (Option("only the next time", True), Option("every time", False))
    return context.pick("once-or-repeat", group.days[0].span, options)


def _find_parts(parser: Parser) -> tuple[Sequence[Clause], Sequence[Clause], bool] | None:
    """Return the new and the old part of ``move it from Friday to Monday``, ``9 instead of 17``.

    The last value is whether one occurrence "of" some days may be meant.
    """
    c, end = parser.cursor, _find_tail(parser, "polite", "stop")
    c.at = 0
    c.skip("polite")
    begin = c.at
    is_moved = c.take("relocate") is not None
    is_of = not c.sees("from")
    is_moved = is_moved and c.take("from", "of") is not None
    if not is_moved:
        c.at = begin
        c.take("make")
    for at in range(c.at, end):
        here = parser.matches[at]
        joint = here.get("to") or here.get("onto") or here.get("at") if is_moved else here.get("instead-of")
        if joint is None:
            continue
        first = parser.parse_between(c.at, at, bare=True)
        last = None if first is None else parser.parse_between(joint.end, end, bare=True)
        if first is not None and last is not None:
            return (last, first, is_of) if is_moved else (first, last, False)
    return None


def _exchange_times(edit: Builder, old: Sequence[Clock], new: Sequence[Clock], context: Context) -> None:
    """Put new times of day in the place of others.

    A bare hour is as near as possible to the time that it replaces, if that was not said on the 24-hour clock.
    """
    own = {time for draft in edit.drafts for time in draft.times}
    gone = [found[0] for clock in old if (found := [time for time in list_times(clock) if time in own])]
    if len(gone) < len(old):
        raise Refused("no-update", old[0].span, "it does not run at this time; say at which it should run")
    is_near = all(clock.hour <= NOON for clock in old)
    added = [
        min(list_times(clock), key=lambda time: abs(time.hour - gone[0].hour))
        if is_near and is_bare(clock)
        else context.resolve_time(clock)
        for clock in new
    ]
    for draft in edit.drafts:
        if not set(gone).isdisjoint(draft.times):
            draft.times = sorted({*draft.times} - {*gone} | {*added})


def _parse_edit(parser: Parser) -> Change | None:
    """Parse the parts to set, add or leave out."""
    c = parser.cursor
    end = _find_tail(parser, "instead", "same-time", "comma", "also", "polite", "stop", "only")
    tail = {kind for matches in parser.matches[end:] for kind in matches}
    for kind in ("same-time", "only", "add-more", "no-more", "skip", ""):
        c.at = 0
        c.take("polite")
        is_made = c.skip("make")
        if kind and c.take(kind) is None:
            continue
        read = parser.parse_between(c.at, end, bare=is_made or kind == "only" or "instead" in tail)
        if read is None and is_made and c.take("to", "onto") is not None:
            read = parser.parse_between(c.at, end, bare=True)
        if read is None:
            continue
        if kind in {"no-more", "skip"}:
            return partial(remove, read=read, single=kind == "skip")
        period = read[0]
        is_same_time = kind == "same-time" or not tail.isdisjoint({"instead", "same-time"})
        if is_same_time and isinstance(period, Period) and period.ahead is not None:
            return partial(shift_schedule, by=Length(((period.unit, period.ahead),)), direction=1)
        adds = kind == "add-more" or "also" in tail
        return partial(change_schedule, read=read, adds=adds, limits=kind == "only")
    return None


def _find_tail(parser: Parser, *kinds: str) -> int:
    """Return the token from which on a phrase has only words of some classes."""
    end = len(parser.tokens)
    for at in reversed(range(end)):
        here = parser.matches[at]
        if "times" not in here and any(kind in kinds and match.end == end for kind, match in here.items()):
            end = at
    return end
