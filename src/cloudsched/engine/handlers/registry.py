"""The handlers of an app, by name, and what else its code registers.

A handler is a function (``def`` or ``async def``) that a task may name. It is called as ``handler(payload)``
or ``handler(ctx, payload)``, where the annotation of `payload` is a pydantic model (or anything else that
pydantic validates). Without a payload parameter it takes an empty payload. It stays callable. Mistakes raise
an error when the module is imported, not when the task is due.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from difflib import get_close_matches
from functools import cache
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from pydantic import (
    ConfigDict,
    PydanticSchemaGenerationError,
    PydanticUserError,
    TypeAdapter,
    ValidationError,
)

from cloudsched.domain.documents.authority import Requesters
from cloudsched.domain.documents.children import CHILDREN_HANDLER as CHILDREN
from cloudsched.domain.documents.json_limits import exception_text
from cloudsched.domain.documents.policy import Priority, RetryPolicy, to_retry_policy
from cloudsched.domain.documents.script import CALL_PREFIX, SCRIPT_HANDLER
from cloudsched.domain.documents.system_tasks import ASSISTANT_HANDLER
from cloudsched.domain.documents.task import MAX_DURATION, MAX_NAME, Task, TaskId, owner_id_prefix
from cloudsched.domain.raised_errors import type_name
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.domain.transitions.suspend import parse_event_name
from cloudsched.domain.transitions.validation_errors import Faults
from cloudsched.engine.durable.suspension import is_handler_failure
from cloudsched.engine.handlers.payload_fields import (
    EventType,
    accepts_field,
    find_unknown_fields,
    list_plain_fields,
    read_payload,
)
from cloudsched.engine.handlers.signature import read_signature
from cloudsched.errors import InvalidInput, InvalidPayload, Misconfigured, UnknownHandler
from cloudsched.features.fields import HandlerFields, RegistrationOptions

if TYPE_CHECKING:
    from cloudsched.domain.documents.execution import Execution
    from cloudsched.domain.transitions.task_draft import TaskDraft
    from cloudsched.engine.handlers.async_context import AsyncContext
    from cloudsched.engine.handlers.context import Context
    from cloudsched.engine.handlers.signature import Depends
    from cloudsched.engine.ports.sender import Template

    OnFailure = Callable[[Task, Execution], object]

BUILT_IN_PREFIX = "cloudsched."
"""The names of handlers that the engine itself brings begin with it."""
_URL_NAME = re.compile(r"(?!\.{1,2}\Z)(?!\s)[^/\\\x00-\x1f\x7f\ud800-\udfff]+(?<!\s)\Z")
"""A name that a URL can carry as one segment of its path."""
_TASK_ID: TypeAdapter[str] = TypeAdapter(TaskId, config=ConfigDict(defer_build=True))
_EXAMPLE = 'task_id=lambda payload: f"remind-{payload.order}"'


@dataclass(frozen=True, slots=True)
class Handler(HandlerFields):
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
    query_per_execution: float | None = None
    """The estimated queries of one execution, for tasks that do not say it."""
    tokens_per_execution: float | None = None
    """The estimated tokens of one execution, likewise."""
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
    owners_see_logs: bool = False
    """True if the owner of a task may read what it logs, and not only those who see all tasks."""
    tell_errors: bool = False
    """True if the owner of a task is told the text of its errors."""
    task_id: Callable[[Any], str | None] | None = None
    """Returns the id of a task with this payload, for creations without one."""
    events: Mapping[str, EventType] = field(default_factory=dict)
    """The types of the events that it waits for, as far as it has declared them."""
    early_events: frozenset[str] = frozenset()
    """The events that are kept if they come before it waits for them. ``"paid-*"`` are all that begin so."""
    draft: str | None = None
    """A description of its work, if drafts may propose it."""
    is_built_in: bool = False
    """True if it runs what its task contains, such as a script, instead of a function of the app."""
    estimate: Callable[[TaskDraft], Mapping[str, Any]] | None = None
    """Returns the fields of a task that say what one execution will cost, for a task that does not say it."""

    @property
    def is_for_users(self) -> bool:
        """Return whether users may name it.

        A built-in one runs other handlers, which are checked separately.
        """
        return self.is_built_in or self.access is Requesters.USERS

    @property
    def defaults(self) -> dict[str, Any]:
        """The values of fields that a task leaves out. None where the handler sets no value either."""
        return dict(zip(_DEFAULTED, _get_defaults(self), strict=True))

    def parse_payload(self, payload: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever the handler's annotation says
        """Return the payload as the type that the handler takes. Raises InvalidPayload."""
        if self.payload is None:
            if payload:
                hint = f"Handler {self.name!r} takes no payload; leave it out."
                raise InvalidPayload(f"payload.{next(iter(payload))}", "is not expected", hint)
            return None
        return read_payload(self.payload, payload)

    def check_payload(self, payload: dict[str, Any], *, refuses_unknown: bool = True) -> Any:  # noqa: ANN401 - as above
        """Return the payload of a task that is created or edited as its handler's type.

        Raises InvalidPayload.
        """
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
        except BaseException as error:
            if not is_handler_failure(error):
                raise
            problem = f"makes the task_id of handler {self.name!r} raise {type_name(error)}: {exception_text(error)}"
            raise InvalidInput("payload", problem) from error

        if chosen is None:
            return None
        try:
            prefix = ""
            if self.access is Requesters.USERS:
                prefix = owner_id_prefix(owner)
            return _TASK_ID.validate_python(f"{prefix}{chosen}")
        except ValidationError:
            problem = f"is {str(chosen)[:200]!r}, says the task_id of handler {self.name!r}"
            raise InvalidInput(
                "id",
                problem,
                "It must be 1 to 128 letters, digits, hyphens and underscores.",
            ) from None

    def accepts_field(self, field: str) -> bool:
        """Return whether a payload may have this field, as far as its annotation says.

        Ignored fields do not count.
        """
        return self.payload is not None and accepts_field(self.payload.core_schema, field)

    def is_retryable(self, error: BaseException) -> bool:
        """Return whether an attempt that failed with this error is retried.

        `retry_on` cannot name errors that do not derive from `Exception`, such as `SystemExit`: these are
        retried if it contains `Exception` itself.
        """
        kind = type(error)  # its instances may say that they are of another
        return issubclass(kind, self.retry_on) or (not issubclass(kind, Exception) and Exception in self.retry_on)

    def build_arguments(self, context: Context | AsyncContext, payload: object) -> list[object]:
        """Return the positional arguments for the function."""
        arguments: list[object] = [context] if self.takes_context else []
        if self.payload is None:
            return arguments
        return [*arguments, payload]


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


def validate_task_id(name: str, function: Any) -> Callable[[Any], str | None] | None:  # noqa: ANN401 - a caller's option
    """Return the ``task_id`` option of a handler. Raises Misconfigured."""
    if function is None:
        return None
    if not callable(function) or inspect.iscoroutinefunction(function):
        raise Misconfigured(
            f"Handler {name!r}: task_id is {function!r}; give a function of the payload: {_EXAMPLE}.",
        )
    try:
        inspect.signature(function).bind(None)
    except TypeError as error:
        raise Misconfigured(
            f"Handler {name!r}: task_id takes one argument, the payload: {_EXAMPLE}.",
        ) from error
    except ValueError:  # a built-in without a signature
        pass
    return function  # type: ignore[no-any-return]  # as far as it can be checked


def validate_options(
    name: object,
    retry: RetryPolicy | int | bool | None,  # noqa: FBT001 - True, 3 or a policy
    retry_on: type[Exception] | tuple[type[Exception], ...],
    expected_duration: timedelta | None,
) -> RetryPolicy | None:
    """Return the retry policy from a handler's options.

    Reject options with which its tasks could not be stored.
    """
    if not isinstance(name, str) or not 1 <= len(name) <= MAX_NAME:
        raise Misconfigured(
            f'A handler is registered by its name, of at most {MAX_NAME} characters: @app.handler("greet"); '
            f"{name!r} is not a valid name."
        )
    if not _URL_NAME.match(name):
        raise Misconfigured(
            f"Handler {name!r}: no URL carries this name; leave out slashes, control characters and spaces at the ends."
        )
    kinds: tuple[object, ...] = retry_on if isinstance(retry_on, tuple) else (retry_on,)
    if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
        raise Misconfigured(f"Handler {name!r}: retry_on is {retry_on!r}; give exception classes.")
    is_duration = isinstance(expected_duration, timedelta) and timedelta(0) < expected_duration <= MAX_DURATION
    if expected_duration is not None and not is_duration:
        hint = f"give a timedelta, such as timedelta(minutes=10), of at most {MAX_DURATION}"
        raise Misconfigured(f"Handler {name!r}: expected_duration is {expected_duration}; {hint}.")
    try:
        return None if retry is None else to_retry_policy(retry)
    except InvalidInput:
        raise Misconfigured(
            f"Handler {name!r}: retry is {retry!r}; give 0 to 20, or a RetryPolicy.",
        ) from None


MAX_ESTIMATE = 1_000_000_000
ESTIMATES = ("query_per_execution", "tokens_per_execution")
"""The fields of a task that say what one execution uses."""
_DEFAULTED = ("retry", "expected_duration", *HandlerFields.defaulted, *ESTIMATES)
_get_defaults = attrgetter(*_DEFAULTED)


def validate_estimate(name: str, option: str, value: object) -> float | None:
    """Return what one execution of a handler's tasks is estimated to use. Raises Misconfigured."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_ESTIMATE:
        hint = f"give a number, 0 to {MAX_ESTIMATE:,}: what one run uses as a rule"
        raise Misconfigured(f"Handler {name!r}: {option} is no estimate; {hint}.")
    return float(value)


def validate_access(name: str, options: HandlerOptions) -> dict[str, Any]:
    """Return a handler's options for users. Reject such options if users may not name the handler."""
    access, user_max_priority = options.get("access", Requesters.SERVERS), options.get("user_max_priority")
    if access not in tuple(Requesters):
        raise Misconfigured(f'Handler {name!r}: access is {access!r}; give "users" or "servers".')
    if user_max_priority is not None and user_max_priority not in tuple(Priority):
        raise Misconfigured(
            f"Handler {name!r}: user_max_priority is {user_max_priority!r}; give one of {', '.join(Priority)}."
        )
    if access != Requesters.USERS and (user_max_priority is not None or options.get("user_queues")):
        raise Misconfigured(
            f'Handler {name!r}: user_max_priority and user_queues are for handlers with access="users".'
        )

    return {
        "access": Requesters(access),
        "user_max_priority": Priority.HIGH if user_max_priority is None else Priority(user_max_priority),
    }


def validate_log_readers(name: str, logs: str) -> bool:
    """Return whether a handler's logs are for their owners, too. Raises Misconfigured."""
    if logs not in ("admins", "owner"):
        raise Misconfigured(f'Handler {name!r}: logs is {logs!r}; give "owner" or "admins".')
    return logs == "owner"


def validate_events(name: str, events: object, early: object) -> dict[str, Any]:
    """Return the types of a handler's events, and which of them may come early. Raises Misconfigured."""
    example = 'events={"decision": Decision}, early_events=("decision",)'
    if not isinstance(events, Mapping) or isinstance(early, str) or not isinstance(early, Iterable):
        raise Misconfigured(f"Handler {name!r}: give its events as in {example}.")
    try:
        kinds = {parse_event_name(each): EventType(kind, TypeAdapter(kind)) for each, kind in events.items()}
        names = {each: parse_event_name(each.removesuffix("*") if isinstance(each, str) else each) for each in early}
        return {"events": kinds, "early_events": frozenset(names)}
    except (InvalidInput, PydanticSchemaGenerationError, PydanticUserError) as error:
        raise Misconfigured(f"Handler {name!r}: its events: {error}") from error


MAX_DRAFT_TEXT = 500


def validate_draft_text(name: str, draft: object) -> str | None:
    """Return what a handler does, in words. Raises Misconfigured."""
    if draft is None:
        return None
    if not isinstance(draft, str) or not draft.strip() or len(draft) > MAX_DRAFT_TEXT:
        raise Misconfigured(
            f"Handler {name!r}: draft is {draft!r}; say in at most {MAX_DRAFT_TEXT} characters what it does, such as "
            '"Sends a reminder".'
        )
    return draft.strip()


F = TypeVar("F", bound="Callable[..., Any]")


class HandlerOptions(RegistrationOptions, total=False):
    """The options of a handler. `App.handler` says what each means, and names them one by one for editors."""

    retry: RetryPolicy | int | bool | None
    retry_on: type[Exception] | tuple[type[Exception], ...]
    expected_duration: timedelta | None
    query_per_execution: float | None
    tokens_per_execution: float | None
    on_failure: OnFailure | None
    tool: bool
    task_id: Callable[[Any], str | None] | None
    access: Requesters | str
    user_max_priority: Priority | str | None
    draft: str | None
    logs: str
    tell_errors: bool
    events: Mapping[str, Any] | None
    early_events: Iterable[str]


@dataclass(slots=True)
class Registrations:
    """The registrations that the code of one app has made."""

    handlers: dict[str, Handler] = field(default_factory=dict)
    failure_hooks: list[OnFailure] = field(default_factory=list)
    """Called when an occurrence of any handler has failed permanently, in this order."""
    mail_template: Template | None = None
    """Makes the HTML of mails, None for the built-in one."""
    dependency_overrides: dict[Callable[..., Any], Callable[..., Any]] = field(default_factory=dict)
    """The functions that replace factories of dependencies in tests."""
    declarations: dict[str, Declaration] = field(default_factory=dict)
    """The tasks that the code declares, by their ids."""


def _run_children(ctx: Context) -> dict[str, Any]:
    from cloudsched.engine.handlers.run_children import run_children  # noqa: PLC0415 - few tasks have children

    return run_children(ctx)


_CHILDREN = builtin_handler(CHILDREN, _run_children, takes_payload=False)


class Registry:
    """The handlers of one app, by name."""

    def __init__(
        self,
        registrations: Registrations | None = None,
        built_in: Mapping[str, Handler] = MappingProxyType({}),
        *,
        is_for_users: bool = False,
    ) -> None:
        if registrations is None:
            self.registrations: Registrations = Registrations()
        else:
            self.registrations = registrations
        self.is_for_users = is_for_users
        self._built_in = {CHILDREN: _CHILDREN, **built_in}

    def register(self, name: str, **options: Unpack[HandlerOptions]) -> Callable[[F], F]:
        """Return a decorator that registers a function by `name` and returns it unchanged.

        See `App.handler`.
        """
        if str(name).startswith(BUILT_IN_PREFIX):
            raise Misconfigured(
                f"Names that begin with {BUILT_IN_PREFIX!r} are built in; call handler {name!r} another name."
            )
        retry_on = options.get("retry_on", Exception)
        duration = options.get("expected_duration")
        fields: dict[str, Any] = {
            "retry": validate_options(name, options.get("retry"), retry_on, duration),
            "retry_on": retry_on if isinstance(retry_on, tuple) else (retry_on,),
            "expected_duration": duration,
            **HandlerFields.read_options(name, options),
            **{each: validate_estimate(name, each, options.get(each)) for each in ESTIMATES},
            "on_failure": options.get("on_failure"),
            "is_tool": options.get("tool", False),
            "task_id": validate_task_id(name, options.get("task_id")),
            "draft": validate_draft_text(name, options.get("draft")),
            "owners_see_logs": validate_log_readers(name, options.get("logs", "admins")),
            "tell_errors": options.get("tell_errors", False),
            **validate_access(name, options),
            **validate_events(name, options.get("events") or {}, options.get("early_events", ())),
        }

        def decorate(function: F) -> F:
            if name in self.registrations.handlers:
                raise Misconfigured(f"There are two handlers named {name!r}; rename one of them.")
            signature = read_signature(name, function)
            self.registrations.handlers[name] = Handler(name=name, function=function, **signature, **fields)
            return function

        return decorate

    def with_builtin(self, *handlers: Handler) -> Registry:
        """Return a registry with additional built-in handlers. Both share what the app's code registers."""
        built_in = {**self._built_in, **{handler.name: handler for handler in handlers}}
        return Registry(self.registrations, built_in, is_for_users=self.is_for_users)

    def for_users(self) -> Registry:
        """Return a view of the handlers that users may name. It hides all others."""
        return Registry(self.registrations, self._built_in, is_for_users=True)

    def replace_handlers(self, other: Registry) -> None:
        """Take over what another registry's code registered. Views of this one see it, too."""
        ours = self.registrations
        theirs = other.registrations
        ours.handlers.update(theirs.handlers)
        for name in ours.handlers.keys() - theirs.handlers.keys():
            del ours.handlers[name]
        ours.failure_hooks[:] = theirs.failure_hooks
        ours.mail_template = theirs.mail_template
        ours.declarations.clear()
        ours.declarations.update(theirs.declarations)

    def get(self, name: str) -> Handler:
        """Return the handler of that name. Raises UnknownHandler."""
        found = self.find(name)
        if found is not None:
            return found
        if name == ASSISTANT_HANDLER:
            hint = "The built-in assistant is off: its operator turns it on by CLOUDSCHED_ASSISTANT=on."
            raise UnknownHandler("handler", f"there is no handler named {name!r} here", hint)
        known = ", ".join(sorted(handler.name for handler in self)) or "none"
        if self.is_for_users:
            hint = f'Available to users: {known}. The app allows one by @app.handler("remind", access="users").'
            raise UnknownHandler("handler", f"there is no handler named {name!r} for users", hint)
        near = get_close_matches(name, [each.name for each in self], n=1)
        if near:
            hint = f"Did you mean {near[0]!r}? Registered: {known}."
        else:
            hint = f"Registered: {known}."
        raise UnknownHandler("handler", f"there is no handler named {name!r}", hint)

    def tells_errors(self, name: str) -> bool:
        """Return whether owners are told the errors of a handler: if it says so, or they wrote what it runs."""
        handler = self.find(name)
        if handler is None:
            return name.startswith(CALL_PREFIX)
        return name == SCRIPT_HANDLER or handler.tell_errors

    def find(self, name: object) -> Handler | None:
        """Return the handler of that name, or None."""
        if not isinstance(name, str):
            return None
        built_in = self._built_in.get(name)
        if built_in is not None:
            return built_in
        handler = self.registrations.handlers.get(name)
        if handler is None or (self.is_for_users and not handler.is_for_users):
            return None
        return handler

    def name_of(self, handler: object) -> str:
        """Return the name of a handler that is given by its name or as its function. Raises InvalidInput."""
        if isinstance(handler, str):
            return handler
        names = self.names(handler)
        if len(names) == 1:
            return names[0]
        shown = getattr(handler, "__name__", None) or repr(handler)[:80]
        if names:
            hint = f"Give one of its names: {', '.join(names)}."
            raise InvalidInput("handler", f"is the function {shown!r}, which has several names", hint)
        if callable(handler):
            what = f"is the function {shown!r}, which is not registered"
        else:
            what = f"is {shown}"
        raise InvalidInput(
            "handler",
            what,
            'Give the name of a handler, or a function with @app.handler("name").',
        )

    def declare(self, declaration: Declaration) -> None:
        """Note a task that the code declares, whatever its schedule says. Raises Misconfigured."""
        about = declaration.subject
        if declaration.id in self.registrations.declarations:
            raise Misconfigured(f"{about}: there is another one with the id; give each its own: id=….")

        try:
            _TASK_ID.validate_python(declaration.id)
        except ValidationError:
            raise Misconfigured(
                f"{about}: that cannot be a task's id; give one of letters, digits, - and _: id=…."
            ) from None

        if not isinstance(declaration.schedule, Schedule | datetime | str):
            raise Misconfigured(
                f'{about}: its schedule is {declaration.schedule!r}; give words ("every day at 9"), cron or a '
                "Schedule, such as Schedule.every(timedelta(…)) to repeat, Schedule.after(timedelta(…)) to run once."
            )
        self.registrations.declarations[declaration.id] = declaration

    def names(self, function: object) -> list[str]:
        """Return the names by which a function is registered."""
        return sorted(each.name for each in self.registrations.handlers.values() if each.function is function)

    def derives_id(self, name: object) -> bool:
        """Return whether there is a handler of that name that derives its tasks' ids from their payloads."""
        handler = self.find(name)
        return handler is not None and handler.task_id is not None

    def __contains__(self, name: object) -> bool:
        return self.find(name) is not None

    def __iter__(self) -> Iterator[Handler]:
        return (each for each in [*self.registrations.handlers.values()] if each.is_for_users or not self.is_for_users)


@dataclass(frozen=True, slots=True)
class Declaration:
    """A task that the code declares."""

    id: str
    handler: str
    schedule: Schedule | datetime | str
    timezone: str | None
    owner: str
    payload: Any
    more: Mapping[str, Any] = field(default_factory=dict)
    """Other fields of its task, by their Python names."""
    is_paused: bool = False
    function: Any = None
    """What the declaration stands above."""

    @property
    def subject(self) -> str:
        """Its task, and where it is declared, for errors."""
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        place = f" of {code.co_name}() ({code.co_filename}, line {code.co_firstlineno})" if code else ""
        return f"Task {self.id!r}{place}"

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of its task, by their Python names."""
        names = ("id", "handler", "schedule", "owner", "timezone", "payload")
        return {name: value for name in names if (value := getattr(self, name)) is not None} | {**self.more}
