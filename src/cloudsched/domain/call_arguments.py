"""Check the arguments of our public methods: an id is text, and not the task that has it; an instant has a zone.

A method says by its annotations what it takes, and Python does not look. Without a check, a wrong argument
comes as far as a database or a URL, whose error names neither the argument nor the remedy.
"""

from __future__ import annotations

import difflib
import inspect
import re
from datetime import datetime
from functools import wraps
from types import FunctionType
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar, cast

from cloudsched.domain.in_words import NO_ZONE
from cloudsched.domain.recurrence.iso8601 import to_utc
from cloudsched.errors import InvalidArgument, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")

_LINES: Final = {
    "RequestMark": 'RequestMark.of_name("my request"), from cloudsched.domain.transitions.idempotency',
    "TaskQuery": 'TaskQuery(owner="ada")',
    "ExecutionQuery": 'ExecutionQuery(owner="ada"), from cloudsched.engine.ports.search',
    "TaskDraft": 'TaskDraft.of(handler="greet"), or its fields by their names: handler="greet"',
    "DraftResult": "the result of `draft`",
    "EventSender": 'EventSender(role="owner", subject="user:ada")',
    "datetime": "an aware datetime, such as datetime(2027, 1, 1, 9, tzinfo=UTC)",
    "timedelta": "a timedelta, such as timedelta(minutes=5)",
    "int": "a whole number",
    "str": "text",
}
"""The types that are checked, and what to write for each. A query comes before the text that it may be made
of."""
_CHECKED: Final = {*_LINES, "None"}
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def check_methods(*, but: tuple[str, ...] = ()) -> Callable[[type[C]], type[C]]:
    """Return a decorator of a class that checks the arguments of its public methods, except some."""

    def decorate(kind: type[C]) -> type[C]:
        for name, method in list(vars(kind).items()):
            if isinstance(method, FunctionType) and not name.startswith("_") and name not in but:
                setattr(kind, name, check_arguments(method))
        return kind

    return decorate


def check_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with a check of the arguments that are to be of the types above.

    It raises InvalidArgument for those of another type, and for names that the function does not have, and InvalidInput
    for an instant without a time zone.
    """
    code = cast("FunctionType", inspect.unwrap(function)).__code__  # what decorators below this one wrap
    positional = code.co_varnames[: code.co_argcount]
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    annotated = {name: frozenset(str(function.__annotations__.get(name, "?")).split(" | ")) for name in names}
    kinds = {name: types for name, types in annotated.items() if types <= _CHECKED}
    takes_others = bool(code.co_flags & inspect.CO_VARKEYWORDS)

    @wraps(function)
    def check(*arguments: P.args, **named: P.kwargs) -> R:
        for name, value in (*zip(positional, arguments, strict=False), *named.items()):
            types = kinds.get(name)
            if types is not None and not _is_one(value, types):
                one = " For those of one task, call upcoming(id)." if function.__name__ == "occurrences" else ""
                raise InvalidArgument(name, _describe(value), _advise(name, value, types) + one)
            if isinstance(value, datetime) and "datetime" in annotated.get(name, ()):
                require_instant(name, value)
            if types is not None and isinstance(value, str) and _SURROGATE.search(value):
                problem = "has half a character (a lone surrogate), which no text can have"
                raise InvalidInput(name, problem, "Give the text as it was before it was cut or decoded.")
            if types is None and not takes_others and name not in names:
                raise InvalidArgument(
                    name,
                    f"is no argument of {function.__name__}",
                    _find_argument(name, kinds),
                )
        return function(*arguments, **named)

    return check


def require_instant(field: str, at: datetime) -> datetime:
    """Return an aware datetime in UTC. Raises InvalidInput if it has no time zone, or no document can hold it."""
    problem, hint = NO_ZONE
    try:
        if at.utcoffset() is not None:
            return to_utc(at)
    except ValueError as error:
        problem, hint = f"is {at}", str(error)
    raise InvalidInput(field, problem, hint)


def _is_one(value: object, types: frozenset[str]) -> bool:
    if value is None:
        return "None" in types
    return type(value).__name__ in types or not types.isdisjoint(base.__name__ for base in type(value).__mro__)


def _describe(value: object) -> str:
    return "is None" if value is None else f"is of type {type(value).__name__}"


def show_value(value: object) -> str:
    """Return how an error shows a value that was given."""
    try:
        return f"the function {value.__name__!r}" if inspect.isroutine(value) else repr(value)[:80]
    except Exception:  # noqa: BLE001 - user code may define __repr__
        return f"of type {type(value).__name__}"


def _advise(name: str, value: object, types: frozenset[str]) -> str:
    """Return what to give instead. Beside another type, a text is words, which nobody can guess."""
    own_id = value.get("id") if isinstance(value, dict) else getattr(value, "id", None)
    if types <= {"str", "None"}:
        if isinstance(own_id, str):
            return f"Give its id, {own_id!r}."
        if inspect.isroutine(value):
            return f"Give its registered name, such as {value.__name__!r}."
        if isinstance(value, int) and name.endswith(("id", "owner")):
            return f"Give text, such as {str(value)!r}."
    return f"Give {next(line for kind, line in _LINES.items() if kind in types)}."


def _find_argument(name: str, kinds: dict[str, frozenset[str]]) -> str:
    query = next((line for each, line in _LINES.items() if each in kinds.get("query", ())), "")
    if query:
        return f"Give a query: {query}."
    near = difflib.get_close_matches(name, kinds, n=1)
    if near:
        return f"Did you mean {near[0]}?"
    return f"There are {', '.join(each for each in kinds if each != 'self')}."
