"""The limits of a task's size: its owner's fields, the events that wait for it, and its open runs fit one document.

The owner's part and the events are refused when they are too large. Open runs are not refused, because occurrences come
due whatever a task's size. Their texts are shortened instead, if they would not fit beside the rest.
"""

from __future__ import annotations

from typing import Any, Final

from cloudsched.domain.documents.execution import Attempt, ExecutionError, Run
from cloudsched.domain.documents.json_limits import MAX_DOCUMENT_BYTES, stored_size, truncate
from cloudsched.domain.documents.task import Task, TaskSpec
from cloudsched.errors import InvalidInput

MAX_SPEC_BYTES = 560 * 1024
"""The largest part of a task that its owner sets, as Firestore counts it."""
MAX_EVENTS_BYTES = 176 * 1024
"""The most bytes of events that may wait for a task."""
MAX_AWAITED_EVENTS_BYTES = 224 * 1024
"""The most bytes of events if a run waits for one of them."""
MAX_HISTORY_BYTES = 8 * 1024
"""The most bytes that are kept of a task's history of actions by hand."""
_STATE_BYTES = 40 * 1024
"""The most of the fields that the scheduler keeps, its history included, besides the events and the open runs."""
MIN_RUNS_BYTES = MAX_DOCUMENT_BYTES - MAX_SPEC_BYTES - MAX_AWAITED_EVENTS_BYTES - _STATE_BYTES
"""The least room for the open runs."""

_AS_STORED: Final[dict[str, Any]] = {"mode": "python", "by_alias": True, "exclude_none": True}
"""The form in which a part of a task is written, to know its size."""
_SHORT_MESSAGE = 100
_RECENT_NOTES = 5
_RECENT_ATTEMPTS = 3


def fit_runs(task: Task) -> Task:
    """Return the task with open runs that fit its document. Nearly all tasks stay unchanged."""
    bounds = [
        8_000
        + 1_500 * len(run.attempts)
        + 300 * len(run.progress)
        + 8 * (0 if run.suspension is None else len(run.suspension.calls))
        + len(run.log or "")
        + (0 if run.payload is None else stored_size(run.payload))
        for run in task.runs
    ]
    if sum(bounds) <= MIN_RUNS_BYTES:
        return task
    stored = task.to_stored()
    runs_bytes = stored_size(stored["runs"])
    room = MAX_DOCUMENT_BYTES - _STATE_BYTES - (stored_size(stored) - runs_bytes)
    if runs_bytes <= room:
        return task
    share = (room - payloads_size(task)) // len(task.runs)
    return task.model_copy(update={"runs": tuple(_shorten(run, share) for run in task.runs)})


def payloads_size(task: Task) -> int:
    """Return the bytes of the payloads that open runs were triggered with, as Firestore counts them."""
    return sum(stored_size(run.payload) for run in task.runs if run.payload is not None)


def require_payload_room(task: Task, field: str = "payload", *, added: object = None) -> None:
    """Check that the payloads of open runs have room beside the owner's fields: they share one limit.

    The earlier definitions that open runs began with share it, too, and so does the payload of one more run, `added`.
    """
    payloads = payloads_size(task) + (0 if added is None else stored_size(added))
    payloads += sum(stored_size(each.model_dump(**_AS_STORED)) for each in task.earlier_definitions or ())
    if not payloads:
        return
    spec = task.model_dump(**_AS_STORED, include={*TaskSpec.model_fields})
    if stored_size(spec) + payloads > MAX_SPEC_BYTES:
        hint = (
            f"The task and the payloads of its open runs may have {MAX_SPEC_BYTES} together: wait until some of these "
            "have ended, or store large data elsewhere and pass a reference to it."
        )
        raise InvalidInput(field, f"has no room: the payloads of open runs would have {payloads} bytes", hint)


def _shorten(run: Run, max_bytes: int) -> Run:
    """Return a run of at most that many bytes, if its texts can be shortened that far. Recent texts are kept."""
    changes: list[dict[str, object]] = [
        {},
        {"log": None},
        {"progress": run.progress[-_RECENT_NOTES:]},
        {"progress": run.progress[-_RECENT_NOTES:], "attempts": tuple(map(_shorten_error, run.attempts))},
        {"progress": run.progress[-1:], **_keep_recent_attempts(run, _RECENT_ATTEMPTS)},
        {"progress": (), **_keep_recent_attempts(run, 1)},
    ]
    for change in changes:
        shortened = run.model_copy(update={**change, "log": None} if change else change)
        texts = shortened.model_dump(**_AS_STORED, exclude={"payload"})
        if stored_size(texts) <= max_bytes:
            break
    return shortened


def _keep_recent_attempts(run: Run, count: int) -> dict[str, object]:
    """Return the changes that leave out attempts. The first stays, because it says how the run began."""
    recent = run.attempts[:1] + run.attempts[1:][-count:]
    omitted = run.omitted_attempts + len(run.attempts) - len(recent)
    return {"attempts": tuple(map(_shorten_error, recent)), "omitted_attempts": omitted}


def _shorten_error(attempt: Attempt) -> Attempt:
    if attempt.error is None:
        return attempt
    message = truncate(attempt.error.message, _SHORT_MESSAGE)
    return attempt.model_copy(update={"error": ExecutionError(type=attempt.error.type, message=message)})
