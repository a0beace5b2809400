"""What user code has raised, read without the code of its class, which may raise, lie, or never end."""

from __future__ import annotations

import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.json_limits import exception_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

_own: Final = vars(BaseException)
get_cause: Final[Callable[[BaseException], BaseException | None]] = _own["__cause__"].__get__
_get_context: Final[Callable[[BaseException], BaseException | None]] = _own["__context__"].__get__
get_traceback: Final[Callable[[BaseException], TracebackType | None]] = _own["__traceback__"].__get__
_get_members: Final[Callable[[Any], tuple[BaseException, ...]]] = vars(BaseExceptionGroup)["exceptions"].__get__
_get_name: Final[Callable[[type], str]] = vars(type)["__qualname__"].__get__

_MAX_LINKED: Final = 100
"""The most exceptions that are shown as a chain."""
_READ: Final = ("__cause__", "__context__", "__traceback__", "__suppress_context__", "__getattribute__")
"""What shows a chain. It may be shown where no class has put its own code in place of these."""


def type_name(error: BaseException) -> str:
    """Return the qualified name of an exception's class."""
    return _get_name(type(error))


def get_members(error: BaseException) -> tuple[BaseException, ...]:
    """Return the exceptions of a group. Empty if it is none."""
    return _get_members(error) if issubclass(type(error), BaseExceptionGroup) else ()


def drop_tracebacks(error: BaseException) -> None:
    """Let go of the variables of the functions that an exception, and what led to it, went through.

    It is often kept in a cycle: by code that notes it and raises it again, as libraries for retries do. What the
    handler held would stay until garbage is collected, which memory that it filled does not hasten.
    """
    for each in _list_linked(error):
        BaseException.with_traceback(each, None)


def format_raised(error: BaseException, frames: TracebackType | None) -> str:
    """Return an exception with a traceback, and with what led to it if that can be read."""
    linked = _list_linked(error)
    with suppress(BaseException):  # that of the exception's own code
        if len(linked) <= _MAX_LINKED and all(map(_is_plain, linked)):
            return "".join(traceback.format_exception(type(error), error, frames))
    return "".join([*traceback.format_tb(frames), f"{type_name(error)}: {exception_text(error)}\n"])


def _list_linked(error: BaseException) -> list[BaseException]:
    linked = dict[int, BaseException]()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is not None and id(each) not in linked:
            linked[id(each)] = each
            waiting += [get_cause(each), _get_context(each), *get_members(each)]
    return list(linked.values())


def _is_plain(error: BaseException) -> bool:
    kind: Any = type(error)
    is_own = all(getattr(kind, name) is getattr(BaseException, name) for name in _READ)
    is_group = issubclass(kind, BaseExceptionGroup)
    shows_members = not is_group or kind.exceptions is BaseExceptionGroup.exceptions
    return is_own and shows_members and type(getattr(error, "__notes__", [])) is list
