"""``cloudsched dev`` as a program: around a command, alone, and when it is stopped."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.harness import WAIT_SECONDS, Process, process, request, still_running, wait_until

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
AS_A_CLIENT = """
from cloudsched import App, Context
app = App()
@app.handler("remind")
def remind(ctx: Context, payload: dict[str, str]) -> None: ...
parts = app.container
tea = app.create(owner="ada", title="Tea", handler="remind")
print(parts.settings.store, parts.clock.now().isoformat(), tea.status)
print(parts.settings.is_deployed, parts.settings.firestore_emulator)
app.close()
"""


JOINS = """
from cloudsched import App
app = App()
print(app.tasks().items[0].title)
app.close()
"""
HASHED_KEY = f"ops:admin:{'0' * 64}"


@pytest.mark.parametrize("code", [0, 7])
def test_the_exit_code_is_that_of_the_command(code: int, tmp_path: Path) -> None:
    """`cloudsched dev -- COMMAND` exits with what COMMAND exits with."""
    with process(*DEV, "--", sys.executable, "-c", f"raise SystemExit({code})", cwd=tmp_path) as dev:
        assert dev.wait() == code


def test_a_killed_or_missing_command_has_the_exit_code_of_a_shell(tmp_path: Path) -> None:
    """A command that a signal ends gives 128 plus the signal, a missing one 127."""
    for command, code in ((("sh", "-c", "kill -9 $$"), 137), (("no-such-command",), 127)):
        with process(*DEV, "--", *command, cwd=tmp_path) as dev:
            assert dev.wait() == code


def test_a_command_finds_the_stack_over_http(tmp_path: Path) -> None:
    """The command after -- finds the API and the clock in its environment, and its task runs."""
    with process(*DEV, "--", sys.executable, "-c", CREATE, cwd=tmp_path) as dev:
        assert (dev.wait(), dev.output.splitlines()[-1]) == (0, "['SUCCEEDED']")


@pytest.mark.parametrize(("keys", "access"), [("", "open: every caller is an admin"), (HASHED_KEY, "for callers who")])
def test_the_stack_prints_whether_it_is_open(keys: str, access: str, tmp_path: Path) -> None:
    """An open stack lets everyone name every handler, which users of the deployed API may not."""
    with process(*DEV, env={**os.environ, "CLOUDSCHED_API_KEYS": keys}, cwd=tmp_path) as dev:
        dev.wait_for("Ready")
        assert f"access       {access}" in dev.output


def test_the_stack_prints_where_its_dashboard_is(tmp_path: Path) -> None:
    """The address that it prints serves the page."""
    with process(*ALONE, cwd=tmp_path) as dev:
        dev.wait_for("Ready")
        (address,) = re.findall(r"^dashboard    (\S+)$", dev.output, re.MULTILINE)
        with urllib.request.urlopen(address, timeout=60) as page:  # noqa: S310 - our own
            assert b"<h1" in page.read()


def test_a_command_finds_the_stack_through_the_library(tmp_path: Path) -> None:
    """An app in the command's process uses the stack's store, queue and clock without any settings."""
    env = {**os.environ, "K_SERVICE": "left over", "FIRESTORE_EMULATOR_HOST": "127.0.0.1:1"}
    frozen = (*DEV, "--freeze", "2027-01-01T00:00:00Z")
    with process(*frozen, "--", sys.executable, "-c", AS_A_CLIENT, env=env, cwd=tmp_path) as dev:
        assert dev.wait() == 0, dev.output
        printed = [line for line in dev.output.splitlines() if line.startswith(("sqlite", "False"))]
        assert printed == ["sqlite 2027-01-01T00:00:00+00:00 ACTIVE", "False None"]


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_everything(signum: int, firestore_address: str, tmp_path: Path) -> None:
    """Ctrl-C or SIGTERM end the stack, its Firestore emulator, the command and all processes of the command."""
    assert firestore_address  # there is one to be found
    env = {name: value for name, value in os.environ.items() if name != "FIRESTORE_EMULATOR_HOST"}
    command = ("sh", "-c", "sleep 600 & echo begun; wait")
    with process(*CLOUDSCHED, "dev", "--store", "firestore", "--", *command, env=env, cwd=tmp_path) as dev:
        dev.wait_for("begun")
        family = dev.family()
        assert len(family) >= 4, "dev, java and its guard, sh, sleep"
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


def test_a_stack_without_a_command_runs_until_it_is_stopped(tmp_path: Path) -> None:
    """It prints its addresses, logs what runs with the time of its own clock, and exits with 0."""
    (tmp_path / "handlers.py").write_text(
        "from cloudsched import App\napp = App()\n@app.handler('greet')\ndef greet() -> str:\n    return 'hello'\n"
    )
    with process(*ALONE, "--freeze", "2027-01-01T00:00:00Z", cwd=tmp_path) as dev:
        dev.wait_for("Ready")
        assert "greet (handlers.py)" in dev.output
        assert dev.output.startswith("store        SQLite")
        url = dev.wait_for(r"API +(http://127\.0\.0\.1:\d+)/v1/tasks")[1]
        tasks = dev.wait_for(r"Cloud Tasks +(127\.0\.0\.1:\d+)")[1]
        assert request(url, "POST", "/v1/tasks", {"owner": "a", "title": "Hi", "handler": "greet"}).status == 201
        dev.wait_for(r"2027-01-01T00:00:00Z \S+ succeeded")  # at once: it has no time
        later = {"owner": "a", "title": "Hi", "handler": "greet", "schedule": {"at": "2027-01-01T00:05:00Z"}}
        assert request(url, "POST", "/v1/tasks", later).status == 201
        assert request(f"http://{tasks}", "POST", "/clock", {"advance": "PT6M"}).body["delivered"] == 1
        dev.wait_for(r"2027-01-01T00:05:00Z \S+ succeeded")
        dev.signal(signal.SIGINT)
        assert dev.wait() == 0


def test_a_hanging_handler_does_not_prevent_the_stack_from_stopping(tmp_path: Path) -> None:
    """Ctrl-C ends the stack within seconds although a handler is still running."""
    began = tmp_path / "began"
    (tmp_path / "handlers.py").write_text(
        "import pathlib, time\nfrom cloudsched import App\napp = App()\n@app.handler('hang')\n"
        f"def hang() -> None:\n    pathlib.Path({str(began)!r}).touch()\n    time.sleep(600)\n"
    )
    with process(*ALONE, cwd=tmp_path) as dev:
        dev.wait_for("Ready")
        url = dev.wait_for(r"API +(http://127\.0\.0\.1:\d+)/v1/tasks")[1]
        request(url, "POST", "/v1/tasks", {"id": "h", "owner": "a", "title": "Hi", "handler": "hang"})
        wait_until(began.exists, "the handler hangs")
        assert request(url, "GET", "/v1/tasks/h").body["isRunning"] is True, "the API answers meanwhile"
        dev.signal(signal.SIGINT)
        told_at = time.monotonic()
        assert dev.wait() == 0
        assert time.monotonic() - told_at < WAIT_SECONDS


@pytest.mark.parametrize(("exits", "says"), [("sys.exit('enough')", "enough"), ("os._exit(3)", r"os\._exit\(3\)")])
def test_a_handler_that_exits_ends_only_its_attempt(exits: str, says: str, tmp_path: Path) -> None:
    """Its record says what it did, and the stack goes on answering."""
    (tmp_path / "handlers.py").write_text(
        "import os, sys\nfrom cloudsched import App\napp = App()\n@app.handler('leave', retry=False)\n"
        f"def leave() -> None:\n    {exits}\n"
    )
    with process(*ALONE, cwd=tmp_path) as dev:
        url, _ = _ready(dev)
        request(url, "POST", "/v1/tasks", {"id": "l", "owner": "a", "title": "Hi", "handler": "leave"})
        dev.wait_for(rf"l failed \S+: SystemExit: {says}")
        (execution,) = request(url, "GET", "/v1/tasks/l/executions").body["executions"]
        assert (execution["status"], execution["error"]["type"]) == ("FAILED", "SystemExit")


def test_the_example_of_the_banner_runs_at_once(tmp_path: Path) -> None:
    """Pasted as it stands: the task runs now, its line is in the log, and its message where the banner says.

    A second terminal joins with the command of the banner.
    """
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    with process(*ALONE, env=env, cwd=tmp_path) as dev:
        _ready(dev)
        example = dev.wait_for(r"a task +(curl .+)")[1]
        look = dev.wait_for(r"\n +(curl \S+/v1/inboxes/\S+)")[1]
        _run_in_shell(example, env)
        dev.wait_for(r"succeeded")
        assert "It is ready." in _run_in_shell(look, env)
        join = dev.wait_for(r"(eval \"\$\(cloudsched dev --print-env --port \d+\)\")")[1]
        join = join.replace("cloudsched", " ".join(CLOUDSCHED))
        assert _run_in_shell(f"{join}; {sys.executable} -c '{JOINS}'", env) == "Tea\n"


def test_the_log_of_a_command_s_tasks_is_visible(tmp_path: Path) -> None:
    """With -- COMMAND the executor's lines are printed, and a lead time of the user's own wins over running at once."""
    env = {**os.environ, "CLOUDSCHED_DEFAULT_LEAD_SECONDS": "300"}
    with process(*DEV, "--", sys.executable, "-c", CREATE, env=env, cwd=tmp_path) as dev:
        assert dev.wait() == 0
        created, started = (re.search(rf"(\S+) tea {action}", dev.output) for action in ("created", "started"))
        assert created is not None, dev.output
        assert started is not None, dev.output
        lead = datetime.fromisoformat(started[1]) - datetime.fromisoformat(created[1])
        assert lead >= timedelta(minutes=4, seconds=58)


def test_changed_handlers_are_loaded_into_the_running_stack(tmp_path: Path) -> None:
    """With --reload the next task runs the new code, in the same stack with the same clock."""
    code = "from cloudsched import App\napp = App()\n@app.handler('greet')\ndef greet() -> str:\n    return 'one'\n"
    file = tmp_path / "handlers.py"
    file.write_text(code)
    with process(*ALONE, "--reload", "--freeze", "2027-01-01T00:00:00Z", cwd=tmp_path) as dev:
        url, _ = _ready(dev)
        file.write_text(code.replace("one", "another"))
        dev.wait_for("handlers loaded again: greet")
        request(url, "POST", "/v1/tasks", {"id": "g", "owner": "a", "title": "Hi", "handler": "greet"})
        dev.wait_for("g succeeded")
        (execution,) = request(url, "GET", "/v1/tasks/g/executions").body["executions"]
        assert (execution["content"], execution["scheduledFor"]) == ("another", "2027-01-01T00:00:00Z")


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


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--handlers", "nowhere.py"), "There is no file nowhere.py"),
        (("--handlers", "no.such.module"), "no.such.module cannot be imported"),
        (("--handlers", "json"), "json has no app"),
        (("--store", "firestore", "--data", "x"), "The Firestore emulator stores nothing on disk"),
    ],
)
def test_a_mistake_of_the_user_is_reported_in_one_line(arguments: tuple[str, ...], says: str, tmp_path: Path) -> None:
    """The line says what is wrong, and the exit code is 2."""
    with process(*CLOUDSCHED, "dev", *arguments, cwd=tmp_path) as dev:
        assert dev.wait() == 2
        assert dev.output.startswith("cloudsched: ")
        assert says in dev.output
        assert len(dev.output.splitlines()) == 1


def test_a_taken_port_is_reported(tmp_path: Path) -> None:
    """A second stack on the same port says so and exits with 2; the first one keeps running."""
    with process(*ALONE, cwd=tmp_path) as first:
        url, tasks = _ready(first)
        for option, address in (("--port", url), ("--tasks-port", tasks)):
            with process(*ALONE, option, address.rpartition(":")[2], cwd=tmp_path) as second:
                assert second.wait() == 2
                assert "cannot listen" in second.output.lower()
                assert len(second.output.splitlines()) == 1
        assert request(url, "GET", "/v1/tasks").status == 200


def _ready(dev: Process) -> tuple[str, str]:
    """Return the addresses of the API and of the local Cloud Tasks."""
    dev.wait_for("Ready")
    url = dev.wait_for(r"API +(http://127\.0\.0\.1:\d+)/v1/tasks")[1]
    return url, "http://" + dev.wait_for(r"Cloud Tasks +(127\.0\.0\.1:\d+)")[1]


def _run_in_shell(command: str, env: dict[str, str]) -> str:
    """Run a command line that the stack has printed; return its output."""
    return subprocess.run(["/bin/sh", "-c", command], check=True, capture_output=True, text=True, env=env).stdout  # noqa: S603 - ours
