"""One call of a handler: what goes in, and what any possible end of it means.

A handler that raises has failed, and is tried again as its task's policy says; a payload or a result that cannot be
right is not tried again, since nothing would change. See `cloudsched.engine.durable.exits` for what passes through.
"""

from __future__ import annotations

import logging
import traceback
from typing import TYPE_CHECKING

from cloudsched.domain.documents.execution import ExecutionError
from cloudsched.domain.documents.json_limits import escape_surrogates, exception_text, require_content, to_json_value
from cloudsched.domain.documents.outcome import Cancel, Done, Fail, Outcome, Retry, Snooze, Suspend
from cloudsched.domain.documents.script import SCRIPT_HANDLER as SCRIPTS
from cloudsched.domain.transitions.finish import AttemptReport
from cloudsched.engine.durable.arguments import deadline, parse_wait
from cloudsched.engine.durable.call_handle import CallHandle
from cloudsched.engine.durable.exits import is_handler_failure
from cloudsched.engine.durable.steps import drain_iterator
from cloudsched.engine.durable.suspend import Suspended
from cloudsched.engine.handlers.context import MAX_TEXT
from cloudsched.errors import WorkflowError

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.handlers.context import Context
    from cloudsched.engine.handlers.registry import Registry

log = logging.getLogger(__name__)

MAX_MESSAGE = 2_000
MAX_TRACEBACK = 4_000
"""How many characters of an error are kept."""


def call_handler(registry: Registry, context: Context) -> AttemptReport:
    """Call the handler of the context's task and return how that ended."""
    task = context.task
    try:
        handler = registry.get(task.handler)
        payload = handler.parse_payload(task.payload)
    except Exception as error:  # noqa: BLE001 - a model's validators are the handler's own, too
        return _report(context, Fail(_error_text(error)), error)
    context.durable_run.bind_thread()
    try:
        answer = handler.function(*handler.build_arguments(context, payload))
        if isinstance(answer, CallHandle):
            answer = answer.result()
        outcome, refused = _normalize_result(drain_iterator(answer), context.durable_run.clock_now())
        if refused is None:
            context.durable_run.check_complete()
    except Suspended as suspended:
        return _report_suspended(context, suspended)
    except WorkflowError as error:  # every replay would meet it again
        return _report_failure(context, Fail(str(error)), error)
    except BaseException as error:  # whatever a handler raises is its failure, not ours
        if not is_handler_failure(error):
            raise
        reason = _error_text(error)
        return _report_failure(context, Retry(reason) if handler.is_retryable(error) else Fail(reason), error)
    return _report(context, outcome) if refused is None else _report_failure(context, outcome, refused)


def _normalize_result(result: object, now: datetime) -> tuple[Outcome, Exception | None]:
    """Return what a handler's answer means; if it cannot be kept, a failure and why. Trying again would not help."""
    try:
        return to_outcome(result, now), None
    except Exception as error:  # noqa: BLE001 - what turns a result into JSON is the handler's own, too
        return Fail(_error_text(error)), error


def to_outcome(result: object, now: datetime) -> Outcome:
    """Return what a handler's answer means: one of the outcomes, or else a result, in the form that is kept.

    Raises:
        InvalidInput: It cannot be kept: it is too large, no JSON, or a time that cannot be.
    """
    match result:
        case Retry(reason, after):
            return Retry(
                truncate_text(reason), None if after is None else deadline(parse_wait("after", after), now) - now
            )
        case Snooze(until, reason):
            return Snooze(deadline(parse_wait("until", until), now), truncate_text(reason))
        case Fail(reason):
            return Fail(truncate_text(reason))
        case Cancel(reason):
            return Cancel(truncate_text(reason))
        case _:
            return _to_done(result)


def _report_suspended(context: Context, suspended: Suspended) -> AttemptReport:
    if suspended.error is None:
        return _report(context, suspended.outcome)
    return _report_failure(context, suspended.outcome, suspended.error)


def _to_done(result: object) -> Done:
    content = to_json_value("content", result.content if isinstance(result, Done) else result)
    require_content("content", content)
    return Done(content)


def _report_failure(context: Context, outcome: Outcome, error: BaseException) -> AttemptReport:
    """Report a failure, once the calls that were begun before it are made: its record will name them."""
    try:
        context.durable_run.make_calls()
    except Suspended as suspended:
        if isinstance(suspended.outcome, Suspend):  # they could not be made; a replay comes to this failure again
            return _report(context, suspended.outcome)
    except Exception:
        log.exception("The calls were not created", extra={"action": "calls_not_created", "taskId": context.task.id})
    return _report(context, outcome, error)


def _report(context: Context, outcome: Outcome, error: BaseException | None = None) -> AttemptReport:
    said = context.output
    has_failed = isinstance(outcome, Fail | Retry | Cancel)
    return AttemptReport(
        outcome=outcome,
        error=None if error is None else _to_execution_error(error, context.task),
        notices=said.notices,
        progress=said.progress,
        queries=said.queries,
        tokens=said.tokens,
        entries=context.durable_run.pending_entries,
        calls_made=context.durable_run.calls_made,
        failure_cause=context.durable_run.find_failure_cause(error) if has_failed else None,
    )


def _to_execution_error(error: BaseException, task: Task) -> ExecutionError:
    """Return an exception as the record keeps it: its traceback begins at the handler and keeps its end.

    A script has none: its author is a stranger, and it would show the code around it, in files of ours.
    """
    if task.handler == SCRIPTS:
        return truncate_error(type(error).__qualname__, _error_text(error), None)
    frames = error.__traceback__.tb_next if error.__traceback__ else None
    text = "".join(traceback.format_exception(type(error), error, frames))
    return truncate_error(type(error).__qualname__, _error_text(error), text)


def truncate_error(type_: str, message: str, trace: str | None) -> ExecutionError:
    """Return an error as the record keeps it: of its traceback the end, which is nearest to the cause."""
    return ExecutionError(
        type=escape_surrogates(type_[:MAX_TEXT]),
        message=truncate_text(message),
        traceback=None if trace is None else escape_surrogates(trace[-MAX_TRACEBACK:]),
    )


def _error_text(error: BaseException) -> str:
    return truncate_text(exception_text(error))


def truncate_text(reason: object) -> str:
    """Return why something is so, as the record keeps it."""
    return escape_surrogates(str(reason)[:MAX_MESSAGE])
