"""Changes that count occurrences or name the parts that they replace, and orders without a change.

"Skip the next three" is a change. "Cancel my reminder" is an `Order`.

All other changes in phrases are in `updates`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from cloudsched.language.grammar_clauses import leave_out
from cloudsched.language.groups import Group, build_plan
from cloudsched.language.messages import say
from cloudsched.language.nodes import Clause, Days, Length, NamedCalendars, Period, Point, Relative, Span
from cloudsched.language.result import Option, Refused
from cloudsched.language.rows import Rule
from cloudsched.language.single_moves import move_one, names_day
from cloudsched.language.updates import anchor, change_schedule, list_picks, shift_schedule, take_apart

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cloudsched.domain.schedules.schedule import Schedule
    from cloudsched.language.grammar import Parser
    from cloudsched.language.lexicon import Cursor, Matches, Token
    from cloudsched.language.phrase_context import Context

    Change = Callable[[Schedule, Context], Schedule]

_MOST_SKIPPED = 50
"""The largest number of occurrences that may be left out one by one."""

_ENDS = frozenset({"instead", "same-time", "comma", "also", "polite", "stop", "only"})
"""The classes of words that may end a change."""


class Order(NamedTuple):
    """An order to do something to an existing task. It makes no task.

    Attributes:
        verb: ``change``, ``cancel``, ``delete``, ``pause`` or ``resume``.
        is_task: They call it a task, a reminder or the like, so that they cannot be about anything else.
        is_timing: The verb only means that something is to run at another time, as "verschiebe" does.
    """

    verb: str
    what: str
    is_task: bool = False
    is_timing: bool = False


def find_order(text: str, c: Cursor) -> Order | None:
    """Return the order in a text whose verb, at its head or its end, changes or ends something. None without one."""
    tokens = c.tokens
    c.skip("polite", "intro", "wish", "comma")
    begin, end = c.at, len(tokens)
    verb = take_verb(c)
    if verb is None:
        c.at = end = max(len(tokens) - 1, begin)
        verb, c.at = take_verb(c), begin
    if verb is None:
        return None
    name, is_timing, is_task = verb
    begin = c.at
    c.skip("own", "article")
    is_named = c.at > begin or name != "change"  # "update tasks" is work
    is_task = is_task or (is_named and (c.sees("task-noun") or "task-noun" in c.matches[end - 1]))
    what = text[tokens[begin].start : tokens[end - 1].end] if begin < end else ""
    return Order(name, what, is_task, is_timing)


_VERBS = ("", "cancel", "delete", "pause", "resume")
take_verb = Rule(
    "order_verb",
    ("stop-reminding", lambda: ("cancel", False, True)),
    ("verb=cancel-verb", lambda verb: (_VERBS[verb], False, False)),
    ("verb=change-verb", lambda verb: ("change", verb > 1, False)),
)
"""A verb of change or cancellation: its name, whether it changes the time, and whether it can only be about a task."""


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
    begin = c.at
    change: Change | None = parse_counted(c)
    c.skip("polite", "stop", "skip-end")
    if c.ended:
        return change
    end = len(parser.tokens)
    for at in reversed(range(begin, end)):
        here = parser.matches[at]
        if "times" not in here and any(kind in _ENDS and match.end == end for kind, match in here.items()):
            end = at
    return _parse_exchange(parser, begin, end) or _parse_edit(parser, begin, end)


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


def _leave_out(found: tuple[Sequence[Point | NamedCalendars], ...], *, is_single: bool = True) -> Change:
    """Return the change that leaves out some days: each of them, or only the coming one if it is `single`."""
    if is_single:
        found = tuple([*map(_pick_single, each)] for each in found)
    return partial(change_schedule, read=leave_out(found), operation="except")


def _pick_single(point: Point | NamedCalendars) -> Point | NamedCalendars:
    """Narrow "skip Friday" to the coming Friday instead of every Friday, and "the 24th" to the coming one."""
    if not isinstance(point, Days) or point.marked or len(point.picks) != 1:
        return point
    if point.is_counted:
        return replace(point, period=point.period or Period())
    return Relative("weekday", weekday=point.picks[0].what, span=point.span)


def _shift(length: Length, direction: int) -> Change:
    return partial(shift_schedule, by=length, direction=direction)


def _shift_on(within: Period) -> Change:
    return _shift(Length(((within.unit, within.ahead or 0),)), 1)


_skip_one = partial(partial, _skip_next, count=1)
parse_counted = Rule(
    "counted_change",
    ("skip found=@exceptions", _leave_out),
    ("found=@exceptions skip-after", _leave_out),  # the verb comes last, as in German
    ("no-more found=@exceptions", partial(_leave_out, is_single=False)),
    (
        "skip|no-more [article] [next|the-next] count=@number !unit|weekday|weekdays|month [times|one]",
        lambda count: partial(_skip_next, count=count) if count > 1 else None,
    ),
    ("skip|no-more [article] [next|the-next] one [times|one]", _skip_one),
    ("skip|no-more [article] one|next|the-next [times|one]", _skip_one),
    ("[by] direction=postpone [by|onto|at] length=@length", _shift),
    ("[by] [make] [by|onto|at] length=@length direction=shift", _shift),
    ("same-time within=@within", _shift_on),
    ("[make] within=@within same-time|instead", _shift_on),
)
"""Skip the next ones, leave out days, or shift all times: "skip the next three", "not on Fridays", "an hour later"."""


def _parse_exchange(parser: Parser, begin: int, end: int) -> Change | None:
    """Parse a replacement: ``at 9:30 instead of 9``, ``move it from Friday to Monday``, ``move the next one to 10``."""
    c = parser.cursor
    c.at = begin
    is_moved = is_of = False
    if c.take("relocate") is not None:
        if c.take("one") is not None:
            is_once = c.take("twice") is not None
            read = parser.parse_between(c.at, end, bare=True) if c.skip("to", "onto") else None
            if read is not None:
                return partial(_move_next, read=read, is_once=is_once)
        is_of = not c.sees("from")
        is_moved = c.take("from", "of") is not None
    if not is_moved:
        c.at = begin
        c.take("make")
    joints = ("to", "onto", "at") if is_moved else ("instead-of",)
    begin = c.at
    for at in range(begin, end):
        c.at = at
        if c.take(*joints) is None:
            continue
        both = parser.parse_between(begin, at, bare=True), parser.parse_between(c.at, end, bare=True)
        parts = [part for part in both if part is not None]
        if len(parts) == len(both):
            old, new = parts if is_moved else reversed(parts)
            return partial(_exchange, old=old, new=new, is_of=is_moved and is_of)
    return None


def _move_next(current: Schedule, context: Context, read: Sequence[Clause], *, is_once: bool) -> Schedule:
    """Move the next occurrence to a day, or all of them to a weekday."""
    if current.is_single_time:
        return change_schedule(current, context, read)
    plan = build_plan(read)
    group = plan.groups[0]
    if not (is_once or names_day(group)):  # "once" alone may be a weekday, or a time
        if plan.recurs or plan.ends or plan.start or not group.days:
            raise Refused("no-update")
        own = {day for draft in take_apart(current, context).drafts for day in draft.weekdays}
        if len(own) == 1 or not _is_one(group, context):  # a single new day hardly replaces several
            return change_schedule(current, context, read)
    return move_one(current, context, read, is_once=is_once)


def _exchange(
    current: Schedule, context: Context, old: Sequence[Clause], new: Sequence[Clause], *, is_of: bool
) -> Schedule:
    """Put some parts in the place of others, or move one occurrence: "tomorrow's", "Monday's"."""
    if current.is_single_time:
        return change_schedule(current, context, new)
    gone, group = build_plan(old).groups[-1], build_plan(new).groups[-1]
    picks = {pick for days in gone.days for pick in days.picks}
    is_one = names_day(gone)
    if picks and not gone.has_times and not is_one:
        is_part = bool(group.days) and picks < list_picks(take_apart(current, context).drafts)
        is_one = (is_of and not gone.days[0].marked) or ((is_of or is_part) and _is_one(gone, context))
    if is_one:
        return move_one(current, context, new, gone)
    are_times = gone.clocks and group.clocks and not (gone.has_days or group.has_days)
    if not (are_times or (picks and group.days and not gone.has_times)):
        raise Refused("no-update")
    return change_schedule(current, context, new, old=gone)


def _is_one(group: Group, context: Context) -> bool:
    """Return whether the next occurrence alone is meant, or each."""
    options = (Option("only the next time", True), Option("every time", False))
    return context.pick("once-or-repeat", group.days[0].span, options)


_OPERATIONS = {"same-time": "", "only": "only", "add-more": "add", "no-more": "remove", "skip": "remove", "": ""}


def _parse_edit(parser: Parser, begin: int, end: int) -> Change | None:
    """Parse the parts to set, add or leave out."""
    c = parser.cursor
    tail = {kind for matches in parser.matches[end:] for kind in matches}
    for kind, operation in _OPERATIONS.items():
        c.at = begin
        is_made = c.skip("make")
        if kind and c.take(kind) is None:
            continue
        read = parser.parse_between(c.at, end, bare=is_made or kind == "only" or "instead" in tail)
        if read is None and is_made and c.take("to", "onto") is not None:
            read = parser.parse_between(c.at, end, bare=True)
        if read is not None:
            adds = "also" in tail and operation != "remove"
            return partial(change_schedule, read=read, operation="add" if adds else operation)
    return None
