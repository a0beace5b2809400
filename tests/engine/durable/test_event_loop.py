"""A coroutine that blocks the event loop holds up neither the coroutines of others nor the threads that wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from tests.harness import WAIT_SECONDS

from cloudsched.engine.durable import event_loop
from cloudsched.engine.durable.event_loop import handlers_loop, run_coroutine
from cloudsched.engine.durable.suspension import Suspended


@pytest.fixture
def blocked(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Block the loop by a coroutine, until the event is set."""
    monkeypatch.setattr(event_loop, "BLOCKED_SECONDS", 0.05)
    release, begun = threading.Event(), threading.Event()

    async def block() -> None:
        begun.set()
        release.wait(WAIT_SECONDS)

    thread = threading.Thread(target=run_coroutine, args=(block,))
    thread.start()
    assert begun.wait(WAIT_SECONDS)
    yield release
    release.set()
    thread.join(WAIT_SECONDS)


def test_what_waits_for_a_blocked_loop_is_put_off_and_costs_no_attempt(blocked: threading.Event) -> None:
    before = handlers_loop()
    with pytest.raises(Suspended, match="kept the event loop from turning"):
        run_coroutine(lambda: asyncio.sleep(0))
    assert handlers_loop() is not before
    assert run_coroutine(lambda: asyncio.sleep(0, "well")) == "well"
    blocked.set()
    before.join(WAIT_SECONDS)
    assert not before.is_alive(), "the loop that was blocked ends once it turns"
