"""One call of a handler: what goes in, and what any possible end of it means.

A handler that raises has failed, and is tried again as its task's policy says; a payload or a result that cannot be
right is not tried again, since nothing would change. Only what Python itself uses to stop the process passes through.
"""

from __future__ import annotations

import logging
import traceback
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticSerializationError, to_jsonable_python

from cloudsched.domain.execution import ExecutionError
from cloudsched.domain.finishing import FAILURES, Report
from cloudsched.domain.isotime import LAST_YEAR
from cloudsched.domain.outcome import Cancel, Done, Fail, Outcome, Retry, Snooze
from cloudsched.domain.storable import MAX_CONTENT, require_storable, storable_text
from cloudsched.engine.context import Call
from cloudsched.engine.suspension import Suspended
from cloudsched.errors import InvalidInput, WorkflowError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cloudsched.domain.execution import Execution
    from cloudsched.domain.task import Task
    from cloudsched.engine.context import Context
    from cloudsched.engine.registry import Registry

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
        return _report(context, Fail(_text_of(error)), error)
    try:
        answer = handler.function(*handler.arguments(context, payload))
        if isinstance(answer, Call):
            answer = answer.result()
        context.journal.end()
    except Suspended as suspended:
        return _report(context, suspended.outcome)
    except WorkflowError as error:  # every replay would meet it again
        return _report(context, Fail(str(error)), error)
    except Exception as error:  # noqa: BLE001 - whatever a handler raises is its failure, not ours
        reason = _text_of(error)
        return _report(context, Retry(reason) if isinstance(error, handler.retry_on) else Fail(reason), error)
    try:
        return _report(context, _outcome_of(answer, context.journal.present()))
    except Exception as error:  # noqa: BLE001 - what turns a result into JSON is the handler's own, too
        return _report(context, Fail(_text_of(error)), error)


def announce_failure(registry: Registry, task: Task, executions: Iterable[Execution]) -> None:
    """Call the hook of the task's handler for each execution that has failed for good.

    A hook that fails is logged, and changes nothing.
    """
    failed = [execution for execution in executions if execution.status in FAILURES]
    if not failed or task.handler not in registry:
        return
    hook = registry.get(task.handler).on_failure
    if hook is None:
        return
    for execution in failed:
        try:
            hook(task, execution)
        except Exception:
            log.exception("hook failed", extra={"action": "hook failed", "taskId": task.id})


def _outcome_of(answer: object, now: datetime) -> Outcome:
    match answer:
        case Retry(reason, after):
            return Retry(_shown(reason), None if after is None else _later("after", after, now) - now)
        case Snooze(until, reason):
            return Snooze(_later("until", until, now), _shown(reason))
        case Fail(reason):
            return Fail(_shown(reason))
        case Cancel(reason):
            return Cancel(_shown(reason))
        case _:
            return _done(answer)


def _later(field: str, when: object, now: datetime) -> datetime:
    """Return a time that a handler chose, as an instant."""
    if isinstance(when, timedelta):
        when = now + when
    if not isinstance(when, datetime) or when.tzinfo is None:
        raise InvalidInput(field, f"is {when!r}", "Give a timedelta or an aware datetime.")
    if when.year > LAST_YEAR:
        raise InvalidInput(field, f"is {when!r}", f"Give a year up to {LAST_YEAR}.")
    return max(when.astimezone(UTC), now)


def _done(answer: object) -> Done:
    content = _as_json(answer.content if isinstance(answer, Done) else answer)
    require_storable("content", content, MAX_CONTENT)
    return Done(content)


def _as_json(value: object) -> Any:  # noqa: ANN401 - any JSON
    try:
        return to_jsonable_python(value, by_alias=True)
    except PydanticSerializationError as error:
        raise InvalidInput("content", str(error), "Return a pydantic model, or what JSON can say.") from error


def _report(context: Context, outcome: Outcome, error: Exception | None = None) -> Report:
    said = context.said
    return Report(
        outcome=outcome,
        error=None if error is None else _described(error),
        notices=said.notices,
        progress=said.progress,
        queries=said.queries,
        tokens=said.tokens,
        entries=context.journal.unwritten,
        calls_made=context.journal.calls_made,
    )


def _described(error: Exception) -> ExecutionError:
    """Return an exception as the record keeps it: its traceback begins at the handler and keeps its end."""
    frames = error.__traceback__.tb_next if error.__traceback__ else None
    text = "".join(traceback.format_exception(type(error), error, frames))
    return ExecutionError(
        type=type(error).__qualname__,
        message=_text_of(error),
        traceback=storable_text(text[-MAX_TRACEBACK:]),
    )


def _text_of(error: Exception) -> str:
    try:
        return _shown(str(error))
    except Exception:  # noqa: BLE001 - an exception's own text may fail as well
        return "(it cannot say why)"


def _shown(reason: object) -> str:
    return storable_text(str(reason)[:MAX_MESSAGE])
