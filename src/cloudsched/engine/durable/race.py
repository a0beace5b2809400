"""A race of calls: the first to end wins, and the others are cancelled.

The winner is committed before a loser is cancelled, together with the losers' entries. A process that dies in between
leaves the entry of the race waiting, and the next replay goes on with the cancelling: cancelling twice has no effect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.journal import StepError, StepKind, StepStatus
from cloudsched.domain.transitions.suspend import next_poll
from cloudsched.errors import CallFailed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.engine.durable.journal_cursor import JournalCursor


class Calls(Protocol):
    """What the handler's run knows of its calls."""

    def poll_call(self, number: int) -> bool:
        """Return whether a call has ended, and record its outcome if it has."""

    def read_call_result(self, entry: JournalEntry, *, as_recorded: bool) -> Any:  # noqa: ANN401 - whatever it returns
        """Return the result of a call that has ended, or its `CallFailed`."""

    def find_call_end(self, number: int) -> datetime:
        """Return when a call that has ended did so."""


def run_race(cursor: JournalCursor, calls: Calls, numbers: Sequence[int], *, cancel_losers: bool) -> tuple[int, Any]:
    """Return the number and the result of the call that ended first, with a `CallFailed` as the result if it failed."""
    number, entry = cursor.next_entry(StepKind.RACE, "")
    cursor.is_durable = True
    request = {"calls": list(numbers), "cancelLosers": cancel_losers}
    if entry is None:
        entry = cursor.put(cursor.new_entry(number, StepKind.RACE, ""), result=request)
    recorded = {name: entry.result[name] for name in request}
    cursor.require_same(number, "race", recorded, request, always=True)
    if "winner" not in entry.result:
        entry = _decide(cursor, calls, entry)
    if entry.status is StepStatus.WAITING:
        for loser in entry.result["cancelled"]:
            cursor.surroundings.cancel_call(cursor.journal[loser].child or "")
        entry = cursor.put(entry, status=StepStatus.SUCCEEDED, finished_at=cursor.clock.now())
    winner = entry.result["winner"]
    outcome = calls.read_call_result(cursor.journal[winner], as_recorded=False)
    if isinstance(outcome, CallFailed):
        cursor.failures.note([outcome], _entries_to_repeat(cursor, entry), entry.number)
    return winner, outcome


def _decide(cursor: JournalCursor, calls: Calls, race: JournalEntry) -> JournalEntry:
    """Commit which call has won, and that the losers are cancelled; suspend the handler if none has ended."""
    cursor.flush()
    numbers = race.result["calls"]
    if not any(calls.poll_call(number) for number in numbers):
        reason = f"waits for the first of {len(numbers)} calls"
        until = next_poll(race.started_at, cursor.clock.now())
        cursor.suspend(reason, until, calls=tuple(numbers), any_call=True)
    # A call may have ended after it was polled, and still before one that was polled later: all are polled again.
    ended = [number for number in numbers if calls.poll_call(number)]
    winner = min(ended, key=calls.find_call_end) if len(ended) > 1 else ended[0]
    cancelled = [each for each in numbers if each not in ended] if race.result["cancelLosers"] else []
    now = cursor.clock.now()
    for loser in cancelled:
        cursor.pending_calls.pop(loser, None)  # not created yet, for want of room in a quota
        error = StepError(type="", message="Another call won the race.", status=ExecutionStatus.CANCELLED)
        cursor.put(cursor.journal[loser], status=StepStatus.FAILED, error=error, finished_at=now)
    decided = cursor.put(race, result={**race.result, "winner": winner, "cancelled": cancelled})
    cursor.flush()
    return decided


def _entries_to_repeat(cursor: JournalCursor, race: JournalEntry) -> list[int]:
    """Return what a manual retry repeats if the winner's failure made the execution fail: the race and who failed."""
    failed = [each for each in race.result["calls"] if cursor.journal[each].status is StepStatus.FAILED]
    return [*failed, race.number]
