"""A handler that ends the process ends its attempt; the main thread and forked children can still exit."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable

from cloudsched.local.stack import guard_against_exits


def in_thread(function: Callable[[], object]) -> BaseException | None:
    """Call a function in a new thread, and return what it raises."""
    raised: list[BaseException] = []

    def work() -> None:
        try:
            function()
        except BaseException as error:  # noqa: BLE001 - what the test is about
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    return raised[0] if raised else None


def test_a_forked_child_ends_itself() -> None:
    """`multiprocessing` ends its children with `os._exit`, also those that a handler starts."""
    context = multiprocessing.get_context("fork")
    found: list[int | None] = []

    def fork() -> None:
        child = context.Process(target=os._exit, args=(5,))
        child.start()
        child.join(60)
        found.append(child.exitcode)

    with guard_against_exits():
        assert in_thread(fork) is None
    assert found == [5]
