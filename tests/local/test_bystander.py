"""A program that has cloudsched imports, forks, starts threads and sets up its interpreter as it likes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.harness import free_port, process, wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it has no fork")

WHILE_IMPORTED = """
import multiprocessing, threading
from pathlib import Path
from cloudsched import App

app = App()
forks = multiprocessing.get_context("fork")


def work():
    pass


def start():
    child = forks.Process(target=work)
    child.start()
    child.join()
    assert child.exitcode == 0


thread = threading.Thread(target=start)
thread.start()
thread.join()


def wsgi(_environ, respond):
    respond("200 OK", [])
    return [b""]


async def asgi(scope, receive, send):
    ...


Path("imported").touch()
"""
SERVERS = {
    "python": ("-c", "import main"),
    "serve": ("-m", "cloudsched", "serve", "--handlers", "main:app", "--data", "data", "--port", "{port}"),
    "uvicorn": ("-m", "uvicorn", "main:asgi", "--lifespan", "off", "--port", "{port}"),
    "gunicorn --preload": ("-m", "gunicorn", "main:wsgi", "--preload", "--bind", "127.0.0.1:{port}"),
}


@pytest.mark.parametrize("server", SERVERS)
def test_a_module_may_start_processes_from_a_thread_while_it_is_imported(tmp_path: Path, server: str) -> None:
    (tmp_path / "main.py").write_text(WHILE_IMPORTED)
    arguments = (each.format(port=free_port()) for each in SERVERS[server])
    home = {**os.environ, "HOME": str(tmp_path)}  # in which gunicorn leaves a socket
    with process(sys.executable, *arguments, cwd=tmp_path, env=home):
        wait_until((tmp_path / "imported").exists, "the module is imported", 30)


WHILE_ANOTHER_THREAD = """
import os, sys, threading
import cloudsched.app, cloudsched.client, cloudsched.local.embedded_app, cloudsched.testing
from pydantic import BaseModel

began, forked = threading.Event(), threading.Event()
sys.modules["events"] = sys.modules["__main__"]


class Slow:
    @classmethod
    def __get_pydantic_core_schema__(cls, _source, handler):
        began.set()
        forked.wait()
        return handler(int)


def build():
    class Model(BaseModel):
        slow: "Later"

    Model.model_rebuild(_types_namespace={"Later": Slow})


threading.Thread(target={"imports": lambda: __import__("slow"), "builds a model": build}[sys.argv[1]]).start()
began.wait()
if (child := os.fork()) == 0:
    first = cloudsched.domain.schedules.schedule.Schedule
    first(rrule="FREQ=DAILY", dtstart="2030-01-01T09:00:00")  # whose model waits for its first use
    os._exit(0)
forked.set()
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.parametrize("work", ["imports", "builds a model"])
def test_a_fork_does_not_wait_for_another_thread(tmp_path: Path, work: str) -> None:
    """That one is told to go on after the fork alone, so that a fork that waited for it would never end."""
    (tmp_path / "slow.py").write_text("import events\nevents.began.set()\nevents.forked.wait()\n")
    (tmp_path / "program.py").write_text(WHILE_ANOTHER_THREAD)
    command = [sys.executable, "program.py", work]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=30)  # noqa: S603 - this test's own program


UNCHANGED = """
import asyncio, atexit, builtins, decimal, faulthandler, gc, locale, logging, os, signal, socket, sys
import threading, warnings
import mcp, google.cloud.firestore, flask, jinja2, holidays  # those of others change what they like
import httpx, werkzeug, pydantic, tenacity

hooks = []
sys.addaudithook = hooks.append
register = os.register_at_fork
os.register_at_fork = lambda before=None, **after: (hooks.extend([before] if before else []), register(**after))


def look():
    return {
        "signals": [signal.getsignal(each) for each in signal.valid_signals()],
        "garbage": (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), gc.get_debug(), list(gc.callbacks)),
        "logging": (
            *(logging.root.handlers + logging.root.filters), logging.root.level, logging.root.manager.disable,
            logging.lastResort, logging.getLoggerClass(), logging.getLogRecordFactory(), logging.raiseExceptions,
        ),
        "warnings": (warnings.showwarning, *warnings.filters),
        "hooks": (sys.excepthook, sys.unraisablehook, threading.excepthook, sys.gettrace(), sys.getprofile(), *hooks),
        "imports": (*sys.meta_path, *sys.path_hooks, *sys.path, __import__, sys.dont_write_bytecode),
        "limits": (sys.getrecursionlimit(), sys.getswitchinterval(), sys.get_int_max_str_digits()),
        "output": (sys.stdout, sys.stderr, print, input),
        "defaults": (locale.setlocale(locale.LC_ALL), socket.getdefaulttimeout(), socket.getaddrinfo),
        "process": (dict(os.environ), os.getcwd(), atexit._ncallbacks(), threading.active_count()),
        "builtins": dict(vars(builtins)),
        "loops": type(asyncio.get_event_loop_policy()),
        "faults": faulthandler.is_enabled(),
        "numbers": str(decimal.getcontext()),
    }


before = look()
import cloudsched.app, cloudsched.client, cloudsched.testing, cloudsched.worker, cloudsched.web, cloudsched.agents
import cloudsched.adapters.firestore.store, cloudsched.local.service, cloudsched.outbox
from cloudsched import *
own = {hook for hook in hooks if hook.__module__ == "cloudsched.adapters.sqlite.database"}
hooks[:] = [hook for hook in hooks if hook not in own]
now = look()
assert before == now, {name: (before[name], now[name]) for name in now if before[name] != now[name]}
"""


def test_importing_it_changes_nothing_of_the_interpreter(tmp_path: Path) -> None:
    """Before a fork, our own database alone is held still: for as long as a thread adds to its queue."""
    (tmp_path / "program.py").write_text(UNCHANGED)
    subprocess.run([sys.executable, "program.py"], cwd=tmp_path, check=True, timeout=30)
