"""Take a claimed run through one attempt: call its handler once, and change the run under its lease.

A change renews the lease, appends to the journal, finishes or releases the run, or frees its lock.

Whatever a handler returns or raises becomes an outcome. A handler that raises has failed, and is retried according to
its task's policy, as is one that this process does not have: another version of the code may. An invalid payload or
result is not retried, since it would be just as invalid again. `is_handler_failure` says which exceptions are not
caught.
"""

from __future__ import annotations

import gc
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, NoReturn

from cloudsched.domain.documents.execution import ExecutionError
from cloudsched.domain.documents.json_limits import exception_text, require_content, to_json_value, truncate
from cloudsched.domain.documents.script import SCRIPT_HANDLER as SCRIPTS
from cloudsched.domain.documents.task import FINAL_STATUSES
from cloudsched.domain.handler_code import run_code_of
from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.transitions.commit import NO_READS, Commit, Committed, Effects, VersionedTask
from cloudsched.domain.transitions.finish import on_outcome, on_release
from cloudsched.domain.transitions.lease import on_heartbeat
from cloudsched.domain.transitions.lifecycle import with_changes
from cloudsched.domain.transitions.outcome import Cancel, Done, Fail, Outcome, Retry, Snooze, Suspend
from cloudsched.domain.transitions.suspend import on_journal_append
from cloudsched.domain.transitions.task_draft import TaskDraft
from cloudsched.engine.durable.arguments import deadline, parse_wait
from cloudsched.engine.durable.durable_run import CallHandle, Misuse
from cloudsched.engine.durable.suspension import OUTAGE_PAUSE, Suspended, explain_mistake, is_handler_failure
from cloudsched.engine.durable.user_calls import PLAIN_TYPES, UserCall, make_coroutine_function, needs_await
from cloudsched.engine.handlers.context import MAX_TEXT, Context, LeaseRenewal
from cloudsched.engine.handlers.signature import Dependencies
from cloudsched.engine.ports.procedure import LongCall, Procedure, from_thrown, run_procedure
from cloudsched.errors import (
    BlobsUnavailable,
    InvalidInput,
    LeaseLost,
    QueueUnavailable,
    StoreUnavailable,
    UnknownHandler,
    WorkflowError,
)

if TYPE_CHECKING:
    from cloudsched.domain.documents.execution import Lease, ProgressNote, Run
    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.domain.documents.log_lines import RunLog
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.finish import AttemptReport
    from cloudsched.domain.transitions.wakeups import Dispatch
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.handlers.registry import Handler, Registry
    from cloudsched.engine.state.attempt_log import AttemptLog

    Decide = Callable[[Task, VersionedTask], Commit | None]
    """Decides on a task, given with its run's log, and as it was read. Returns None if the lease is no longer held."""

log = own_logger(__name__)

_CALLING_MODULES = frozenset(
    {
        __name__,
        "cloudsched.engine.execution.async_handler",
        "cloudsched.engine.durable.event_loop",
        "cloudsched.engine.durable.user_calls",
        "cloudsched.engine.ports.procedure",
        "cloudsched.engine.handlers.registry",
        "cloudsched.engine.handlers.signature",
    }
)
"""Whose frames are between this module and a handler."""

MAX_MESSAGE = 2_000
"""The most bytes of a message or reason that are stored."""
MAX_TRACEBACK = 4_000
"""The most bytes of an error's traceback that are stored."""
_SHORT = 1000
"""The most ASCII characters of a result that is not measured: it can be stored, whatever they are."""
MAX_FOLLOW_UPS = 20
"""The most tasks that follow one success."""
MAX_FOLLOW_UP_BYTES = 1024 * 1024
"""Their size together, as JSON, since a commit has a limit of its own."""


class Attempt:
    """A claimed run on its way through the pipeline, with the last known state of its task, which it commits on."""

    context: Context
    """What its handler gets. `Executor.start` makes it, and what else the call of the handler needs."""
    handler: Handler | None
    """The handler, or None if this process does not have it."""
    log: AttemptLog | None = None
    """The log of its handler."""
    early: timedelta
    """The time by which it was claimed early, for which its handler waits. Negative if it was late."""

    def __init__(self, engine: EngineContext, claimed: VersionedTask, run: Run, lease_token: str = "") -> None:
        if run.lease is None:
            raise ValueError("a claimed run has a lease")
        self._engine = engine
        self._stored = claimed
        self.task = claimed.task
        """The task as it was last read or written."""
        self.begun_task = claimed.task if run.definition is None else claimed.task.as_begun(run)
        """The task as it was claimed, with what the run began with: whoever edits it meanwhile changes later runs."""
        self.run = run
        """The run as it was claimed."""
        self.lease_token = lease_token
        """A worker's proof that it holds the claim. Only its hash is stored."""
        self.lease = run.lease
        """The lease as it was claimed."""
        self._token_hash = run.lease.token_hash
        self.sent_wakeups: tuple[Dispatch, ...] = ()
        """The wake-ups that were dispatched when it began, and need not be dispatched again."""
        self.reported_log: RunLog | None = None
        """What its worker has reported of its log. Each commit stores its new lines, or those of `log`."""

    def find_lease(self) -> Lease:
        """Return the lease as this process last read or wrote it: renewed, or as it was claimed."""
        run = self.task.find_run(self.run.execution_id)
        lease = None if run is None else run.lease
        return self.lease if lease is None or lease.token_hash != self._token_hash else lease

    def renew(self, progress: Sequence[ProgressNote]) -> LeaseRenewal:
        """Extend the lease and the hold on its lock, and store the progress. Report a lost lease or an ended task."""
        execution_id = self.run.execution_id

        def decide(task: Task, base: VersionedTask) -> Commit | None:
            renewal = on_heartbeat(task, execution_id, self._token_hash, progress, self._engine.clock.now())
            return self._change_lease(renewal, base)

        committed = run_procedure(self._change(decide))
        task = None if committed is None else committed.stored.task
        run = None if task is None else task.find_run(execution_id)
        if task is None or run is None:
            return LeaseRenewal(None, is_cancelled=True)
        is_cancelled = task.deleted_at is not None or task.status in FINAL_STATUSES
        return LeaseRenewal(run.wake_at, is_cancelled=is_cancelled, renewed_at=task.updated_at)

    def append_journal(
        self, entries: Sequence[JournalEntry], calls_made: int, end_wait: Callable[[Commit], Commit] | None = None
    ) -> Task | None:
        """Append entries to the journal, and end a wait for an event in the same commit. This renews the lease.

        Returns None if the lease is no longer held. If `end_wait` raises, nothing is stored.
        """
        execution_id = self.run.execution_id

        def decide(task: Task, base: VersionedTask) -> Commit | None:
            now = self._engine.clock.now()
            transition = on_journal_append(task, execution_id, self._token_hash, entries, calls_made, now)
            if transition is not None and end_wait is not None:
                transition = end_wait(transition)
            return self._change_lease(transition, base)

        committed = run_procedure(self._change(decide))
        return None if committed is None else committed.stored.task

    def find_caller(self, *, anew: bool) -> VersionedTask:
        """Return the task whose run makes calls, as it is known, or as it is now. Raises LeaseLost if it may not."""
        stored = self._reload(self.task.id) if anew else self._stored
        run = None if stored is None else stored.task.find_run(self.run.execution_id)
        is_held = run is not None and run.lease is not None and run.lease.token_hash == self._token_hash
        if stored is None or not is_held or stored.task.deleted_at or stored.task.status in FINAL_STATUSES:
            raise LeaseLost(self.run.execution_id)
        return stored

    def finish(self, report: AttemptReport) -> Procedure[Committed | None]:
        """Commit how the attempt ended. Return None if the lease was lost before.

        If the steps are too large for the record and the blob store is unavailable, the run is suspended until later,
        and then replayed. If a follow-up is refused or the store rejects the outcome, which would happen every time,
        the attempt is recorded as a failure.
        """
        try:
            try:
                return (yield from self.finish_as_reported(report))
            except InvalidInput as error:
                return (yield from self.finish_as_reported(_to_failure(report, error, self)))
        except BlobsUnavailable as error:
            until = self._engine.clock.now() + OUTAGE_PAUSE
            later = replace(report, outcome=Suspend(str(error), until), error=None)
            return (yield from self.finish_as_reported(later))

    def finish_as_reported(self, report: AttemptReport) -> Procedure[Committed | None]:
        """Commit a report as it is. Raises what `finish` makes a failure or a suspension of."""
        return (yield from self._end(partial(self._decide_end, report, count())))

    def _decide_end(
        self, report: AttemptReport, conflicts: Iterator[int], task: Task, base: VersionedTask
    ) -> Commit | None:
        """Return what to commit, or None if the lease is no longer held. It is called again after each conflict."""
        now = self._engine.clock.now()
        run = self.run
        calls: Collection[int] = ()
        if isinstance(report.outcome, Suspend):
            calls = self._find_calls_in_progress(task, report.outcome)
        commit = on_outcome(
            task, run.execution_id, self._token_hash, report, now, self._engine.random, calls_in_progress=calls
        )
        if commit is None:
            return None
        effects = Effects(
            reads=0,
            journals={run.execution_id: report.journal} if report.journal else {},
            has_calls_in_progress=bool(calls),
            is_repeat=next(conflicts) > 0,
        )
        drafts = report.outcome.then if isinstance(report.outcome, Done) else ()
        commit = commit.having(base=base, drafts=drafts, effects=effects)
        for concerns, option in self._engine.committer.options.on_outcome:
            if concerns(commit):
                commit = option.on_outcome(commit, run, report, now)
        return commit

    def _find_calls_in_progress(self, task: Task, outcome: Suspend) -> Collection[int]:
        """Return which awaited calls are known to be in progress, if one ended while the handler ran."""
        run = task.find_run(self.run.execution_id)
        if not outcome.calls or run is None or not run.call_finished_while_running:
            return ()
        from cloudsched.engine.child_tasks import ChildTasks  # noqa: PLC0415 - most tasks have none

        with suppress(StoreUnavailable):
            return ChildTasks(self._engine).calls_in_progress(task.id, run.execution_id, outcome.calls)
        return ()

    def _end(self, decide: Decide) -> Procedure[Committed | None]:
        """Commit the end of the claim. Return None if the lease is no longer held or the task was deleted meanwhile.

        Of a deleted task only the lock is freed. After InvalidInput nothing was committed. After BlobsUnavailable no
        failure hook was called.
        """
        committed = yield from self._change(
            lambda task, base: decide(task, base) if task.deleted_at is None else self._release_deleted(task, base)
        )
        if committed is None or committed.stored.task.deleted_at is None:
            return committed
        with suppress(QueueUnavailable):  # the sweep notifies them
            self._engine.committer.options.send_after(committed)
        return None

    def release(
        self, progress: Sequence[ProgressNote], reason: str, released_by: str | None = None
    ) -> Committed | None:
        """Give up the run to another worker. Return None if the lease is lost or the task is deleted."""

        def decide(task: Task, base: VersionedTask) -> Commit | None:
            now = self._engine.clock.now()
            run_id, token_hash = self.run.execution_id, self._token_hash
            released = on_release(task, run_id, token_hash, progress, reason, now, released_by=released_by)
            return self._change_lease(released, base)

        return run_procedure(self._end(decide))

    def _release_deleted(self, task: Task, base: VersionedTask) -> Commit | None:
        run, now = task.find_run(self.run.execution_id), self._engine.clock.now()
        if run is None or run.lease is None or run.lease.token_hash != self._token_hash:
            return None
        released = with_changes(task, now, runs=task.runs_with(run.model_copy(update={"lease": None})))
        return self._change_lease(Commit(released), base)

    def _change_lease(self, change: Commit | None, base: VersionedTask) -> Commit | None:
        """Return a change of the lease with what the options add, or None if the run no longer has what it needs."""
        commit = None if change is None else change.having(base=base, effects=NO_READS)
        for concerns, option in self._engine.committer.options.on_lease_change:
            if commit is not None and concerns(commit):
                commit = option.on_lease_change(commit, self.run)
        return commit

    def _with_log(self, task: Task, found: RunLog) -> Task:
        """Return the task with the lines of its run so far, so that the next commit stores them."""
        run = task.find_run(self.run.execution_id)
        if run is None:
            return task
        kept = self._engine.logs.keep(task.id, run, self._token_hash, found)
        return task.model_copy(update={"runs": task.runs_with(kept)})

    def _change(self, decide: Decide) -> Procedure[Committed | None]:
        stored = self._stored  # read once: another thread of the worker may replace it meanwhile
        task_id = stored.task.id

        def decide_on(read: VersionedTask | None) -> Commit | None:
            if read is None:  # deleted
                return None
            found = self.reported_log if self.log is None else self.log.found
            return decide(self._with_log(read.task, found) if found is not None and found.lines else read.task, read)

        committed = yield from self._engine.committer.apply(
            f"task {task_id}", lambda: self._reload(task_id), decide_on, stored
        )
        if committed is not None:
            self._stored, self.task = committed.stored, committed.stored.task
        return committed

    def _reload(self, task_id: str) -> VersionedTask | None:
        stored = self._engine.store.load(task_id)
        if stored is not None:
            self._stored, self.task = stored, stored.task
        return stored


def _to_failure(report: AttemptReport, error: InvalidInput, attempt: Attempt) -> AttemptReport:
    """Return the report as a failure, since a follow-up or the outcome was refused, which would happen every time.

    It is without notices and progress, which may have been too large.
    """
    ids = {"taskId": attempt.task.id, "executionId": attempt.run.execution_id}
    log.error("The result was rejected", exc_info=error, extra={"action": "result_rejected", **ids})
    outcome = report.outcome
    is_refused = isinstance(outcome, Done) and outcome.then != () and error.field.startswith("then.")
    what = "Its follow-ups are refused" if is_refused else f"The store rejected the outcome {type(outcome).__name__}"
    failure = Fail(truncate_text(f"{what}: {error}"))
    return replace(report, outcome=failure, error=None, notices=(), progress=())


def call_handler(
    registry: Registry, handler: Handler | None, context: Context, handler_of_today: str | None = None
) -> Procedure[AttemptReport]:
    """Call the handler of the context's task, and return a report of how the attempt ended.

    An error for a handler that is gone names `handler_of_today`, too: which one the task runs since it was edited.
    """
    task = context.task
    try:
        handler = handler or _refuse_missing(registry, task.handler, handler_of_today)
        payload = handler.parse_payload(task.payload)
        context.event_types = handler.events
    except UnknownHandler as error:
        return _report(context, Retry(_error_text(error)), error)
    except InvalidInput as error:
        return _report(context, Fail(_error_text(error)), error)
    context.durable_run.bind_thread()
    try:
        with run_code_of(context.durable_run):
            return (yield from _call(registry, handler, context, payload))
    finally:
        context.durable_run.forget_errors()


def _call(registry: Registry, handler: Handler, context: Context, payload: object) -> Procedure[AttemptReport]:
    try:
        call = partial(_call_function, handler, context, payload)
        if handler.dependencies:
            overrides = registry.registrations.dependency_overrides
            result = yield from Dependencies(handler.name, handler.dependencies, context, overrides).provide(call)
        else:
            result = yield from call({})
        _require_returned(context, result)
        try:
            outcome = to_outcome(result, context.durable_run.clock_now)
        except Exception as error:  # noqa: BLE001 - a result's serializers are user code, and may raise anything
            return _report_failure(context, Fail(_error_text(error)), error)
        context.durable_run.check_complete()
    except Suspended as suspended:
        return _report_suspended(context, suspended)
    except WorkflowError as error:  # every replay would raise it again
        return _report_failure(context, Fail(str(error)), error)
    except BaseException as error:  # whatever a handler raises is a failure of the handler
        error = from_thrown(error)
        if not is_handler_failure(error):
            raise
        return _report_raised(context, handler, error)
    return _report(context, outcome)


def _report_raised(context: Context, handler: Handler, error: BaseException) -> AttemptReport:
    mistake = explain_mistake(error, context.durable_run.made)
    if mistake is not None:
        return _report_failure(context, Fail(str(mistake)), mistake)
    reason = _error_text(error)
    may_help = handler.is_retryable(error) and not _is_mistake(error)
    return _report_failure(context, Retry(reason) if may_help else Fail(reason), error)


def _is_mistake(error: BaseException) -> bool:
    """Return whether the handler's code has asked for what cannot be, such as ``ctx.sleep(60)``: it would again."""
    return isinstance(error, InvalidInput | Misuse)


def _require_returned(context: Context, result: object) -> None:
    """Check that the handler has returned what it has made to be returned. Raises WorkflowError.

    A Done may have been made for its content. Whoever makes another outcome wants it to have an effect.
    """
    made = context.durable_run.made
    if made is None or isinstance(result, Done | Retry | Snooze | Fail | Cancel):
        return
    outcome, place = made
    if not isinstance(outcome, Done) or result is None:
        raise WorkflowError(f"An outcome has no effect until it is returned. Write, at {place}: return {outcome!r}")


def _refuse_missing(registry: Registry, began_with: str, handler_of_today: str | None) -> NoReturn:
    if handler_of_today in {None, began_with}:
        registry.get(began_with)
    problem = f"there is no handler named {began_with!r} here, with which this execution began"
    hint = f"Its task runs {handler_of_today!r} since it was edited: trigger it to run that."
    raise UnknownHandler("handler", problem, hint)


def _call_function(handler: Handler, context: Context, payload: object, values: dict[str, Any]) -> Procedure[object]:
    if handler.is_async:
        from cloudsched.engine.execution.async_handler import prepare_async_handler  # noqa: PLC0415 - imports asyncio

        result = yield UserCall(prepare_async_handler(handler, context, payload, values))
    else:
        result = yield LongCall(partial(handler.function, *handler.build_arguments(context, payload), **values))
        if type(result) not in PLAIN_TYPES and needs_await(result):  # most need no call to tell
            result = yield UserCall(make_coroutine_function(result))
    if isinstance(result, CallHandle):
        result = result.result()
    return (yield LongCall(partial(list, result))) if isinstance(result, Iterator) else result


def to_outcome(result: object, now: Callable[[], datetime]) -> Outcome:
    """Return the outcome for what a handler returned, or a Done with it, ready to be stored. Raises InvalidInput."""
    match result:
        case Retry(reason, after):
            if after is None:
                return Retry(truncate_text(reason))
            since = now()
            return Retry(truncate_text(reason), deadline(parse_wait("after", after), since) - since)
        case Snooze(until, reason):
            return Snooze(deadline(parse_wait("until", until), now()), truncate_text(reason))
        case Fail(reason):
            return Fail(truncate_text(reason))
        case Cancel(reason):
            return Cancel(truncate_text(reason))
        case Done(inner, then):
            content, follow_ups, silent = inner, then, result.silent
        case _:
            content, follow_ups, silent = result, (), False
    is_short = content is None or (type(content) is str and len(content) <= _SHORT and content.isascii())
    stored = content if is_short else to_json_value("content", content, for_readers=True)
    if not is_short:
        require_content("content", stored)
    return Done(stored, () if follow_ups == () else _parse_follow_ups(follow_ups), silent)


def _parse_follow_ups(then: object) -> tuple[TaskDraft, ...]:
    """Return the follow-ups that a handler gave. Raises InvalidInput."""
    hint = 'Give a list of drafts: Done(then=[TaskDraft(handler="remind", payload={...})]).'
    if isinstance(then, TaskDraft | str | bytes | dict) or not hasattr(then, "__iter__"):
        raise InvalidInput("then", f"is a {type(then).__name__}", hint)
    drafts = tuple(then)
    for number, draft in enumerate(drafts):
        if not isinstance(draft, TaskDraft):
            raise InvalidInput(f"then.{number}", f"is a {type(draft).__name__}", hint)
        if number == MAX_FOLLOW_UPS:
            more = "Create a task whose handler creates the rest, or run them as children."
            raise InvalidInput("then", f"has more than {MAX_FOLLOW_UPS} tasks", more)
    size = sum(len(draft.model_dump_json().encode()) for draft in drafts)
    if size > MAX_FOLLOW_UP_BYTES:
        more = f"At most {MAX_FOLLOW_UP_BYTES} are allowed; store large data elsewhere and pass a reference."
        raise InvalidInput("then", f"has {size} bytes", more)
    return drafts


def _report_suspended(context: Context, suspended: Suspended) -> AttemptReport:
    _free_frames(suspended)
    if suspended.error is None:
        return _report(context, suspended.outcome)
    return _report_failure(context, suspended.outcome, suspended.error)


def _report_failure(context: Context, outcome: Outcome, error: BaseException) -> AttemptReport:
    """Report a failure, after creating the calls that the handler started before it: the record names them."""
    try:
        context.durable_run.make_calls()
    except Suspended as suspended:
        if isinstance(suspended.outcome, Suspend):  # they could not be created; a replay will fail here again
            return _report(context, suspended.outcome)
    except Exception:
        log.exception("The calls were not created", extra={"action": "calls_not_created", "taskId": context.task.id})
    return _report(context, outcome, error)


def _report(context: Context, outcome: Outcome, error: BaseException | None = None) -> AttemptReport:
    has_failed = isinstance(outcome, Fail | Retry | Cancel)
    cause = context.durable_run.find_failure_cause(error) if has_failed else None
    if error is None:
        return context.report(outcome, None, cause)
    stored = _to_execution_error(error, context.task)
    _free_frames(error)
    return context.report(outcome, stored, cause)


def _free_frames(error: BaseException) -> None:
    """Let the functions that an error has ended forget their variables, whoever keeps the error or its causes.

    It is often kept in a cycle: by code that notes it and raises it again, as libraries for retries do. What the
    handler held would stay until garbage is collected, which memory that it filled does not hasten. A function that
    goes on, such as a coroutine that caught the error, keeps its variables: only a frame that is over refers to its
    code by itself.
    """
    waiting: list[BaseException | None] = [error]
    seen = set[int]()
    while waiting:
        current = waiting.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        for frame, _ in traceback.walk_tb(current.__traceback__):
            if any(each is frame.f_code for each in gc.get_referents(frame)):
                frame.clear()
        waiting += [current.__cause__, current.__context__]
        waiting += current.exceptions if isinstance(current, BaseExceptionGroup) else ()


def _to_execution_error(error: BaseException, task: Task) -> ExecutionError:
    """Return an exception as it is stored, with a traceback that begins at the handler.

    `sys.exit` keeps its name, and the message says what to write instead.
    A script's error has no traceback, because it would show our own code and file paths to an untrusted author.
    """
    is_exit = isinstance(error, WorkflowError) and isinstance(error.__cause__, SystemExit)
    name = type(error.__cause__ if is_exit else error).__qualname__
    if task.handler == SCRIPTS:
        return truncate_error(name, _error_text(error), None)
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_globals.get("__name__") in _CALLING_MODULES:
        frames = frames.tb_next
    text = "".join(traceback.format_exception(type(error), error, frames))
    return truncate_error(name, _error_text(error), text)


def truncate_error(type_: str, message: str, trace: str | None) -> ExecutionError:
    """Return an error as it is stored, truncated. A traceback keeps its end, which is nearest to the cause."""
    return ExecutionError(
        type=truncate(type_, MAX_TEXT),
        message=truncate_text(message),
        traceback=None if trace is None else truncate(trace, MAX_TRACEBACK, keeps_end=True),
    )


def _error_text(error: BaseException) -> str:
    return truncate_text(exception_text(error))


def truncate_text(reason: object) -> str:
    """Return a reason as it is stored, truncated to `MAX_MESSAGE` bytes."""
    return truncate(str(reason), MAX_MESSAGE)
