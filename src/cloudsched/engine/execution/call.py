"""Call a handler, and make an outcome of whatever it returns or raises.

A handler that raises has failed, and is retried according to its task's policy, as is one that this
process does not have: another version of the code may. An invalid payload or result is not retried, since
it would be just as invalid again. `is_handler_failure` says which exceptions are not caught.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

from cloudsched.domain.documents.execution import ExecutionError
from cloudsched.domain.documents.json_limits import exception_text, require_content, to_json_value, truncate
from cloudsched.domain.documents.script import SCRIPT_HANDLER as SCRIPTS
from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.raised_errors import drop_tracebacks, format_raised, get_cause, get_traceback, type_name
from cloudsched.domain.transitions.outcome import (
    Cancel,
    Done,
    Fail,
    Outcome,
    Retry,
    Returned,
    Snooze,
    Suspend,
    WithoutResult,
)
from cloudsched.domain.transitions.task_draft import TaskDraft
from cloudsched.engine.durable.arguments import deadline, parse_wait
from cloudsched.engine.durable.durable_run import CallHandle, Misuse
from cloudsched.engine.durable.suspension import Suspended, explain_mistake, is_busy, is_handler_failure
from cloudsched.engine.durable.user_calls import PLAIN_TYPES, UserCall, make_coroutine_function, needs_await
from cloudsched.engine.handlers.context import MAX_TEXT, Context
from cloudsched.engine.handlers.signature import Dependencies
from cloudsched.engine.ports.procedure import LongCall, Procedure, from_thrown
from cloudsched.errors import (
    InvalidInput,
    UnknownHandler,
    WorkflowError,
)

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.finish import AttemptReport
    from cloudsched.engine.handlers.registry import Handler, Registry

log: Final = own_logger(__name__)

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


def call_handler(  # noqa: PLR0911 - one return for each way in which a call ends
    registry: Registry, handler: Handler | None, context: Context, handler_of_today: str | None = None
) -> Procedure[AttemptReport]:
    """Call the handler of the context's task, and return a report of how the attempt ended.

    An error for a handler that is gone names `handler_of_today`, too: which one the task runs since it
    was edited.
    """
    try:
        handler = handler or _refuse_missing(registry, context.stored_task.handler, handler_of_today)
        payload = handler.parse_payload(context.stored_payload)
        context.event_types = handler.events
    except UnknownHandler as error:
        return _report(context, Retry(_error_text(error)), error)
    except InvalidInput as error:
        return _report(context, Fail(_error_text(error)), error)
    with context.durable_run:
        try:
            call = partial(_call_function, handler, context, payload)
            if handler.dependencies:
                overrides = registry.registrations.dependency_overrides
                dependencies = Dependencies(handler.name, handler.dependencies, context, overrides)
                result = yield from dependencies.provide(call)
            else:
                result = yield from call({})

            made = context.durable_run.made
            if made is not None:
                _require_returned(*made, result)
            try:
                outcome = to_outcome(result, context.began)
            except Exception as error:  # noqa: BLE001 - a result's serializers are user code, and may raise anything
                return _report_failure(context, Fail(_error_text(error)), error)
            context.durable_run.check_complete()
        except Suspended as suspended:
            return _report_suspended(context, suspended)
        except WorkflowError as error:  # every replay would raise it again
            return _report_failure(context, Fail(_error_text(error)), error)
        except BaseException as error:  # whatever a handler raises is a failure of the handler
            error = from_thrown(error)
            if not is_handler_failure(error):
                raise
            return _report_raised(context, handler, error)
        return _report(context, outcome)


def _report_raised(context: Context, handler: Handler, error: BaseException) -> AttemptReport:
    if is_busy(error):
        return _report(context, Snooze(getattr(error, "retry_after", None) or timedelta(0), _error_text(error)))
    mistake = explain_mistake(error, context.durable_run.made)
    # A handler that has asked for what cannot be, such as ``ctx.sleep(60)``, would do so again.
    is_final = mistake or issubclass(type(error), InvalidInput | Misuse) or not handler.is_retryable(error)
    outcome = Fail if is_final else Retry
    error = mistake or error
    return _report_failure(context, outcome(_error_text(error)), error)


def _require_returned(outcome: object, place: str, result: object) -> None:
    """Check that the handler has returned what it has made to be returned. Raises WorkflowError.

    A Done may have been made for its content. Whoever makes another outcome wants it to have an effect.
    """
    if not isinstance(result, Returned) and (not isinstance(outcome, Done) or result is None):
        raise WorkflowError(
            f"An outcome has no effect until it is returned. Write, at {place}: return {outcome!r}",
        )


def _refuse_missing(registry: Registry, began_with: str, handler_of_today: str | None) -> NoReturn:
    if handler_of_today in {None, began_with}:
        registry.get(began_with)
    problem = f"there is no handler named {began_with!r} here, with which this execution began"
    hint = f"Its task runs {handler_of_today!r} since it was edited: trigger it to run that."
    raise UnknownHandler("handler", problem, hint)


def _call_function(
    handler: Handler,
    context: Context,
    payload: object,
    values: dict[str, Any],
) -> Procedure[object]:
    if handler.is_async:
        from cloudsched.engine.execution.async_handler import prepare_async_handler  # noqa: PLC0415 - imports asyncio

        result = yield UserCall(prepare_async_handler(handler, context, payload, values))
    else:
        result = yield LongCall(
            partial(handler.function, *handler.build_arguments(context, payload), **values),
        )
        if type(result) not in PLAIN_TYPES and needs_await(result):  # most need no call to tell
            result = yield UserCall(make_coroutine_function(result))
    if isinstance(result, CallHandle):
        result = result.result()
    return (yield LongCall(partial(list, result))) if isinstance(result, Iterator) else result


def to_outcome(result: object, began: datetime) -> Outcome:
    """Return the outcome for what a handler returned, or a Done with it, ready to be stored.

    `began` is when the attempt did. Raises InvalidInput.
    """
    content = result
    then: object = ()
    silent = False
    if isinstance(result, Done):
        content = result.content
        then = result.then
        silent = result.silent
    elif isinstance(result, WithoutResult):
        return _bind(result, began)

    is_short = content is None or (type(content) is str and len(content) <= _SHORT and content.isascii())
    if not is_short:
        content = to_json_value("content", content, for_readers=True)
        require_content("content", content)
    return Done(content, () if then == () else _parse_follow_ups(then), silent)


def _bind(outcome: WithoutResult, began: datetime) -> Outcome:
    """Return an outcome with a text and times that can be stored. Raises InvalidInput."""
    match outcome:
        case Fail() | Cancel() | Retry(after=None):
            return type(outcome)(truncate_text(outcome.reason))
        case Retry(reason, after):
            return Retry(truncate_text(reason), deadline(parse_wait("after", after), began) - began)
        case put_off:
            until = parse_wait("until", put_off.until)
            if (began + until if isinstance(until, timedelta) else until) < began:
                # It would be called once a second for ever. What has passed since then is only late.
                raise InvalidInput(
                    "until",
                    f"is {until}, before this attempt began",
                    "Give a later instant, or a timedelta such as timedelta(minutes=5).",
                )
            return type(put_off)(until, truncate_text(put_off.reason))


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
    drop_tracebacks(suspended)
    if suspended.error is None:
        return _report(context, suspended.outcome)
    return _report_failure(context, suspended.outcome, suspended.error)


def _report_failure(context: Context, outcome: Outcome, error: BaseException) -> AttemptReport:
    """Report a failure, after creating the calls that the handler had started: the record names them."""
    try:
        context.durable_run.make_calls()
    except Suspended as suspended:
        if isinstance(suspended.outcome, Suspend):  # they could not be created; a replay will fail here again
            return _report(context, suspended.outcome)
    except Exception:
        log.exception(
            "The calls were not created",
            extra={"action": "calls_not_created", "taskId": context.stored_task.id},
        )
    return _report(context, outcome, error)


def _report(context: Context, outcome: Outcome, error: BaseException | None = None) -> AttemptReport:
    has_failed = isinstance(outcome, Fail | Retry | Cancel)
    cause = stored = None
    try:
        cause = context.durable_run.find_failure_cause(error) if has_failed else None
        if error is not None:
            stored = _to_execution_error(error, context.stored_task)
    except BaseException as odd:  # noqa: BLE001 - what cannot be read of an error costs only its text
        stored = truncate_error(type_name(odd if error is None else error), "(its text cannot be read)", None)
    if error is not None:
        drop_tracebacks(error)
    return context.report(outcome, stored, cause)


def _to_execution_error(error: BaseException, task: Task) -> ExecutionError:
    """Return an exception as it is stored, with a traceback that begins at the handler.

    `sys.exit` keeps its name, and the message says what to write instead. A script's error has no
    traceback, because it would show our own code and file paths to an untrusted author.
    """
    cause = get_cause(error)
    is_exit = type(error) is WorkflowError and issubclass(type(cause), SystemExit)
    name = type_name(cause if is_exit and cause is not None else error)
    if task.handler == SCRIPTS:
        return truncate_error(name, _error_text(error), None)
    frames = get_traceback(error)
    while frames is not None and frames.tb_frame.f_globals.get("__name__") in _CALLING_MODULES:
        frames = frames.tb_next
    return truncate_error(name, _error_text(error), format_raised(error, frames))


def truncate_error(type_: str, message: str, trace: str | None) -> ExecutionError:
    """Return an error as it is stored, truncated.

    A traceback keeps its end, which is nearest to the cause.
    """
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
