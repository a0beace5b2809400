"""One story in a real browser: Chromium opens the page, its scripts read a schedule back, and a task is made.

Chromium is driven by its own protocol over a socket, so this needs nothing but the browser. Everything else that only a
browser can show is in `dashboard/browser`, which Playwright drives.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import requests
from tests.browsers import find_chromium, make_browser_environment
from tests.harness import WAIT_SECONDS, wait_until

from cloudsched.local.stack import Stack

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--disable-sync"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--remote-debugging-port=0"),
)
TYPE = """(name, text) => {
    const field = document.querySelector(`[name=${name}]`);
    field.value = text;
    field.dispatchEvent(new Event("input", {bubbles: true}));
}"""
READ_BACK = """() => {
    const preview = document.querySelector("#preview");
    const read = preview.querySelector("b")?.innerText ?? "";
    return preview.querySelectorAll("tbody tr").length === 10 && read.includes("09:00");
}"""


class Tab:
    """A page of the browser, in which a test evaluates functions."""

    def __init__(self, address: str) -> None:
        self._address = address

    def call(self, function: str, *arguments: str) -> Any:  # noqa: ANN401 - any JSON
        """Call a function of JavaScript in the page; return what it returns."""
        found = self._evaluate(function, *arguments)
        assert found.keys() == {"result"}, found
        return found["result"].get("value")

    def wait_for(self, function: str) -> None:
        """Wait until a function returns something that is true; while a page goes and the next one comes, it fails."""
        wait_until(lambda: self._evaluate(function).get("result", {}).get("value") is True, function)

    def _evaluate(self, function: str, *arguments: str) -> dict[str, Any]:
        given = ", ".join(map(json.dumps, arguments))
        return self._ask("Runtime.evaluate", expression=f"({function})({given})", returnByValue=True)

    def _ask(self, method: str, **params: object) -> dict[str, Any]:
        async def ask() -> dict[str, Any]:
            async with aiohttp.ClientSession() as session, session.ws_connect(self._address) as socket:
                await socket.send_json({"id": 1, "method": method, "params": params})
                while (answer := await socket.receive_json(timeout=WAIT_SECONDS)).get("id") != 1:
                    pass
                return dict(answer.get("result", {}))

        return asyncio.run(ask())


@pytest.fixture
def tab(ui: str, tmp_path: Path) -> Iterator[Tab]:
    """Chromium, at the page on which tasks are made."""
    command = [find_chromium(), *FLAGS, f"--user-data-dir={tmp_path}", f"{ui}/new?handler=report"]
    with (
        make_browser_environment() as environment,
        subprocess.Popen(  # noqa: S603 - Chromium
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as chromium,
    ):
        try:
            port = tmp_path / "DevToolsActivePort"
            wait_until(lambda: port.exists() and "\n" in port.read_text("utf-8"), "Chromium listens")
            where = f"http://127.0.0.1:{port.read_text('utf-8').partition(chr(10))[0]}/json"

            def find_page() -> str | None:
                with urllib.request.urlopen(where, timeout=WAIT_SECONDS) as answer:
                    pages = [each for each in json.load(answer) if each["type"] == "page" and ui in each["url"]]
                return pages[0]["webSocketDebuggerUrl"] if pages else None

            wait_until(find_page, "the page is opened")
            found = Tab(str(find_page()))
            found.wait_for("() => document.readyState === 'complete' && !!document.querySelector('[name=schedule]')")
            yield found
        finally:
            chromium.terminate()


def test_a_task_is_made_in_a_browser(tab: Tab, stack: Stack) -> None:
    """What is typed is read back by the page's scripts before anything is stored; then the form makes the task."""
    tab.call(TYPE, "title", "Made in a browser")
    tab.call(TYPE, "schedule", "every day at 9:00")
    tab.wait_for(READ_BACK)
    tab.call("() => document.querySelector('button[value=create]').click()")
    tab.wait_for("() => /Created\\./.test(document.body.innerText)")
    found = requests.get(f"{stack.url}/v1/tasks?handler=report&pageSize=500", timeout=WAIT_SECONDS).json()["tasks"]
    assert "Made in a browser" in {task["title"] for task in found}
