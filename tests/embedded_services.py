"""Web apps that embed cloudsched, as their page shows them, under the servers that people use."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path

from tests.harness import ROOT, Process, free_port, process, request, wait_until

PAGE = (ROOT / "docs/guides/web-frameworks.md").read_text("utf-8")
_BLOCKS = re.findall(r"^```python\n# (?:handlers|main|web|project/\w+)\.py\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE)
HANDLERS, FASTAPI, _, DJANGO_SETTINGS, DJANGO_URLS, _, _, FLASK = _BLOCKS
"""The page's code."""
ADD = "/users/ada/reminders?when=today"
OBSERVED = """
import os, time

def note(ctx, title, body):
    with open("ran.txt", "a") as file:
        file.write(f"{body} {os.getpid()}\\n")
    while body.startswith("slow") and not os.path.exists("go"):
        time.sleep(0.01)

def create(*, payload, **_):
    task = app.create(id=payload.text, handler="remind", payload=payload)
    with open("created.txt", "a") as file:
        file.write(f"{task.id} {os.getpid()}\\n")
    return task

Context.notify, remind.create = note, create
"""
"""Notes which process created and which ran each task, in place of a message; one that is slow waits."""
UVICORN = ("-m", "uvicorn", "--port", "{port}")
GUNICORN = ("-m", "gunicorn", "--workers", "2", "--threads", "4", "--bind", "127.0.0.1:{port}")
SERVERS = {
    "uvicorn with FastAPI": (*UVICORN, "main:service", "--workers", "2"),
    "gunicorn with Flask": (*GUNICORN, "web:service"),
    "gunicorn with Django": (*GUNICORN, "project.wsgi"),
}
MORE_SERVERS = {
    "gunicorn --preload with Flask": (*GUNICORN, "web:service", "--preload"),
    "gunicorn --preload with Django": (*GUNICORN, "project.wsgi", "--preload"),
    "uvicorn with Django": (*UVICORN, "project.asgi:application", "--workers", "2"),
}
DEVELOPMENT = {
    "uvicorn --reload": (*UVICORN, "main:service", "--reload"),
    "flask --debug": ("-m", "flask", "--app", "web", "--debug", "run", "--port", "{port}"),
    "runserver": ("manage.py", "runserver", "{port}"),
}
"""Servers that load the code again when it changes."""
OPEN = {"CLOUDSCHED_OPEN": "on"}


@contextmanager
def serve(folder: Path, server: str, access: Mapping[str, str] = OPEN) -> Iterator[tuple[Process, str]]:
    """Run a server in a folder, with settings of who may use the API; yield it and its address."""
    if not (folder / "manage.py").exists():
        write_service(folder)
    port = free_port()
    command = {**SERVERS, **MORE_SERVERS, **DEVELOPMENT}[server]
    arguments = (sys.executable, *(each.format(port=port) for each in command))
    with process(*arguments, env=make_environment(access), cwd=folder) as running:
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: is_served(url), "it serves")
        yield running, url


def write_service(folder: Path) -> None:
    """Write the page's files into a folder, those of Django into a new project."""
    command = [sys.executable, "-m", "django", "startproject", "project", str(folder)]
    subprocess.run(command, check=True)  # noqa: S603 - Django's own command
    files = {"handlers": HANDLERS + OBSERVED, "main": FASTAPI, "web": FLASK}
    files |= {"project/settings": f"{DJANGO_SETTINGS}CLOUDSCHED_PAGE = True\n", "project/urls": DJANGO_URLS}
    for name, text in files.items():
        with (folder / f"{name}.py").open("a", encoding="utf-8") as file:
            file.write(text)


def make_environment(access: Mapping[str, str] = OPEN) -> dict[str, str]:
    """Return the variables of a server's process."""
    names = {"K_SERVICE", "CLOUDSCHED_API_KEYS", "GUNICORN_CMD_ARGS", "WERKZEUG_RUN_MAIN", "RUN_MAIN"}
    return {**{name: value for name, value in os.environ.items() if name not in names}, **access}


def is_served(url: str) -> bool:
    with suppress(OSError, HTTPException):
        return request(url, "GET", "/scheduler/health").status == 200
    return False
