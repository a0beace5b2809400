"""A race of calls: the first to end wins, and the others are cancelled.

The winner is committed before a loser is cancelled, together with the losers' entries. A process that dies in between
leaves the entry of the race waiting, and the next replay goes on with the cancelling: cancelling twice has no effect.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.journal import StepError, StepKind, StepStatus
from cloudsched.domain.transitions.suspend import next_poll
from cloudsched.engine.durable.arguments import require_instances
from cloudsched.engine.durable.call_handle import CallHandle
from cloudsched.engine.durable.calls import find_call_end, poll_call, read_call_result
from cloudsched.errors import CallFailed, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.engine.durable.durable_run import DurableRun
    from cloudsched.engine.durable.journal_cursor import JournalCursor


T = TypeVar("T")
H = TypeVar("H", bound="CallHandle[Any]")


class RaceResult(NamedTuple, Generic[T, H]):
    """What `Context.race` returns: ``result, winner = ctx.race(first, second)``."""

    result: T
    """What the winner's handler returned."""
    winner: H
    """The call that ended first, one of those that were passed."""


def race(
    durable_run: DurableRun, calls: Sequence[CallHandle[T]], *, cancel_losers: bool
) -> RaceResult[T, CallHandle[T]]:
    """Return the result of the call that ended first, and that call; see `Context.race`."""
    numbers = _require_racers(durable_run, calls, cancel_losers=cancel_losers)
    number, outcome = durable_run.perform("ctx.race", _run_race, numbers, cancel_losers=cancel_losers)
    if isinstance(outcome, CallFailed):
        raise outcome
    return RaceResult(outcome, calls[numbers.index(number)])


def _require_racers(durable_run: DurableRun, calls: Sequence[CallHandle[Any]], *, cancel_losers: object) -> list[int]:
    """Return the numbers of the calls of a race.

    Raises:
        InvalidInput: There are none, one of them is given twice, or one belongs to another attempt or execution;
            or `cancel_losers` is not a bool.
    """
    hint = "Pass what ctx.call returned as separate arguments: ctx.race(first, second)."
    require_instances("calls", CallHandle, tuple(calls), hint)
    if not isinstance(cancel_losers, bool):
        raise InvalidInput("cancel_losers", "is not a bool", "Give True or False, and each call as its own argument.")
    if not calls:
        raise InvalidInput("calls", "are missing: nobody can win a race of nothing", "Give at least one call.")
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
    """Return the number and the result of the call that ended first, with a `CallFailed` as the result if it failed."""
    number, entry = cursor.next_entry(StepKind.RACE, "")
    cursor.is_durable = True
    request = {"calls": list(numbers), "cancelLosers": cancel_losers}
    if entry is None:
        entry = cursor.put(cursor.new_entry(number, StepKind.RACE, ""), result=request)
    recorded = {name: entry.result[name] for name in request}
    cursor.require_same(number, "race", recorded, request, always=True)
    if "winner" not in entry.result:
        entry = _decide(cursor, entry)
    if entry.status is StepStatus.WAITING:
        for loser in entry.result["cancelled"]:
            cursor.surroundings.cancel_call(cursor.journal[loser].child or "")
        entry = cursor.put(entry, status=StepStatus.SUCCEEDED, finished_at=cursor.clock.now())
    winner = entry.result["winner"]
    outcome = read_call_result(cursor, cursor.journal[winner])
    if isinstance(outcome, CallFailed):
        cursor.failures.note([outcome], _entries_to_repeat(cursor, entry), entry.number)
    return winner, outcome


def _decide(cursor: JournalCursor, race: JournalEntry) -> JournalEntry:
    """Commit which call has won, and that the losers are cancelled; suspend the handler if none has ended."""
    cursor.flush()
    numbers = race.result["calls"]
    if not any(poll_call(cursor, number) for number in numbers):
        reason = f"waits for the first of {len(numbers)} calls"
        until = next_poll(race.started_at, cursor.clock.now())
        cursor.suspend(reason, until, calls=tuple(numbers), any_call=True)
    # A call may have ended after it was polled, and still before one that was polled later: all are polled again.
    ended = [number for number in numbers if poll_call(cursor, number)]
    winner = min(ended, key=partial(find_call_end, cursor)) if len(ended) > 1 else ended[0]
    cancelled = [each for each in numbers if each not in ended] if race.result["cancelLosers"] else []
    now = cursor.clock.now()
    for loser in cancelled:
        cursor.calls.tasks.pop(loser, None)  # not created yet, for want of room in a quota
        error = StepError(type="", message="Another call won the race.", status=ExecutionStatus.CANCELLED)
        cursor.put(cursor.journal[loser], status=StepStatus.FAILED, error=error, finished_at=now)
    decided = cursor.put(race, result={**race.result, "winner": winner, "cancelled": cancelled})
    cursor.flush()
    return decided


def _entries_to_repeat(cursor: JournalCursor, race: JournalEntry) -> list[int]:
    """Return what a manual retry repeats if the winner's failure made the execution fail: the race and who failed."""
    failed = [each for each in race.result["calls"] if cursor.journal[each].status is StepStatus.FAILED]
    return [*failed, race.number]
