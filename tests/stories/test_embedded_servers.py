"""The web app and cloudsched in one process: real servers with two workers each, killed and stopped."""

from __future__ import annotations

import os
import re
import signal
import sys
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from http.client import HTTPException
from typing import TYPE_CHECKING

import pytest
from tests.harness import ROOT, Process, free_port, process, request, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = (ROOT / "docs/how-to/embedded.md").read_text("utf-8")
_BLOCKS = re.findall(r"^```python\n# (?:handlers|service)\.py\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE)
HANDLERS, FASTAPI, FLASK, DJANGO = _BLOCKS
"""The page's code."""
OBSERVED = """
import os, time

def note(ctx, title, body):
    with open("ran.txt", "a") as file:
        file.write(f"{body} {os.getpid()}\\n")
    while body.startswith("slow") and not os.path.exists("go"):
        time.sleep(0.01)

def create(*, payload):
    task = app.create(id=payload.text, handler="remind", payload=payload)
    with open("created.txt", "a") as file:
        file.write(f"{task.id} {os.getpid()}\\n")
    return task

Context.notify, remind.create = note, create
"""
"""Notes which process created and which ran each task, in place of a message; one that is slow waits."""
DJANGO_PROJECT = """
from django.http import JsonResponse
from django.urls import path

ROOT_URLCONF, ALLOWED_HOSTS, SECRET_KEY = "project.settings", ["127.0.0.1"], "of a test"

def add_reminder(request):
    from handlers import Reminder, remind

    return JsonResponse({"id": remind.create(payload=Reminder.model_validate_json(request.body)).id}, status=201)

urlpatterns = [path("reminders", add_reminder)]
"""
UVICORN = ("-m", "uvicorn", "service:service", "--workers", "2", "--port")
GUNICORN = ("-m", "gunicorn", "service:service", "--workers", "2", "--threads", "4", "--bind")
SERVERS = {
    "uvicorn with FastAPI": (FASTAPI, UVICORN, ""),
    "gunicorn with Flask": (FLASK, GUNICORN, "127.0.0.1:"),
    "gunicorn with Django": (DJANGO, GUNICORN, "127.0.0.1:"),
}


@contextmanager
def serve(folder: Path, server: str) -> Iterator[tuple[Process, str]]:
    """Run a server in a folder; yield it and its address."""
    source, command, host = SERVERS[server]
    (folder / "handlers.py").write_text(HANDLERS + OBSERVED)
    (folder / "project").mkdir()
    (folder / "project/settings.py").write_text(DJANGO_PROJECT)
    (folder / "service.py").write_text(source)
    port = free_port()
    names = {"K_SERVICE", "CLOUDSCHED_API_KEYS", "GUNICORN_CMD_ARGS"}
    env = {name: value for name, value in os.environ.items() if name not in names}
    arguments = (sys.executable, *command, f"{host}{port}")
    with process(*arguments, env={**env, "CLOUDSCHED_OPEN": "on"}, cwd=folder) as running:
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: is_served(url), "it serves")
        yield running, url


def is_served(url: str) -> bool:
    with suppress(OSError, HTTPException):
        return request(url, "GET", "/scheduler/v1/tasks").status == 200
    return False


def add(url: str, name: str) -> bool:
    """Create a task; return whether it was, as no process may listen for a moment."""
    with suppress(OSError, HTTPException):
        return request(url, "POST", "/reminders", {"text": name}, {"Content-Type": "application/json"}).status == 201
    return False


def read_notes(file: Path, prefix: str) -> dict[str, int]:
    """Return the process that is noted last for each task."""
    lines = file.read_text().splitlines() if file.exists() else []
    return {name: int(pid) for name, pid in map(str.split, lines) if name.startswith(prefix)}


def load_record(url: str, name: str) -> dict[str, object]:
    (record,) = request(url, "GET", f"/scheduler/v1/tasks/{name}/executions").body["executions"]
    return dict(record)


@pytest.mark.parametrize("server", SERVERS)
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
        for name in names:
            record = load_record(url, name)
            due, started = (datetime.fromisoformat(str(record[name])) for name in ("scheduledFor", "startedAt"))
            assert started - due < timedelta(seconds=20), "handed over, not repaired by a sweep"
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
