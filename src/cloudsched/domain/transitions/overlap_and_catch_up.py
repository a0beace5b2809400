"""Decide about due occurrences that have not started, when their task stops or is given another plan.

`due_ranges` says which these are, whatever they wait for: the end of their jitter, a lock, a worker, an
open run, or a late dispatch. A claim, a pause, a cancel and any other plan ask it in their own commit, so
that each of them is covered by exactly one record:

* Those that a policy rules out end at once: SKIPPED by ``overlap`` or ``catchUp``, EXPIRED by
  ``expiration``.
* Those that the policies would run wait for the end of a pause (`Task.backlog`), as do those whose jitter
  is not over, which no policy has judged yet. The policies judge them again in their turn. A cancel records
  them as CANCELLED.
* A new plan that has them as well runs them (`end_plan`). One without them records them as SKIPPED.
* Those that were left out up to then are SKIPPED, too, with the reason, such as a holiday. Those before the
  latest occurrence that was processed have a record, and those before `plan_from` have one or were not of
  the plan.

Any number of occurrences may have come due, so those in a row that end for one reason have one record, with
their number. Finding the ends of such a range takes a search, not a walk over its occurrences, and a steady
rule is counted by a division. Of others, at most `MAX_COUNTED` are counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, assert_never, cast

from cloudsched.domain.documents.execution import Execution, ExecutionStatus, OccurrenceRange, Run
from cloudsched.domain.documents.policy import CatchUpMode, Overlap
from cloudsched.domain.documents.task import DueRange, Task, TaskStatus
from cloudsched.domain.in_words import to_words
from cloudsched.domain.transitions.notices import name_instant, say_instant
from cloudsched.domain.transitions.planning import (
    DistantSchedule,
    begin_plan,
    due_since,
    earliest,
    find_past_start,
    find_tolerance,
    jittered_start,
    latest,
    occurrence_after,
    occurrence_from,
    occurrence_id,
    planned_schedule,
    upcoming_occurrences,
)
from cloudsched.domain.transitions.run_records import execution_record, keep_recent
from cloudsched.errors import InvalidSchedule, SearchLimitReached

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cloudsched.domain.schedules.schedule import Schedule

MAX_BACKLOG_RANGES = 10
"""The most pauses in a row before the occurrences that came due ahead of the first have run."""
MAX_COUNTED: Final = 1000
"""The most occurrences of a range that are counted one by one. Beyond them, the record says "at least"."""

_MAX_LOOKED_AT = 20
_MAX_NAMED = 3
"""The most left-out occurrences whose reasons are looked up, and the most reasons that their record names."""
_TICK = timedelta(microseconds=1)
_DISTANT_PAST = datetime(1, 1, 1, tzinfo=UTC)
_S = ExecutionStatus


@dataclass(frozen=True, slots=True)
class Missed:
    """Occurrences in a row that end without having run, for one reason."""

    next_at: datetime
    """The first of them."""
    until: datetime
    """The last."""
    status: ExecutionStatus
    message: str


@dataclass(frozen=True, slots=True)
class BacklogDecision:
    """The decision about due occurrences: the earlier ones get a final status, the later ones run."""

    decided: tuple[Missed, ...] = ()
    kept: tuple[DueRange, ...] = ()
    early: tuple[DueRange, ...] = ()
    """Those behind them that start later, since their jitter is not over. They are still to be decided."""


def due_ranges(task: Task, now: datetime) -> tuple[DueRange, ...]:
    """Return the occurrences that came due and have neither a run nor a record, the earliest first."""
    if task.status is TaskStatus.PAUSED:
        return task.backlog
    first = task.next_execution_time
    if first is None or task.status is not TaskStatus.ACTIVE:
        return ()
    waiting = [DueRange(next_at=max(first, r.next_at), until=r.until) for r in task.backlog if r.until >= first]
    start = occurrence_after(task, waiting[-1].until) if waiting else first
    if start is not None and due_since(task, start) <= now:  # guard: come due
        last = _last_where(
            planned_schedule(task),
            start,
            earliest(now, task.until),
            lambda occurrence: due_since(task, occurrence) <= now,
        )
        waiting.append(DueRange(next_at=start, until=last))
    return tuple(waiting)


def decide_backlog(task: Task, now: datetime) -> BacklogDecision:
    """Decide, by the task's policies, which of its due occurrences run and which end without having run.

    Occurrences that wait for the end of a pause were decided when it began.
    """
    ranges = due_ranges(task, now)
    if not ranges or task.status is TaskStatus.PAUSED:
        return BacklogDecision(kept=ranges)
    ranges, early = _split_startable(task, ranges, now)
    met = BacklogDecision()
    run = _find_first_open(task)
    if run is not None:
        ranges, met = _decide_met(task, run, ranges)
    decided = tuple[Missed, ...]()
    for policy in _POLICIES:
        judged = policy(task, ranges, now)
        decided = (*decided, *judged.decided)
        ranges = judged.kept
    return BacklogDecision((*decided, *met.decided), (*ranges, *met.kept), early)


def decide_overlap_at_end(task: Task, run: Run, now: datetime) -> BacklogDecision:
    """Decide about the occurrences that were to start while a run was open, which has ended."""
    ranges, early = _split_startable(task, due_ranges(task, now), now)
    before, met = _decide_met(task, run, ranges)
    return BacklogDecision(met.decided, (*before, *met.kept), early)


def list_remaining(task: Task, now: datetime, count: int) -> list[datetime]:
    """Return the next occurrences that are to run, at most `count`, without what the policies leave out by now."""
    if task.next_execution_time is None or not due_ranges(task, now):
        return upcoming_occurrences(task, count)
    decision = decide_backlog(task, now)
    backlog = (*decision.kept, *decision.early)
    rest = task.model_copy(update={"backlog": backlog, "plan_from": latest(now + _TICK, task.plan_from)})
    first = occurrence_from(rest, task.next_execution_time)
    return upcoming_occurrences(rest.model_copy(update={"next_execution_time": first}), count)


def _decide_met(task: Task, run: Run, ranges: tuple[DueRange, ...]) -> tuple[tuple[DueRange, ...], BacklogDecision]:
    """Return what came due before a run had begun, which ``overlap`` does not decide about, and the rest as decided."""
    if run.open_since is None:
        return ranges, BacklogDecision()
    before, met = _split(task, ranges, run.open_since + _TICK)
    return before, _apply_overlap(task, run, met)


def _split_startable(
    task: Task, ranges: tuple[DueRange, ...], now: datetime
) -> tuple[tuple[DueRange, ...], tuple[DueRange, ...]]:
    """Split due occurrences into those that may start, and those from the first whose jitter is not over."""
    return _split(task, ranges, now + _TICK) if task.jitter else (ranges, ())


def _apply_overlap(task: Task, run: Run, ranges: tuple[DueRange, ...]) -> BacklogDecision:
    """Keep what came due while a run was open with ALLOW, the newest with BUFFER, and nothing with SKIP."""
    match task.overlap:
        case Overlap.ALLOW:
            return BacklogDecision(kept=ranges)
        case Overlap.BUFFER:
            others, newest = _drop_newest(task, ranges)
        case Overlap.SKIP:
            others, newest = ranges, ()
        case unknown:
            assert_never(unknown)
    due = name_instant(task, run.scheduled_for)
    why = f"The run of {due} was still open (overlap is {task.overlap})."
    return BacklogDecision(_to_missed(others, _S.SKIPPED, why), newest)


def _apply_expiration(task: Task, ranges: tuple[DueRange, ...], now: datetime) -> BacklogDecision:
    if task.expiration is None:
        return BacklogDecision(kept=ranges)
    late, rest = _split(task, ranges, now - task.expiration)
    return BacklogDecision(
        _to_missed(late, _S.EXPIRED, f"It had not started within {to_words(task.expiration)}."),
        rest,
    )


def _apply_catch_up(task: Task, ranges: tuple[DueRange, ...], now: datetime) -> BacklogDecision:
    decided = tuple[Missed, ...]()
    tolerance = find_tolerance(task)
    if tolerance < now - _DISTANT_PAST:
        late, ranges = _split(task, ranges, now - tolerance)
        decided = _to_missed(
            late,
            _S.SKIPPED,
            f"It was more than {to_words(tolerance)} late (catchUp: {task.catch_up.mode}).",
        )
    if task.catch_up.mode is CatchUpMode.ALL or not ranges:
        return BacklogDecision(decided, ranges)
    others, newest = _drop_newest(task, ranges)
    why = f"A newer run was due {say_instant(task, newest[0].until)} (catchUp: {task.catch_up.mode})."
    return BacklogDecision((*decided, *_to_missed(others, _S.SKIPPED, why)), newest)


def _bound_pauses(_task: Task, ranges: tuple[DueRange, ...], _now: datetime) -> BacklogDecision:
    excess = max(0, len(ranges) - MAX_BACKLOG_RANGES)
    why = f"Its task was paused or edited {excess + MAX_BACKLOG_RANGES} times since."
    return BacklogDecision(_to_missed(ranges[:excess], _S.SKIPPED, why), ranges[excess:])


_POLICIES: Final = (_apply_expiration, _apply_catch_up, _bound_pauses)
"""The policies about occurrences that came due, in their order.

Each judges what those before it have kept. ``overlap`` alone decides about those that came due while a
run was open.
"""


def pass_over(
    task: Task, decided: Iterable[Missed], now: datetime, kept: tuple[DueRange, ...] = ()
) -> tuple[Task, tuple[Execution, ...]]:
    """Return the task past the decided occurrences, and the records of these and of what was left out before.

    If the first of those that are `kept` comes before the last decided one, they are its backlog.
    """
    decided = tuple(decided)
    if not decided:
        return task, ()
    last = decided[-1]
    is_ahead = bool(kept) and kept[0].next_at < last.until
    end = max(last.until, kept[-1].until) if is_ahead else last.until
    noted, left_out = note_left_out(task, end, now)
    passed, records = record_missed(noted, decided, now)
    changes: dict[str, Any] = {"planned_to": latest(end, task.planned_to)}
    if is_ahead:
        changes = {"backlog": kept, "plan_from": latest(end + _TICK, task.plan_from)}
    if task.is_one_time:
        changes |= {"outcome": last.status, "outcome_execution_id": records[-1].id}
    return passed.model_copy(update=changes), (*left_out, *records)


def record_missed(task: Task, decided: Iterable[Missed], now: datetime) -> tuple[Task, tuple[Execution, ...]]:
    """Return the records of occurrences of a task's plan that never ran, and the task with their outcomes."""
    planned = planned_schedule(task)
    records = tuple(
        _make_record(
            task,
            each.next_at,
            each.status,
            now,
            each.message,
            _count(planned, each.next_at, each.until),
        )
        for each in decided
    )
    return _note_outcomes(task, records), records


def _note_outcomes(task: Task, records: tuple[Execution, ...]) -> Task:
    recent = keep_recent(task.recent_outcomes, *(each.status for each in records))
    return task.model_copy(update={"recent_outcomes": recent})


def _make_record(
    task: Task,
    first: datetime,
    status: ExecutionStatus,
    now: datetime,
    message: str,
    covers: OccurrenceRange | None,
) -> Execution:
    run = Run(execution_id=occurrence_id(task, first), scheduled_for=first, due_at=first)
    if covers is not None:
        others = covers.count - 1
        were = "was" if others == 1 else "were"
        least = "At least " if covers.is_at_least else ""
        until = name_instant(task, covers.until)
        message += f" {least}{others:,} more {were} {status.lower()} with it, up to {until}."
    return execution_record(task, run, status, now, message=message, covers=covers)


def _count(schedule: Schedule | DistantSchedule, first: datetime, last: datetime) -> OccurrenceRange | None:
    """Return how many occurrences a schedule has from one to another, or None if they are the same."""
    if first == last:
        return None
    interval = schedule.interval
    if interval is not None:
        return OccurrenceRange(until=last, count=(last - first) // interval + 1)
    found, is_at_least = _list_after(schedule.next_after, first, last)
    return OccurrenceRange(until=last, count=max(2, 1 + len(found)), is_at_least=is_at_least)


def _list_after(
    search: Callable[[datetime], datetime | None], first: datetime, last: datetime
) -> tuple[list[datetime], bool]:
    """Return the results of a search after `first`, up to `last`, and whether there may be more."""
    found = list[datetime]()
    at = first
    try:
        while len(found) < MAX_COUNTED:
            following = search(at)
            if following is None or following > last:
                return found, False
            found.append(at := following)
    except InvalidSchedule:  # it gave up
        pass
    return found, True


def stop_plan(task: Task, now: datetime) -> tuple[Task, tuple[Execution, ...]]:
    """Return an ACTIVE task with its due occurrences decided, and the records of those that do not run.

    Those that must still run are in its backlog.
    """
    decision = decide_backlog(task, now)
    passed, records = pass_over(task, decision.decided, now, decision.kept)
    noted, left_out = note_left_out(passed, now, now)
    stopped = noted.model_copy(
        update={"next_execution_time": None, "backlog": decision.kept + decision.early},
    )
    return stopped.model_copy(update=begin_plan(stopped, now + _TICK)), (*records, *left_out)


def resume_plan(task: Task, now: datetime) -> Task:
    """Return a PAUSED task with the plan that it resumes: its backlog, then the occurrences from now on."""
    plan_from = latest(now, task.plan_from)
    first_at = task.first_at or find_past_start(task.schedule, now)
    resumed = task.model_copy(update={"plan_from": plan_from, "first_at": first_at})
    first = task.backlog[0].next_at if task.backlog else plan_from
    return resumed.model_copy(update={"next_execution_time": occurrence_after(resumed, first - _TICK)})


def end_plan(
    task: Task, now: datetime, status: ExecutionStatus, message: str, *, successor: Task | None = None
) -> tuple[Task, tuple[Execution, ...]]:
    """Drop the task's plan, and record the occurrences that were still to run with this status.

    Those that its `successor`, the task with another plan, has as well are still to run: they stay in its
    backlog, and the plan goes on behind now.
    """
    decision = decide_backlog(task, now)
    kept, gone = _find_shared(task, successor, decision.kept + decision.early)  # guard: shared occurrences
    missed = sorted((*decision.decided, *_to_missed(gone, status, message)), key=lambda each: each.next_at)
    passed, records = pass_over(task, missed, now)
    ended, left_out = note_left_out(passed, now, now)
    last = _find_last_recorded(ended)
    past: dict[str, Any] = {"planned_to": last, "plan_from": None}
    if kept:
        marks = [at for at in (last, task.earlier_planned_to) if at is not None]
        past = {
            "planned_to": task.planned_to,
            "earlier_planned_to": max(marks, default=None),
            "plan_from": max(now, *(at + _TICK for at in (*marks, kept[-1].until))),
        }
    return ended.model_copy(update={"next_execution_time": None, "backlog": kept, **past}), (
        *records,
        *left_out,
    )


def _find_shared(
    task: Task, successor: Task | None, ranges: tuple[DueRange, ...]
) -> tuple[tuple[DueRange, ...], tuple[DueRange, ...]]:
    """Split due occurrences of a task into those that it has with another plan as well, and the rest.

    Only `MAX_COUNTED` are compared, and `MAX_BACKLOG_RANGES` ranges are kept.
    """
    if successor is None or (successor.max_runs is not None and successor.run_count >= successor.max_runs):
        return (), ranges
    old, new = planned_schedule(task), planned_schedule(successor)
    kept, gone = list[DueRange](), list[DueRange]()
    compared = 0
    for each in ranges:
        latest = gone
        at = cast("datetime | None", each.next_at)
        while at is not None and at <= each.until:
            compared += 1
            if compared > MAX_COUNTED:
                gone.append(DueRange(next_at=at, until=each.until))
                break
            is_in_time = successor.until is None or at <= successor.until
            target = kept if is_in_time and _find_next(new, at - _TICK) == at else gone
            goes_on = (
                target is latest and at > each.next_at and (target is gone or _find_next(new, kept[-1].until) == at)
            )
            first = target.pop().next_at if goes_on else at
            target.append(DueRange(next_at=first, until=at))
            at = _find_next(old, at)
            latest = target
    excess = max(0, len(kept) - MAX_BACKLOG_RANGES)
    return tuple(kept[excess:]), (*gone, *kept[:excess])


def _find_last_recorded(task: Task) -> datetime | None:
    """Return the last occurrence with a record, which may lie beyond those that an earlier end has kept."""
    recorded = task.plan_from and task.plan_from - _TICK
    if recorded is None or not planned_schedule(task).occurs(recorded):
        return task.planned_to
    return latest(recorded, task.planned_to)


def shorten_backlog(
    task: Task,
    shorter: Task,
    now: datetime,
    message: str,
) -> tuple[Task, tuple[Execution, ...]]:
    """Return `shorter`, the task with an earlier end, and SKIPPED records of due occurrences beyond it."""
    ranges = due_ranges(task, now)
    if not ranges:
        return shorter, ()
    is_full = shorter.max_runs is not None and shorter.run_count >= shorter.max_runs
    end = None if is_full else shorter.until
    kept, dropped = list[DueRange](), list[DueRange]()
    for each in ranges:
        if not is_full and (end is None or each.until <= end):
            kept.append(each)
        elif is_full or end is None or each.next_at > end:
            dropped.append(each)
        else:
            last = _last_where(planned_schedule(task), each.next_at, end)
            kept.append(DueRange(next_at=each.next_at, until=last))
            following = planned_schedule(task).next_after(last)
            dropped.append(DueRange(next_at=following or each.until, until=each.until))

    if not dropped:
        return shorter, ()
    decided = _to_missed(dropped, _S.SKIPPED, message)
    passed, records = pass_over(shorter, decided, now, tuple(kept))
    return passed.model_copy(update={"backlog": tuple(kept)}), records


def forget_backlog(task: Task) -> dict[str, Any]:
    """Return the changes to an ACTIVE task whose plan has gone past its backlog."""
    following = task.next_execution_time
    if following is None or not (task.backlog or task.plan_from) or task.status is not TaskStatus.ACTIVE:
        return {}
    backlog = tuple(each for each in task.backlog if each.until >= following)
    # True if what the calendars left out has no record from the plan's beginning on.
    is_unrecorded = task.schedule.is_adjusted and _left_out_from(task) == task.plan_from
    if backlog or (task.plan_from is not None and (task.plan_from > following or is_unrecorded)):
        return {"backlog": backlog}
    return {"backlog": (), "plan_from": None, "planned_to": _find_last_recorded(task)}


def note_left_out(task: Task, until: datetime, now: datetime) -> tuple[Task, tuple[Execution, ...]]:
    """Record the occurrences up to an instant that a calendar left out, if there are any.

    A calendar leaves an occurrence out if it falls on one of its days, such as a holiday. So a task's history
    shows these occurrences, with the holidays' names. They are recorded once they
    have passed, in the commit that claims the next occurrence, pauses the task, ends it or gives it
    another plan. Nothing comes due of a task that is paused or has ended, so nothing of that time is left
    out either.
    """
    if not task.schedule.is_adjusted or task.status is not TaskStatus.ACTIVE:
        return task, ()
    search = partial(task.schedule.find_skipped, until=until)
    first = search(_left_out_from(task) - _TICK)
    if first is None:
        return task, ()
    others, is_at_least = _list_after(search, first, until)
    covers = None
    if others:
        last = until if is_at_least else others[-1]
        covers = OccurrenceRange(until=last, count=1 + len(others), is_at_least=is_at_least)
    record = _make_record(task, first, _S.SKIPPED, now, _name_reasons(task, [first, *others]), covers)
    return _note_outcomes(task, (record,)), (record,)


def _left_out_from(task: Task) -> datetime:
    """Return the time from which occurrences that were left out have no record yet."""
    processed = task.created_at if task.planned_to is None else task.planned_to + _TICK
    return latest(processed, task.plan_from)


def _name_reasons(task: Task, left_out: Sequence[datetime]) -> str:
    """Return why occurrences were left out, such as ``Left out: Christmas Day (holidays), weekends.``."""
    notes = dict.fromkeys(task.schedule.adjustment_note(each) or "" for each in left_out[:_MAX_LOOKED_AT])
    reasons = [each.removeprefix("Left out: ").removesuffix(".") for each in notes]
    more = " and more" if len(reasons) > _MAX_NAMED or len(left_out) > _MAX_LOOKED_AT else ""
    return f"Left out: {', '.join(reasons[:_MAX_NAMED])}{more}."


def is_for_overlap(task: Task, occurrence: datetime) -> bool:
    """Return whether ``overlap`` decides about an occurrence, since an open run had begun when it came due."""
    run = _find_first_open(task)
    return run is not None and _decide_met(task, run, (DueRange(next_at=occurrence, until=occurrence),))[0] == ()


def _find_first_open(task: Task) -> Run | None:
    """Return the open run that has begun first, whatever started it, unless runs may overlap."""
    if task.overlap is Overlap.ALLOW:
        return None
    begun = [(run.open_since, run) for run in task.runs if run.open_since is not None]
    return min(begun, key=itemgetter(0))[1] if begun else None


def _to_missed(ranges: Iterable[DueRange], status: ExecutionStatus, message: str) -> tuple[Missed, ...]:
    return tuple(Missed(each.next_at, each.until, status, message) for each in ranges)


def _split(
    task: Task, ranges: tuple[DueRange, ...], since: datetime
) -> tuple[tuple[DueRange, ...], tuple[DueRange, ...]]:
    """Split ranges into the occurrences that were to start before an instant, and the rest."""

    def is_early(occurrence: datetime) -> bool:
        return jittered_start(task, occurrence) < since

    early, rest = list[DueRange](), list[DueRange]()
    for each in ranges:
        if rest or not is_early(each.next_at):
            rest.append(each)
            continue
        last = _last_where(planned_schedule(task), each.next_at, each.until, is_early)
        early.append(DueRange(next_at=each.next_at, until=last))
        following = planned_schedule(task).next_after(last)
        if last < each.until and following is not None:
            rest.append(DueRange(next_at=following, until=each.until))
    return tuple(early), tuple(rest)


def _drop_newest(
    task: Task,
    ranges: tuple[DueRange, ...],
) -> tuple[tuple[DueRange, ...], tuple[DueRange, ...]]:
    if not ranges:
        return (), ()
    *others, last = ranges
    newest = DueRange(next_at=last.until, until=last.until)
    if last.next_at < last.until:
        before = _last_where(planned_schedule(task), last.next_at, last.until - _TICK)
        others.append(DueRange(next_at=last.next_at, until=before))
    return tuple(others), (newest,)


def _last_where(
    schedule: Schedule | DistantSchedule,
    first: datetime,
    end: datetime,
    holds: Callable[[datetime], bool] = lambda _: True,
) -> datetime:
    """Return the last occurrence from `first` to `end` for which a condition holds without a break.

    The condition holds for `first`. If it stops holding at several places, this is one of them.
    """
    low, high = first, end
    while (following := _find_next(schedule, low)) is not None and following <= high and holds(following):
        middle = low + (high - low) / 2
        jump = schedule.next_after(middle)
        if jump is not None and jump <= high and holds(jump):
            low = jump
        else:
            low, high = following, max(middle, following)
    return low


def _find_next(schedule: Schedule | DistantSchedule, at: datetime) -> datetime | None:
    """Return the occurrence after one.

    Return None, too, if an accepted rule has become too sparse to search.
    """
    try:
        return schedule.next_after(at)
    except SearchLimitReached:
        raise
    except InvalidSchedule:
        return None
