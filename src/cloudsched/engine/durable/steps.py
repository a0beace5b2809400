"""Steps of a durable handler: functions that are called once, with retries, and whose results are recorded.

A replay returns the result that was decoded from JSON, so the first run returns the decoded result, too: code
that works once works in every replay. If the function has a return annotation, JSON is decoded as that type.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, get_type_hints

from pydantic import PydanticSchemaGenerationError, PydanticUndefinedAnnotation, TypeAdapter, ValidationError

from cloudsched.domain.documents.journal import (
    MAX_TRIES,
    JournalEntry,
    StepError,
    StepKind,
    StepStatus,
    StepTry,
)
from cloudsched.domain.documents.json_limits import escape_surrogates, exception_text, to_json_value
from cloudsched.domain.documents.model_json import find_change, read_json
from cloudsched.domain.in_words import find_first_error
from cloudsched.domain.raised_errors import type_name
from cloudsched.domain.transitions.outcome import Returned
from cloudsched.engine.durable.arguments import parse_retry_policy, parse_timeout, require_callable
from cloudsched.engine.durable.step_attempt import ReportedUsage, StepCall
from cloudsched.engine.durable.suspension import explain_mistake, is_busy, is_handler_failure
from cloudsched.engine.ports.procedure import from_thrown
from cloudsched.errors import InvalidInput, StepFailed, Unavailable, WorkflowError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, timedelta

    from cloudsched.domain.documents.policy import RetryPolicy
    from cloudsched.engine.durable.durable_run import DurableRun
    from cloudsched.engine.durable.journal_cursor import JournalCursor
    from cloudsched.engine.ports.procedure import Procedure


def encode_result(result: Any, function: Callable[..., Any]) -> Any:  # noqa: ANN401 - the same
    """Return a step's result as JSON that decodes as the function's return annotation.

    A result that does not match the annotation, or has none, is stored as plain JSON. Raises InvalidInput.
    """
    if isinstance(result, Returned):
        hint = "Return it from the handler. A step that raises an exception is retried by its policy."
        raise InvalidInput("result", f"is the outcome {result!r}, which a step cannot have", hint)
    adapter = None if result is None else _find_adapter(function)
    value = to_json_value("result", result, for_readers=adapter is None)
    if adapter is None:
        return value
    try:
        place = find_change(result, read_json(adapter, value))
    except ValidationError as error:
        if _matches_annotation(adapter, result):
            problem = f"cannot be decoded from JSON as the function's return annotation: {_first_error(error)}"
            hint = "Let its model accept its own JSON, or remove the annotation."
            raise InvalidInput("result", problem, hint) from None
        return value
    if place is not None:
        problem = "would be decoded from JSON as something else"
        raise InvalidInput(f"result{place}", problem, "Let the function's return annotation name its class.")
    return value


def _matches_annotation(adapter: TypeAdapter[Any], result: Any) -> bool:  # noqa: ANN401 - whatever a function returned
    try:
        adapter.validate_python(result, strict=True)
    except ValidationError:
        return False
    return True


def _first_error(error: ValidationError) -> str:
    first = find_first_error(error)
    return f"{'.'.join(map(str, first['loc'])) or 'the whole result'}: {first['msg']}"


def decode_result(value: Any, function: Callable[..., Any]) -> Any:  # noqa: ANN401 - the same
    """Return a result decoded by the function's return annotation, or as plain JSON if that does not fit."""
    adapter = None if value is None else _find_adapter(function)
    if adapter is None:
        return value
    try:
        return read_json(adapter, value)
    except ValidationError:
        return value


def _find_adapter(function: Callable[..., Any]) -> TypeAdapter[Any] | None:
    if "return" not in getattr(function, "__annotations__", {}):
        return None
    return _build_adapter(function)


@lru_cache(maxsize=1024)
def _build_adapter(function: Callable[..., Any]) -> TypeAdapter[Any] | None:
    try:
        return _adapt(get_type_hints(function, include_extras=True)["return"])
    except (NameError, TypeError, PydanticSchemaGenerationError, PydanticUndefinedAnnotation):
        return None


def _adapt(hint: Any) -> TypeAdapter[Any]:  # noqa: ANN401 - a type
    try:
        return _adapt_known(hint)
    except TypeError:  # a detail of it has no hash
        return TypeAdapter(hint)


@lru_cache(maxsize=256)
def _adapt_known(hint: Any) -> TypeAdapter[Any]:  # noqa: ANN401 - a type
    """Return the adapter of a type, which many functions return: those that a handler makes anew each time."""
    return TypeAdapter(hint)


MAX_MESSAGE = 1000
"""The number of characters of a step's error message that are stored."""


@dataclass(frozen=True, slots=True)
class StepRequest:
    """A step, as a handler requests it with `Context.step`."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    retry: RetryPolicy | int | bool
    timeout: timedelta | None

    def plan(self, durable_run: DurableRun) -> Procedure[Any]:
        """Return the procedure that runs the step, or answers it from the journal. Raises InvalidInput."""
        retry = parse_retry_policy(self.retry)
        limit = parse_timeout(self.timeout)
        function = require_callable("function", self.function)
        call = partial(function, *self.args, **self.kwargs)
        what = f"ctx.step({self.name!r})"
        return durable_run.perform_procedure(what, run_step, self.name, call, function, retry, limit)


def run_step(
    cursor: JournalCursor,
    name: str,
    function: Callable[[], Any],
    annotated: Callable[..., Any],
    retry: RetryPolicy,
    timeout: timedelta | None,
) -> Procedure[Any]:
    """Return a step's recorded result, or call its function, with retries, and record that.

    Raises StepFailed.
    """
    cause: BaseException | None = None
    number, entry = cursor.next_entry(StepKind.STEP, name)
    cursor.require_replayable()
    if entry is None:
        cursor.require_use_left()
        entry = cursor.new_entry(number, StepKind.STEP, name)
    while entry.status is StepStatus.WAITING:
        if entry.due_at is not None and entry.due_at > cursor.clock.now():
            cursor.suspend(f"waits to try step {name!r} again", entry.due_at)
        cursor.flush()
        entry, cause = yield from _try_step(cursor, entry, StepCall(function, timeout), annotated, retry)
        cursor.commit()
    if entry.status is StepStatus.SUCCEEDED:
        return decode_result(cursor.results.read(entry), annotated)
    error = entry.error or StepError(type="Error", message="")
    try:
        raise cursor.note_failure(StepFailed(entry.name, error.type, error.message)) from cause
    finally:
        del cause  # it holds this function's variables


def pin_value(cursor: JournalCursor, name: str, load: Callable[[], Any]) -> Any:  # noqa: ANN401 - any JSON
    """Return a value as it was when the execution first asked for it, such as the version of a stored script.

    It is recorded with the entries that follow: by itself it costs no commit. If `load` raises, its error
    propagates, and nothing is recorded.
    """
    number, entry = cursor.next_entry(StepKind.STEP, name)
    if entry is None:
        fields = cursor.results.store(number, load(), is_stored_elsewhere=False)
        started = cursor.new_entry(number, StepKind.STEP, name)
        entry = cursor.put(started, status=StepStatus.SUCCEEDED, finished_at=cursor.clock.now(), **fields)
    return cursor.results.read(entry)


def _try_step(
    cursor: JournalCursor,
    entry: JournalEntry,
    attempt: StepCall,
    annotated: Callable[..., Any],
    retry: RetryPolicy,
) -> Procedure[tuple[JournalEntry, BaseException | None]]:
    if entry.attempts:
        started_at = cursor.clock.now()
    else:
        started_at = entry.started_at

    with cursor.step(entry.number) as usage:
        try:
            result = yield attempt
        except BaseException as error:  # any failure of user code fails the step
            error = from_thrown(error)
            if is_busy(error) or not is_handler_failure(error):
                raise
            error = explain_mistake(error) or error
            is_refusal = issubclass(type(error), WorkflowError)  # forbidden in a step: a retry cannot help
            return _record_failure(
                cursor,
                entry,
                started_at,
                usage,
                error,
                None if is_refusal else retry,
            ), error
        try:
            encoded = encode_result(result, annotated)
            kept = cursor.results.store(entry.number, encoded, is_stored_elsewhere=False)
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 - user code may define the JSON encoding
            return _record_failure(
                cursor, entry, started_at, usage, error, None
            ), error  # no retry: the function itself succeeded

    done = {**_attempt_fields(cursor, entry, usage), "status": StepStatus.SUCCEEDED}
    if entry.attempts:
        done["tries"] = _add_try(entry, started_at, done["finished_at"])
    return cursor.put(entry, **done, **kept, error=None, due_at=None), None


def _add_try(entry: JournalEntry, started_at: datetime, finished_at: datetime) -> tuple[StepTry, ...]:
    return (*entry.tries, StepTry.build(started_at=started_at, finished_at=finished_at))[-MAX_TRIES:]


def _record_failure(
    cursor: JournalCursor,
    entry: JournalEntry,
    started_at: datetime,
    usage: ReportedUsage,
    error: BaseException,
    retry: RetryPolicy | None,
) -> JournalEntry:
    recorded = StepError(
        type=escape_surrogates(type_name(error)),
        message=exception_text(error)[:MAX_MESSAGE],
    )
    changes = {**_attempt_fields(cursor, entry, usage), "error": recorded}
    changes["tries"] = _add_try(entry, started_at, changes["finished_at"])
    if retry is not None and entry.attempts < retry.max_retries:
        wait = retry.delay(entry.attempts + 1, cursor.surroundings.chance)
        return cursor.put(entry, **changes, due_at=changes["finished_at"] + wait)

    if issubclass(type(error), TimeoutError):
        status = StepStatus.TIMED_OUT
    else:
        status = StepStatus.FAILED

    return cursor.put(entry, **changes, status=status)


def _attempt_fields(cursor: JournalCursor, entry: JournalEntry, usage: ReportedUsage) -> dict[str, Any]:
    return {
        "attempts": entry.attempts + 1,
        "finished_at": cursor.clock.now(),
        "queries": (entry.queries or 0) + usage.queries or None,
        "tokens": (entry.tokens or 0) + usage.tokens or None,
    }
