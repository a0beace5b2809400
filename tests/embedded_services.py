"""Web apps that embed cloudsched, as their page shows them, under the servers that people use."""

from __future__ import annotations

import os
import re
import sys
from contextlib import contextmanager, suppress
from http.client import HTTPException
from typing import TYPE_CHECKING

from tests.harness import ROOT, Process, free_port, process, request, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
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
OPEN = {"CLOUDSCHED_OPEN": "on"}


@contextmanager
def serve(folder: Path, server: str, access: Mapping[str, str] = OPEN) -> Iterator[tuple[Process, str]]:
    """Run a server in a folder, with settings of who may use the API; yield it and its address."""
    source, command, host = SERVERS[server]
    (folder / "handlers.py").write_text(HANDLERS + OBSERVED)
    (folder / "project").mkdir()
    (folder / "project/settings.py").write_text(DJANGO_PROJECT)
    (folder / "service.py").write_text(source)
    port = free_port()
    names = {"K_SERVICE", "CLOUDSCHED_API_KEYS", "GUNICORN_CMD_ARGS"}
    env = {name: value for name, value in os.environ.items() if name not in names}
    arguments = (sys.executable, *command, f"{host}{port}")
    with process(*arguments, env={**env, **access}, cwd=folder) as running:
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: is_served(url), "it serves")
        yield running, url


def is_served(url: str) -> bool:
    with suppress(OSError, HTTPException):
        return request(url, "GET", "/scheduler/healthz").status == 200
    return False
