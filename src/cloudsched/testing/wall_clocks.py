"""Finds the lines of handlers that read the machine's clock, which a simulation does not move."""

from __future__ import annotations

import dis
import inspect
import time
import warnings
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

_READS: Final = (time.time, time.time_ns, datetime.now, datetime.utcnow, datetime.today, date.today)


def warn_of_wall_clocks(functions: Iterable[object]) -> None:
    """Warn of each line by which a handler, or a function of its module that it calls, reads the machine's clock."""
    for function in functions:
        found = inspect.unwrap(function) if callable(function) else None
        for path, line, name in _find_reads(found) if isinstance(found, FunctionType) else ():
            text = (
                f"{name}() is the machine's time, which a simulation does not move. Take a Context, and write ctx.now()"
            )
            warnings.warn_explicit(text, RuntimeWarning, path, line)


@cache
def _find_reads(function: FunctionType) -> tuple[tuple[str, int, str], ...]:
    """Return the file, the line and the name of each read."""
    found, seen, waiting = list[tuple[str, int, str]](), {function}, [function]
    while waiting:
        each = waiting.pop()
        for code in _walk(each.__code__):
            for line, value in _loads(code, each.__globals__):
                if value in _READS:
                    found.append((code.co_filename, line, value.__qualname__ if value.__self__ is not time else "time"))
                elif isinstance(value, FunctionType) and value.__module__ == function.__module__ and value not in seen:
                    seen.add(value)
                    waiting.append(value)
    return tuple(found)


def _walk(code: CodeType) -> Iterator[CodeType]:
    """Return the code of a function, and of those that are defined in it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _walk(each)


def _loads(code: CodeType, names: dict[str, Any]) -> Iterator[tuple[int, Any]]:
    """Return each global that code names, with the attributes of modules and classes, and its line."""
    line, value = code.co_firstlineno, None
    for each in dis.get_instructions(code):
        line = each.positions.lineno if each.positions and each.positions.lineno else line
        if each.opname == "LOAD_GLOBAL":
            value = names.get(each.argval)
        elif each.opname in {"LOAD_ATTR", "LOAD_METHOD"} and isinstance(value, ModuleType | type):
            value = getattr(value, each.argval, None)
        else:
            value = None
        if value is not None:
            yield line, value
