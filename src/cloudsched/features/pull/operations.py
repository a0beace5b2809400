"""The workers' operations: claim, heartbeat, complete, fail and release.

A worker is limited to the tasks that it may see and, in addition, to its queues. Any other task is
answered like one that does not exist. The claim returns a lease token once. Afterwards it is neither
shown nor logged.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints

from cloudsched.domain.documents.document import Duration, InputInstant, WireModel
from cloudsched.domain.documents.execution import FAILURE_STATUSES, Execution, ProgressNote, lease_fingerprint
from cloudsched.domain.documents.log_lines import MAX_LINES, MAX_LOG_BYTES, LogLine, RunLog
from cloudsched.domain.documents.task import MAX_COUNT, MAX_NAME, MAX_RETENTION, Owner, Task, TaskId
from cloudsched.domain.responses import api_responses as responses
from cloudsched.domain.transitions.finish import AttemptReport
from cloudsched.domain.transitions.outcome import Cancel, Done, Fail, Retry, go_on
from cloudsched.domain.transitions.task_draft import TaskDraft
from cloudsched.engine.execution.call import MAX_FOLLOW_UPS, to_outcome, truncate_error, truncate_text
from cloudsched.engine.handlers.context import (
    MAX_NOTICES,
    MAX_PROGRESS_NOTES,
    truncate_notice,
    truncate_progress,
)
from cloudsched.engine.handlers.user_access import may_user_report
from cloudsched.engine.options.failure_hooks import describe_failed, failure_hook
from cloudsched.errors import InvalidInput, LeaseLost
from cloudsched.features.pull.checks import require_user_queue
from cloudsched.features.pull.fields import MAX_SKILLS, Pull, Skill, queue_keys
from cloudsched.features.pull.wiring import PullWiring
from cloudsched.features.pull.work_queue import MAX_CLAIMS, ClaimCaller, WorkerFilter
from cloudsched.web.api.operation import ApiCall, Preset, operation
from cloudsched.web.api.parse import validate_model
from cloudsched.web.api.responses import OMITTED_FOR_WORKERS, Json, json_response, task_response, task_to_json
from cloudsched.web.api.visibility import AllowedVerbs
from cloudsched.web.auth.roles import Right, Role
from cloudsched.web.waiting_room import try_until_found

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from werkzeug.wrappers import Response

    from cloudsched.engine.execution.attempt import Attempt
    from cloudsched.features.pull.claims import WorkerClaims


Amount = Annotated[int, Field(strict=True, ge=0, le=MAX_COUNT)]
MAX_SENT_LINES: Final = 5 * MAX_LINES
"""The largest number of log lines in one request. If there are more than `MAX_LINES`, the latest are kept."""
Delay = Annotated[Duration, Field(ge=timedelta(0), le=MAX_RETENTION)]
MAX_HANDLERS: Final = 1000
MAX_WAIT: Final = timedelta(seconds=20)
"""The longest that a claim may wait for work: less than proxies wait for an answer, which may be half a minute."""


class ClaimRequest(WireModel):
    """The tasks that a worker can run, and the number of runs to claim."""

    worker: Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{1,128}$")] = "worker"
    """The worker's name, for the records."""
    skills: Annotated[tuple[Skill, ...], Field(max_length=MAX_SKILLS)] = ()
    """The worker's skills: it may claim tasks that require one of them, and tasks that require none."""
    handlers: (
        Annotated[
            tuple[Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME)], ...],
            Field(max_length=MAX_HANDLERS),
        ]
        | None
    ) = None
    """The handlers that the worker has. Any if omitted."""
    owner: Owner | None = None
    """Claim only this owner's tasks. All that the worker may work on if omitted."""
    limit: Annotated[int, Field(strict=True, ge=1, le=MAX_CLAIMS)] = 1
    """The largest number of runs to claim."""
    wait: Annotated[Duration, Field(ge=timedelta(0), le=MAX_WAIT)] = timedelta(0)
    """The longest to wait for work if there is none."""
    task_id: TaskId | None = None
    """Claim a run of this task only, which waits in the queue.

    If it is taken, over or not for this worker, that is the answer: 409, or 404 for one that it may not see.
    """


class ProgressItem(WireModel):
    """One progress note of a worker."""

    text: str
    """Truncated to 200 bytes of UTF-8."""
    at: InputInstant | None = None
    """The instant at which it was written. Now if omitted."""


class LogItem(WireModel):
    """One line that a worker has logged."""

    text: str
    """The message, with its traceback if it has one. Truncated to 1,000 bytes of UTF-8."""
    at: InputInstant | None = None
    """The instant at which it was logged, or else now.

    One outside the claim's time becomes the nearest one in it.
    """
    level: str = "INFO"
    """``DEBUG``, ``INFO``, ``WARNING``, ``ERROR``, ``CRITICAL``, or your program's own name of a level.

    Lines below the claim's ``logs.level`` are not kept, but those of unknown levels are. Truncated to 80
    bytes of UTF-8.
    """
    logger: str = ""
    """The logger's name. Truncated to 80 bytes of UTF-8."""


class LogReport(WireModel):
    """The lines that a worker's handler has logged."""

    lines: Annotated[tuple[LogItem, ...], Field(max_length=MAX_SENT_LINES)] = ()
    """All lines that this claim has logged so far, or the last ones.

    The latest 200 with 16 KiB of text are kept.
    """
    omitted_lines: Annotated[int, Field(strict=True, ge=0, le=MAX_COUNT)] = 0
    """The number of earlier lines of this claim that are not sent."""


class HeartbeatRequest(WireModel):
    """A sign that a worker is still running a claimed run."""

    lease_token: Annotated[str, StringConstraints(min_length=1, max_length=128)]
    """The token from the claim, which proves that the caller holds the run."""
    progress: tuple[ProgressItem, ...] = ()
    """All progress notes so far.

    They replace the previous ones, and the last 50 are kept. If there are none, the previous ones stay.
    """
    logs: LogReport | None = None
    """The lines that the handler has logged.

    They replace the claim's earlier report, unless that had more lines, which means that this request is
    an older one. Ignored if the claim has no ``logs``.
    """


class AttemptUsage(HeartbeatRequest):
    """The progress and the cost of an attempt."""

    queries: Amount = 0
    """The number of queries that the attempt used."""
    tokens: Amount = 0
    """The number of tokens that the attempt used, for example of a language model."""


class NoticeItem(WireModel):
    """A message for the owner's inbox."""

    title: str
    """Truncated to 200 bytes of UTF-8."""
    body: str


class CompleteRequest(AttemptUsage):
    """A report that the work is done."""

    status: Literal["SUCCEEDED", "CANCELLED"] = "SUCCEEDED"
    """``CANCELLED`` if there was nothing left to do."""
    content: Any = None
    """The result of a run that ``SUCCEEDED``: any JSON of at most 512 KiB, and 900 KiB as Firestore counts it."""
    silent: Annotated[bool, Field(strict=True)] = False
    """True if the result is recorded and not delivered. Notices are."""
    notices: Annotated[tuple[NoticeItem, ...], Field(max_length=MAX_NOTICES)] = ()
    """Messages for the owner's inbox, if the run ``SUCCEEDED``."""
    then: Annotated[tuple[dict[str, Any], ...], Field(max_length=MAX_FOLLOW_UPS)] = ()
    """Each is a ``NewTask``: tasks that are created with the success, or not at all.

    They have the owner of the run's task, and are what whoever asked for that task may ask for. If one of them is
    refused, nothing has changed, and you may complete the run without it.
    """
    message: str | None = None
    """The reason why the run is ``CANCELLED``. Truncated to 2,000 bytes of UTF-8."""


class AttemptError(WireModel):
    """The error of an attempt."""

    type: Annotated[str, StringConstraints(min_length=1)]
    """The exception's class, or an equivalent. Truncated to 200 bytes of UTF-8."""
    message: str
    """Truncated to 2,000 bytes of UTF-8."""
    traceback: str | None = None
    """The last 4,000 bytes of UTF-8 are kept."""


class FailRequest(AttemptUsage):
    """A report that the attempt has failed."""

    error: AttemptError
    is_final: Annotated[bool, Field(strict=True)] = False
    """True if this was the last attempt. Otherwise the task's retry policy decides."""
    retry_after: Delay | None = None
    """The delay until the next attempt, if there is one, in place of the policy's."""


class ReleaseRequest(HeartbeatRequest):
    """A request to give the run back."""

    reason: str | None = None
    """The reason. Truncated to 2,000 bytes of UTF-8."""
    after: Delay | None = None
    """The delay after which the run is offered again.

    If omitted, it is offered at once and in its old position.
    """


_NO_STORE = {"Cache-Control": "no-store"}
"""No cache may store lease tokens."""
_COME_AGAIN = {**_NO_STORE, "Retry-After": "3"}
"""Says when to ask again if there was no place to wait: as often as workers poll."""
_EXECUTION: Final = "/v1/tasks/{taskId}/executions/{executionId}"
_REPORT: Final[Preset] = {"right": Right.WORK, "error_statuses": (409,)}
"""The options that all reports on a claimed run share."""


@operation(
    "POST",
    "/v1/queues/{queue}/claim",
    "Workers",
    right=Right.WORK,
    body=ClaimRequest,
    body_is_optional=True,
    response_schema="ClaimList",
    error_statuses=(404, 409),
)
def claim(call: ApiCall, body: ClaimRequest) -> Response:
    """Claim work from a queue: the most urgent first, then the longest due.

    A user gets runs that users requested and that this user could have started. Runs that servers or code
    requested are for workers and admins.

    With `taskId`, it is that task or a problem that says why not.

    With `wait`, it answers as soon as there is work, or with no claims at the end of that time. If too
    many wait, it answers at once, and `Retry-After` says in how many seconds to ask again.

    A claim is a lease: send heartbeats before `leaseUntil`, and end it with `complete`, `fail` or
    `release`. Do not repeat a claim whose response was lost. Any run that it claimed is offered again
    when its lease ends.
    """
    queue = validate_model(Pull, {"queue": call.path["queue"]}).queue
    call.caller.require_queue(queue)
    if call.caller.role is Role.USER:
        require_user_queue(queue, call.app.container.registry)
    handlers = None if body.handlers is None else frozenset(body.handlers)
    owner = call.caller.resolve_listed_owner(body.owner)
    worker_filter = WorkerFilter(queue, body.skills, handlers, owner, body.worker, body.task_id)
    by = _claim_caller(call)
    parts = PullWiring.of(call.app.container)
    parts.presence.note(worker_filter, by)
    attempt = partial(parts.work_queue.claim, worker_filter, by, body.limit)
    listener = parts.shared_listener if body.wait else None
    listen = None if listener is None else partial(listener.listen, queue_keys(queue, body.skills), owner)
    environ = call.request.environ
    is_user = call.caller.role is Role.USER
    claims, has_waited = try_until_found(attempt, body.wait.total_seconds(), environ, listen, is_user=is_user)
    allowed = AllowedVerbs(call.app, call.caller)
    shown = responses.ClaimList[Json].model_construct(
        claims=tuple(_make_claim(call, each, allowed) for each in claims),
    )
    return json_response(shown.to_wire(), headers=_NO_STORE if claims or has_waited else _COME_AGAIN)


@operation(
    "POST",
    f"{_EXECUTION}/heartbeat",
    "Workers",
    body=HeartbeatRequest,
    response_schema="RenewedLease",
    **_REPORT,
)
def heartbeat(call: ApiCall, body: HeartbeatRequest) -> Response:
    """Renew a claim's lease.

    Safe to repeat. If `isCancelled` is true, stop and `complete` the run as `CANCELLED`.
    """
    progress = _parse_progress(call, body.progress) or None
    state = _authorized_claims(call).heartbeat(*_claim_key(call, body), progress, _parse_log(call, body.logs))
    if state.until is None:
        raise LeaseLost(call.path["executionId"])
    assert state.renewed_at is not None  # noqa: S101 - a renewed lease has the time of its renewal
    renewed = responses.RenewedLease(
        lease_until=state.until, renewed_at=state.renewed_at, is_cancelled=state.is_cancelled
    )
    return json_response(renewed.to_wire())


@operation(
    "POST",
    f"{_EXECUTION}/complete",
    "Workers",
    body=CompleteRequest,
    response_schema="ReportedTask",
    **_REPORT,
)
def complete(call: ApiCall, body: CompleteRequest) -> Response:
    """Report that a claimed run is done.

    Safe to repeat: the first report counts. 409 `lease-lost` means that the run is no longer yours.
    """
    notices = _parse_each("notices", body.notices, lambda notice: truncate_notice(notice.title, notice.body))
    answer: Cancel | Done
    if body.status == "CANCELLED":
        _require_absent(body, ("content", "notices", "then"), "An execution that is CANCELLED has none.")
        answer = Cancel(body.message or "Cancelled by its worker.")
    else:
        _require_absent(body, ("message",), "It says why an execution is CANCELLED.")
        answer = Done(body.content, _parse_each("then", body.then, TaskDraft.from_wire), body.silent)
    outcome = to_outcome(answer, call.app.container.clock.now())
    return _respond(call, _finish(call, body, outcome=outcome, notices=notices))


@operation("POST", f"{_EXECUTION}/fail", "Workers", body=FailRequest, response_schema="FailedTask", **_REPORT)
def fail(call: ApiCall, body: FailRequest) -> Response:
    """Report that a claimed run's attempt has failed.

    Safe to repeat: the first report counts. The task's retry policy decides whether another attempt follows.
    """
    error = truncate_error(body.error.type, body.error.message, body.error.traceback)
    if body.is_final:
        _require_absent(body, ("retry_after",), "No attempt follows one that is final.")
    outcome = Fail(error.message) if body.is_final else Retry(error.message, body.retry_after)
    task = _finish(call, body, outcome=outcome, error=error)
    record = _unreported_failure(call, task, body.lease_token)
    return _respond(call, task, {} if record is None else {"failedExecution": record.to_wire()})


@operation(
    "POST",
    f"{_EXECUTION}/release",
    "Workers",
    body=ReleaseRequest,
    response_schema="ReportedTask",
    **_REPORT,
)
def release(call: ApiCall, body: ReleaseRequest) -> Response:
    """Give a claimed run back.

    Another worker can claim it at once, or after `after` seconds. It costs no attempt.
    """
    reason = truncate_text(body.reason or "Released by its worker.")
    claims = _authorized_claims(call)
    key = _claim_key(call, body)
    steps = _parse_progress(call, body.progress)
    logged = _parse_log(call, body.logs)
    if body.after is None:
        return _respond(call, claims.release_by_token(*key, reason, steps or None, logged))
    return _respond(
        call, claims.finish_by_token(*key, AttemptReport(go_on(reason, body.after), progress=steps), logged)
    )


def _authorized_claims(call: ApiCall) -> WorkerClaims:
    return PullWiring.of(call.app.container).worker_claims.for_caller(_claim_caller(call))


def _claim_caller(call: ApiCall) -> ClaimCaller:
    role = call.caller.role
    registry = call.app.container.registry
    return ClaimCaller(
        call.caller.subject,
        is_user=role is Role.USER,
        authorize=call.visibility.check_claim,
        may_report=lambda task: role is not Role.USER or may_user_report(task, registry),
        can_end_others=role is Role.ADMIN,
    )


def _claim_key(call: ApiCall, body: HeartbeatRequest) -> tuple[str, str, str]:
    return call.task_id, call.path["executionId"], body.lease_token


def _finish(call: ApiCall, body: AttemptUsage, **more: Any) -> Task:
    report = AttemptReport(
        progress=_parse_progress(call, body.progress), queries=body.queries, tokens=body.tokens, **more
    )
    return _authorized_claims(call).finish_by_token(
        *_claim_key(call, body),
        report,
        _parse_log(call, body.logs),
    )


def _unreported_failure(call: ApiCall, task: Task, lease_token: str) -> Execution | None:
    """Return the record if this claim's run has failed for good and no `on_failure` was called for it here."""
    execution_id = call.path["executionId"]
    if task.find_run(execution_id) is not None:
        return None
    record = call.app.container.store.load_execution(task.id, execution_id)
    if (
        record is None
        or failure_hook(call.app.container.registry, describe_failed(task, record)) is not None
        or record.status not in FAILURE_STATUSES
        or record.attempts[-1].claim != lease_fingerprint(lease_token)
    ):
        return None
    return record.model_copy(update={"steps": (), "steps_reference": None, "events": ()})


def _respond(call: ApiCall, task: Task, more: Json | None = None) -> Response:
    """Respond to a report. A worker that may not read tasks does not see the task's content."""
    if call.caller.has_right(Right.READ):
        return task_response(call, task, more=more)
    content = {**task_to_json(task), **(more or {})}
    return json_response({name: value for name, value in content.items() if name not in OMITTED_FOR_WORKERS})


def _parse_progress(call: ApiCall, progress: Sequence[ProgressItem]) -> tuple[ProgressNote, ...]:
    now = call.app.container.clock.now()
    return tuple(truncate_progress(step.at or now, step.text) for step in progress[-MAX_PROGRESS_NOTES:])


def _parse_log(call: ApiCall, logs: LogReport | None) -> RunLog | None:
    if logs is None:
        return None
    now = call.app.container.clock.now()
    lines = tuple(
        LogLine(at=line.at or now, level=line.level, logger=line.logger, text=line.text) for line in logs.lines
    )
    return RunLog(lines=lines, omitted_lines=logs.omitted_lines)


def _parse_each(name: str, items: Sequence[Any], parse: Callable[[Any], Any]) -> tuple[Any, ...]:
    parsed = []
    for number, item in enumerate(items):
        try:
            parsed.append(parse(item))
        except InvalidInput as error:
            raise error.within(f"{name}.{number}") from error
    return tuple(parsed)


def _require_absent(body: HeartbeatRequest, names: Sequence[str], hint: str) -> None:
    """Refuse fields that would be ignored silently."""
    for name in names:
        if getattr(body, name) not in (None, ()):
            field = type(body).model_fields[name].alias or name
            raise InvalidInput(field, "cannot be given here", hint)


def _make_claim(call: ApiCall, claim: Attempt, allowed: AllowedVerbs) -> responses.Claim[Json]:
    run = claim.run
    task = claim.begun_task
    assert run.lease is not None  # noqa: S101 - a claim is a lease
    own: Json = {} if run.payload is None else {"payload": run.payload}
    if not call.caller.has_right(Right.READ):
        own["events"] = ()  # others have sent them, for later runs
    return responses.Claim[Json].model_construct(
        task={**task_to_json(task), "allowedVerbs": allowed.of_task(claim.task), **own},
        execution_id=run.execution_id,
        scheduled_for=run.scheduled_for,
        attempt=run.attempt,
        losses=run.losses,
        started_at=run.lease.started_at,
        progress=run.progress,
        lease_token=claim.lease_token,
        lease_until=run.lease.until,
        logs=_describe_log(call, claim),
    )


def _describe_log(call: ApiCall, claim: Attempt) -> responses.ClaimLogs | None:
    """Return the rules for keeping the log lines of the worker's handler. None if none are kept."""
    keeper = call.app.container.engine.logs
    if keeper.level is None:
        return None
    before = keeper.read(claim.task.id, claim.run.execution_id, claim.run.log) or RunLog()
    return responses.ClaimLogs(
        level=logging.getLevelName(keeper.level),
        max_lines=MAX_LINES,
        max_bytes=MAX_LOG_BYTES,
        bytes_left=before.bytes_left,
    )
