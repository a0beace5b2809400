"""Stores the results of steps and calls: in the journal, or in the blob store if they are too large for it.

The outcome of a call is that of the run which its parent requested, for the handler that waits for it and for
the record of an execution that did not wait. Runs of its task that were triggered by hand only delay the
moment at which the call counts as ended.
"""

from __future__ import annotations

import json
import secrets
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cloudsched import errors
from cloudsched.domain.documents.execution import Execution, ExecutionStatus
from cloudsched.domain.documents.journal import (
    MAX_CALLS,
    MAX_INLINE_RESULT_BYTES,
    JournalEntry,
    StepError,
    StepRecord,
    StepStatus,
)
from cloudsched.domain.documents.json_limits import (
    MAX_CONTENT,
    deep_copy_json,
    escape_surrogates,
    exception_text,
    max_size,
    require_storable,
)
from cloudsched.domain.documents.usage import Amounts, sum_usage
from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.raised_errors import type_name
from cloudsched.errors import BlobsUnavailable, CallFailed, StoreUnavailable, Unavailable, UnreadableDocument

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.blobs import Blobs
    from cloudsched.engine.ports.store import Store

log: Final = own_logger(__name__)

_MAX_ERROR_CHARS = 1000
"""The number of characters of an error that are stored."""

_MAX_TRIES = 3
"""The number of attempts to put a blob before the blob store counts as unavailable."""

MAX_RESULT_BYTES = 32 * 1024 * 1024
"""The largest size of a result in bytes of JSON."""


class Results:
    """The results of one execution, as the holder of one claim stores them.

    Its blobs have keys of their own: those of another claim of the same attempt, which was released, are not
    overwritten.
    """

    def __init__(self, blobs: Blobs, prefix: str, claim: str) -> None:
        self._blobs = blobs
        self._prefix = prefix
        self._claim = claim

    def store(self, number: int, value: Any, *, is_stored_elsewhere: bool) -> dict[str, Any]:  # noqa: ANN401 - any JSON
        """Return the fields of an entry that hold a result: the result itself, or the key of its blob.

        If the blob store cannot be reached, and it is not stored elsewhere, it goes into the entry where a
        document has room, so that it is not lost. Raises InvalidInput or StoreUnavailable.
        """
        require_storable("result", value, MAX_RESULT_BYTES)
        size = max_size(value)
        if size <= MAX_INLINE_RESULT_BYTES:
            return {"result": value, "reference": None}
        content = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        key = f"{self._prefix}/{number}-{self._claim}"
        try:
            put_blob_with_retry(self._blobs, key, content)
        except StoreUnavailable:
            if is_stored_elsewhere or size > MAX_CONTENT:
                raise
            log.warning(
                "blob %s not stored; its content is kept in the journal entry",
                key,
                extra={"action": "blob_put_failed"},
            )
            return {"result": value, "reference": None}
        return {"result": None, "reference": key}

    def read(self, step: StepRecord) -> Any:  # noqa: ANN401 - any JSON
        """Return a step's result from the journal or the blob store, as a copy that the caller may change."""
        if step.reference is None:
            return deep_copy_json(step.result)
        return json.loads(self._blobs.get(step.reference))


def put_blob_with_retry(blobs: Blobs, key: str, content: bytes) -> None:
    """Store a blob, with some retries. Raises BlobsUnavailable."""
    for _ in range(_MAX_TRIES - 1):
        with suppress(StoreUnavailable):
            blobs.put(key, content)
            return
    try:
        blobs.put(key, content)
    except StoreUnavailable as error:
        raise BlobsUnavailable(error.service, error.reason) from error


def encode_refusal(error: Exception) -> dict[str, Any]:
    """Return the fields of an entry that record why a call was refused."""
    # The code of the payload's own model.
    if not issubclass(type(error), errors.InvalidInput | errors.LimitExceeded):
        error = errors.InvalidInput(
            "call",
            f"cannot be made: {type_name(error)}: {exception_text(error)}",
        )
    if isinstance(error, errors.InvalidInput):
        arguments = [error.field, error.problem, error.hint]
    else:
        arguments = [str(error)]
    recorded = StepError(type=type(error).__name__, message=escape_surrogates(str(error)[:_MAX_ERROR_CHARS]))
    return {"error": recorded, "result": [escape_surrogates(text[:_MAX_ERROR_CHARS]) for text in arguments]}


def decode_refusal(step: StepRecord) -> Exception:
    """Return the error with which a call was refused."""
    kind = getattr(errors, step.error.type if step.error else "", errors.InvalidInput)
    refused: Exception = kind(*step.result)
    return refused


DELETED = "DELETED"
"""The status of a call whose task is gone."""


class CallOutcome(NamedTuple):
    """The outcome of a call that has ended."""

    content: Any
    """The value that its handler returned."""
    failure: CallFailed | None
    """The error if there is no result, or None if it succeeded."""
    finished_at: datetime | None
    """The instant at which it ended, by its own record, or None if its task is gone."""
    used: Amounts = Amounts()
    """What its task has used, with the calls below it."""


def load_call_outcome(store: Store, handler: str, task_id: str) -> CallOutcome | None:
    """Return the outcome of a call, or None if it is in progress."""
    stored = store.load(task_id)
    if stored is None or stored.task.deleted_at is not None:
        return CallOutcome(None, CallFailed(handler, task_id, DELETED), None)

    task = stored.task
    if not task.has_ended:
        return None

    used = sum_usage((*task.usage, *task.used_by_calls))
    record = _load_outcome(store, task)
    if record is None:
        failure = CallFailed(handler, task_id, task.status, message=task.message)
        return CallOutcome(None, failure, task.status_changed_at, used)

    finished_at = record.finished_at or task.status_changed_at
    if record.status is ExecutionStatus.SUCCEEDED:
        return CallOutcome(record.content, None, finished_at, used)

    error = record.error
    if error:
        why = (error.type, error.message)
    else:
        why = ("", record.message or "")

    return CallOutcome(None, CallFailed(handler, task_id, record.status, *why), finished_at, used)


def _load_outcome(store: Store, task: Task) -> Execution | None:
    own = task.outcome_execution_id
    return store.load_execution(task.id, own) if own else None


def describe_finished_call(
    entry: JournalEntry,
    load_outcome: Callable[[str, str], CallOutcome | None],
    results: Results,
    now: datetime,
) -> dict[str, Any] | None:
    """Return the changes to the entry of a call that has ended, or None if the call is in progress.

    Its end is the instant in its own record, which is before its caller looked, or now if there is no record.
    Raises Unavailable.
    """
    outcome = load_outcome(entry.name, entry.child or "")
    if outcome is None:
        return None
    known = {
        "finished_at": outcome.finished_at or now,
        "noticed_at": now,
        "queries": (entry.queries or 0) + outcome.used.queries or None,
        "tokens": (entry.tokens or 0) + outcome.used.tokens or None,
    }
    failure = outcome.failure
    if failure is not None:
        error = StepError(type=failure.type, message=failure.message, status=failure.status)
        return {"status": StepStatus.FAILED, "error": error, **known}
    kept = results.store(entry.number, outcome.content, is_stored_elsewhere=True)
    return {"status": StepStatus.SUCCEEDED, **known, **kept}


def with_call_outcomes(
    store: Store, blobs: Blobs, execution: Execution, entries: Sequence[JournalEntry]
) -> list[JournalEntry]:
    """Return the journal of an ending execution, with the outcomes of calls that its handler did not await.

    Entries of calls that are in progress, or that cannot be read at the moment, stay as they are: the end of
    an execution does not wait for them. A cancelled call stays open where the execution may be retried,
    because a retry makes the call again.
    """
    updated = {entry.number: entry for entry in entries}
    claim = f"{execution.attempt_count}-{secrets.token_hex(4)}"
    results = Results(blobs, f"{execution.task_id}/{execution.id}", claim)
    finished_at = execution.finished_at or execution.scheduled_for
    waiting = (each for each in entries if each.status is StepStatus.WAITING and each.child is not None)
    for entry in islice(waiting, MAX_CALLS):
        try:
            end = describe_finished_call(entry, partial(load_call_outcome, store), results, finished_at)
        except Unavailable as error:
            log.warning(
                "call result unavailable: %s",
                error,
                extra={"action": "call_result_unavailable", "taskId": execution.task_id},
            )
            break
        except UnreadableDocument:
            continue
        if end is not None and _is_recordable(entry, end, execution):
            updated[entry.number] = entry.model_copy(update=end)
    return list(updated.values())


def _is_recordable(entry: JournalEntry, end: dict[str, Any], execution: Execution) -> bool:
    """Return whether a record shows a call's end: not if it was never made, or a retry may make it again."""
    if end.get("error") is None:
        status = None
    else:
        status = end["error"].status
    if status == DELETED:
        return bool(entry.is_made) or entry.number <= execution.calls_made
    return status != ExecutionStatus.CANCELLED or execution.status is ExecutionStatus.SUCCEEDED
