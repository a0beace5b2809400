"""The services of the pages on web frameworks, as they stand there: each has a page of its own, and the scheduler."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.django_project import add_django_project, keep_environment
from tests.harness import ROOT

from cloudsched import App

Service = Callable[..., Any]
DOCS = ROOT / "docs" / "how-to"
_BLOCK = re.compile(r"^## (\S[^\n]*)\n(?:(?!^## ).)*?```python\n(.*?)```", re.DOTALL | re.MULTILINE)
BLOCKS: dict[str, str] = dict(_BLOCK.findall((DOCS / "mounting.md").read_text("utf-8")))
for _name in ("FastAPI", "Flask", "Django"):
    BLOCKS[_name] = dict(_BLOCK.findall((DOCS / f"{_name.lower()}.md").read_text("utf-8")))["Mount it"]
"""The example of each framework."""
WSGI_FRAMEWORKS = ("Django", "Flask")
ASGI_FRAMEWORKS = tuple(sorted(set(BLOCKS) - set(WSGI_FRAMEWORKS)))


def make_service(framework: str, app: App, folder: Path) -> Service:
    """Return the service of an example, with this app in place of the one of ``handlers.py``."""
    handlers = ModuleType("handlers")
    handlers.app = app  # type: ignore[attr-defined]
    sys.modules["handlers"] = handlers
    if framework == "Django":
        add_django_project()
    if framework == "functions_framework.aio":
        return _make_function(BLOCKS[framework], folder)
    module = sys.modules["service"] = ModuleType("service")  # where frameworks look annotations up
    with keep_environment():
        exec(compile(BLOCKS[framework], f"docs/how-to, {framework}", "exec"), vars(module))  # noqa: S102 - our own page
    service: Service = module.service
    return service


def _make_function(source: str, folder: Path) -> Service:
    from functions_framework.aio import create_asgi_app  # noqa: PLC0415 - replaces handlers of the root logger

    (folder / "main.py").write_text(source)
    service: Service = create_asgi_app(target="serve", source=str(folder / "main.py"))  # type: ignore[no-untyped-call]
    return service
