"""Web apps that embed cloudsched, as their page shows them, under the servers that people use."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path

from tests.harness import ROOT, Process, free_port, process, request, wait_until

PAGE = (ROOT / "docs/guides/web-frameworks.md").read_text("utf-8")
_BLOCKS = re.findall(r"^```python\n# (?:handlers|service|project/\w+)\.py\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE)
HANDLERS, FASTAPI, FLASK, DJANGO_SETTINGS, DJANGO_URLS = _BLOCKS
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
SETTINGS = """
from pathlib import Path

BASE_DIR = Path(__file__).parents[1]
INSTALLED_APPS, MIDDLEWARE = [], ["django.middleware.common.CommonMiddleware"]
ROOT_URLCONF, ALLOWED_HOSTS, SECRET_KEY, DEBUG = "project.urls", ["127.0.0.1"], "of a test", True
WSGI_APPLICATION = "service.service"
CLOUDSCHED_PAGE = True
"""
URLS = """
from django.http import JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

@csrf_exempt
def add_reminder(request):
    from handlers import Reminder, remind

    return JsonResponse({"id": remind.create(payload=Reminder.model_validate_json(request.body)).id}, status=201)

urlpatterns = [path("reminders", add_reminder)]
"""
DJANGO = """
import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
if __name__ == "__main__":
    import sys

    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
else:
    from django.core.{kind} import get_{kind}_application

    service = get_{kind}_application()
"""
"""What `startproject` makes: `manage.py` and `wsgi.py` or `asgi.py` in one."""
UVICORN = ("-m", "uvicorn", "service:service", "--workers", "2", "--port", "{port}")
GUNICORN = ("-m", "gunicorn", "service:service", "--workers", "2", "--threads", "4", "--bind", "127.0.0.1:{port}")
SERVERS = {
    "uvicorn with FastAPI": (FASTAPI, UVICORN),
    "gunicorn with Flask": (FLASK, GUNICORN),
    "gunicorn with Django": (DJANGO.format(kind="wsgi"), GUNICORN),
}
MORE_SERVERS = {
    "gunicorn --preload with Flask": (FLASK, (*GUNICORN, "--preload")),
    "gunicorn --preload with Django": (DJANGO.format(kind="wsgi"), (*GUNICORN, "--preload")),
    "uvicorn with Django": (DJANGO.format(kind="asgi"), UVICORN),
}
DEVELOPMENT = {
    "uvicorn --reload": (FASTAPI, ("-m", "uvicorn", "service:service", "--reload", "--port", "{port}")),
    "flask --debug": (FLASK, ("-m", "flask", "--app", "service:service", "--debug", "run", "--port", "{port}")),
    "runserver": (DJANGO.format(kind="wsgi"), ("service.py", "runserver", "{port}")),
}
"""Servers that load the code again when it changes."""
OPEN = {"CLOUDSCHED_OPEN": "on"}


@contextmanager
def serve(folder: Path, server: str, access: Mapping[str, str] = OPEN) -> Iterator[tuple[Process, str]]:
    """Run a server in a folder, with settings of who may use the API; yield it and its address."""
    source, command = {**SERVERS, **MORE_SERVERS, **DEVELOPMENT}[server]
    write_service(folder, source)
    port = free_port()
    arguments = (sys.executable, *(each.format(port=port) for each in command))
    with process(*arguments, env=make_environment(access), cwd=folder) as running:
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: is_served(url), "it serves")
        yield running, url


def write_service(folder: Path, source: str) -> None:
    """Write the page's files into a folder, and what a Django project has."""
    (folder / "project").mkdir()
    files = {"handlers": HANDLERS + OBSERVED, "service": source}
    files |= {"project/settings": SETTINGS + DJANGO_SETTINGS, "project/urls": URLS + DJANGO_URLS}
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)


def make_environment(access: Mapping[str, str] = OPEN) -> dict[str, str]:
    """Return the variables of a server's process."""
    names = {"K_SERVICE", "CLOUDSCHED_API_KEYS", "GUNICORN_CMD_ARGS", "WERKZEUG_RUN_MAIN", "RUN_MAIN"}
    return {**{name: value for name, value in os.environ.items() if name not in names}, **access}


def is_served(url: str) -> bool:
    with suppress(OSError, HTTPException):
        return request(url, "GET", "/scheduler/health").status == 200
    return False
