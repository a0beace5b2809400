"""Every exception of the package crosses to another process, and is copied, with its text and its attributes."""

from __future__ import annotations

import copy
import importlib
import inspect
import multiprocessing
import pickle
import pkgutil
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

import cloudsched
from cloudsched import Fail, errors
from cloudsched.emulator.model.errors import Code
from cloudsched.errors import AwaitedEvent, CloudschedError, InvalidSchedule, MissingExtra

VALUES: dict[str, object] = {
    "str": "text",
    "int": 3,
    "bool": True,
    "object": 4,
    "timedelta": timedelta(seconds=5),
    "Sequence[AwaitedEvent]": [AwaitedEvent("go", "e-1", None)],
    "tuple[dict[str, object], ...]": ({"label": "one"},),
    "dict[str, str]": {"queue": "stands still"},
    "Code": Code.ABORTED,
    "Mapping[str, Any]": {"reason": "text"},
    "Outcome": Fail("text"),
    "Exception": ValueError("text"),
    "BaseException": StopIteration("text"),
    "InvalidSchedule": InvalidSchedule("a", "b", "c", "d"),
    "Span": (1, 2),
    "Sequence[Option[Any]]": ("one", "two"),
    "OnFailure": len,
    "Task": SimpleNamespace(id="t-1"),
    "Execution": SimpleNamespace(id="e-1"),
}
"""What is given for each type of an argument."""


def _find(kind: type[BaseException]) -> Iterator[type[BaseException]]:
    for each in kind.__subclasses__():
        if each.__module__.startswith("cloudsched."):
            yield each
        yield from _find(each)


def _import_all() -> None:
    for module in pkgutil.walk_packages(cloudsched.__path__, "cloudsched.", onerror=lambda _name: None):
        if not module.name.endswith("__main__") and ".django." not in module.name:
            importlib.import_module(module.name)


_import_all()
KINDS = sorted(set(_find(BaseException)), key=lambda kind: (kind.__module__, kind.__qualname__))
PUBLIC = [kind for kind in KINDS if issubclass(kind, CloudschedError)]


def make(kind: type[BaseException]) -> BaseException:
    """Return an exception with a value for each argument, and with all that may be set later."""
    given: list[Any] = ["text"]
    named: dict[str, Any] = {}
    if inspect.isfunction(kind.__init__):
        given = []
        for name, each in list(inspect.signature(kind.__init__).parameters.items())[1:]:
            value = VALUES[str(each.annotation).partition(" | ")[0]]
            if each.kind is each.KEYWORD_ONLY:
                named[name] = value
            else:
                given.append(value)
    error = kind(*given, **named)
    if isinstance(error, errors.InvalidInput):
        error.others = (errors.InvalidInput("x", "y", "z"),)
    error.added = ["later"]  # type: ignore[attr-defined]
    error.add_note("a note")
    return error


def describe(error: object) -> object:
    """Return all that can be read of an exception, and of those in it."""
    if isinstance(error, BaseException):
        members = {name: getattr(error, name) for name in ("name", "path", "msg") if hasattr(error, name)}
        return type(error), str(error), describe(error.args), describe(vars(error)), members
    if isinstance(error, dict):
        return {name: describe(each) for name, each in error.items()}
    if isinstance(error, list | tuple):
        return [type(error), *map(describe, error)]
    return error


def _derive(kind: type[BaseException]) -> type[BaseException]:
    """Return a user's class of an error, with arguments and with slots of its own."""

    def init(self: BaseException, tenant: str, *, made: dict[str, object]) -> None:
        for name, value in {**made, "tenant": tenant, "seat": 7}.items():
            setattr(self, name, value)

    name = f"Own{kind.__name__}"
    body = {"__init__": init, "__slots__": ("seat",), "__module__": __name__, "__qualname__": name}
    setattr(sys.modules[__name__], name, type(name, (kind,), body))
    return getattr(sys.modules[__name__], name)  # type: ignore[no-any-return]


OWN: dict[type[BaseException], type[BaseException]] = {kind: _derive(kind) for kind in PUBLIC}


def make_own(kind: type[BaseException]) -> BaseException:
    made = make(kind)
    own: Any = OWN[kind]
    error: BaseException = own("acme", made={**vars(made), "args": made.args})
    return error


def _pickle(protocol: int, error: BaseException) -> Any:  # noqa: ANN401 - what was pickled
    return pickle.loads(pickle.dumps(error, protocol))  # noqa: S301 - this test's own


WAYS: dict[str, Callable[[Any], Any]] = {
    **{f"pickle {protocol}": partial(_pickle, protocol) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)},
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_error_is_the_same_after_pickle_and_copy(kind: type[BaseException]) -> None:
    error = make(kind)
    for way, carry in WAYS.items():
        assert describe(carry(error)) == describe(error), way
        assert describe(carry(carry(error))) == describe(error), f"{way}, twice"


@pytest.mark.parametrize("kind", PUBLIC, ids=lambda kind: kind.__name__)
def test_so_is_one_of_a_users_class_with_other_arguments(kind: type[BaseException]) -> None:
    error: Any = make_own(kind)
    for way, carry in WAYS.items():
        carried = carry(error)
        assert describe(carried) == describe(error), way
        assert (carried.tenant, carried.seat) == ("acme", 7), way


def fail(make_error: Callable[[type[BaseException]], BaseException], kind: type[BaseException]) -> None:
    raise make_error(kind)


@pytest.mark.skipif(sys.platform == "win32", reason="it has no fork")
def test_they_come_back_from_the_processes_of_a_pool() -> None:
    """As of a handler that shares its work among processes: each call ends, with the error of the process."""
    forks = multiprocessing.get_context("fork")
    calls = [(each, kind) for each in (make, make_own) for kind in PUBLIC]
    with forks.Pool(1) as pool, ProcessPoolExecutor(1, mp_context=forks) as executor:
        for make_error, kind in calls:
            expected = make_error(kind)
            for get in (pool.apply_async(fail, (make_error, kind)).get, executor.submit(fail, make_error, kind).result):
                with pytest.raises(type(expected)) as raised:
                    get(30)
                assert str(raised.value) == str(expected)
                assert describe(raised.value.args) == describe(expected.args)


def test_a_missing_extra_still_names_its_module() -> None:
    """It is an ImportError, too, whose own attributes lie elsewhere."""
    error: MissingExtra = pickle.loads(pickle.dumps(MissingExtra("The page", "jinja2", "server")))  # noqa: S301
    assert (error.name, error.extra) == ("jinja2", "server")
    assert error.msg == str(error)
