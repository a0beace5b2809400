"""The code of pages in docs/guides, as modules of the names that its first lines give."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import httpx
import pytest
from tests.doc_blocks import read_section
from tests.harness import ROOT

Load = Callable[..., ModuleType]

_BLOCK = re.compile(r"```python\n# (\w+)\.py\n(.*?)```", re.DOTALL)


def read_code(page: str) -> dict[str, str]:
    """Return the code of a page, or of its section (``page.md#Heading``), by the names of its modules."""
    name, _, heading = page.partition("#")
    path = ROOT / "docs" / "guides" / name
    return dict(_BLOCK.findall(read_section(path, heading) if heading else path.read_text("utf-8")))


def post(service: Any, path: str, **request: Any) -> httpx.Response:  # noqa: ANN401 - an application of some framework
    """Return an ASGI application's answer."""

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app=service)
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            return await client.post(path, **request)

    return asyncio.run(send())


@pytest.fixture(name="load")
def load_code(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Run a block of a page as the module that it is."""

    def load(page: str, name: str) -> ModuleType:
        module = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        code = compile(read_code(page)[name], f"docs/guides/{page}, {name}.py", "exec")
        exec(code, vars(module))  # noqa: S102 - our own page
        return module

    return load
