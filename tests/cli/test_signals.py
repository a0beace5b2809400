"""Signals that a command handles in its own process, but not in processes forked from it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

FORKING = """
import multiprocessing, os, signal, sys, threading, time
from cloudsched.cli.signals import SIGNALS, signal_handlers

heard_of, codes = [], []

def stay(running):
    running.set()
    time.sleep(600)

def fork():
    context = multiprocessing.get_context("fork")
    for waits in [False, True] * 10:
        running = context.Event()
        child = context.Process(target=stay, args=(running,))
        child.start()
        if waits:
            running.wait(60)
        child.terminate()
        child.join(60)
        codes.append(child.exitcode)
        if child.exitcode is None:
            child.kill()
            break

with signal_handlers(lambda signum, frame: heard_of.append(signum), SIGNALS):
    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(1000):
        if not heard_of:
            time.sleep(0.01)
print(sorted(set(codes)), len(codes), heard_of == [signal.SIGTERM], signal.getsignal(signal.SIGTERM).name)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
def test_a_forked_process_ends_on_terminate() -> None:
    """`terminate` ends a handler's child at any moment, while the command itself still handles its signals."""
    done = subprocess.run(  # noqa: S603 - our own
        (sys.executable, "-c", FORKING), capture_output=True, text=True, check=True, timeout=240
    )
    assert done.stdout.split("\n")[0] == "[-15] 20 True SIG_DFL", done.stderr
