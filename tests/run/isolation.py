"""A test module leaves its process as it found it, or fails, and the next one finds it as it was all the same.

Without that, whether a test passes depends on who ran before it. What fixtures of the whole run leave is theirs to
take back. Filters of warnings are not looked at: pytest puts them back after each test.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from _pytest.fixtures import FixtureDef

from cloudsched.engine.concurrency.service_threads import ServiceThread, find_faults

PATIENCE = 5.0
"""How many seconds a thread that was told to end has for it, before it counts as left behind."""
_OWN_THREADS = ("cloudsched-", "cloud-tasks-emulator")
"""How the names of our threads begin. Libraries' end with the process; so do a worker's that has to leave a handler."""
_LASTING = ("cloudsched-event-loop", "cloudsched-model_", "project", "project.settings")
"""The threads and the modules of Django's project that a process has until it ends, or until garbage is collected."""
_LEVELLED = frozenset({"cloudsched.local.wsgi_server.connections"})
"""The loggers whose own module sets their level as it is imported."""
Parts = dict[str, dict[Any, Any]]


def read_parts() -> Parts:
    """Return what the process has, by what it is and by its name."""
    root, loggers = logging.getLogger(), logging.root.manager.loggerDict
    named = {name: each for name, each in [*loggers.items()] if isinstance(each, logging.Logger)}
    return {
        "logger": {
            name: (each.level, each.propagate, each.disabled, tuple(each.handlers), tuple(each.filters))
            for name, each in {**named, "": root}.items()
        },
        "environment variable": {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"},
        "module": sys.modules.copy(),
        # pytest-timeout handles SIGALRM anew in each test.
        "handler of signal": {each: signal.getsignal(each) for each in {*signal.Signals} - {signal.SIGALRM}},
        "state": {"logging.disable": root.manager.disable, "sys.path": (*sys.path,), "folder": _find_folder()},
    }


def _find_folder() -> str:
    with suppress(FileNotFoundError):
        return str(Path.cwd())
    return "one that is gone"


def _put_back(part: str, name: Any, value: Any) -> None:  # noqa: ANN401 - of any kind
    match part, name:
        case "logger", _:
            log = logging.getLogger(name)
            level, log.propagate, log.disabled, handlers, filters = value or (logging.NOTSET, True, False, (), ())
            log.setLevel(level)  # also forgets what loggers remember of it
            log.handlers[:], log.filters[:] = handlers, filters
        case "handler of signal", _:
            signal.signal(name, value)
        case _, "logging.disable":
            logging.disable(value)
        case _, "sys.path":
            sys.path[:] = value
        case _, "folder":
            os.chdir(value)
        case _:
            items: Any = os.environ if part == "environment variable" else sys.modules
            items.pop(name, None)
            if value is not None:
                items[name] = value
            time.tzset()


def list_changes(before: Parts) -> list[tuple[str, Any]]:
    """Return what is no longer as it was, by what it is and its name."""
    after = read_parts()
    return [
        (part, name)
        for part, had in before.items()
        for name in had.keys() | after[part].keys()
        if had.get(name) is not after[part].get(name) and had.get(name) != after[part].get(name)
        if name in had or _counts(part, name)
    ]


def _counts(part: str, name: Any) -> bool:  # noqa: ANN401 - a name
    """Return whether something new is left behind: not what libraries import, nor the loggers that they create."""
    if part == "logger":
        log = logging.getLogger(name)
        has_level = log.level and name not in _LEVELLED
        return bool(name.startswith("cloudsched") and (has_level or log.disabled or log.handlers or log.filters))
    if part == "module":
        file = getattr(sys.modules[name], "__file__", None) or ""
        return name not in _LASTING and Path(file).is_relative_to(tempfile.gettempdir())
    return True


@contextmanager
def keep_process() -> Iterator[None]:
    """Put back after the block all that has changed, but for threads."""
    before = read_parts()
    try:
        yield
    finally:
        _put_all_back(before)


def _put_all_back(before: Parts) -> list[str]:
    changes = list_changes(before)
    for part, name in changes:
        _put_back(part, name, before[part].get(name))
    return sorted(f"{part} {name or 'root'}" for part, name in changes)


@pytest.fixture
def own_process() -> Iterator[None]:
    """Let a test run what takes its process for its own, as commands do."""
    with keep_process():
        yield


_FOUND: Parts = {}


@pytest.fixture(scope="module", autouse=True)
def _check_process(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail the module that leaves something behind. It comes first of a module's fixtures, and ends last."""
    _FOUND.update(read_parts())
    running, faults = {*threading.enumerate()}, {*find_faults()}
    yield
    found = [*_wait_for_threads(running), *({*find_faults()} - faults), *_put_all_back(_FOUND)]
    if found:
        pytest.fail("\n  ".join((f"{request.node.nodeid} has left behind:", *found)), pytrace=False)


def _wait_for_threads(running: set[threading.Thread]) -> Iterator[str]:
    """Give our threads time to end; yield those that have not."""
    give_up_at = time.monotonic() + PATIENCE
    for each in {*threading.enumerate()} - running:
        if each.name.startswith(_OWN_THREADS) and not each.name.startswith(_LASTING):
            each.join(max(0.0, give_up_at - time.monotonic()))
            if each.is_alive():
                yield f"thread {each.name}"
                if isinstance(each, ServiceThread):
                    each.stop()
    while ("logger", "") in list_changes(_FOUND) and time.monotonic() < give_up_at:
        time.sleep(0.01)  # an asynchronous handler that its worker has left ends on its event loop


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: FixtureDef[Any]) -> Generator[None, object, object]:
    """Let fixtures of the whole run start what they like, whichever module is the first to ask for them."""
    before = read_parts() if fixturedef.scope == "session" else {}
    result = yield
    after = read_parts() if before else {}
    for part, name in list_changes(before):
        found = _FOUND.setdefault(part, {})
        found.pop(name, None)
        if name in after[part]:
            found[name] = after[part][name]
    return result
