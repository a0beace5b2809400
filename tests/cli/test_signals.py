"""Signals: heard whichever thread of a command gets them, and not handled in processes forked from it."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from tests.harness import Process, process, run_to_end, wait_until

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
    done = run_to_end((sys.executable, "-c", FORKING), check=True)
    assert done.stdout.split("\n")[0] == "[-15] 20 True SIG_DFL", done.stderr


ELSEWHERE = """
import runpy, signal, sys, threading, time
threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # it goes to that thread, as it may on any machine
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""
SLEEPING = "import signal, time; signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM}); time.sleep(600)"


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="no thread can be without signals here")
def test_a_signal_is_heard_whichever_thread_gets_it(tmp_path: Path) -> None:
    """Every command that goes on until it is told to stop hears it; Python handles it in the main thread alone."""
    (tmp_path / "handlers.py").write_text(
        "from cloudsched import App, Context\napp = App()\n\n"
        "@app.handler('note')\ndef note(ctx: Context, payload: object): pass\n"
    )
    (tmp_path / "rows.py").write_text(
        "from handlers import app\nfrom sqlalchemy import create_engine\n"
        "from cloudsched.outbox.sqlalchemy import SqlalchemyOutbox\n"
        "outbox = SqlalchemyOutbox(create_engine('sqlite:///rows.db'), app)\noutbox.create_table()\n"
    )
    names = {name: value for name, value in os.environ.items() if not name.startswith("CLOUDSCHED_")}
    env = {**names, "CLOUDSCHED_OPEN": "on"}

    def run(*words: str) -> AbstractContextManager[Process]:
        return process(sys.executable, "-c", ELSEWHERE, *words, env=env, cwd=tmp_path)

    with run("cloudsched", "serve", "--port", "0", "--data", "data") as serving:
        url = serving.wait_for(r"API +(http://\S+)/v1/tasks")[1]
        commands = {
            "cloudsched emulator --port 0": r"127\.0\.0\.1:\d",
            "cloudsched dev --store sqlite --port 0 --tasks-port 0": "Ready",
            f"cloudsched worker --queue gpu --poll 600 --url {url}": "Ctrl-C stops it",
            f"cloudsched dashboard --url {url} --port 0": "Ctrl-C",
            "cloudsched outbox relay rows.py": "Ctrl-C stops it",
        }
        for command, ready in commands.items():
            with run(*command.split()) as running:
                running.wait_for(ready)
                time.sleep(0.5)  # until it waits
                running.signal(signal.SIGTERM)
                assert running.wait() in {0, 143}, (command, running.output)
        with run(
            "cloudsched",
            "dev",
            "--store",
            "sqlite",
            "--port",
            "0",
            "--tasks-port",
            "0",
            "--",
            sys.executable,
            "-c",
            SLEEPING,
        ) as running:
            wait_until(lambda: len(running.family()) > 1, running.output)
            running.signal(signal.SIGTERM)
            assert running.wait() == 143, running.output
        serving.signal(signal.SIGTERM)
        assert serving.wait() == 0, serving.output
