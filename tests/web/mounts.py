"""The services of the pages on web frameworks, as they stand there: each has a page of its own, and the scheduler."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import django
from pydantic import BaseModel
from tests.django_project import add_django_project, keep_environment
from tests.harness import ROOT

from cloudsched import App

Service = Callable[..., Any]
_BLOCK = re.compile(
    r"^### ([^\n ]*)(?: on Google Cloud)?\n(?:(?!^###? ).)*?```python\n(.*?)```", re.DOTALL | re.MULTILINE
)
BLOCKS: dict[str, str] = dict(_BLOCK.findall((ROOT / "docs/guides/web-frameworks.md").read_text("utf-8")))
"""The example of each framework, which serves a page of its own beside."""
for _name in ("FastAPI", "Flask"):
    BLOCKS[_name] += '\n@service.get("/own")\ndef own(): return {"own": "page"}\n'
_WSGI = Path(django.__file__).parent / "conf/project_template/project_name/wsgi.py-tpl"
BLOCKS["Django"] = _WSGI.read_text("utf-8").replace("{{ project_name }}", "project") + BLOCKS["Django"]
WSGI_FRAMEWORKS = ("Django", "Flask")
ASGI_FRAMEWORKS = tuple(sorted(set(BLOCKS) - set(WSGI_FRAMEWORKS)))


def make_service(framework: str, app: App, folder: Path) -> Service:
    """Return the service of an example, with this app in place of the one of ``handlers.py``."""
    handlers = ModuleType("handlers")
    vars(handlers).update(app=app, Reminder=BaseModel, remind=None)
    sys.modules["handlers"] = handlers
    if framework == "Django":
        add_django_project()
    if framework == "functions_framework.aio":
        return _make_function(BLOCKS[framework], folder)
    module = sys.modules["service"] = ModuleType("service")  # where frameworks look annotations up
    with keep_environment():
        exec(compile(BLOCKS[framework], f"web-frameworks.md, {framework}", "exec"), vars(module))  # noqa: S102 - our own page
    service: Service = vars(module).get("service") or vars(module)["application"]
    return service


def _make_function(source: str, folder: Path) -> Service:
    from functions_framework.aio import create_asgi_app  # noqa: PLC0415 - replaces handlers of the root logger

    (folder / "main.py").write_text(source)
    service: Service = create_asgi_app(target="serve", source=str(folder / "main.py"))  # type: ignore[no-untyped-call]
    return service
