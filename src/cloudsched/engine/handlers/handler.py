"""A handler: a function (``def`` or ``async def``) that a task may name, and its options.

It is called as ``handler(payload)`` or ``handler(ctx, payload)``, where the annotation of `payload` is a pydantic model
(or anything else that pydantic validates). A handler without a payload parameter takes an empty payload.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from cloudsched.domain.documents.authority import Requesters
from cloudsched.domain.documents.json_limits import exception_text
from cloudsched.domain.documents.policy import Priority, RetryPolicy
from cloudsched.domain.documents.task import Task, TaskId, owner_id_prefix
from cloudsched.domain.transitions.validation_errors import Faults
from cloudsched.engine.durable.suspension import is_handler_failure
from cloudsched.engine.handlers.payload_fields import (
    EventType,
    accepts_field,
    explain_payload,
    find_unknown_fields,
    list_plain_fields,
)
from cloudsched.errors import InvalidInput, InvalidPayload, Misconfigured

_TASK_ID: TypeAdapter[str] = TypeAdapter(TaskId, config=ConfigDict(defer_build=True))
_EXAMPLE = 'task_id=lambda payload: f"remind-{payload.order}"'


def validate_task_id(name: str, function: Any) -> Callable[[Any], str | None] | None:  # noqa: ANN401 - a caller's option
    """Return the ``task_id`` option of a handler. Raises Misconfigured."""
    if function is None:
        return None
    if not callable(function) or inspect.iscoroutinefunction(function):
        raise Misconfigured(f"Handler {name!r}: task_id is {function!r}; give a function of the payload: {_EXAMPLE}.")
    try:
        inspect.signature(function).bind(None)
    except TypeError as error:
        raise Misconfigured(f"Handler {name!r}: task_id takes one argument, the payload: {_EXAMPLE}.") from error
    except ValueError:  # a built-in without a signature
        pass
    return function  # type: ignore[no-any-return]  # as far as it can be checked


if TYPE_CHECKING:
    from cloudsched.domain.documents.execution import Execution
    from cloudsched.domain.documents.pull import Pull
    from cloudsched.domain.transitions.task_draft import TaskDraft
    from cloudsched.engine.handlers.async_context import AsyncContext
    from cloudsched.engine.handlers.context import Context
    from cloudsched.engine.handlers.signature import Depends

    OnFailure = Callable[[Task, Execution], object]

BUILT_IN_PREFIX = "cloudsched."
"""The names of handlers that the engine itself brings begin with it."""


@dataclass(frozen=True, slots=True)
class Handler:
    """A registered function and its options."""

    name: str
    function: Callable[..., Any]
    takes_context: bool
    payload: TypeAdapter[Any] | None
    retry: RetryPolicy | None = None
    """The retry policy of tasks that do not set one."""
    retry_on: tuple[type[Exception], ...] = (Exception,)
    """The exceptions that are worth another attempt. Any other is final."""
    expected_duration: timedelta | None = None
    """The lease duration of tasks that do not set one."""
    pull: Pull | None = None
    """The workers of tasks that do not name any."""
    on_failure: OnFailure | None = None
    """Called when an occurrence has failed permanently."""
    is_async: bool = False
    """True if it runs on the event loop, with an `AsyncContext`."""
    dependencies: Mapping[str, Depends] = field(default_factory=dict)
    """Its parameters besides context and payload."""
    is_tool: bool = False
    """True if scripts may call it."""
    check: Callable[[TaskDraft, Requesters], None] | None = None
    """An additional check of the drafts of its tasks. It depends on the kind of requester."""
    access: Requesters = Requesters.SERVERS
    """The callers that may name it."""
    user_max_priority: Priority = Priority.HIGH
    """The most urgent priority that users may ask for."""
    user_queues: frozenset[str] = frozenset()
    """The queues that users may ask for, besides the handler's own."""
    owners_see_logs: bool = False
    """True if the owner of a task may read what it logs, and not only those who see all tasks."""
    task_id: Callable[[Any], str | None] | None = None
    """Returns the id of a task with this payload, for creations without one."""
    events: Mapping[str, EventType] = field(default_factory=dict)
    """The types of the events that it waits for, as far as it has declared them."""
    early_events: frozenset[str] = frozenset()
    """The events that are kept if they come before it waits for them."""
    draft: str | None = None
    """A description of its work, if drafts may propose it."""
    is_built_in: bool = False
    """True if it runs what its task contains, such as a script, instead of a function of the app."""
    estimate: Callable[[TaskDraft], Mapping[str, Any]] | None = None
    """Returns the fields of a task that say what one execution will cost, for a task that does not say it."""

    @property
    def may_be_durable(self) -> bool:
        """Return whether its code, or a dependency's, can get the context, which alone writes a journal."""
        return self.takes_context or bool(self.dependencies)

    @property
    def is_for_users(self) -> bool:
        """Return whether users may name it. A built-in one runs other handlers, which are checked separately."""
        return self.is_built_in or self.access is Requesters.USERS

    @property
    def defaults(self) -> dict[str, Any]:
        """The values of fields that a task leaves out. None where the handler sets no value either."""
        return {"retry": self.retry, "expected_duration": self.expected_duration, "pull": self.pull}

    def parse_payload(self, payload: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever the handler's annotation says
        """Return the payload as the type that the handler takes. Raises InvalidPayload."""
        if self.payload is None:
            if payload:
                hint = f"Handler {self.name!r} takes no payload; leave it out."
                raise InvalidPayload(f"payload.{next(iter(payload))}", "is not expected", hint)
            return None
        try:
            return self.payload.validate_python(payload)
        except ValidationError as error:
            raise explain_payload(error, self.payload) from None
        except BaseException as error:  # a model's validators are user code
            if isinstance(error, Exception) or not is_handler_failure(error):
                raise
            raise InvalidPayload(
                "payload", f"makes its model raise {type(error).__name__}: {exception_text(error)}"
            ) from error

    def check_payload(self, payload: dict[str, Any], *, refuses_unknown: bool = True) -> Any:  # noqa: ANN401 - as above
        """Return the payload of a task that is created or edited as its handler's type. Raises InvalidPayload."""
        if self.payload is not None and refuses_unknown and not payload.keys() <= list_plain_fields(self.payload):
            faults = Faults(_list_uneditable(self.payload, payload))
            if faults:
                with faults:
                    self.parse_payload(payload)
                faults.tell()
        return self.parse_payload(payload)

    def check_event(self, name: str, payload: Any) -> None:  # noqa: ANN401 - any JSON
        """Check the payload of an event that is sent to one of its tasks. Raises InvalidPayload."""
        kind = self.events.get(name)
        if kind is None:
            return
        faults = Faults(_list_uneditable(kind.adapter, payload) if isinstance(payload, dict) else ())
        with faults:
            kind.read(payload)
        faults.tell()

    def derive_id(self, payload: object, owner: str) -> str | None:
        """Return the id of a task with this payload, if the handler has a say in it. Raises InvalidInput."""
        if self.task_id is None:
            return None
        try:
            chosen = self.task_id(payload)
        except Exception as error:
            problem = (
                f"makes the task_id of handler {self.name!r} raise {type(error).__name__}: {exception_text(error)}"
            )
            raise InvalidInput("payload", problem) from error
        if chosen is None:
            return None
        try:
            prefix = owner_id_prefix(owner) if self.access is Requesters.USERS else ""
            return _TASK_ID.validate_python(f"{prefix}{chosen}")
        except ValidationError:
            problem = f"is {str(chosen)[:200]!r}, says the task_id of handler {self.name!r}"
            raise InvalidInput("id", problem, "It must be 1 to 128 letters, digits, hyphens and underscores.") from None

    def accepts_field(self, field: str) -> bool:
        """Return whether a payload may have this field, as far as its annotation says. Ignored fields do not count."""
        return self.payload is not None and accepts_field(self.payload.core_schema, field)

    def is_retryable(self, error: BaseException) -> bool:
        """Return whether an attempt that failed with this error is retried.

        `retry_on` cannot name errors that do not derive from `Exception`, such as `SystemExit`: these are retried if
        it contains `Exception` itself.
        """
        return isinstance(error, self.retry_on) or (not isinstance(error, Exception) and Exception in self.retry_on)

    def build_arguments(self, context: Context | AsyncContext, payload: object) -> list[object]:
        """Return the positional arguments for the function."""
        arguments: list[object] = [context] if self.takes_context else []
        return arguments if self.payload is None else [*arguments, payload]


def _list_uneditable(kind: TypeAdapter[Any], payload: dict[str, Any]) -> list[InvalidInput]:
    faults: list[InvalidInput] = []
    for each in find_unknown_fields(kind.core_schema, payload):
        fault = InvalidPayload(f"payload{each.path}", f"is not a field of {each.model}", each.hint)
        fault.meant = each.meant
        faults.append(fault)
    return faults


@cache
def _json_object() -> TypeAdapter[dict[str, Any]]:
    return TypeAdapter(dict[str, Any])


def builtin_handler(
    name: str,
    function: Callable[..., Any],
    *,
    takes_context: bool = True,
    takes_payload: bool = True,
    check: Callable[[TaskDraft, Requesters], None] | None = None,
) -> Handler:
    """Return a handler that the engine itself brings. Its payload, if it takes one, is any JSON object."""
    return Handler(
        name=name,
        function=function,
        takes_context=takes_context,
        payload=_json_object() if takes_payload else None,
        is_built_in=True,
        check=check,
    )
