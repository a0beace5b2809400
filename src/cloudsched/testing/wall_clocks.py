"""Finds the lines of handlers that read the machine's clock, which a simulation does not move."""

from __future__ import annotations

import dis
import inspect
import time
import warnings
from datetime import date, datetime
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_READS: Final = (time.time, time.time_ns, datetime.now, datetime.utcnow, datetime.today, date.today)


def warn_of_wall_clocks(functions: Iterable[object]) -> None:
    """Warn of each line by which a handler, or what it calls in its module, reads the machine's clock."""
    for each in functions:
        function = inspect.unwrap(each) if callable(each) else None
        if not isinstance(function, FunctionType):
            continue
        for path, line, name in _find_reads(function):
            text = f"{name}() is the machine's time, which a simulation does not move. Take a Context, and write "
            warnings.warn_explicit(f"{text}ctx.now()", RuntimeWarning, path, line)


@cache
def _find_reads(function: FunctionType) -> tuple[tuple[str, int, str], ...]:
    """Return the file, the line and the name of each read."""
    found: list[tuple[str, int, str]] = []
    seen = {function}
    waiting = [function]
    while waiting:
        each = waiting.pop()
        for code in _walk(each.__code__):
            for line, value in _loads(code, each.__globals__):
                if value in _READS:
                    name = "time" if value.__self__ is time else value.__qualname__
                    found.append((code.co_filename, line, name))
                elif _is_beside(value, function) and value not in seen:
                    seen.add(value)
                    waiting.append(value)
    return tuple(found)


def _is_beside(value: object, function: FunctionType) -> bool:
    return isinstance(value, FunctionType) and value.__module__ == function.__module__


def _walk(code: CodeType) -> Iterator[CodeType]:
    """Return the code of a function, and of those that are defined in it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _walk(each)


def _loads(code: CodeType, names: dict[str, Any]) -> Iterator[tuple[int, Any]]:
    """Return each global that code names, with the attributes of modules and classes, and its line."""
    line = code.co_firstlineno
    value = None
    for each in dis.get_instructions(code):
        if each.positions and each.positions.lineno:
            line = each.positions.lineno
        if each.opname == "LOAD_GLOBAL":
            value = names.get(each.argval)
        elif each.opname in {"LOAD_ATTR", "LOAD_METHOD"} and isinstance(value, ModuleType | type):
            value = getattr(value, each.argval, None)
        else:
            value = None
        if value is not None:
            yield line, value
