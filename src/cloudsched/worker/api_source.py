"""Work claimed through the HTTP API: the worker needs only a key or a token, and no Google package is imported.

Durable handlers do not work here, since their journal is written to the store. `ctx.step` and its like raise an error
that says so.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from cloudsched.client.worker_operations import UNREADABLE_RETRY_DELAY
from cloudsched.domain.documents.document import STORED_CONTEXT
from cloudsched.domain.documents.execution import Execution, ExecutionError, Lease, ProgressNote, Run, lease_fingerprint
from cloudsched.domain.documents.task import MAX_RETENTION, Task
from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.transitions.outcome import Cancel, Done, Fail, Retry, Suspend
from cloudsched.engine.durable.durable_run import DurableRun
from cloudsched.engine.execution.call import call_handler
from cloudsched.engine.handlers.context import Context, LeaseRenewal
from cloudsched.engine.options.failure_hooks import run_handler_hook
from cloudsched.engine.state.attempt_log import AttemptLog, collect_nothing
from cloudsched.engine.tracing import Tracer
from cloudsched.errors import CloudschedError, InvalidInput, LeaseLost, NotFound, StoreUnavailable, Unavailable
from cloudsched.worker.source import ClaimedWork

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cloudsched.client.client import Client
    from cloudsched.client.views import ClaimView, TaskView
    from cloudsched.domain.documents.log_lines import RunLog
    from cloudsched.domain.transitions.finish import AttemptReport
    from cloudsched.engine.handlers.registry import Registry
    from cloudsched.engine.ports.procedure import Procedure
    from cloudsched.features.pull.work_queue import WorkerFilter

log: Final = own_logger(__name__)

_TASK_FIELDS = frozenset(field.alias for field in Task.model_fields.values())
"""The fields of a task. The API shows more than these, and a newer API may show still more."""
_EXECUTION_FIELDS = frozenset(field.alias for field in Execution.model_fields.values())
"""The fields of an execution's record, of which the API shows more, too."""


class ServerClock:
    """An estimate of the server's clock, by which leases are measured.

    Each claim and each heartbeat sets it. In between it advances with this machine's monotonic clock. So it does not
    matter if this machine's system clock is wrong, or if a local stack's clock is moved.
    """

    def __init__(self) -> None:
        self._reference: tuple[datetime, float] | None = None

    def set(self, at: datetime) -> None:
        """Set the server's present time."""
        self._reference = at.astimezone(UTC), time.monotonic()

    def now(self) -> datetime:
        """Return the present instant."""
        if self._reference is None:
            return datetime.now(UTC)
        at, since = self._reference
        return at + timedelta(seconds=time.monotonic() - since)


class ApiSource:
    """A `WorkSource` that is an API. Each thread has a client of its own."""

    def __init__(
        self,
        connect: Callable[[], Client],
        registry: Registry,
        worker_filter: WorkerFilter,
        location: str,
        wait: timedelta = timedelta(0),
        *,
        keeps_print: bool = False,
    ) -> None:
        self._connect = connect
        self._local = threading.local()
        self._clients: list[Client] = []
        self._handlers = None if worker_filter.handlers is None else [each.name for each in registry]

        self.registry = registry
        self.worker_filter = worker_filter
        self.location = location
        self.wait = wait
        self.keeps_print = keeps_print
        self.can_listen = False
        self.clock: ServerClock = ServerClock()

    @property
    def client(self) -> Client:
        """This thread's client."""
        client: Client | None = getattr(self._local, "client", None)
        if client is None:
            client = self._local.client = self._connect()
            self._clients.append(client)
        return client

    def claim(self, limit: int) -> Sequence[ApiWork]:
        """Claim runs with one request. Claims that cannot be parsed are released."""
        worker_filter = self.worker_filter
        claims = self.client.claim(
            worker_filter.queue,
            worker=worker_filter.worker,
            skills=worker_filter.skills,
            handlers=self._handlers,
            owner=worker_filter.owner,
            limit=limit,
            wait=self.wait,
            task_id=worker_filter.task_id,
        )
        return [work for claim in claims if (work := self._parse_claim(claim)) is not None]

    def listen(self, notify: Callable[[], None]) -> AbstractContextManager[None]:  # noqa: ARG002 - the API sends no notifications
        """Do nothing: the worker has to poll. A poll may wait."""
        return nullcontext()

    def close(self) -> None:
        """Close all clients."""
        while self._clients:
            self._clients.pop().close()

    def _parse_claim(self, claim: ClaimView) -> ApiWork | None:
        try:
            self.clock.set(claim.started_at)
            return ApiWork(self, claim)
        except (ValidationError, OverflowError, CloudschedError) as error:
            reason = str(error).replace("\n", " ")[:300]
            about = {"action": "claim_unreadable", "taskId": claim.task.id}
            log.warning("released: it cannot be parsed; is the API newer than this worker? %s", reason, extra=about)
            try:
                self.client.release(claim, "The worker cannot parse the task.", UNREADABLE_RETRY_DELAY)
            except CloudschedError:
                log.warning("could not be released either; its lease will expire", extra=about)
            return None


class ApiWork(ClaimedWork):
    """A run claimed through the API."""

    def __init__(self, source: ApiSource, claim: ClaimView) -> None:
        super().__init__(_to_task(claim), _to_run(claim, source.worker_filter.worker), source.registry)
        self._source = source
        self._claim = claim
        self._context: Context | None = None
        self._answer: TaskView | None = None
        self._log: AttemptLog | None = None
        self._reported: RunLog | None = None
        """The part of the log that the API has acknowledged."""

    def start(self) -> Context | None:
        """Return the handler's context."""
        logs = self._claim.logs
        level = None if logs is None else logging.getLevelNamesMapping().get(logs.level, logging.INFO)
        self._log = AttemptLog(self.task, self.run, self._source.clock, level, keeps_print=self._source.keeps_print)
        journal = DurableRun(self.task, self.run.execution_id, self._source.clock)
        self._context = Context(self.task, self.run, self._source.clock, self.lease_keeper.renew, journal)
        return self._context

    def call(self) -> Procedure[AttemptReport]:
        """Call the handler."""
        if self._context is None or self._log is None:
            raise ValueError(f"execution {self.run.execution_id} has not started")
        span = Tracer().span(f"handler {self.task.handler}", execution_id=self.run.execution_id, taskId=self.task.id)
        with span, self._log:
            registry = self._source.registry
            return (yield from call_handler(registry, registry.find(self.task.handler), self._context))

    def finish(self, report: AttemptReport) -> bool:
        """Report the outcome to the API, unless it has answered. A result that the API rejects fails the attempt."""
        try:
            task = self._answer = self._answer or self._report(report)
        except (LeaseLost, NotFound):
            return False
        except InvalidInput as error:
            if not isinstance(report.outcome, Done):
                raise
            failure = Fail(f"The API rejects what the handler returned: {error}")
            return self.finish(replace(report, outcome=failure, error=None, notices=()))
        if task.failed_execution is not None:
            self.lease_keeper.stop_renewing()  # the claim has ended; the hook may take long
            self._run_failure_hook(task, task.failed_execution)
        return True

    def _run_failure_hook(self, task: TaskView, failed: dict[str, Any]) -> None:
        """Call the handler's `on_failure` hook, which the API does not have. An error in it changes nothing."""
        changes = {"status": task.status, "message": task.message, "updated_at": task.updated_at}
        try:
            record = Execution.model_validate(
                {name: value for name, value in failed.items() if name in _EXECUTION_FIELDS}
            )
        except (ValidationError, CloudschedError) as error:
            about = {"action": "failure_hook_skipped", "taskId": self.task.id, "executionId": self.run.execution_id}
            log.warning(
                "on_failure is not called: the record cannot be parsed; is the API newer than this worker? %s",
                error,
                extra=about,
            )
            return
        run_handler_hook(self._source.registry, self.task.model_copy(update=changes), record)

    def release(self, reason: str) -> bool:
        """Return the run to its queue."""
        progress = () if self._context is None else self._context.progress_notes
        try:
            self._source.client.release(self._claim, reason, progress=progress or None, logs=self._find_unreported())
        except (LeaseLost, NotFound):
            return False
        return True

    def _report(self, report: AttemptReport) -> TaskView:
        client = self._source.client
        claim = self._claim
        usage: dict[str, Any] = {
            "progress": report.progress or None,
            "logs": self._find_unreported(),
            "queries": report.queries,
            "tokens": report.tokens,
        }

        match report.outcome:
            case Done(content, then, silent):
                return client.complete(claim, content, notices=report.notices, then=then, silent=silent, **usage)
            case Cancel(reason):
                return client.complete(claim, status="CANCELLED", message=reason, **usage)
            case Retry(reason, after):
                kind, text, trace = _error_fields(report.error, "Retry", reason)
                wait = None if after is None else min(after, MAX_RETENTION)
                return client.fail(claim, kind, text, traceback=trace, retry_after=wait, **usage)
            case Fail(reason):
                kind, text, trace = _error_fields(report.error, "Fail", reason)
                return client.fail(claim, kind, text, traceback=trace, is_final=True, **usage)
            case Suspend():
                raise ValueError("a handler without a journal cannot be suspended")
            case put_off:
                until = put_off.until
                delay = until if isinstance(until, timedelta) else until - self._source.clock.now()
                later = min(max(delay, timedelta(0)), MAX_RETENTION)
                return client.release(claim, put_off.reason, later, progress=usage["progress"], logs=usage["logs"])

    def _find_unreported(self) -> RunLog | None:
        """Return all that the handler has logged so far. None if the API has it, or if nothing is kept."""
        found = None if self._log is None else self._log.found
        return None if found is None or not found.lines or found is self._reported else found

    def renew(self, progress: Sequence[ProgressNote]) -> LeaseRenewal:
        """Send a heartbeat. Raises Unavailable if the API did not answer or rejected it."""
        logged = self._find_unreported()
        try:
            with collect_nothing():  # a heartbeat that the handler asks for: what httpx logs of it is not the handler's
                heartbeat = self._source.client.heartbeat(self._claim, progress or None, logs=logged)
        except (LeaseLost, NotFound):
            return LeaseRenewal(None, is_cancelled=True)
        except Unavailable:
            raise
        except CloudschedError as error:
            raise StoreUnavailable("The API", f"it rejects the heartbeat: {error}") from error
        self._reported = logged or self._reported
        try:
            self._source.clock.set(heartbeat.renewed_at)
        except OverflowError as error:
            raise StoreUnavailable("The API", "its clock is out of range") from error
        return LeaseRenewal(heartbeat.lease_until, is_cancelled=heartbeat.is_cancelled, renewed_at=heartbeat.renewed_at)


def _to_task(claim: ClaimView) -> Task:
    known = {name: value for name, value in claim.task_data.items() if name in _TASK_FIELDS}
    return Task.model_validate(known, context=STORED_CONTEXT)


def _to_run(claim: ClaimView, worker: str) -> Run:
    lease = Lease(
        token_hash=lease_fingerprint(claim.lease_token),
        started_at=claim.started_at,
        until=claim.lease_until,
        worker=worker,
    )
    return Run(
        execution_id=claim.execution_id,
        scheduled_for=claim.scheduled_for,
        due_at=claim.scheduled_for,
        attempt=claim.attempt,
        losses=claim.losses,
        started_at=claim.started_at,
        lease=lease,
        progress=claim.progress,
    )


def _error_fields(error: ExecutionError | None, kind: str, reason: str) -> tuple[str, str, str | None]:
    return (kind, reason, None) if error is None else (error.type, error.message, error.traceback)
