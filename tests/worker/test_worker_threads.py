"""The threads of a worker outlive what is raised in them, and whoever waits for one hears of it."""

from __future__ import annotations

import sys
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, cast

import pytest
from tests.harness import wait_until

from cloudsched.adapters.firestore import listener
from cloudsched.engine.ports import service_threads
from cloudsched.worker.slot import ThreadPool
from cloudsched.worker.worker import BackgroundCalls

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.engine.durable.event_loop import Request


def test_an_exit_in_a_call_to_the_source_reaches_the_worker() -> None:
    """It waited for ever, since the thread had ended; the next call is made, too."""
    calls: BackgroundCalls[int] = BackgroundCalls()
    with pytest.raises(SystemExit):
        calls.call(lambda: sys.exit(3))
    assert calls.call(lambda: 7) == 7
    calls.close()


class Unwanted:
    """A request whose result nobody can take: the loop that waited for it is closed."""

    def call(self) -> None:
        return None

    def give(self, _outcome: object) -> None:
        raise RuntimeError("Event loop is closed")


class Wanted(Unwanted):
    """A request whose result is taken."""

    def __init__(self) -> None:
        self.given = threading.Event()

    def give(self, _outcome: object) -> None:
        self.given.set()


def test_results_that_nobody_can_take_use_up_no_thread() -> None:
    """There are as many threads as before."""
    pool, last = ThreadPool("test-pool", 2), Wanted()
    for request in (Unwanted(), Unwanted(), Unwanted(), last):
        pool.submit(cast("Request", request))
    wait_until(last.given.is_set, "the last one is served")
    pool.close()


def test_a_listener_goes_on_after_an_error_that_nobody_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker would otherwise learn of new work only by its rare polls."""
    monkeypatch.setattr(listener, "FALLBACK_POLL", timedelta(milliseconds=1))
    monkeypatch.setattr(service_threads, "FIRST_PAUSE", 0.01)
    notified, left = threading.Event(), [RuntimeError("unexpected")]

    def make_request() -> None:
        if left:
            raise left.pop()

    class Calls:
        def close(self) -> None:
            pass

    make = cast("Callable[..., listener._ListenThread]", listener._ListenThread)  # noqa: SLF001 - from inside
    with make(Calls(), make_request, notified.set, timedelta(seconds=10)):
        wait_until(notified.is_set, "it polls, as Firestore has nothing to listen to")
