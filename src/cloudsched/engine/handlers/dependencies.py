"""Dependencies of handlers: what ``Annotated[T, Depends(factory)]`` parameters get, for the time of one attempt."""

from __future__ import annotations

import inspect
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

from cloudsched.engine.durable.async_functions import call_function
from cloudsched.engine.handlers.context import Context
from cloudsched.errors import Misconfigured

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from types import TracebackType

    Overrides = Mapping[Callable[..., Any], Callable[..., Any]]


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


@contextmanager
def open_dependencies(
    name: str, dependencies: Mapping[str, Depends], context: Context, overrides: Overrides
) -> Iterator[dict[str, Any]]:
    """Return the values of a handler's dependencies; close them in reverse order when the block ends.

    An exception of the block is raised at the ``yield`` of each of them. None can suppress it: the attempt fails, or is
    suspended, whatever they do.
    """
    if not dependencies:
        yield {}
        return
    cache: dict[Callable[..., Any], Any] = {}
    with ExitStack() as stack:

        def get_value(marker: Depends) -> Any:  # noqa: ANN401 - whatever the factory makes
            factory = overrides.get(marker.dependency, marker.dependency)
            if marker.use_cache and factory in cache:
                return cache[factory]
            wanted = read_dependencies(name, factory)
            values = {key: context if each is None else get_value(each) for key, each in wanted.items()}
            cache[factory] = value = _open(stack, partial(factory, **values), factory)
            return value

        yield {key: get_value(marker) for key, marker in dependencies.items()}


def _open(stack: ExitStack, make: Callable[[], Any], factory: Callable[..., Any]) -> Any:  # noqa: ANN401 - the same
    """Make a value, and let the stack close it if its factory is a generator."""
    if inspect.isasyncgenfunction(factory):
        manager = asynccontextmanager(make)()
        value = call_function(manager.__aenter__)
        stack.push(partial(_close, lambda *error: call_function(partial(manager.__aexit__, *error))))
        return value
    if inspect.isgeneratorfunction(factory):
        opened: AbstractContextManager[Any] = contextmanager(make)()
        value = opened.__enter__()
        stack.push(partial(_close, opened.__exit__))
        return value
    return call_function(make)


def _close(
    close: Callable[..., object],
    kind: type[BaseException] | None,
    error: BaseException | None,
    trace: TracebackType | None,
) -> bool:
    """Close a dependency, without letting it suppress the error, or add to its traceback."""
    try:
        close(kind, error, trace)
    except BaseException as raised:
        if raised is not error:
            raise
        raised.__traceback__ = trace
    return False
