"""The Python of pages that no test of their own runs, each with what the page takes for granted."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import Mock

import httpx
import pytest
from pydantic import BaseModel
from tests.doc_blocks import read_blocks, read_section
from werkzeug.wrappers import Request, Response

from cloudsched import App, Context, EventSender, Execution, Settings, Task
from cloudsched.adapters.firestore.rising_ids import is_in_order
from cloudsched.client import Client
from cloudsched.config.access import Access
from cloudsched.config.settings import AssistantSettings
from cloudsched.local.wsgi_server import WebServer
from cloudsched.testing import Simulation
from cloudsched.web.auth.authentication import create_key
from cloudsched.web.auth.roles import Role
from cloudsched.web.functions import serve_api

DOCS = Path(__file__).parents[2] / "docs"
PAGES_WITH_TESTS = (
    "approvals.md", "agents.md", "scripts.md", "workers.md", "workflows.md",
    "workflows.md#Create a task when another one succeeds",
    "delivery.md", "quotas.md",
)  # fmt: skip
"""Pages, or their sections, whose first block is handlers, with a test of them."""
PAGES = {
    "plain-language.md", "calendars.md",
    "dashboard.md", "python.md", "access.md", "resources.md", "clients.md",
    "agents.md", "approvals.md", "testing.md", "retries-and-locks.md", "guarantees.md", "capacity.md",
    *PAGES_WITH_TESTS,
}  # fmt: skip


class Reminder(BaseModel):
    """What the handlers of several pages are given."""

    text: str = "Tea"


def read_python(page: str) -> list[str]:
    name, _, heading = page.partition("#")
    (path,) = DOCS.rglob(name)
    text = heading and read_section(path, heading)
    return [each.text for each in read_blocks(path) if each.language == "python" and (not text or each.text in text)]


def run(code: str, page: str, **names: Any) -> dict[str, Any]:
    """Run a block with names that the page has not defined; return all names."""
    exec(compile(code, page, "exec"), names)  # noqa: S102 - our own pages
    return names


@contextmanager
def serve(app: App) -> Iterator[tuple[str, str]]:
    """Serve an API with an admin's key; yield its URL and the key."""
    key, kept = create_key("docs", Role.ADMIN)
    with (
        Simulation(app, access=Access(api_keys=(str(kept),)), public_url="https://api.example.com") as sim,
        WebServer(Request.application(lambda request: serve_api(sim.app, request))) as server,
    ):
        server.serve()
        yield f"http://{server.address}", key


@pytest.fixture
def app(app: App) -> App:
    """Return an app with the handler that most pages use."""

    @app.handler("remind", access="users")
    def remind(reminder: Reminder) -> str:
        return reminder.text

    @app.handler("greet")
    def greet(payload: dict[str, str]) -> str:
        return payload["name"]

    return app


def test_declared_tasks_run() -> None:
    """The three schedules of the page are there, and run."""
    *_, code = read_python("guides/schedules.md")
    with Simulation(run(code, "schedules.md")["app"]) as sim:
        sim.advance(timedelta(days=7))
        assert len(sim.executions("clean-up-often")) >= 27
        assert len(sim.executions("clean-up-nightly")) == 7


def test_schedules_are_valid() -> None:
    """Each call of the page returns a schedule."""
    run(read_python("reference/schedules.md")[0], "schedules.md")


@pytest.mark.parametrize("page", PAGES_WITH_TESTS)
def test_the_test_of_a_page_is_green(page: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A newcomer who copies a block into its file, and the test of it beside it, sees it pass."""
    first, *others = read_python(page)
    tests = [each for each in others if each.startswith("# test_")] or others[-1:]
    (path,) = DOCS.rglob(page.partition("#")[0])
    scripts = [block.text for block in read_blocks(path) if block.language == "js"]
    monkeypatch.chdir(tmp_path)
    for test in tests:
        for name, script in zip(re.findall(r"[\w-]+\.js", test), scripts, strict=False):
            (tmp_path / name).write_text(script, "utf-8")
        (imported,) = re.findall(r"^from (\w+) import app", test, re.MULTILINE) or ["handlers"]
        handlers = next((each for each in others if each.startswith(f"# {imported}.py")), first)
        module = ModuleType(imported)
        monkeypatch.setitem(sys.modules, imported, module)
        exec(handlers, module.__dict__)  # noqa: S102 - our own page
        functions = [value for name, value in run(test, page, app=module.app).items() if name.startswith("test_")]
        assert functions
        for each in functions:
            each()


def test_the_hash_in_front_of_an_id_spreads_it() -> None:
    """The page's ids are allowed, no longer follow each other, and are the same for the same order."""
    (code,) = read_python("capacity.md")
    codes = [code.replace("1000001", f"{1_000_001 + number}") for number in range(200)]
    ids = [run(each, "capacity.md")["task_id"] for each in codes]
    assert not is_in_order(ids)
    assert run(code, "capacity.md")["task_id"] == ids[0]
    app = App(Settings())
    app.handler("ship")(lambda: None)
    with Simulation(app):
        assert app.create(id=ids[0], handler="ship").id == ids[0]


def test_two_tasks_share_a_lock() -> None:
    """Both tasks of the page have the key, and run."""
    names = run(read_python("retries-and-locks.md#Let tasks take turns")[0], "retries-and-locks.md")
    with Simulation(names["app"]) as sim:
        names["schedule_both"]()
        assert {task.lock_key for task in sim.app.tasks().items} == {"printer"}
        sim.advance(timedelta(days=1))
        assert [len(sim.executions(task.id)) for task in sim.app.tasks().items] == [1, 1]


def test_a_failure_is_retried_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    """As often as the page says, and then the hook is called."""
    names = run(read_python("retries-and-locks.md")[0], "retries-and-locks.md")
    names["call_bank"] = Mock(side_effect=ConnectionError)
    with Simulation(names["app"]) as sim:
        task = names["charge"].run_now()
        sim.advance(timedelta(hours=1))
        (execution,) = sim.executions(task.id)
    waits = [round((after.started_at - one.started_at).total_seconds()) for one, after in pairwise(execution.attempts)]
    assert all(least <= wait <= least * 1.1 for least, wait in zip([30, 60, 120, 240, 480], waits, strict=True))
    assert "failed: " in capsys.readouterr().out


def test_a_sentence_becomes_a_task() -> None:
    """Drafted and confirmed as on the page."""
    handlers, drafting = read_python("plain-language.md")
    with serve(run(handlers, "plain-language.md")["app"]) as (url, key):
        drafting = drafting.replace('"http://127.0.0.1:8080"', "url, key=key").replace(
            '", timezone', '", owner="ada", timezone'
        )
        assert run(drafting, "plain-language.md", url=url, key=key)["task"].handler == "remind"


def test_a_model_does_a_task() -> None:
    """The task of the page is accepted."""
    handlers, create, _ = read_python("agents.md")
    app = run(handlers, "agents.md")["app"]
    model: Any = SimpleNamespace(complete=lambda *_: {})
    with Simulation(app, language_model=model, assistant=AssistantSettings(is_on=True)):
        assert run(create, "agents.md", app=app)["task"].handler == "assistant"


def test_an_approval_is_waited_for() -> None:
    """The handler of the page asks, and goes on with the answer."""
    blocks = read_python("approvals.md")
    asking, answer = (each for each in blocks if each.startswith(("# renewals.py", "app.send_event")))
    app = run(asking, "approvals.md")["app"]
    with Simulation(app) as sim:
        task = app.create(owner="ada", handler="renewal", payload={"drug": "x"})
        sim.advance(timedelta(minutes=1))
        (question,) = sim.inbox("dr-grey")
        assert question.title == "Renew x?"
        run(answer, "approvals.md", app=app, task=task.id, run=question.execution_id, EventSender=EventSender)
        sim.advance(timedelta(minutes=1))
        assert [each.content for each in sim.executions(task.id)] == ["renewed by user:dr-grey"]


def test_mail_is_written_and_tested(app: App) -> None:
    """A task with channels is created, and a template returns HTML in which text is text."""
    handlers, create, watch, template, _ = read_python("delivery.md")
    said = run(f"{handlers}\n{watch}", "delivery.md")["watch"]
    assert (said(SimpleNamespace(text="enough")), said(SimpleNamespace(text="low"))) == (None, "Water: low")
    write = run(template, "delivery.md", app=app)["write_html"]
    assert "&lt;b&gt;" in write(SimpleNamespace(title="<b>", body="x"))
    with Simulation(app):
        run(create, "delivery.md", app=app)


def test_clients_do_as_the_pages_say(app: App, capsys: pytest.CaptureFixture[str]) -> None:
    """A task is created and changed, a feed is created and deleted, by the synchronous client and the other."""
    sync, both, acting, repeated, own = read_python("clients.md")
    (feeds,) = read_python("calendars.md")
    with serve(app) as (url, key):
        keyed = sync.replace("token=get_id_token", "key=key").replace('title="Greet",', 'owner="ada", title="Greet",')
        assert run(keyed, "clients.md", url=url, key=key)["task"].title == "Greet her"
        assert run(acting, "clients.md", client=Client(url, key=key))["task"].owner == "ada"
        names = run(own, "clients.md", Client=Client, url=url, key=key, company_certificates=True)
        names["client"].close()
        owned = repeated.replace('title="Greet",', 'owner="ada", title="Greet",')
        assert run(owned, "clients.md", client=Client(url, key=key))["task"].title == "Greet"
        saved: list[str] = []
        away = Client("http://127.0.0.1:1", max_retries=0)
        run(repeated, "clients.md", client=away, save_for_later=saved.append)
        assert [len(key) for key in saved] == [36]
        indented = "\n    ".join(both.splitlines())
        asyncio.run(run(f"async def main():\n    {indented}", "clients.md", url=url, key=key)["main"]())
        run(feeds.replace('"http://127.0.0.1:8080"', "url, key=key"), "calendars.md", url=url, key=key)
    assert "/v1/feeds/" in capsys.readouterr().out


def test_the_reference_of_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its examples build on each other, from top to bottom, beside an API."""
    monkeypatch.chdir(tmp_path)
    first, *others = read_python("reference/python.md")
    names = run(first, "python.md")
    with serve(names["app"]) as (url, key):
        run("\n".join(others), "python.md", **names, url=url, key=key)


def test_a_dashboard_can_be_mounted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page is a WSGI application."""
    monkeypatch.setitem(os.environ, "CLOUDSCHED_URL", "http://127.0.0.1:1")
    monkeypatch.setitem(os.environ, "CLOUDSCHED_KEY", create_key("page", Role.VIEWER)[0])
    assert callable(run(read_python("dashboard.md")[0], "dashboard.md")["page"])


def test_pytest_finds_the_fixtures(tmp_path: Path) -> None:
    """The two files of the page on tests, beside handlers, are a green run of pytest."""
    handlers = "from pydantic import BaseModel\nfrom cloudsched import App, Context\napp = App()\n"
    handlers += "class Reminder(BaseModel):\n    text: str\n"
    handlers += (
        "@app.handler('remind')\ndef remind(ctx: Context, reminder: Reminder):\n    ctx.notify('Tea', reminder.text)\n"
    )
    (tmp_path / "handlers.py").write_text(handlers)
    for code in read_python("testing.md"):
        (tmp_path / code.splitlines()[0].removeprefix("# ")).write_text(code)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)  # noqa: S603 - our own
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_hooks_and_decorators_are_accepted(app: App) -> None:
    """What the pages on alerts and on handlers for users put above a function."""
    run(read_python("dashboard.md")[1], "dashboard.md", app=app, Task=Task, Execution=Execution)
    run(read_python("access.md")[0] + "def other(): ...", "access.md", app=App(Settings()))
    run(read_python("guarantees.md")[0], "guarantees.md", app=app, Context=Context, Invoice=Reminder)


def test_the_emulator_moves_its_clock() -> None:
    """Ten days pass at once, and the task is delivered."""
    delivered: list[str] = []

    def take(request: Request) -> Response:
        delivered.append(request.path)
        return Response("ok")

    with WebServer(Request.application(take)) as target:
        target.serve()

        def create(address: str) -> None:
            queue = "projects/demo/locations/us-central1/queues/default"
            body = {
                "task": {"scheduleTime": _in_ten_days(address), "httpRequest": {"url": f"http://{target.address}/"}}
            }
            httpx.post(f"http://{address}/v2/{queue}/tasks", json=body).raise_for_status()

        run(read_python("resources.md")[0], "resources.md", create_a_reminder_in_ten_days=create)
    assert delivered == ["/"]


def _in_ten_days(address: str) -> str:
    now = datetime.fromisoformat(httpx.get(f"http://{address}/clock").json()["now"])
    return (now + timedelta(days=10)).isoformat().replace("+00:00", "Z")
