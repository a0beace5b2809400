"""Which functions a task may name, and what payload each of them takes.

A handler is a plain function, and stays one: ``handler(payload)`` or ``handler(ctx, payload)``, where the annotation
of `payload` is a pydantic model (or anything else that pydantic validates). A handler without a payload parameter
takes an empty payload. Mistakes are found when the module is imported, not when the task is due.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from cloudsched.domain.children import HANDLER
from cloudsched.domain.drafts import invalid_input
from cloudsched.domain.policy import retry_policy
from cloudsched.domain.task import MAX_DURATION, MAX_NAME
from cloudsched.engine.children import run_children
from cloudsched.engine.context import Context
from cloudsched.errors import InvalidPayload, Misconfigured, UnknownHandler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cloudsched.domain.execution import Execution
    from cloudsched.domain.policy import RetryPolicy
    from cloudsched.domain.task import Task

    OnFailure = Callable[[Task, Execution], object]

F = TypeVar("F", bound="Callable[..., Any]")


@dataclass(frozen=True, slots=True)
class Handler:
    """A registered function and what is known of it."""

    name: str
    function: Callable[..., Any]
    takes_context: bool
    payload: TypeAdapter[Any] | None
    retry: RetryPolicy | None
    """The policy of tasks that name none of their own."""
    retry_on: tuple[type[Exception], ...]
    """Which exceptions are worth another attempt; any other is final."""
    expected_duration: timedelta | None
    """The lease of tasks that name none of their own."""
    on_failure: OnFailure | None
    """What is called when an occurrence has failed for good."""

    def read(self, payload: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever the handler's annotation says
        """Return the payload as the handler takes it.

        Raises:
            InvalidPayload: It does not fit; `field` names the first thing that is wrong.
        """
        if self.payload is None:
            if payload:
                hint = f"Handler {self.name!r} takes no payload; leave it out."
                raise InvalidPayload(f"payload.{next(iter(payload))}", "is not expected", hint)
            return None
        try:
            return self.payload.validate_python(payload)
        except ValidationError as error:
            raise invalid_input(error, "payload", InvalidPayload) from error

    def arguments(self, context: Context, payload: object) -> list[object]:
        """Return what the function is called with."""
        arguments: list[object] = [context] if self.takes_context else []
        return arguments if self.payload is None else [*arguments, payload]


_BUILT_IN = "cloudsched."


class Registry:
    """The handlers of one app, by name."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}

    def register(
        self,
        name: str,
        *,
        retry: RetryPolicy | int | bool | None = None,
        retry_on: type[Exception] | tuple[type[Exception], ...] = Exception,
        expected_duration: timedelta | None = None,
        on_failure: OnFailure | None = None,
    ) -> Callable[[F], F]:
        """Return a decorator that registers a function by `name` and leaves it as it is.

        Args:
            name: What tasks call it.
            retry: The default policy of its tasks: a `RetryPolicy`, a number of retries, or False for none.
            retry_on: The exceptions that are worth another attempt. Any other fails the occurrence at once.
            expected_duration: The default time limit of one attempt.
            on_failure: Called with the task and the execution when an occurrence has failed for good, before that is
                stored: so it is called at least once, and again if the process dies in between.

        Raises:
            Misconfigured: The name is taken, an option is wrong, or the function's parameters cannot be understood.
        """
        if str(name).startswith(_BUILT_IN):
            raise Misconfigured(
                f"Names that begin with {_BUILT_IN!r} are built in; call handler {name!r} another name."
            )
        policy = _checked_options(name, retry, retry_on, expected_duration)

        def decorate(function: F) -> F:
            if name in self._handlers:
                raise Misconfigured(f"There are two handlers named {name!r}; rename one of them.")
            takes_context, payload = _parameters(name, function)
            self._handlers[name] = Handler(
                name=name,
                function=function,
                takes_context=takes_context,
                payload=payload,
                retry=policy,
                retry_on=retry_on if isinstance(retry_on, tuple) else (retry_on,),
                expected_duration=expected_duration,
                on_failure=on_failure,
            )
            return function

        return decorate

    def get(self, name: str) -> Handler:
        """Return the handler of that name.

        Raises:
            UnknownHandler: There is none; the error lists those that there are.
        """
        if name == HANDLER:
            return _CHILDREN
        try:
            return self._handlers[name]
        except KeyError:
            known = ", ".join(sorted(self._handlers)) or "none"
            raise UnknownHandler("handler", f"there is no handler named {name!r}", f"Registered: {known}.") from None

    def __contains__(self, name: object) -> bool:
        return name == HANDLER or name in self._handlers

    def __iter__(self) -> Iterator[Handler]:
        return iter(self._handlers.values())


_CHILDREN = Handler(
    name=HANDLER,
    function=run_children,
    takes_context=True,
    payload=None,
    retry=None,
    retry_on=(Exception,),
    expected_duration=None,
    on_failure=None,
)


def _checked_options(
    name: object,
    retry: RetryPolicy | int | bool | None,  # noqa: FBT001 - True, 3 or a policy
    retry_on: type[Exception] | tuple[type[Exception], ...],
    expected_duration: timedelta | None,
) -> RetryPolicy | None:
    """Return the retry policy that a handler's options mean; refuse options that its tasks could not be stored with."""
    if not isinstance(name, str) or not 1 <= len(name) <= MAX_NAME:
        raise Misconfigured(
            f'A handler is registered by its name, of at most {MAX_NAME} characters: @app.handler("greet"); '
            f"{name!r} is none."
        )
    kinds: tuple[object, ...] = retry_on if isinstance(retry_on, tuple) else (retry_on,)
    if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
        raise Misconfigured(f"Handler {name!r}: retry_on is {retry_on!r}; give exception classes.")
    if expected_duration is not None and not timedelta(0) < expected_duration <= MAX_DURATION:
        raise Misconfigured(f"Handler {name!r}: expected_duration is {expected_duration}; at most {MAX_DURATION}.")
    try:
        return None if retry is None else retry_policy(retry)
    except ValidationError as error:
        raise Misconfigured(f"Handler {name!r}: retry is {retry!r}; give 0 to 100, or a RetryPolicy.") from error


def _parameters(name: str, function: Callable[..., Any]) -> tuple[bool, TypeAdapter[Any] | None]:
    """Return whether the function takes the context, and how its payload is validated."""
    for is_kind in (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction):
        if is_kind(function):
            raise Misconfigured(f"Handler {name!r} is a coroutine or a generator; write a plain function.")
    try:
        hints = get_type_hints(function, include_extras=True)
    except TypeError as error:
        raise Misconfigured(f"Handler {name!r} is a {type(function).__name__}; write a plain function.") from error
    except NameError as error:
        raise Misconfigured(
            f"Handler {name!r}: {error}. Its annotations are read at run time: import the name outside TYPE_CHECKING."
        ) from error
    parameters = list(inspect.signature(function).parameters.values())
    takes_context = bool(parameters) and hints.get(parameters[0].name) is Context
    rest = parameters[1:] if takes_context else parameters
    required = [parameter for parameter in rest if parameter.default is parameter.empty]
    if len(required) > 1 or any(parameter.kind is parameter.KEYWORD_ONLY for parameter in required):
        raise Misconfigured(f"Handler {name!r} takes a Context, a payload, both or neither; it asks for more.")
    if not rest or rest[0].kind in {rest[0].VAR_POSITIONAL, rest[0].VAR_KEYWORD, rest[0].KEYWORD_ONLY}:
        return takes_context, None
    if rest[0].name not in hints:
        raise Misconfigured(
            f"Handler {name!r}: annotate {rest[0].name!r} with its pydantic model (or a first parameter with Context)."
        )
    try:
        return takes_context, TypeAdapter(hints[rest[0].name])
    except (PydanticUserError, NameError) as error:
        raise Misconfigured(f"Handler {name!r}: pydantic cannot validate {rest[0].name!r}: {error}") from error
