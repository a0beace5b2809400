"""The threads of a worker outlive what is raised in them, and whoever waits for one hears of it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import cast

import pytest
from tests.engine.harness import SECOND
from tests.harness import wait_until

from cloudsched.adapters.firestore import listener
from cloudsched.engine.concurrency import service_threads
from cloudsched.worker.worker import BackgroundCalls


def test_an_exit_in_a_call_to_the_source_reaches_the_worker() -> None:
    """It waited for ever, since the thread had ended; the next call is made, too."""
    calls: BackgroundCalls[int] = BackgroundCalls()
    with pytest.raises(SystemExit):
        calls.call(lambda: sys.exit(3))
    assert calls.call(lambda: 7) == 7
    calls.close()


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
    with make(Calls(), make_request, notified.set, 10 * SECOND):
        wait_until(notified.is_set, "it polls, as Firestore has nothing to listen to")
