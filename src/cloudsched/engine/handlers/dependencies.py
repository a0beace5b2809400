"""Dependencies of handlers: what ``Annotated[T, Depends(factory)]`` parameters get, for the time of one attempt."""

from __future__ import annotations

import inspect
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from cloudsched.engine.durable.procedure import UserCall
from cloudsched.engine.handlers.context import Context
from cloudsched.errors import Misconfigured

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cloudsched.engine.durable.procedure import Procedure

    Overrides = Mapping[Callable[..., Any], Callable[..., Any]]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Depends:
    """Marks a parameter of a handler, or of another factory: ``db: Annotated[Session, Depends(open_session)]``.

    Args:
        dependency: Returns the value, or yields it: what follows the ``yield`` runs when the attempt ends. It may be
            ``async def``. It may take dependencies of its own, and the attempt's `Context`.
        use_cache: Whether all who depend on it in the same attempt get the same value.
    """

    dependency: Callable[..., Any]
    use_cache: bool = True

    def __post_init__(self) -> None:
        if not callable(self.dependency):
            raise Misconfigured(f"Depends({self.dependency!r}) needs a function that makes the value.")


def find_marker(parameter: inspect.Parameter, hint: object) -> Depends | None:
    """Return the `Depends` of a parameter, from its annotation or its default."""
    extras = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    found = (each for each in (*extras, parameter.default) if isinstance(each, Depends))
    return next(found, None)


def read_dependencies(
    name: str, factory: Callable[..., Any], path: tuple[Callable[..., Any], ...] = ()
) -> dict[str, Depends | None]:
    """Return the parameters that a factory needs: its own dependencies, and None for the context.

    Raises:
        Misconfigured: A parameter has no source, or a factory depends on itself.
    """
    about = f"Handler {name!r}: the dependency {getattr(factory, '__name__', factory)!r}"
    if factory in path:
        raise Misconfigured(f"{about} depends on itself.")
    annotated = factory.__init__ if inspect.isclass(factory) else factory
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
            raise Misconfigured(f"{about} needs {parameter.name!r}: annotate it with Annotated[…, Depends(…)].")
    return found


_STARRED = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


class Dependencies:
    """The dependencies of one attempt's handler.

    Args:
        name: The handler's name.
        dependencies: What its parameters depend on.
        context: The attempt's context, for factories that take it.
        overrides: The factories that replace others in tests.
    """

    def __init__(self, name: str, dependencies: Mapping[str, Depends], context: Context, overrides: Overrides) -> None:
        self._name = name
        self._dependencies = dependencies
        self._context = context
        self._overrides = overrides
        self._cache: dict[Callable[..., Any], Any] = {}
        self._closers: list[Callable[..., object]] = []
        """The ``__exit__`` or ``__aexit__`` of what is open, in the order of opening."""

    def provide(self, call: Callable[[dict[str, Any]], Procedure[T]]) -> Procedure[T]:
        """Open the dependencies, call a function with their values, and close them in reverse order.

        What the function raises is raised at the ``yield`` of each of them. None can suppress it: the attempt fails,
        or is suspended, whatever they do.
        """
        failure: BaseException | None = None
        try:
            values = yield from self._make_values(self._dependencies)
            result = yield from call(values)
        except BaseException as error:  # noqa: BLE001 - raised below
            failure = error
        trace = None if failure is None else failure.__traceback__
        while self._closers:
            try:
                yield UserCall(partial(self._closers.pop(), failure and type(failure), failure, trace))
            except BaseException as error:  # noqa: BLE001 - raised below
                if error is not failure:
                    failure, trace = error, error.__traceback__
        if failure is not None:
            raise failure.with_traceback(trace)
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
        """Make a value; note how it is closed if its factory is a generator."""
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
