"""A race of calls: the first to end wins, and the others are cancelled.

The losers are cancelled before the winner is recorded, so that none goes on if the execution ends in between.
A process that dies there decides again in the next replay, and comes to the same winner: the records of the
calls say when each ended, and a loser that is already cancelled does not take part.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.journal import JournalEntry, StepError, StepKind, StepStatus
from cloudsched.domain.transitions.suspend import next_poll
from cloudsched.engine.durable.arguments import require_instances
from cloudsched.engine.durable.calls import poll_call, read_call_result
from cloudsched.engine.durable.durable_run import CallHandle
from cloudsched.errors import CallFailed, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cloudsched.engine.durable.durable_run import DurableRun
    from cloudsched.engine.durable.journal_cursor import JournalCursor

LOST = "Another call won the race."
"""The reason for which a loser is cancelled."""

T = TypeVar("T")
H = TypeVar("H", bound="CallHandle[Any]")


class RaceResult(NamedTuple, Generic[T, H]):
    """The result of `Context.race`: ``result, winner = ctx.race(first, second)``."""

    result: T
    """The value that the winner's handler returned."""
    winner: H
    """The call that ended first, one of those that were passed."""


def race(
    durable_run: DurableRun, calls: Sequence[CallHandle[T]], *, cancel_losers: bool
) -> RaceResult[T, CallHandle[T]]:
    """Return the result of the call that ended first, and that call, as `Context.race` describes."""
    numbers = _require_racers(durable_run, calls, cancel_losers=cancel_losers)
    number, outcome = durable_run.perform("ctx.race", _run_race, numbers, cancel_losers=cancel_losers)
    if isinstance(outcome, CallFailed):
        raise outcome
    return RaceResult(outcome, calls[numbers.index(number)])


def _require_racers(
    durable_run: DurableRun,
    calls: Sequence[CallHandle[Any]],
    *,
    cancel_losers: object,
) -> list[int]:
    hint = "Pass what ctx.call returned as separate arguments: ctx.race(first, second)."
    require_instances("calls", CallHandle, tuple(calls), hint)
    if not isinstance(cancel_losers, bool):
        raise InvalidInput(
            "cancel_losers",
            "is not a bool",
            "Give True or False, and each call as its own argument.",
        )
    if not calls:
        raise InvalidInput(
            "calls",
            "are missing: nobody can win a race of nothing",
            "Give at least one call.",
        )

    numbers = list[int]()
    for place, call in enumerate(calls):
        if call.durable_run is not durable_run:
            hint = "Pass only calls that this attempt of the handler has started with its own ctx.call."
            raise InvalidInput(f"calls.{place}", "is a call of another execution or attempt", hint)
        if call.number in numbers:
            raise InvalidInput(f"calls.{place}", "is given twice", "Pass each call once.")
        numbers.append(call.number)

    return numbers


def _run_race(cursor: JournalCursor, numbers: Sequence[int], *, cancel_losers: bool) -> tuple[int, Any]:
    """Return the number and result of the call that ended first, with a `CallFailed` if it failed."""
    number, entry = cursor.next_entry(StepKind.RACE, "")
    cursor.require_replayable()
    request = {"calls": list(numbers), "cancelLosers": cancel_losers}
    if entry is None:
        entry = cursor.put(cursor.new_entry(number, StepKind.RACE, ""), result=request)
    recorded = {name: entry.result[name] for name in request}
    cursor.require_same(number, "race", recorded, request, always=True)
    if entry.status is StepStatus.WAITING:
        entry = _decide(cursor, entry)
    winner = entry.result["winner"]
    outcome = read_call_result(cursor, cursor.journal[winner])
    if isinstance(outcome, CallFailed):
        cursor.failures.note([outcome], _entries_to_repeat(cursor, entry), entry.number)
    return winner, outcome


def _decide(cursor: JournalCursor, race: JournalEntry) -> JournalEntry:
    """Cancel the losers and commit which call has won, or suspend the handler if none has ended."""
    cursor.flush()
    numbers = race.result["calls"]
    if not any(poll_call(cursor, number) for number in numbers):
        reason = f"waits for the first of {len(numbers)} calls"
        until = next_poll(race.started_at, cursor.clock.now())
        cursor.suspend(reason, until, calls=tuple(numbers), any_call=True)

    # A call may have ended after it was polled, and still before one that was polled later: all are polled
    # again, also those that this attempt has only just made.
    cursor.calls.look_at_all()
    ended = [number for number in numbers if poll_call(cursor, number)]
    cursor.flush()  # under the lease: who has lost it cancels nothing
    candidates = [number for number in ended if not _was_cancelled(cursor, number, race)] or ended
    winner = min(candidates, key=partial(_find_end, cursor))

    for loser in set(numbers) - {*ended} if race.result["cancelLosers"] else ():
        cursor.calls.tasks.pop(loser, None)  # not created yet, for want of room in a quota
        cursor.surroundings.cancel_call(cursor.journal[loser].child or "", LOST)
        error = StepError(type="", message=LOST, status=ExecutionStatus.CANCELLED)
        cursor.put(
            cursor.journal[loser],
            status=StepStatus.FAILED,
            error=error,
            finished_at=cursor.clock.now(),
        )

    decided = {**race.result, "winner": winner}
    race = cursor.put(race, status=StepStatus.SUCCEEDED, result=decided, finished_at=cursor.clock.now())
    cursor.flush()
    return race


def _find_end(cursor: JournalCursor, number: int) -> datetime:
    entry = cursor.journal[number]
    return entry.finished_at or entry.started_at


def _was_cancelled(cursor: JournalCursor, number: int, race: JournalEntry) -> bool:
    """Return whether a call lost this race, cancelled by a process that died before it recorded the winner.

    Its own time does not tell: the clock of that process may be behind.
    """
    error = cursor.journal[number].error
    if error is None or (error.status, error.message) != (ExecutionStatus.CANCELLED, LOST):
        return False
    earlier = [each for each in cursor.journal.values() if each.kind is StepKind.RACE and each.number < race.number]
    return not any(number in each.result["calls"] and "winner" in each.result for each in earlier)


def _entries_to_repeat(cursor: JournalCursor, race: JournalEntry) -> list[int]:
    """Return the entries that a manual retry repeats after the winner failed: the race and the failed calls."""
    failed = [each for each in race.result["calls"] if cursor.journal[each].status is StepStatus.FAILED]
    return [*failed, race.number]
