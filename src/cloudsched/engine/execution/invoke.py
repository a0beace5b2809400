"""One call of a handler: what goes in, and what any possible end of it means.

A handler that raises has failed, and is tried again as its task's policy says; a payload or a result that cannot be
right is not tried again, since nothing would change. See `cloudsched.engine.durable.exits` for what passes through.
"""

from __future__ import annotations

import logging
import traceback
from typing import TYPE_CHECKING

from cloudsched.domain.documents.execution import ExecutionError
from cloudsched.domain.documents.json_limits import as_json, require_content, storable_text, text_of
from cloudsched.domain.documents.outcome import Cancel, Done, Fail, Outcome, Retry, Snooze, Suspend
from cloudsched.domain.documents.script import HANDLER as SCRIPTS
from cloudsched.domain.transitions.finish import Report
from cloudsched.engine.durable.arguments import end_of, wait_of
from cloudsched.engine.durable.call_handle import Call
from cloudsched.engine.durable.exits import is_failure
from cloudsched.engine.durable.steps import whole
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


def call_handler(registry: Registry, context: Context) -> Report:
    """Call the handler of the context's task and return how that ended."""
    task = context.task
    try:
        handler = registry.get(task.handler)
        payload = handler.read(task.payload)
    except Exception as error:  # noqa: BLE001 - a model's validators are the handler's own, too
        return _report(context, Fail(_why(error)), error)
    context.journal.enter()
    try:
        answer = handler.function(*handler.arguments(context, payload))
        if isinstance(answer, Call):
            answer = answer.result()
        outcome, refused = _understood(whole(answer), context.journal.present())
        if refused is None:
            context.journal.end()
    except Suspended as suspended:
        return _left(context, suspended)
    except WorkflowError as error:  # every replay would meet it again
        return _failed(context, Fail(str(error)), error)
    except BaseException as error:  # whatever a handler raises is its failure, not ours
        if not is_failure(error):
            raise
        reason = _why(error)
        return _failed(context, Retry(reason) if handler.tries_again(error) else Fail(reason), error)
    return _report(context, outcome) if refused is None else _failed(context, outcome, refused)


def _understood(answer: object, now: datetime) -> tuple[Outcome, Exception | None]:
    """Return what a handler's answer means; if it cannot be kept, a failure and why. Trying again would not help."""
    try:
        return outcome_of(answer, now), None
    except Exception as error:  # noqa: BLE001 - what turns a result into JSON is the handler's own, too
        return Fail(_why(error)), error


def outcome_of(answer: object, now: datetime) -> Outcome:
    """Return what a handler's answer means: one of the outcomes, or else a result, in the form that is kept.

    Raises:
        InvalidInput: It cannot be kept: it is too large, no JSON, or a time that cannot be.
    """
    match answer:
        case Retry(reason, after):
            return Retry(kept_text(reason), None if after is None else end_of(wait_of("after", after), now) - now)
        case Snooze(until, reason):
            return Snooze(end_of(wait_of("until", until), now), kept_text(reason))
        case Fail(reason):
            return Fail(kept_text(reason))
        case Cancel(reason):
            return Cancel(kept_text(reason))
        case _:
            return _done(answer)


def _left(context: Context, suspended: Suspended) -> Report:
    if suspended.error is None:
        return _report(context, suspended.outcome)
    return _failed(context, suspended.outcome, suspended.error)


def _done(answer: object) -> Done:
    content = as_json("content", answer.content if isinstance(answer, Done) else answer)
    require_content("content", content)
    return Done(content)


def _failed(context: Context, outcome: Outcome, error: BaseException) -> Report:
    """Report a failure, once the calls that were begun before it are made: its record will name them."""
    try:
        context.journal.make_calls()
    except Suspended as suspended:
        if isinstance(suspended.outcome, Suspend):  # they could not be made; a replay comes to this failure again
            return _report(context, suspended.outcome)
    except Exception:
        log.exception("calls not made", extra={"action": "calls not made", "taskId": context.task.id})
    return _report(context, outcome, error)


def _report(context: Context, outcome: Outcome, error: BaseException | None = None) -> Report:
    said = context.said
    has_failed = isinstance(outcome, Fail | Retry | Cancel)
    return Report(
        outcome=outcome,
        error=None if error is None else _described(error, context.task),
        notices=said.notices,
        progress=said.progress,
        queries=said.queries,
        tokens=said.tokens,
        entries=context.journal.unwritten,
        calls_made=context.journal.calls_made,
        failed_by=context.journal.failed_by(error) if has_failed else None,
    )


def _described(error: BaseException, task: Task) -> ExecutionError:
    """Return an exception as the record keeps it: its traceback begins at the handler and keeps its end.

    A script has none: its author is a stranger, and it would show the code around it, in files of ours.
    """
    if task.handler == SCRIPTS:
        return kept_error(type(error).__qualname__, _why(error), None)
    frames = error.__traceback__.tb_next if error.__traceback__ else None
    text = "".join(traceback.format_exception(type(error), error, frames))
    return kept_error(type(error).__qualname__, _why(error), text)


def kept_error(type_: str, message: str, trace: str | None) -> ExecutionError:
    """Return an error as the record keeps it: of its traceback the end, which is nearest to the cause."""
    return ExecutionError(
        type=storable_text(type_[:MAX_TEXT]),
        message=kept_text(message),
        traceback=None if trace is None else storable_text(trace[-MAX_TRACEBACK:]),
    )


def _why(error: BaseException) -> str:
    return kept_text(text_of(error))


def kept_text(reason: object) -> str:
    """Return why something is so, as the record keeps it."""
    return storable_text(str(reason)[:MAX_MESSAGE])
