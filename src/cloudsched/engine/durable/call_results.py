"""What became of calls: what whoever asks is told, and what an ended execution's record says where nobody asked.

The answer of a call is that of its own run, the one which its parent asked for. Runs of its task that somebody asked
for by hand only make it last longer.
"""

from __future__ import annotations

import logging
import secrets
from itertools import islice
from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.journal import MAX_CALLS, StepError, StepStatus
from cloudsched.engine.durable.results import Results
from cloudsched.errors import CallFailed, Unavailable, UnsupportedDocument

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from cloudsched.domain.documents.execution import Execution
    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.engine.ports.blobs import Blobs
    from cloudsched.engine.ports.store import Store

log = logging.getLogger(__name__)

DELETED = "DELETED"
"""The status of a call whose task is gone."""


def call_outcome(store: Store, handler: str, task_id: str) -> tuple[bool, Any]:
    """Return whether a call has ended, and its result if it has.

    Raises:
        CallFailed: It has ended, and not in success.
    """
    stored = store.load(task_id)
    if stored is None or stored.task.deleted_at is not None:
        raise CallFailed(handler, task_id, DELETED)
    task = stored.task
    if not task.has_ended:
        return False, None
    own = task.outcome_execution_id or (task.outcome and task.last_execution_id)
    record = store.load_execution(task_id, own) if own else None
    if record is None:
        raise CallFailed(handler, task_id, task.status, message=task.message)
    if record.status is not ExecutionStatus.SUCCEEDED:
        error = record.error
        why = (error.type, error.message) if error else ("", record.message or "")
        raise CallFailed(handler, task_id, record.status, *why)
    return True, record.content


def finished_call_fields(
    entry: JournalEntry, get_outcome: Callable[[str, str], tuple[bool, Any]], results: Results, now: datetime
) -> dict[str, Any] | None:
    """Return what changes in a call's entry since it has ended; None if it goes on.

    Raises:
        Unavailable: That cannot be said, or its result cannot be kept, for now.
    """
    try:
        has_ended, content = get_outcome(entry.name, entry.child or "")
    except CallFailed as failure:
        error = StepError(type=failure.type, message=failure.message, status=failure.status)
        return {"status": StepStatus.FAILED, "error": error, "finished_at": now}
    if not has_ended:
        return None
    kept = results.store(entry.number, content, is_stored_elsewhere=True)
    return {"status": StepStatus.SUCCEEDED, "finished_at": now, **kept}


def with_call_outcomes(
    store: Store, blobs: Blobs, execution: Execution, entries: Sequence[JournalEntry]
) -> list[JournalEntry]:
    """Return the journal of an execution that ends, with the ends of those calls that nobody has waited for.

    What is still under way stays as it is, and so does what cannot be read just now: the end of an execution does not
    wait for it. A call that was cancelled is made anew by a retry, which it is left to where there may be one.
    """
    whole = {entry.number: entry for entry in entries}
    claim = f"{execution.attempt_count}-{secrets.token_hex(4)}"
    results = Results(blobs, f"{execution.task_id}/{execution.id}", claim)
    waiting = (each for each in entries if each.status is StepStatus.WAITING and each.child is not None)
    for entry in islice(waiting, MAX_CALLS):
        try:
            end = finished_call_fields(
                entry, lambda *call: call_outcome(store, *call), results, _finish_time(execution)
            )
        except Unavailable as error:
            log.warning("not looked at: %s", error, extra={"action": "not looked at", "taskId": execution.task_id})
            break
        except UnsupportedDocument:
            continue
        if end is not None and _is_recordable(entry, end, execution):
            whole[entry.number] = entry.model_copy(update=end)
    return list(whole.values())


def _finish_time(execution: Execution) -> datetime:
    return execution.finished_at or execution.scheduled_for


def _is_recordable(entry: JournalEntry, end: dict[str, Any], execution: Execution) -> bool:
    """Whether a record says how a call has ended: not of one that was never made, or may be made anew."""
    status = None if end.get("error") is None else end["error"].status
    if status == DELETED:
        return bool(entry.is_made) or entry.number <= execution.calls_made
    return status != ExecutionStatus.CANCELLED or execution.status is ExecutionStatus.SUCCEEDED
