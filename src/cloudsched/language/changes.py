"""Changes that count occurrences or name the parts that they replace, and orders without a change.

"Skip the next three" and "stop after five times" are changes. "Cancel my reminder" is an `Order`.

All other changes in phrases are in `updates`.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.language.grammar_clauses import parse_stretch
from cloudsched.language.grammar_numbers import parse_number
from cloudsched.language.groups import Group, Plan, build_plan
from cloudsched.language.lexicon import Cursor, Matches, Token, is_plain
from cloudsched.language.messages import say
from cloudsched.language.nodes import (
    Clause,
    Clock,
    Except,
    Span,
)
from cloudsched.language.phrase_context import Context, TimeOfDay
from cloudsched.language.result import Option, Refused
from cloudsched.language.single_moves import move_one, names_day
from cloudsched.language.updates import Edit, find_edit, make_change, take_apart

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cloudsched.domain.schedules.schedule import Schedule
    from cloudsched.language.grammar import Parser

    Change = Callable[[Schedule, Context], Schedule]

_LAST_BARE = 12
"""The last hour that may be one of either half of the day."""
_MOST = 1000
"""The largest number of occurrences that a phrase may count."""
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
    if c.take("stop-reminding") is not None:
        return Order("cancel", _slice(text, c.at, len(tokens), tokens), is_task=True)
    verb, end = _take_verb(c), len(tokens)
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
    is_task = is_named and (is_whole or (begin < end and "task-noun" in c.matches[end - 1]))
    return Order(name, _slice(text, begin, end, tokens), is_own, is_task, is_timing)


def _take_verb(c: Cursor) -> tuple[str, bool] | None:
    """Return a verb of change or cancellation, and whether it changes the time. None if there is none here."""
    if (verb := c.take("cancel-verb")) is not None:
        return _VERBS[verb.value], False
    verb = c.take("change-verb")
    return None if verb is None else ("change", verb.value > 1)


def _slice(text: str, begin: int, end: int, tokens: Sequence[Token]) -> str:
    return text[tokens[begin].start : tokens[end - 1].end] if begin < end else ""


def find_open_time(tokens: Sequence[Token], matches: Sequence[Matches]) -> Span | None:
    """Return the words that name a time by an event or a condition, such as "before the meeting", if there are any."""
    at = 0
    while at < len(tokens):
        here = matches[at]
        if "idiom" in here:
            at = here["idiom"].end
            continue
        match = here.get("occasion") or here.get("condition")
        is_compound = "-" in {each.text for each in tokens[max(at - 1, 0) : at + 2]}  # "after-work drinks"
        if match is not None and not is_compound and ("occasion" in here or match.value == 1):
            return tokens[at].start, tokens[-1].end
        at += 1
    return None


def find_condition(tokens: Sequence[Token], matches: Sequence[Matches]) -> Span | None:
    """Return the words of a condition, such as "when it rains", if there are any: nobody here can tell."""
    at = 0
    while at < len(tokens):
        here = matches[at]
        condition = here.get("condition")
        if "idiom" not in here and condition is not None and condition.value == 1:
            return tokens[at].start, tokens[-1].end
        at = here["idiom"].end if "idiom" in here else at + 1
    return None


def find_change(parser: Parser) -> Change | None:
    """Return the change that a phrase asks for. None if the phrase is not a change."""
    c = parser.cursor
    for rule in (_parse_skip_next, _parse_skip_stretch, _parse_stop_after, _parse_drop_part):
        c.at = 0
        c.skip("polite")
        change = rule(c)
        if change is not None:
            c.skip("polite", "stop", "skip-end")
            if c.ended:
                return change
    return _parse_move_next(parser) or _parse_exchange(parser) or find_edit(parser)


def _parse_skip_next(c: Cursor) -> Change | None:
    """Parse ``skip the next one``, ``skip the next three``, ``cancel the next 2 occurrences``."""
    if c.take("skip", "no-more") is None:
        return None
    c.take("article")
    begin = c.at
    c.take("next", "the-next")
    start, count = c.at, parse_number(c)
    if count is None or count < 2:
        c.at, count = start, 1
        if c.take("one") is None:
            c.at = begin
            if c.take("one") is None:
                return None
    elif c.sees("unit", "weekday", "weekdays", "month"):
        return None
    c.take("times", "one")
    return lambda current, context: _skip_next(current, context, count)


def _parse_skip_stretch(c: Cursor) -> Change | None:
    """Parse ``skip next week``, ``skip from April 1 to April 10``. The verb may come last, as in German."""
    headed = c.take("skip", "no-more") is not None
    stretch = parse_stretch(c)
    if stretch is None or not (headed or c.take("skip-after") is not None):
        return None
    return lambda current, context: take_apart(current, context).leave_out([Except((stretch,))], context)


def _parse_stop_after(c: Cursor) -> Change | None:
    """Parse ``stop after 5 times``, ``stop after 5``."""
    count = parse_number(c) if c.take("stop-after") is not None else None
    c.take("more")
    if count is None or (c.take("times") is None and not c.ended and not c.sees("polite", "stop")):
        return None
    c.take("more", "in-total")
    return lambda current, context: _end_after(current, context, count)


def _list_next(current: Schedule, context: Context, count: int) -> list[datetime]:
    if not 1 <= count <= _MOST:
        raise Refused("too-many")
    return current.anchor(context.now).upcoming(context.now, count)


def _skip_next(current: Schedule, context: Context, count: int) -> Schedule:
    """Leave out the next occurrences by their times: another one of that day is not meant."""
    if count > _MOST_SKIPPED:
        raise Refused("no-update", hint=say("at most {count} can be skipped at once", count=_MOST_SKIPPED))
    edit, zone = take_apart(current, context), load_tzinfo(current.timezone)
    following = _list_next(current, context, count)
    if len(following) < count:
        raise Refused("no-update", hint=say("it runs only {count} times more", count=len(following)))
    texts: list[str] = []
    left = edit.build(Plan(), context)
    for at in following:
        while left.occurs(at):  # a calendar may have moved several to it
            day, local = left.find_moved_day(at), at.astimezone(zone).replace(tzinfo=None)
            text = left.name_occurrence(at) if day is None else datetime.combine(day, local.time()).isoformat()
            if text in left.exdates:
                break
            texts.append(text)
            left = left.copy_unchecked(exdates=(*left.exdates, text))
    return edit.leave_out_dates(texts, context)


def _end_after(current: Schedule, context: Context, count: int) -> Schedule:
    """End after the next occurrences. They are known, so the end is the last of them."""
    edit = take_apart(current, context)
    following = _list_next(current, context, count)
    edit.count = None
    edit.until = following[-1].astimezone(load_tzinfo(current.timezone)).replace(tzinfo=None)
    context.choices.assume(say("The last time is {until:%Y-%m-%d at %H:%M}.", until=edit.until))
    return edit.build(Plan(), context)


def _parse_move_next(parser: Parser) -> Change | None:
    """Parse ``move the next one to tomorrow at 10``. Only with "once" may it be a weekday, or a time alone."""
    c = parser.cursor
    c.at = 0
    if c.take("relocate") is None or c.take("one") is None:
        return None
    is_once = c.take("twice") is not None
    if c.take("to", "onto") is None:
        return None
    read = parser.parse_between(c.at, len(parser.tokens), bare=True)
    plan = None if read is None else build_plan(read)
    if plan is None or read is None or len(plan.groups) > 1 or plan.recurs or plan.ends or plan.start:
        return None
    group = plan.groups[0]
    may_repeat = not is_once and not names_day(group)
    if may_repeat and (not group.days or group.repeat is not None):
        return None

    def move(current: Schedule, context: Context) -> Schedule:
        if current.is_single_time:
            return make_change(read)(current, context)
        if may_repeat and not (_has_days(current, context) and _is_one(group, context)):
            return make_change(read)(current, context)
        return move_one(current, context, None, group, is_once=is_once)

    return move


def _parse_exchange(parser: Parser) -> Change | None:
    """Parse a replacement: ``at 9:30 instead of 9``, ``move it from Friday to Monday``."""
    end = len(parser.tokens)
    while end and {"polite", "stop"} & parser.matches[end - 1].keys():
        end -= 1
    c = parser.cursor
    c.at = 0
    c.skip("polite")
    found = _find_moved(parser, end) or _find_replaced(parser, end)
    if found is None:
        return None
    new, replaced, is_of = found
    change = make_change(new)

    def exchange(current: Schedule, context: Context) -> Schedule:
        if current.is_single_time:
            return change(current, context)
        old_group = build_plan(replaced).groups[-1]
        new_group = build_plan(new).groups[-1]
        if _names_one(old_group, new_group, context, is_of=is_of):
            return move_one(current, context, old_group, new_group)
        edit = take_apart(current, context)
        if old_group.clocks and not old_group.has_days:
            if not new_group.clocks or new_group.has_days:
                raise Refused("no-update")
            _exchange_times(edit, old_group.clocks, new_group.clocks, context)
            return edit.build(Plan(), context)
        if old_group.days and not old_group.has_times:
            named = {pick.what for days in old_group.days for pick in days.picks if not pick.nth}
            own = {day for draft in edit.drafts for nth, day in draft.weekdays if not nth}
            if named < own and _is_day(old_group) and _is_day(new_group):
                if _is_one(old_group, context):
                    return move_one(current, context, old_group, new_group)
                return _exchange_day(edit, old_group, new_group, context)
            if named != own:
                raise Refused("no-update", hint="it runs on other days than these; say on which it should run")
            return change(current, context)
        raise Refused("no-update")

    return exchange


def _is_day(group: Group) -> bool:
    """Return whether a group has one weekday."""
    return len(group.days) == 1 and len(group.days[0].picks) == 1 and not group.relatives and group.repeat is None


def _exchange_day(edit: Edit, old: Group, new: Group, context: Context) -> Schedule:
    """Put one weekday in the place of another. The rest stays."""
    if new.has_times:
        raise Refused("no-update", hint="describe the whole schedule again")
    gone, added = old.days[0].picks[0], new.days[0].picks[0]
    for draft in edit.drafts:
        if gone in draft.weekdays:
            draft.weekdays = sorted({added, *draft.weekdays} - {gone})
    return edit.build(Plan(), context)


def _names_one(old: Group, new: Group, context: Context, *, is_of: bool) -> bool:
    """Return whether the old part is one occurrence: "tomorrow's", "Monday's", or a day with a new time alone."""
    if names_day(old):
        return True
    if not old.days or old.has_times or not (is_of or not new.has_days):
        return False
    return not old.days[0].marked or _is_one(old, context)


def _has_days(current: Schedule, context: Context) -> bool:
    """Return whether a schedule runs on several days of a week, so that a single new one hardly replaces them."""
    drafts = take_apart(current, context).drafts
    return any(draft.freq == "DAILY" for draft in drafts) or len({day for each in drafts for day in each.weekdays}) > 1


def _is_one(group: Group, context: Context) -> bool:
    """Return whether the next occurrence alone is meant, or each."""
    options = (Option("only the next time", True), Option("every time", False))
    return context.choices.pick("once-or-repeat", group.days[0].span, options)


_Exchange = tuple["Sequence[Clause]", "Sequence[Clause]", bool]
"""The new part, the old one, and whether one occurrence "of" some days may be meant."""


def _find_moved(parser: Parser, end: int) -> _Exchange | None:
    """Return the parts of ``move it from Friday to Monday``. "Make it Monday to Friday" is a range."""
    c = parser.cursor
    if c.take("relocate") is None:
        return None
    is_of = c.take("from") is None
    if is_of and c.take("of") is None:
        return None
    for at in range(c.at + 1, end):
        joint = parser.matches[at].get("to") or parser.matches[at].get("onto")
        old = None if joint is None else parser.parse_between(c.at, at, bare=True)
        new = None if joint is None or old is None else parser.parse_between(joint.end, end, bare=True)
        if old is not None and new is not None:
            return new, old, is_of
    return None


def _find_replaced(parser: Parser, end: int) -> _Exchange | None:
    """Return the new and the old part of ``make it 9 rather than 17``, ``Tuesdays instead of Mondays``."""
    at = next((place for place, matches in enumerate(parser.matches) if "instead-of" in matches), None)
    if not at:
        return None
    c = parser.cursor
    c.at = 0
    c.skip("polite")
    c.take("make")
    old = parser.parse_between(parser.matches[at]["instead-of"].end, end, bare=True)
    new = parser.parse_between(c.at, at, bare=True)
    return None if old is None or new is None else (new, old, False)


def _exchange_times(edit: Edit, old: Sequence[Clock], new: Sequence[Clock], context: Context) -> None:
    """Put new times of day in the place of others.

    A bare hour is in the same half of the day as the one that it replaces, if that was also said without its half.
    """
    own = sorted({time for draft in edit.drafts for time in draft.times})
    gone = [_find_time(clock, own) for clock in old]
    is_said = any(clock.hour == time.hour and time.hour > _LAST_BARE for clock, time in zip(old, gone, strict=True))
    added = [context.resolve_time(clock) if is_said else _near(clock, gone[0], context) for clock in new]
    for draft in edit.drafts:
        if not set(gone) <= set(draft.times):
            raise Refused(
                "no-update", hint="it has different times on different days; describe the whole schedule again"
            )
        draft.times = sorted({*(time for time in draft.times if time not in gone), *added})


def _find_time(clock: Clock, own: Sequence[TimeOfDay]) -> TimeOfDay:
    """Return the time of a schedule that a clock names. An exact match comes first."""
    hour = clock.hour % 12 + 12 * clock.half if clock.half is not None else clock.hour
    exact = TimeOfDay(hour, clock.minute, clock.second)
    if exact in own:
        return exact
    other = TimeOfDay((hour + 12) % 24, clock.minute, clock.second)
    if clock.half is None and not clock.exact and other in own:
        return other
    raise Refused("no-update", clock.span, "it does not run at this time; say at which it should run")


def _near(clock: Clock, old: TimeOfDay, context: Context) -> TimeOfDay:
    if clock.half is not None or clock.exact or clock.part is not None or clock.hour > 12:
        return context.resolve_time(clock)
    choices = [TimeOfDay((clock.hour + shift) % 24, clock.minute, clock.second) for shift in (0, 12)]
    return min(choices, key=lambda time: abs(60 * (time.hour - old.hour) + time.minute - old.minute))


_PART_TIMES = {0: (0, 12), 1: (12, 18), 2: (17, 24), 3: (20, 24), 4: (11, 14)}
"""The hours of each part of the day. A night also has those before 5."""


def _parse_drop_part(c: Cursor) -> Change | None:
    """Parse ``drop the evening one``, ``no more in the morning``."""
    if c.take("skip", "no-more") is None:
        return None
    c.take("in", "at")
    c.take("article")
    part = None if c.sees("relday") else c.take("part", "parts")
    if part is None:
        return None
    c.take("one", "that-one")
    first, last = _PART_TIMES[part.value]

    def drop(current: Schedule, context: Context) -> Schedule:
        edit = take_apart(current, context)
        for draft in edit.drafts:
            kept = [time for time in draft.times if not first <= time.hour < last]
            if kept == draft.times or not kept:
                raise Refused("no-update", hint="it has no such time besides others; say at which times it should run")
            draft.times = kept
        return edit.build(Plan(), context)

    return drop
