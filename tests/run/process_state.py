"""A test module leaves the process as it found it, or fails, and the next one finds it as it was all the same.

Without that, whether a test passes depends on who ran before it. What fixtures of the whole run leave is theirs to
take back. Filters of warnings are not looked at: pytest puts them back after each test.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from _pytest.fixtures import FixtureDef

from cloudsched.engine.concurrency import service_threads
from cloudsched.engine.concurrency.service_threads import ServiceThread

PATIENCE = 5.0
"""How many seconds a thread that was told to end has for it, before it counts as left behind."""
_INSTALLED = tuple({*sysconfig.get_paths().values(), str(Path(__file__).parents[2]), str(Path(os.__file__).parent)})
_MADE_BY_LIBRARIES = ("_cython_", "_openssl", "cython_runtime", "imghdr")
"""Modules that no file has: compiled extensions make them, and Apprise the one that Python 3.13 no longer has."""
_OWN_THREADS = ("cloudsched-", "cloud-tasks-emulator")
"""How the names of our threads begin. Libraries' end with the process; so do a worker's that has to leave a handler."""
_OF_A_POOL = "cloudsched-model_"
"""Threads that end with their pool, once nobody has it any more."""
_ONE_FOR_GOOD = ("cloudsched-event-loop", "project", "project.settings")
"""The thread and the modules of Django's project, of which a process has one until it ends."""
_COLLECTS = "_Collector"
"""What the root logger has while an attempt runs."""
_FIELDS = ("level", "propagates", "is disabled", "handlers", "filters")
_UNTOUCHED = (logging.NOTSET, True, False, (), ())


class Kind(NamedTuple):
    what: str
    read: Callable[[], dict[Any, Any]]
    """What there is now, by its name."""
    put_back: Callable[[Any, Any], object]
    """Set a name to the value that it had; None if there was none."""


def _read_loggers() -> dict[str, tuple[Any, ...]]:
    found = {
        name: (each.level, each.propagate, each.disabled, tuple(each.handlers), tuple(each.filters))
        for name, each in list(logging.root.manager.loggerDict.items())
        if isinstance(each, logging.Logger)
    }
    root = logging.root
    return {"root": (root.level, True, root.disabled, tuple(root.handlers), tuple(root.filters)), **found}


def _put_back_logger(name: str, state: tuple[Any, ...] | None) -> None:
    log = logging.root if name == "root" else logging.getLogger(name)
    level, log.propagate, log.disabled, handlers, filters = state or _UNTOUCHED
    log.setLevel(level)  # also forgets what loggers remember of it
    log.handlers[:], log.filters[:] = handlers, filters


def _read_signals() -> dict[signal.Signals, Any]:
    of_tests = {*signal.Signals} - {signal.SIGALRM}  # pytest-timeout handles it anew in each test
    return {each: signal.getsignal(each) for each in of_tests}


def _put_back_signal(signum: signal.Signals, handler: Any) -> None:  # noqa: ANN401 - as for signal.signal
    signal.signal(signum, handler)


def _read_threads() -> dict[threading.Thread, bool]:
    faulty = [each for each in list(service_threads._running) if each.fault and not each.is_stopping]  # noqa: SLF001 - no copy
    named = [each for each in threading.enumerate() if each.name.startswith(_OWN_THREADS)]
    return {each: True for each in (*faulty, *named) if not each.name.startswith(_OF_A_POOL)}


def _put_back_thread(thread: threading.Thread, _was_there: object) -> None:
    if isinstance(thread, ServiceThread):
        thread.stop()


def _put_back_item(items: Any) -> Callable[[Any, Any], None]:  # noqa: ANN401 - a dictionary or the environment
    def put_back(name: Any, value: Any) -> None:  # noqa: ANN401
        if value is None:
            items.pop(name, None)
        else:
            items[name] = value

    return put_back


def _read_others() -> dict[str, Any]:
    folder = "one that is gone"
    with suppress(FileNotFoundError):
        folder = os.getcwd()  # noqa: PTH109 - the string is all that is needed
    return {
        "logging.disable": logging.root.manager.disable,
        "sys.path": tuple(sys.path),
        "time.tzname": time.tzname,
        "the working directory": folder,
    }


def _put_back_other(name: str, value: Any) -> None:  # noqa: ANN401 - of any kind
    match name:
        case "logging.disable":
            logging.disable(value)
        case "sys.path":
            sys.path[:] = value
        case "time.tzname":
            time.tzset()  # the environment was put back before
        case _:
            os.chdir(value)


KINDS = (
    Kind("logger", _read_loggers, _put_back_logger),
    Kind("environment variable", os.environ.copy, _put_back_item(os.environ)),
    Kind("module in sys.modules", sys.modules.copy, _put_back_item(sys.modules)),
    Kind("handler of", _read_signals, _put_back_signal),
    Kind("thread", _read_threads, _put_back_thread),
    Kind("state", _read_others, _put_back_other),
)
State = dict[Kind, dict[Any, Any]]


def read_state() -> State:
    return {kind: kind.read() for kind in KINDS}


def find_changes(before: State, after: State) -> list[tuple[Kind, Any]]:
    return [
        (kind, name)
        for kind in KINDS
        if before[kind] != after[kind]
        for name in before[kind].keys() | after[kind].keys()
        if before[kind].get(name, before) is not after[kind].get(name, before)
        and before[kind].get(name, before) != after[kind].get(name, before)
        and _counts(kind, name, before[kind], after[kind])
    ]


def _counts(kind: Kind, name: Any, before: dict[Any, Any], after: dict[Any, Any]) -> object:  # noqa: ANN401 - a name
    match kind.what:
        case "logger" if name not in before:
            return name.partition(".")[0] == "cloudsched" and after[name] != _UNTOUCHED
        case "module in sys.modules":
            return name not in _ONE_FOR_GOOD and (name in before or _is_foreign(name))
        case "thread":
            return name not in before and name.name not in _ONE_FOR_GOOD
        case "environment variable":
            return name != "PYTEST_CURRENT_TEST"
    return True


def _is_foreign(name: str) -> bool:
    """Return whether a module is neither installed nor of this repository."""
    top = name.partition(".")[0]
    module = sys.modules.get(top, sys.modules[name])
    spec = getattr(module, "__spec__", None)
    if spec is None:
        return not top.startswith(_MADE_BY_LIBRARIES)
    places = [spec.origin] if spec.origin else [*(spec.submodule_search_locations or ())]
    return not all(each in {"built-in", "frozen"} or each.startswith(_INSTALLED) for each in places)


def describe(kind: Kind, name: Any, before: State, after: State) -> str:  # noqa: ANN401 - a name
    """Return one change in words. Values of the environment are not told: they may be secret."""
    was, now = before[kind].get(name), after[kind].get(name)
    if kind.what == "logger":
        states = zip(_FIELDS, was or _UNTOUCHED, now or _UNTOUCHED, strict=True)
        changes = [f"{field} {_compare(old, new)}" for field, old, new in states if old != new]
        return f"logger {name}: {'; '.join(changes)}"
    if kind.what == "thread":
        fault = name.fault if isinstance(name, ServiceThread) else None
        return f"thread {name.name}{f' {fault}' if fault else ''}"
    if kind.what in {"environment variable", "module in sys.modules"}:
        return f"{kind.what} {name}: {'added' if was is None else 'removed' if now is None else 'replaced'}"
    return f"{kind.what} {getattr(name, 'name', name)}: {_compare(was, now)}"


def _compare(was: Any, now: Any) -> str:  # noqa: ANN401 - of any kind
    if not isinstance(was, tuple):
        return f"{now}, was {was}"
    changes = [f"added {each!r}" for each in now if each not in was]
    return ", ".join(changes + [f"removed {each!r}" for each in was if each not in now]) or f"{now}, was {was}"


class ProcessState:
    def __init__(self) -> None:
        self._before: State = {}

    def note(self) -> None:
        self._before = read_state()

    def accept(self, before: State) -> None:
        """Take what has changed since for what was found: it is the whole run's."""
        after = read_state()
        self._before = self._before or after
        for kind, name in find_changes(before, after):
            self._before[kind].pop(name, None)
            if name in after[kind]:
                self._before[kind][name] = after[kind][name]

    def put_back(self) -> list[str]:
        """Put back what has changed, once threads and handlers have had time to end; return it in words."""
        before, after = self._before, read_state()
        changes = find_changes(before, after)
        give_up_at = time.monotonic() + PATIENCE
        threads = [name for kind, name in changes if kind.what == "thread"]
        for each in threads:
            each.join(max(0.0, give_up_at - time.monotonic()))
        while changes and time.monotonic() < give_up_at:
            after = read_state()
            changes = find_changes(before, after)
            if not any(_COLLECTS in describe(kind, name, before, after) for kind, name in changes):
                break
            time.sleep(0.01)  # an asynchronous handler that its worker has left ends on its event loop
        found = sorted(describe(kind, name, before, after) for kind, name in changes)
        for kind, name in changes:
            kind.put_back(name, before[kind].get(name))
        return found


_STATE = ProcessState()


@contextmanager
def keep_process() -> Iterator[None]:
    """Put back after the block all that has changed, but for threads."""
    before = read_state()
    try:
        yield
    finally:
        for kind, name in find_changes(before, read_state()):
            if kind.what != "thread":
                kind.put_back(name, before[kind].get(name))


@pytest.fixture
def own_process() -> Iterator[None]:
    """Let a test run what takes its process for its own, as commands do."""
    with keep_process():
        yield


@pytest.fixture(scope="module", autouse=True)
def _check_process_state(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail the module that leaves something behind. It comes first of a module's fixtures, and ends last."""
    _STATE.note()
    yield
    if found := _STATE.put_back():
        pytest.fail("\n  ".join((f"{request.node.nodeid} has left behind:", *found)), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: FixtureDef[Any]) -> Generator[None, object, object]:
    """Let fixtures of the whole run start what they like, whichever module is the first to ask for them."""
    if fixturedef.scope != "session":
        return (yield)
    before = read_state()
    result = yield
    _STATE.accept(before)
    return result
