"""A race of calls: the first to end wins, and the others are cancelled.

The winner is committed before a loser is cancelled, together with the losers' entries. A process that dies in between
leaves the entry of the race waiting, and the next replay goes on with the cancelling: cancelling twice has no effect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.journal import StepError, StepKind, StepStatus
from cloudsched.domain.transitions.suspend import next_poll
from cloudsched.errors import CallFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.engine.durable.durable_run import DurableRun


def run_race(durable_run: DurableRun, numbers: Sequence[int], *, cancel_losers: bool) -> tuple[int, Any]:
    """Return the number and the result of the call that ended first, with a `CallFailed` as the result if it failed."""
    number, entry = durable_run.next_entry(StepKind.RACE, "")
    durable_run.is_durable = True
    request = {"calls": list(numbers), "cancelLosers": cancel_losers}
    if entry is None:
        entry = durable_run.put(durable_run.new_entry(number, StepKind.RACE, ""), result=request)
    recorded = {name: entry.result[name] for name in request}
    durable_run.require_same(number, "race", recorded, request, always=True)
    if "winner" not in entry.result:
        entry = _decide(durable_run, entry)
    if entry.status is StepStatus.WAITING:
        for loser in entry.result["cancelled"]:
            durable_run.surroundings.cancel_call(durable_run.journal[loser].child or "")
        entry = durable_run.put(entry, status=StepStatus.SUCCEEDED, finished_at=durable_run.clock.now())
    winner = entry.result["winner"]
    outcome = durable_run.read_call_result(durable_run.journal[winner], as_recorded=False)
    if isinstance(outcome, CallFailed):
        durable_run.failures.note([outcome], _entries_to_repeat(durable_run, entry), durable_run.position)
    return winner, outcome


def _decide(durable_run: DurableRun, race: JournalEntry) -> JournalEntry:
    """Commit which call has won, and that the losers are cancelled; suspend the handler if none has ended."""
    durable_run.flush()
    numbers = race.result["calls"]
    if not any(durable_run.poll_call(number) for number in numbers):
        reason = f"waits for the first of {len(numbers)} calls"
        until = next_poll(race.started_at, durable_run.clock.now())
        durable_run.suspend(reason, until, calls=tuple(numbers), any_call=True)
    # A call may have ended after it was polled, and still before one that was polled later: all are polled again.
    ended = [number for number in numbers if durable_run.poll_call(number)]
    winner = min(ended, key=durable_run.find_call_end) if len(ended) > 1 else ended[0]
    cancelled = [each for each in numbers if each not in ended] if race.result["cancelLosers"] else []
    now = durable_run.clock.now()
    for loser in cancelled:
        durable_run.pending_calls.pop(loser, None)  # not created yet, for want of room in a quota
        error = StepError(type="", message="Another call won the race.", status=ExecutionStatus.CANCELLED)
        durable_run.put(durable_run.journal[loser], status=StepStatus.FAILED, error=error, finished_at=now)
    decided = durable_run.put(race, result={**race.result, "winner": winner, "cancelled": cancelled})
    durable_run.flush()
    return decided


def _entries_to_repeat(durable_run: DurableRun, race: JournalEntry) -> list[int]:
    """Return what a manual retry repeats if the winner's failure made the execution fail: the race and who failed."""
    failed = [each for each in race.result["calls"] if durable_run.journal[each].status is StepStatus.FAILED]
    return [*failed, race.number]
