"""Calls of a durable handler: tasks of their own, which run while the handler goes on, and whose ends are recorded.

Scripts and lists of children make them in rounds: in parallel, with all their ends seen only together. The failures of
one round are therefore one cause, and a manual retry repeats all of them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.journal import (
    MAX_CALLS,
    MAX_NESTING,
    JournalEntry,
    StepError,
    StepKind,
    StepStatus,
    call_id,
)
from cloudsched.domain.documents.task import Parent
from cloudsched.domain.transitions.suspend import next_poll
from cloudsched.engine.durable.arguments import arguments_fingerprint
from cloudsched.engine.durable.results import decode_refusal, describe_finished_call, encode_refusal
from cloudsched.engine.durable.steps import decode_result
from cloudsched.errors import CallFailed, InvalidInput, LimitExceeded, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from cloudsched.engine.durable.journal_cursor import JournalCursor


def start_call(
    cursor: JournalCursor,
    handler: object,
    payload: Any,  # noqa: ANN401 - as the handler takes it
    fields: dict[str, Any],
    check: Callable[[], None] = lambda: None,
) -> JournalEntry:
    """Start a call and return its entry. Its task is created before a step runs or the handler stops.

    An error that `check` raises is recorded as a rejection. It runs only for a call that certainly has no
    task.
    """
    name = cursor.surroundings.name_of(handler)
    number, entry = cursor.next_entry(StepKind.CALL, name)
    cursor.require_replayable()
    _compare_arguments(cursor, entry, number, name, partial(arguments_fingerprint, payload, fields))
    if entry is not None and entry.status is StepStatus.FAILED and entry.child is None:
        raise cursor.note_failure(decode_refusal(entry))
    if entry is not None and (entry.status is not StepStatus.WAITING or number <= cursor.calls.made or entry.is_made):
        return entry
    task = cursor.attempt.task
    child = (entry and entry.child) or call_id(task.id, cursor.execution_id, number, cursor.run.attempt)
    if entry is None and len(cursor.calls.waiting) >= MAX_CALLS:
        _poll_calls(cursor)
    try:
        if entry is None or entry.is_made is False:
            check()
        depth = _call_depth(cursor, is_new=entry is None)
        parent = Parent(task_id=task.id, execution_id=cursor.execution_id, step=number, depth=depth)
        cursor.calls.tasks[number] = cursor.surroundings.draft_call(name, payload, child, fields, parent)
    except Unavailable:
        raise
    except Exception as error:  # recorded, so that every replay is rejected in the same way
        if entry is None:
            refused = cursor.new_entry(number, StepKind.CALL, name)
        else:
            refused = entry
        now = cursor.clock.now()
        refused = cursor.put(
            refused,
            status=StepStatus.FAILED,
            child=None,
            finished_at=now,
            **encode_refusal(error),
        )
        if issubclass(type(error), InvalidInput | LimitExceeded):
            cursor.note_failure(error)
            raise
        raise cursor.note_failure(decode_refusal(refused)) from error
    return entry or cursor.put(cursor.new_entry(number, StepKind.CALL, name), child=child)


def wait_for_results(
    cursor: JournalCursor,
    numbers: Sequence[int],
    *,
    as_recorded: bool = False,
) -> list[Any]:
    """Return the results of calls once all have finished, with a `CallFailed` for each failed one.

    Results are decoded as their handlers' return annotations, or returned as JSON if `as_recorded`.
    """
    cursor.require_may_record(StepKind.CALL, cursor.journal[numbers[0]].name if numbers else "")
    cursor.flush()
    waiting = [number for number in numbers if not poll_call(cursor, number)]
    if waiting:
        now = cursor.clock.now()
        since = min(cursor.journal[number].started_at for number in waiting)
        if len(waiting) > 1:
            what = f"{len(waiting)} calls"
        else:
            what = f"the call of {cursor.journal[waiting[0]].name!r}"
        cursor.suspend(f"waits for {what}", next_poll(since, now), calls=tuple(waiting))
    outcomes = {number: read_call_result(cursor, cursor.journal[number], as_recorded=as_recorded) for number in numbers}
    failed = {number: outcome for number, outcome in outcomes.items() if isinstance(outcome, CallFailed)}
    cursor.failures.note(failed.values(), failed, cursor.position)
    return [outcomes[number] for number in numbers]


def poll_call(cursor: JournalCursor, number: int) -> bool:
    """Return whether a call has ended, and record its outcome if it has."""
    cursor.flush_if_large()
    entry = cursor.journal[number]
    if entry.status is not StepStatus.WAITING:
        return True
    if entry.child is None or not cursor.calls.may_have_ended(number):
        return False
    changes = describe_finished_call(
        entry,
        cursor.surroundings.load_call_outcome,
        cursor.results,
        cursor.clock.now(),
    )
    if changes is not None:
        cursor.put(entry, **changes)
    return changes is not None


def read_call_result(cursor: JournalCursor, entry: JournalEntry, *, as_recorded: bool = False) -> Any:  # noqa: ANN401 - whatever it returns
    """Return the result of a call that has ended, or its `CallFailed`."""
    if entry.status is not StepStatus.SUCCEEDED:
        error = entry.error or StepError(type="Error", message="")
        failed = CallFailed(entry.name, entry.child or "", error.status or "", error.type, error.message)
        if not cursor.surroundings.tells_errors(entry.name):
            failed.for_owners = str(CallFailed(entry.name, failed.task_id, failed.status))
        return failed
    value = cursor.results.read(entry)
    if as_recorded:
        function = None
    else:
        function = cursor.surroundings.function(entry.name)
    if function is None:
        return value
    return decode_result(value, function)


def start_round(cursor: JournalCursor) -> int:
    """Return the number of the entry that the round's first request will have."""
    return cursor.position + 1


def end_round(cursor: JournalCursor, since: int) -> datetime | None:
    """Merge the failures of the round whose first entry is `since`.

    Return when the handler went on after its last request, the same in every replay. None if it had none.
    """
    cursor.failures.merge_since(since, cursor.position)
    entries = [cursor.journal[number] for number in range(since, cursor.position + 1)]
    return max((entry.noticed_at or entry.finished_at or entry.started_at for entry in entries), default=None)


def list_called_handlers(cursor: JournalCursor) -> frozenset[str]:
    """Return the handlers that were called so far, in this attempt and earlier ones."""
    return frozenset(entry.name for entry in cursor.journal.values() if entry.kind is StepKind.CALL)


def _compare_arguments(
    cursor: JournalCursor, entry: JournalEntry | None, number: int, name: str, arguments: Callable[[], str]
) -> None:
    """Check, in a replay test, that a call repeats its arguments, of which the journal has no copy."""
    policy = cursor.surroundings.suspend_policy
    if not policy.every_step:
        return
    key = (cursor.attempt.task.id, cursor.execution_id, cursor.run.started_at, number)
    now = arguments()
    cursor.require_same(
        number,
        f"call {name!r}",
        now if entry is None else policy.call_arguments.get(key, now),
        now,
    )
    policy.call_arguments[key] = now


def _call_depth(cursor: JournalCursor, *, is_new: bool) -> int:
    task = cursor.attempt.task
    depth = (task.parent.depth if task.parent else 0) + 1
    if depth > MAX_NESTING:
        raise LimitExceeded(
            f"Calls are nested {depth} deep (at most {MAX_NESTING}). Does a handler call itself?",
        )
    if is_new and len(cursor.calls.waiting) >= MAX_CALLS:
        raise LimitExceeded(
            f"{MAX_CALLS} calls are in progress, the maximum; gather some before starting more.",
        )
    return depth


def _poll_calls(cursor: JournalCursor) -> None:
    """Record the results of finished calls that the handler has not waited for."""
    cursor.flush()
    for number in cursor.calls.waiting:
        poll_call(cursor, number)
