"""``cloudsched dev`` as a program: around a command, alone, and when it is stopped."""

import os
import re
import signal
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from tests.harness import Process, process, request, run_to_end, still_running, wait_until
from tests.instants import MINUTE

CLOUDSCHED = (sys.executable, "-m", "cloudsched")
DEV = (*CLOUDSCHED, "dev", "--store", "sqlite")
ALONE = (*DEV, "--port", "0", "--tasks-port", "0")
CREATE = """
import json, os, urllib.request

def ask(url, content=None):
    data = None if content is None else json.dumps(content).encode()
    return json.load(urllib.request.urlopen(url, data))

api, tasks = os.environ["CLOUDSCHED_URL"], "http://" + os.environ["CLOUD_TASKS_EMULATOR_HOST"]
ask(f"{api}/v1/tasks", {"id": "tea", "owner": "ada", "title": "Tea", "handler": "remind", "payload": {"text": "Now."}})
ask(f"{tasks}/clock", {"advance": "PT6M"})
print([execution["status"] for execution in ask(f"{api}/v1/tasks/tea/executions")["executions"]])
"""

JOINS = """
from cloudsched import App
app = App()
print(app.tasks().items[0].title)
app.close()
"""


def test_a_command_finds_the_stack_over_http(tmp_path: Path) -> None:
    """The command after -- finds the API and the clock in its environment, and its task runs.

    The executor's lines are printed. It runs at once, whatever the lead time of drafts is.
    """
    env = {**os.environ, "CLOUDSCHED_DEFAULT_LEAD_SECONDS": "300"}
    with process(*DEV, "--", sys.executable, "-c", CREATE, env=env, cwd=tmp_path) as dev:
        assert dev.wait() == 0
        assert "['SUCCEEDED']" in dev.output.splitlines()  # lines of the stack's log may come before and after it
        created, started = (re.search(rf"(\S+) tea {action}", dev.output) for action in ("created", "started"))
        assert created is not None, dev.output
        assert started is not None, dev.output
        lead = datetime.fromisoformat(started[1]) - datetime.fromisoformat(created[1])
        assert lead < 4 * MINUTE


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A stack with the package's examples, on ports of its own."""
    env = {**os.environ, "CLOUDSCHED_API_KEYS": ""}
    with process(*ALONE, env=env, cwd=tmp_path_factory.mktemp("stack")) as dev:
        dev.wait_for("Ready")
        yield dev


@pytest.mark.parametrize(("signum", "store"), [(signal.SIGINT, "firestore"), (signal.SIGTERM, "sqlite")])
def test_a_signal_stops_everything(signum: int, store: str, firestore_address: str, tmp_path: Path) -> None:
    """Ctrl-C or SIGTERM end the stack, its Firestore emulator, the command and all processes of the command."""
    assert firestore_address  # there is one to be found
    env = {name: value for name, value in os.environ.items() if name != "FIRESTORE_EMULATOR_HOST"}
    command = ("sh", "-c", "sleep 600 & echo begun; wait")
    with process(*CLOUDSCHED, "dev", "--store", store, "--", *command, env=env, cwd=tmp_path) as dev:
        dev.wait_for("begun")
        family = dev.family()
        assert len(family) >= (5 if store == "firestore" else 3), "dev, sh, sleep; java and its guard"
        dev.signal(signum)
        assert dev.wait() == 128 + signum
        wait_until(lambda: not still_running(family), "none of them is left")


SIGNALLED_AS_IT_BEGINS = """
import atexit, os, signal, subprocess, sys

class Popen(subprocess.Popen):
    def __init__(self, command, **options):
        if command[0] == "sleep" and moment == "before":
            os.kill(os.getpid(), signal.SIGINT)
        super().__init__(command, **options)
        if command[0] == "sleep":
            print("begun as", self.pid, flush=True)
            atexit.register(lambda: print("ended with", self.returncode, flush=True))
            if moment == "after":
                os.kill(os.getpid(), signal.SIGINT)

subprocess.Popen = Popen
from cloudsched.cli.main import main
moment = sys.argv[1]
sys.argv = ["cloudsched", "dev", "--store", "sqlite", "--", "sleep", "600"]
main()
"""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_signal_during_the_start_of_the_command_ends_it_too(moment: str, tmp_path: Path) -> None:
    """The signal arrives before the command's process id is known, and still reaches the command."""
    with process(sys.executable, "-c", SIGNALLED_AS_IT_BEGINS, moment, cwd=tmp_path) as dev:
        command = int(dev.wait_for(r"begun as (\d+)")[1])
        assert dev.wait() == 128 + signal.SIGINT, dev.output
        wait_until(lambda: not still_running({command}), "it has ended")
        assert f"ended with -{signal.SIGINT:d}\n" in dev.output


MISBEHAVING = """
import pathlib, sys, time
from cloudsched import App

app = App()

@app.handler("hang")
def hang() -> None:
    pathlib.Path("began").touch()
    time.sleep(600)

@app.handler("leave", retry=False)
def leave() -> None:
    sys.exit("enough")
"""
IMPATIENT = """
from cloudsched.cli.main import main
from cloudsched.local import wsgi_server
wsgi_server.GRACE_SECONDS = 0.1
main()
"""


def test_handlers_that_exit_or_hang_do_not_disturb_the_stack(tmp_path: Path) -> None:
    """The record of an exit says what the handler did, the API answers beside one that hangs, and Ctrl-C ends all."""
    (tmp_path / "handlers.py").write_text(MISBEHAVING)
    with process(sys.executable, "-c", IMPATIENT, *ALONE[len(CLOUDSCHED) :], cwd=tmp_path) as dev:
        url, _ = _ready(dev)
        request(url, "POST", "/v1/tasks", {"id": "leave", "owner": "a", "title": "Hi", "handler": "leave"})
        dev.wait_for(r"leave failed \S+ of .*: SystemExit: sys.exit\('enough'\)")
        (execution,) = request(url, "GET", "/v1/tasks/leave/executions").body["executions"]
        assert (execution["status"], execution["error"]["type"]) == ("FAILED", "SystemExit")
        request(url, "POST", "/v1/tasks", {"id": "h", "owner": "a", "title": "Hi", "handler": "hang"})
        wait_until((tmp_path / "began").exists, "the handler hangs")
        assert request(url, "GET", "/v1/tasks/h").body["isRunning"] is True, "the API answers meanwhile"
        dev.signal(signal.SIGINT)
        assert dev.wait() == 0


def test_the_example_of_the_banner_runs_at_once(stack: Process) -> None:
    """Pasted as it stands: the task runs now, its line is in the log, and its message where the banner says.

    A second terminal joins with the command of the banner.
    """
    example = stack.wait_for(r"a task +(curl .+)")[1]
    look = stack.wait_for(r"\n +(curl \S+/v1/inboxes/\S+)")[1]
    _run_in_shell(example)
    stack.wait_for(r"succeeded")
    assert "It is ready." in _run_in_shell(look)
    join = stack.wait_for(r"(eval \"\$\(.+ dev --print-env --port \d+\)\")")[1]
    assert _run_in_shell(f"{join}; {sys.executable} -c '{JOINS}'") == "Tea\n"


def test_data_survives_a_restart(tmp_path: Path) -> None:
    """With --data the next stack has the tasks of the previous one, and runs them at their instants."""
    at_noon = (*ALONE, "--data", "kept", "--freeze", "2027-01-01T12:00:00Z")
    with process(*at_noon, cwd=tmp_path) as dev:
        url = _ready(dev)[0]
        task = {"id": "tea", "owner": "ada", "title": "Tea", "handler": "remind", "payload": {"text": "Now."}}
        request(url, "POST", "/v1/tasks", {**task, "schedule": {"at": "2027-01-01T13:00:00Z"}})
    with process(*at_noon, cwd=tmp_path) as dev:
        url, tasks = _ready(dev)
        assert request(tasks, "POST", "/clock", {"advance": "P1D"}).body["delivered"] == 1
        (message,) = request(url, "GET", "/v1/inboxes/ada/messages").body["messages"]
        assert message["createdAt"] == "2027-01-01T13:00:00Z"


def _ready(dev: Process) -> tuple[str, str]:
    """Return the addresses of the API and of the local Cloud Tasks."""
    dev.wait_for("Ready")
    url = dev.wait_for(r"API +(http://127\.0\.0\.1:\d+)/v1/tasks")[1]
    return url, "http://" + dev.wait_for(r"Cloud Tasks +(127\.0\.0\.1:\d+)")[1]


def _run_in_shell(command: str) -> str:
    """Run a command line that the stack has printed; return its output."""
    return run_to_end(["/bin/sh", "-c", command], check=True).stdout
