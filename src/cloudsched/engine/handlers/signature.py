"""The parameters of a handler's function and its dependencies, read from its annotations at registration.

The values of ``Annotated[T, Depends(factory)]`` parameters last for one attempt.
"""

from __future__ import annotations

import inspect
import sys
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError

from cloudsched.domain.raised_errors import get_traceback
from cloudsched.engine.durable.user_calls import UserCall, is_async
from cloudsched.engine.handlers.context import Context
from cloudsched.engine.handlers.payload_fields import find_secret_field
from cloudsched.engine.ports.procedure import from_thrown
from cloudsched.errors import Misconfigured

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cloudsched.engine.ports.procedure import Procedure

    Overrides = Mapping[Callable[..., Any], Callable[..., Any]]


def _is_async_context(kind: object) -> bool:
    """Return whether a parameter's type is AsyncContext, whose module is imported only by who names it."""
    module = sys.modules.get("cloudsched.engine.handlers.async_context")
    return module is not None and kind is module.AsyncContext


def _explain_extra_parameters(parameters: list[inspect.Parameter], hints: dict[str, Any]) -> str:
    """Describe the mistake in a handler that seems to take more than a context and a payload."""
    late = next(
        (parameter.name for parameter in parameters[1:] if hints.get(parameter.name) is Context),
        None,
    )
    if late is not None:
        return f"has its Context in {late!r}, after another parameter; make it the first."
    first = parameters[0].name
    if first not in hints:
        return f"has a first parameter {first!r} without an annotation; annotate it: `{first}: Context`."
    return "has too many required parameters; a handler takes a Context, a payload, both or neither."


def _read_markers(
    name: str,
    parameters: list[inspect.Parameter],
    hints: dict[str, Any],
) -> dict[str, Depends]:
    markers = {each.name: find_marker(each, hints.get(each.name)) for each in parameters}
    found = {key: marker for key, marker in markers.items() if marker is not None}
    for marker in found.values():
        read_dependencies(name, marker.dependency)
    if any(each.kind is each.POSITIONAL_ONLY for each in parameters if each.name in found):
        raise Misconfigured(
            f"Handler {name!r} has a dependency before a `/`; dependencies are passed by name.",
        )
    return found


def read_signature(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    """Return the fields of a `Handler` that say what it takes, and how it is called. Raises Misconfigured."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise Misconfigured(f"Handler {name!r} is a generator; write a function that returns its result.")
    is_asynchronous = is_async(function)

    try:
        hints = get_type_hints(function, include_extras=True)
    except TypeError as error:
        raise Misconfigured(
            f"Handler {name!r} is a {type(function).__name__}; write a plain function.",
        ) from error
    except NameError as error:
        raise Misconfigured(
            f"Handler {name!r}: {error}. Its annotations are read at run time: import the name outside TYPE_CHECKING."
        ) from error

    every = list(inspect.signature(function).parameters.values())
    dependencies = _read_markers(name, every, hints)
    parameters = [each for each in every if each.name not in dependencies]
    kind = hints.get(parameters[0].name) if parameters else None
    takes_async_context = _is_async_context(kind)
    takes_context = takes_async_context or kind is Context
    fields = {"takes_context": takes_context, "is_async": is_asynchronous, "dependencies": dependencies}
    if takes_async_context and not is_asynchronous:
        raise Misconfigured(
            f"Handler {name!r} takes an AsyncContext; write it with `async def`, or take a Context.",
        )

    rest = parameters[1:] if takes_context else parameters
    required = [parameter for parameter in rest if parameter.default is parameter.empty]
    if len(required) > 1 or any(parameter.kind is parameter.KEYWORD_ONLY for parameter in required):
        raise Misconfigured(f"Handler {name!r} {_explain_extra_parameters(rest, hints)}")
    if not rest or rest[0].kind in {rest[0].VAR_POSITIONAL, rest[0].VAR_KEYWORD, rest[0].KEYWORD_ONLY}:
        return {**fields, "payload": None}
    annotation = hints.get(rest[0].name)
    if annotation in (None, str, int, float, bool):  # a payload is an object
        raise Misconfigured(
            f"Handler {name!r}: annotate {rest[0].name!r} with its pydantic model (or a first parameter with Context)."
        )

    try:
        adapter = TypeAdapter[Any](annotation)
    except (PydanticUserError, NameError) as error:
        reason = error.message if isinstance(error, PydanticUserError) else error
        raise Misconfigured(
            f"Handler {name!r}: pydantic cannot validate {rest[0].name!r}: {reason}",
        ) from error

    secret = find_secret_field(annotation)
    if secret is not None:
        raise Misconfigured(
            f"Handler {name!r}: the payload's {secret} is a secret, and payloads are stored and shown. Take the "
            "secret's name instead, and read the secret in the handler."
        )

    return {**fields, "payload": adapter}


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Depends:
    """Marks a parameter of a handler or of a factory: ``db: Annotated[Session, Depends(open_session)]``.

    Args:
        dependency: Returns the value, or yields it: what follows the ``yield`` runs when the attempt ends. It
            may be ``async def``. It may take dependencies of its own, and the attempt's `Context`.
        use_cache: True if all who depend on it in the same attempt get the same value.
    """

    dependency: Callable[..., Any]
    use_cache: bool = True

    def __post_init__(self) -> None:
        if not callable(self.dependency):
            raise Misconfigured(f"Depends({self.dependency!r}) needs a function that makes the value.")


def find_marker(parameter: inspect.Parameter, hint: object) -> Depends | None:
    """Return the `Depends` of a parameter, from its annotation or its default."""
    if get_origin(hint) is Annotated:
        extras = get_args(hint)[1:]
    else:
        extras = ()
    found = (each for each in (*extras, parameter.default) if isinstance(each, Depends))
    return next(found, None)


def read_dependencies(
    name: str, factory: Callable[..., Any], path: tuple[Callable[..., Any], ...] = ()
) -> dict[str, Depends | None]:
    """Return a factory's own dependencies by parameter, None for the context. Raises Misconfigured."""
    about = f"Handler {name!r}: the dependency {getattr(factory, '__name__', factory)!r}"
    if factory in path:
        raise Misconfigured(f"{about} depends on itself.")

    if inspect.isclass(factory):
        annotated = factory.__init__
    else:
        annotated = factory

    try:
        hints = get_type_hints(annotated, include_extras=True)
        parameters = inspect.signature(factory).parameters
    except NameError as error:
        raise Misconfigured(f"{about}: {error}. Import the name outside TYPE_CHECKING.") from error
    except (TypeError, ValueError):  # a builtin, or a callable object without annotations
        return {}

    found = dict[str, Depends | None]()
    for parameter in parameters.values():
        marker = find_marker(parameter, hints.get(parameter.name))
        if marker is not None:
            read_dependencies(name, marker.dependency, (*path, factory))
            found[parameter.name] = marker
        elif hints.get(parameter.name) is Context:
            found[parameter.name] = None
        elif parameter.default is parameter.empty and parameter.kind not in _STARRED:
            raise Misconfigured(
                f"{about} needs {parameter.name!r}: annotate it with Annotated[…, Depends(…)].",
            )

    return found


_STARRED = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


class Dependencies:
    """The dependencies of one attempt's handler."""

    def __init__(
        self,
        name: str,
        dependencies: Mapping[str, Depends],
        context: Context,
        overrides: Overrides,
    ) -> None:
        self._name = name
        self._dependencies = dependencies
        self._context = context
        self._overrides = overrides
        self._cache: dict[Callable[..., Any], Any] = {}
        self._closers: list[Callable[..., object]] = []
        """The ``__exit__`` or ``__aexit__`` of what is open, in the order of opening."""

    def provide(self, call: Callable[[dict[str, Any]], Procedure[T]]) -> Procedure[T]:
        """Open the dependencies, call a function with their values, and close them in reverse order.

        An error of the function is raised at the ``yield`` of each of them. None can suppress it: the attempt
        fails, or is suspended, whatever they do.
        """
        failure: BaseException | None = None
        try:
            values = yield from self._make_values(self._dependencies)
            result = yield from call(values)
        except BaseException as error:  # noqa: BLE001 - raised below
            failure = error
        trace = None if failure is None else get_traceback(failure)
        raised = None
        while self._closers:
            raised = failure and from_thrown(failure)
            try:
                yield UserCall(partial(self._closers.pop(), raised and type(raised), raised, trace))
            except BaseException as error:  # noqa: BLE001 - raised below
                if from_thrown(error) is not raised:
                    failure = error
                    trace = get_traceback(error)
        if failure is not None:
            try:
                raise BaseException.with_traceback(failure, trace)
            finally:
                del failure, trace, raised  # they hold this function's variables
        return result

    def _make_values(self, wanted: Mapping[str, Depends | None]) -> Procedure[dict[str, Any]]:
        values = dict[str, Any]()
        for key, marker in wanted.items():
            values[key] = self._context if marker is None else (yield from self._make_value(marker))
        return values

    def _make_value(self, marker: Depends) -> Procedure[Any]:
        factory = self._overrides.get(marker.dependency, marker.dependency)
        if marker.use_cache and factory in self._cache:
            return self._cache[factory]
        values = yield from self._make_values(read_dependencies(self._name, factory))
        self._cache[factory] = value = yield from self._open(factory, partial(factory, **values))
        return value

    def _open(self, factory: Callable[..., Any], make: Callable[[], Any]) -> Procedure[Any]:
        manager: Any
        if inspect.isasyncgenfunction(factory):
            manager = asynccontextmanager(make)()
            value = yield UserCall(manager.__aenter__)
            self._closers.append(manager.__aexit__)
        elif inspect.isgeneratorfunction(factory):
            manager = contextmanager(make)()
            value = yield UserCall(manager.__enter__)
            self._closers.append(manager.__exit__)
        else:
            value = yield UserCall(make)
        return value
