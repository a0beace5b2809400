"""The web app and cloudsched in one process: real servers with two workers each, killed and stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from datetime import datetime
from http.client import HTTPException
from pathlib import Path

import pytest
from tests.embedded_services import (
    ADD,
    DEVELOPMENT,
    MORE_SERVERS,
    SERVERS,
    is_served,
    make_environment,
    serve,
    write_service,
)
from tests.harness import request, wait_until
from tests.instants import SECOND


def add(url: str, name: str) -> bool:
    """Create a task; return whether it was, as no process may listen for a moment."""
    with suppress(OSError, HTTPException):
        return request(url, "POST", ADD, {"text": name}, {"Content-Type": "application/json"}).status == 201
    return False


def read_notes(file: Path, prefix: str) -> dict[str, int]:
    """Return the process that is noted last for each task."""
    lines = file.read_text().splitlines() if file.exists() else []
    return {name: int(pid) for name, pid in map(str.split, lines) if name.startswith(prefix)}


def load_record(url: str, name: str) -> dict[str, object]:
    (record,) = request(url, "GET", f"/scheduler/v1/tasks/{name}/executions").body["executions"]
    return dict(record)


@pytest.mark.parametrize("server", [*SERVERS, *MORE_SERVERS])
def test_one_of_the_workers_runs_what_all_of_them_create(server: str, tmp_path: Path) -> None:
    """What the others create runs at once; when the one that runs is killed, another goes on with all of it."""
    ran, created = tmp_path / "ran.txt", tmp_path / "created.txt"
    with serve(tmp_path, server) as (running, url):
        names: list[str] = []

        def have_both_created() -> bool:
            names.append(f"n-{len(names)}")
            return add(url, names[-1]) and len(names) >= 20 and len(set(read_notes(created, "n-").values())) == 2

        wait_until(have_both_created, "both workers have created some")
        wait_until(lambda: len(read_notes(ran, "n-")) == len(names), "all have run")
        (runner,) = set(read_notes(ran, "n-").values())
        assert runner != running.pid, "the process that starts the workers runs nothing"
        for name in names:
            record = load_record(url, name)
            due, started = (datetime.fromisoformat(str(record[name])) for name in ("scheduledFor", "startedAt"))
            assert started - due < 20 * SECOND, "handed over, not repaired by a sweep"
        assert add(url, "slow")
        wait_until(lambda: "slow" in read_notes(ran, "slow"), "it runs")
        os.kill(runner, signal.SIGKILL)
        wait_until(lambda: read_notes(ran, "slow")["slow"] != runner, "another process goes on with it")
        (tmp_path / "go").touch()
        wait_until(lambda: is_served(url) and load_record(url, "slow")["status"] == "SUCCEEDED", "it has run")
        wait_until(lambda: add(url, "after"), "it creates")
        wait_until(lambda: "after" in read_notes(ran, "after"), "what is created now runs")
        running.signal(signal.SIGTERM)
        assert running.wait() in {0, -signal.SIGTERM}, running.output


@pytest.mark.parametrize("server", DEVELOPMENT)
def test_a_development_server_runs_tasks_with_the_code_as_it_is(server: str, tmp_path: Path) -> None:
    """The process that watches the files runs nothing; once they have changed, the new code runs what is due."""
    ran, handlers = tmp_path / "ran.txt", tmp_path / "handlers.py"
    (tmp_path / "watchdog.py").write_text("raise ImportError")  # loses changes when much else is written
    with serve(tmp_path, server) as (running, url):
        assert add(url, "before")
        wait_until(lambda: "before" in read_notes(ran, "before"), "it has run")
        first = read_notes(ran, "before")["before"]
        assert first != running.pid
        handlers.write_text(handlers.read_text().replace('f"{body} ', 'f"new-{body} '))
        created: list[str] = []

        def is_new() -> bool:
            name = f"n-{len(created)}"
            if add(url, name):
                created.append(name)
            return bool(read_notes(ran, "new-"))

        wait_until(is_new, "the new code runs")
        (second,) = set(read_notes(ran, "new-").values())
        assert second not in {first, running.pid}
        wait_until(lambda: {name.removeprefix("new-") for name in read_notes(ran, "n")} >= set(created), "all have run")
        running.signal(signal.SIGINT)
        running.wait()


def test_a_management_command_creates_and_runs_nothing(tmp_path: Path) -> None:
    """Django's commands take no part but for what they create, which a server then runs."""
    server = "gunicorn with Django"
    write_service(tmp_path)
    code = "from handlers import Reminder, remind; remind.create(payload=Reminder(text='by-hand'))"
    for command in (["check"], ["shell", "-c", code]):
        subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "manage.py", *command], cwd=tmp_path, env=make_environment(), check=True, timeout=60
        )
        assert (tmp_path / "data").exists() == (command[0] == "shell")
    assert not (tmp_path / "ran.txt").exists()
    with serve(tmp_path, server):
        wait_until(lambda: "by-hand" in read_notes(tmp_path / "ran.txt", "by-hand"), "it runs")
