"""What errors, warnings and answers advise is done once, and it helps.

The advice is found in the source: texts that tell somebody to write, use, give or pass something, or to run a command.
`advice.txt` beside this file has each, with code that is told this (``-``), and code that follows it (``+``). What is
below a line that begins with ``#`` is not followed here, for the reason in that line.
"""

from __future__ import annotations

import ast
import asyncio
import re
import shlex
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from tests.cases import try_each
from tests.cli.conftest import serve_api_of
from tests.harness import ROOT
from tests.stories.test_mistakes import Desk, Reminder, remind  # noqa: F401 - the table names them
from werkzeug.wrappers import Request

from cloudsched import AsyncApp
from cloudsched.agents.tools import AgentTools
from cloudsched.client import Client
from cloudsched.domain.responses.api_responses import CallerInfo
from cloudsched.web.functions import serve_api

VERB = re.compile(r"(?i)(?:^|[.;:,(] |\(|\bor |\band )(?:write|use|give|pass) |\brun (?:this|eval)|`cloudsched ")
LINES = Path(__file__).with_name("advice.txt").read_text("utf-8").splitlines()
ADVICE = {each for each in LINES if each[:2] not in {"", "# ", "- ", "+ "}}
ROWS = [(each, *LINES[at : at + 2]) for at, each in enumerate(LINES[:-1], 1) if LINES[at].startswith("- ")]
IMPORTS = """
from concurrent.futures import ThreadPoolExecutor
from datetime import *
from operator import add
from zoneinfo import ZoneInfo

from pydantic import SecretStr
from sqlalchemy import create_engine

from cloudsched import *
from cloudsched import language
from cloudsched.adapters.safe_http import require_reachable_url
from cloudsched.config.access import Access
from cloudsched.engine.ports.search import ExecutionQuery
from cloudsched.features.pull.fields import Pull
from cloudsched.local.embedded_app import Embedded
from cloudsched.outbox.sqlalchemy import SqlalchemyOutbox
from cloudsched.people.senders.mail import make_address
from cloudsched.people.senders.smtp import SmtpServer
from cloudsched.testing import Simulation
"""
"""What only the table names."""


def read(node: ast.AST) -> str:
    """Return the text of a literal, with `{}` for what is put into it."""
    if isinstance(node, ast.JoinedStr):
        return "".join(read(each) or "{}" for each in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def find_texts() -> set[str]:
    """Return the texts of one line in the source, but for docstrings."""
    found = set[str]()
    for path in (ROOT / "src").rglob("*.py"):
        nodes = [*ast.walk(ast.parse(path.read_text("utf-8")))]
        left = [part for each in nodes if isinstance(each, ast.JoinedStr) for part in each.values]
        left += [each.value for each in nodes if isinstance(each, ast.Expr)]
        texts = map(read, {*nodes} - {*left})
        found |= {each for each in texts if "\n" not in each}
    return found


def greet(payload: dict[str, Any]) -> None: ...


def open_names(run_command: Callable[..., Any], folder: Path) -> dict[str, Any]:
    """Return what the table names: an app in a simulation, and what asks it."""
    desk = Desk()
    app, sim = desk.app, desk.sim
    app.handler("greet", access="users")(greet)
    transport = httpx.WSGITransport(app=Request.application(partial(serve_api, app)))
    client = Client("http://localhost", key="k", transport=transport)

    def make(**fields: Any) -> str:
        return app.create(**{"handler": "greet", "owner": "ada"} | fields).id

    def flow(call: Any, status: str = "SUCCEEDED", **fields: Any) -> str:  # noqa: ANN401 - a handler
        desk.call = call
        task = make(handler="flow", **fields)
        sim.advance(timedelta(minutes=1))
        execution: Any = sim.executions(task)[0]
        if execution.status != status:
            raise RuntimeError(execution.error.message)
        return task

    def api(method: str, path: str, content: object = None, headers: Any = None) -> Any:  # noqa: ANN401 - JSON
        url = f"http://localhost/v1/{path}"
        response = httpx.Client(transport=transport).request(method, url, json=content, headers=headers)
        if response.is_error:
            raise RuntimeError(response.json())
        return response.text and response.json()

    def cli(line: str) -> None:
        with serve_api_of(app) as url:
            done = run_command(*shlex.split(line.replace("URL", url)))
        if done.code:
            raise RuntimeError(" ".join((done.out + done.err).split()))

    def tool(name: str, **arguments: Any) -> object:
        """Call a tool of an agent of ada's."""
        caller = CallerInfo(role="user", owner="ada", sees_all=False, may_change=True, now=sim.now)
        return asyncio.run(AgentTools(AsyncApp(app).acting_for("ada"), caller).call(name, arguments))

    names = {**globals(), **locals()}
    exec(IMPORTS, names)  # noqa: S102 - of our own table
    return names


def tell(code: str, names: dict[str, Any]) -> str:
    """Run a line of the table; return what was told, or nothing."""
    try:
        exec(code, names)  # noqa: S102 - our own
    except Exception as error:  # noqa: BLE001 - any is told
        return str(error)
    return str(names.pop("told", ""))


def test_all_advice_is_in_the_table() -> None:
    """New advice needs a row, or a reason why it is not followed."""
    assert {each for each in find_texts() if VERB.search(each)} - ADVICE == set()


@try_each("advice, mistake, remedy", ROWS)
def test_advice_that_is_followed_helps(
    advice: str, mistake: str, remedy: str, run_command: Callable[..., Any], tmp_path: Path
) -> None:
    """The mistake is told this, and what it advises is not refused."""
    names = open_names(run_command, tmp_path)
    with names["sim"]:
        told = tell(mistake[2:], names)
        assert re.search(".*".join(map(re.escape, re.split(r"\{.*?\}|%\.?\d?\w", advice))), told, re.DOTALL), told
        assert not (refusal := tell(remedy[2:], names)), refusal
