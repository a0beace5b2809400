"""The functions that a task may name as its handler, and the payload that each of them takes.

A handler is a function (``def`` or ``async def``), still callable: ``handler(payload)`` or ``handler(ctx, payload)``,
where the annotation of `payload` is a pydantic model (or anything else that pydantic validates). A handler without a
payload parameter takes an empty payload. Mistakes raise an error when the module is imported, not when the task is due.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from cloudsched.domain.documents.authority import Authority
from cloudsched.domain.documents.children import CHILDREN_HANDLER as CHILDREN
from cloudsched.domain.documents.json_limits import exception_text
from cloudsched.domain.documents.policy import Priority
from cloudsched.domain.transitions.invalid_input import to_invalid_input
from cloudsched.engine.durable.exits import is_handler_failure
from cloudsched.engine.handlers.declaration import Declaration, check_declaration
from cloudsched.engine.handlers.handler_options import (
    validate_access,
    validate_options,
    validate_pull,
)
from cloudsched.engine.handlers.payload_fields import accepts_field, describe_fields, find_unknown_field
from cloudsched.engine.handlers.run_children import run_children
from cloudsched.engine.handlers.signature import read_signature
from cloudsched.engine.handlers.task_ids import derive_task_id, validate_task_id
from cloudsched.errors import InvalidInput, InvalidPayload, Misconfigured, UnknownHandler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import timedelta
    from typing import Self

    from cloudsched.domain.documents.execution import Execution
    from cloudsched.domain.documents.policy import RetryPolicy
    from cloudsched.domain.documents.pull import Pull
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.drafts import TaskDraft
    from cloudsched.engine.handlers.async_context import AsyncContext
    from cloudsched.engine.handlers.context import Context
    from cloudsched.engine.handlers.dependencies import Depends
    from cloudsched.engine.ports.sender import Template

    OnFailure = Callable[[Task, Execution], object]

F = TypeVar("F", bound="Callable[..., Any]")


_BUILT_IN_PREFIX = "cloudsched."


@dataclass(frozen=True, slots=True)
class Handler:
    """A registered function and its options."""

    name: str
    function: Callable[..., Any]
    takes_context: bool
    payload: TypeAdapter[Any] | None
    retry: RetryPolicy | None
    """The retry policy of tasks that do not set one."""
    retry_on: tuple[type[Exception], ...]
    """Which exceptions are worth another attempt; any other is final."""
    expected_duration: timedelta | None
    """The lease duration of tasks that do not set one."""
    pull: Pull | None
    """The workers of tasks that do not name any."""
    on_failure: OnFailure | None
    """Called when an occurrence has failed permanently."""
    is_async: bool = False
    """Whether it runs on the event loop, with an `AsyncContext`."""
    dependencies: Mapping[str, Depends] = field(default_factory=dict)
    """Its parameters besides context and payload."""
    is_tool: bool = False
    """Whether scripts may call it."""
    check: Callable[[TaskDraft, Authority], None] | None = None
    """An additional check of the drafts of its tasks; it depends on the authority of the request."""
    access: Authority = Authority.SERVERS
    """Which callers may name it."""
    user_max_priority: Priority = Priority.HIGH
    """The most urgent priority that users may ask for."""
    user_queues: frozenset[str] = frozenset()
    """Which queues users may ask for, besides the handler's own."""
    task_id: Callable[[Any], str | None] | None = None
    """Returns the id of a task with this payload, for creations without one."""

    @property
    def is_for_users(self) -> bool:
        """Whether users may name it. A built-in one runs other handlers, which are checked separately."""
        return self.is_built_in or self.access is Authority.USERS

    @property
    def is_built_in(self) -> bool:
        """Whether it runs what its task contains, such as a script, instead of a function of the app."""
        return self.name.startswith(_BUILT_IN_PREFIX)

    @property
    def defaults(self) -> dict[str, Any]:
        """The values of fields that a task leaves out; None where the handler sets no value either."""
        return {"retry": self.retry, "expected_duration": self.expected_duration, "pull": self.pull}

    def parse_payload(self, payload: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever the handler's annotation says
        """Return the payload as the type that the handler takes.

        Raises:
            InvalidPayload: It does not match; `field` names the first invalid field.
        """
        if self.payload is None:
            if payload:
                hint = f"Handler {self.name!r} takes no payload; leave it out."
                raise InvalidPayload(f"payload.{next(iter(payload))}", "is not expected", hint)
            return None
        try:
            return self.payload.validate_python(payload)
        except ValidationError as error:
            raise self._explain(error) from error
        except BaseException as error:  # a model's validators are user code
            if isinstance(error, Exception) or not is_handler_failure(error):
                raise
            raise InvalidPayload(
                "payload", f"makes its model raise {type(error).__name__}: {exception_text(error)}"
            ) from error

    def check_payload(self, payload: dict[str, Any], *, refuses_unknown: bool = True) -> Any:  # noqa: ANN401 - as above
        """Return the payload of a task that is created or edited, as the type that the handler takes.

        Raises:
            InvalidPayload: It does not match, or has a field that its model does not know and says nothing about.
        """
        unknown = find_unknown_field(self.payload.core_schema, payload) if self.payload and refuses_unknown else None
        if unknown is not None:
            raise InvalidPayload(f"payload{unknown.path}", f"is not a field of {unknown.model}", unknown.hint)
        return self.parse_payload(payload)

    def _explain(self, error: ValidationError) -> InvalidInput:
        invalid = to_invalid_input(error, "payload", InvalidPayload)
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        if first["type"] != "missing" or self.payload is None:
            return invalid
        fields = describe_fields(self.payload.core_schema, first["loc"][:-1])
        return invalid if fields is None else InvalidPayload(invalid.field, invalid.problem, f"{fields}.")

    def derive_id(self, payload: object, owner: str) -> str | None:
        """Return the id of a task with this payload, if the handler has a say in it. Raises InvalidInput."""
        if self.task_id is None:
            return None
        is_for_users = self.access is Authority.USERS
        return derive_task_id(self.name, self.task_id, payload, owner, is_for_users=is_for_users)

    def accepts_field(self, field: str) -> bool:
        """Whether a payload may have this field, as far as its annotation says; not one that a model ignores."""
        return self.payload is not None and accepts_field(self.payload.core_schema, field)

    def is_retryable(self, error: BaseException) -> bool:
        """Whether an attempt that failed with this error is retried.

        `retry_on` cannot name errors that do not derive from `Exception`, such as `SystemExit`: these are retried if
        it contains `Exception` itself.
        """
        return isinstance(error, self.retry_on) or (not isinstance(error, Exception) and Exception in self.retry_on)

    def build_arguments(self, context: Context | AsyncContext, payload: object) -> list[object]:
        """Return the positional arguments for the function."""
        arguments: list[object] = [context] if self.takes_context else []
        return arguments if self.payload is None else [*arguments, payload]


class Registry:
    """The handlers of one app, by name."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}
        self._built_in = {CHILDREN: _CHILDREN}
        self.failure_hooks: list[OnFailure] = []
        self.mail_template: Template | None = None
        """Makes the HTML of mails; None for the built-in one."""
        """Called when an occurrence of any handler has failed permanently, in this order."""
        self.dependency_overrides: dict[Callable[..., Any], Callable[..., Any]] = {}
        """What is called instead of a factory of dependencies, in tests."""
        self.declarations: dict[str, Declaration] = {}
        """The tasks that the code declares, by their ids."""
        self.is_for_users = False
        """Whether this is a view of the handlers that users may name."""

    def register(  # noqa: PLR0913 - each is an option of its own
        self,
        name: str,
        *,
        retry: RetryPolicy | int | bool | None = None,
        retry_on: type[Exception] | tuple[type[Exception], ...] = Exception,
        expected_duration: timedelta | None = None,
        pull: str | Pull | None = None,
        on_failure: OnFailure | None = None,
        tool: bool = False,
        task_id: Callable[[Any], str | None] | None = None,
        access: Authority | str = Authority.SERVERS,
        user_max_priority: Priority | str | None = None,
        user_queues: Iterable[str] = (),
    ) -> Callable[[F], F]:
        """Return a decorator that registers a function by `name` and returns it unchanged.

        Args:
            name: The name by which tasks refer to it.
            retry: The default policy of its tasks: a `RetryPolicy`, a number of retries, or False for none.
            retry_on: The exceptions that are retried. Any other fails the occurrence at once.
            expected_duration: The default time limit of one attempt.
            pull: The queue, or the `Pull` with the skill, of the workers that run its tasks by default.
            on_failure: Called with the task and the execution when an occurrence has failed permanently, before the
                failure is stored: so it is called at least once, and again if the process dies in between. A process
                without the handler cannot call it; see ``docs/workers.md``.
            tool: Whether scripts, which users write, may call it; see ``docs/sandbox.md``.
            task_id: Returns the id of a task from its payload, so that creating a task about the same thing again
                edits it: ``lambda payload: f"remind-{payload.order}"``. For creations without an `id`; if it returns
                None, the id is random. With ``access="users"`` the id begins with a hash of the owner.
            access: Which callers may name it, directly, as a child or as a tool of a script: ``"servers"``, which
                is the app's code, service accounts and admin keys; or ``"users"``, which is everyone who may create
                tasks. See ``docs/security.md``.
            user_max_priority: The most urgent priority that users may ask for; HIGH if None.
            user_queues: The queues that users may ask for, besides the handler's own.

        Raises:
            Misconfigured: The name is taken, an option is wrong, or the function's parameters cannot be understood.
        """
        if str(name).startswith(_BUILT_IN_PREFIX):
            raise Misconfigured(
                f"Names that begin with {_BUILT_IN_PREFIX!r} are built in; call handler {name!r} another name."
            )
        policy = validate_options(name, retry, retry_on, expected_duration)
        workers = validate_pull(name, pull)
        user_options = validate_access(name, access, user_max_priority, user_queues)
        id_of = validate_task_id(name, task_id)

        def decorate(function: F) -> F:
            if name in self._handlers:
                raise Misconfigured(f"There are two handlers named {name!r}; rename one of them.")
            signature = read_signature(name, function)
            self._handlers[name] = Handler(
                name=name,
                function=function,
                takes_context=signature.takes_context,
                payload=signature.payload,
                is_async=signature.is_async,
                dependencies=signature.dependencies,
                retry=policy,
                retry_on=retry_on if isinstance(retry_on, tuple) else (retry_on,),
                expected_duration=expected_duration,
                pull=workers,
                on_failure=on_failure,
                is_tool=tool,
                task_id=id_of,
                **user_options,
            )
            return function

        return decorate

    def with_builtin(
        self,
        name: str,
        function: Callable[..., Any],
        *,
        takes_context: bool = True,
        check: Callable[[TaskDraft, Authority], None] | None = None,
    ) -> Self:
        """Return a registry with an additional built-in handler, whose payload is any JSON object.

        Both registries share the registered handlers.
        """
        handler = Handler(
            name=name,
            function=function,
            takes_context=takes_context,
            payload=TypeAdapter(dict[str, Any]),
            retry=None,
            retry_on=(Exception,),
            expected_duration=None,
            pull=None,
            on_failure=None,
            check=check,
        )
        extended = copy.copy(self)
        extended._built_in = {**self._built_in, name: handler}  # noqa: SLF001 - its own class
        return extended

    def replace_handlers(self, other: Registry) -> None:
        """Take over the handlers and hooks of another registry; views of this one see them, too."""
        self._handlers.update(other._handlers)
        for name in self._handlers.keys() - other._handlers.keys():
            del self._handlers[name]
        self.failure_hooks[:] = other.failure_hooks
        self.mail_template = other.mail_template
        self.declarations.clear()
        self.declarations.update(other.declarations)

    def for_users(self) -> Self:
        """Return a view of the handlers that users may name; it hides all others."""
        view = copy.copy(self)
        view.is_for_users = True
        return view

    def get(self, name: str) -> Handler:
        """Return the handler of that name.

        Raises:
            UnknownHandler: There is none; the error lists the registered handlers.
        """
        if name in self:
            return self._built_in.get(name) or self._handlers[name]
        known = ", ".join(sorted(handler.name for handler in self)) or "none"
        if self.is_for_users:
            hint = f'Available to users: {known}. The app allows one by @app.handler("remind", access="users").'
            raise UnknownHandler("handler", f"there is no handler named {name!r} for users", hint)
        raise UnknownHandler("handler", f"there is no handler named {name!r}", f"Registered: {known}.")

    def name_of(self, handler: object) -> str:
        """Return the name of a handler that is given by its name or as its function.

        Raises:
            InvalidInput: The function is no handler, or has several names.
        """
        if isinstance(handler, str):
            return handler
        names = self.names(handler)
        if len(names) == 1:
            return names[0]
        shown = getattr(handler, "__name__", None) or repr(handler)[:80]
        if names:
            hint = f"Give one of its names: {', '.join(names)}."
            raise InvalidInput("handler", f"is the function {shown!r}, which has several names", hint)
        what = f"is the function {shown!r}, which is not registered" if callable(handler) else f"is {shown}"
        raise InvalidInput("handler", what, 'Give the name of a handler, or a function with @app.handler("name").')

    def declare(self, declaration: Declaration) -> None:
        """Note a task that the code declares. Raises Misconfigured."""
        self.declarations[declaration.id] = check_declaration(declaration, self.declarations)

    def names(self, function: object) -> list[str]:
        """Return the names by which a function is registered."""
        return sorted(each.name for each in self._handlers.values() if each.function is function)

    def derives_id(self, name: object) -> bool:
        """Whether there is a handler of that name that makes the ids of its tasks from their payloads."""
        return isinstance(name, str) and name in self and self.get(name).task_id is not None

    def __contains__(self, name: object) -> bool:
        return name in self._built_in or any(handler.name == name for handler in self)

    def __iter__(self) -> Iterator[Handler]:
        return (each for each in [*self._handlers.values()] if each.is_for_users or not self.is_for_users)


_CHILDREN = Handler(
    name=CHILDREN,
    function=run_children,
    takes_context=True,
    payload=None,
    retry=None,
    retry_on=(Exception,),
    expected_duration=None,
    pull=None,
    on_failure=None,
)
