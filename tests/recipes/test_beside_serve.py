"""The code of docs/guides/web-frameworks.md does the same with the app as with a client of what serves it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.harness import ROOT
from tests.instants import MINUTE, SECOND

from cloudsched import App, AppLike, Settings
from cloudsched.client import Client
from cloudsched.config.access import Access
from cloudsched.errors import CloudschedError, InvalidInput, NotAllowed, NotFound
from cloudsched.local.service import Service, run_service

PAGE = (ROOT / "docs/guides/web-frameworks.md").read_text("utf-8")
(CODE,) = re.findall(r"```python\n# scheduling\.py\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    app = App(Settings())

    @app.handler("remind", access="users")
    def remind(payload: dict[str, str]) -> str:
        return payload["text"]

    with run_service(app, Settings(access=Access(open=True)), data=tmp_path / "data") as service:
        yield service


@pytest.fixture(params=["the app", "a client"])
def names(request: pytest.FixtureRequest, service: Service, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The page's functions, in a process that has the app, and in one that is beside it."""
    handlers = ModuleType("handlers")
    vars(handlers)["app"] = service.app
    monkeypatch.setitem(sys.modules, "handlers", handlers)
    monkeypatch.delenv("SCHEDULER_URL", raising=False)
    if request.param == "a client":
        monkeypatch.setenv("SCHEDULER_URL", service.url)
    names: dict[str, Any] = {}
    exec(CODE, names)  # noqa: S102 - our own page
    assert isinstance(names["connect"](), Client) == (request.param == "a client")
    return names


def test_the_pages_code_creates_and_cancels(names: dict[str, Any], service: Service) -> None:
    """By either way, the task is stored alike."""
    tasks = names["connect"]()
    task_id = names["remind_tomorrow"](tasks, "ada", "Stretch")
    stored = service.app.get(task_id)
    assert (stored.owner, stored.handler, stored.payload, stored.title) == (
        "ada",
        "remind",
        {"text": "Stretch"},
        "remind",
    )
    assert names["stop_reminding"](tasks, task_id)
    assert service.app.get(task_id).status == "CANCELLED"


def test_both_do_and_refuse_the_same(names: dict[str, Any]) -> None:
    """Each method that they have in common, in one life of a task; and the errors."""
    tasks: AppLike = names["connect"]()
    given: dict[str, Any] = {"handler": "remind", "payload": {"text": "x"}, "owner": "ada"}
    seen: list[str] = [tasks.create(id="a", schedule="every day at 9:00", **given).status]
    seen += [tasks.create(id="a", schedule="every day at 9:00", **given).status]
    seen += [tasks.update("a", title="Daily").title, tasks.get("a").title]
    seen += [tasks.pause("a").status, tasks.resume("a").status, tasks.trigger("a").status]
    seen += [tasks.run_now("remind", {"text": "now"}, id="b", owner="ada").owner, tasks.cancel("a").status]
    assert seen == ["ACTIVE", "ACTIVE", "Daily", "Daily", "PAUSED", "ACTIVE", "ACTIVE", "ada", "CANCELLED"]
    tasks.create(id="c", schedule="every day at 9:00", title="Daily stretch", **given)
    second = tasks.upcoming("c", 2)[1]
    tasks.skip("c")
    assert tasks.upcoming("c", 1) == [second]
    tasks.move("c", "next", "9:30", idempotency_key="by-half-an-hour")
    tasks.move("c", "next", "9:30", idempotency_key="by-half-an-hour")
    assert tasks.upcoming("c", 1) == [second + 30 * MINUTE]
    assert tasks.explain("c").status == "ACTIVE"
    assert [each.id for each in tasks.search("stretch", owner="ada")] == ["c"]
    assert tasks.history("c").entries[0].action == "MOVED"
    assert tasks.pause("c", until="in 3 days").paused_until is not None
    assert tasks.wait("b", 30 * SECOND).content == "now"
    assert tasks.acting_for("ada").get("c").title == "Daily stretch"
    tasks.delete("a")
    refusals: list[tuple[type[CloudschedError], str, tuple[object, ...], dict[str, Any]]] = [
        (NotFound, "get", ("a",), {}),
        (NotFound, "delete", ("a",), {}),
        (NotFound, "snooze", ("a", "10 minutes"), {}),
        (InvalidInput, "create", (), {**given, "schedule": "every blue moon"}),
        (InvalidInput, "update", ("b",), {"max_runs": -1}),
        (NotAllowed, "resume", ("never-paused",), {}),
    ]
    tasks.create(id="never-paused", schedule="in 3 days", **given)
    tasks.cancel("never-paused")
    for kind, method, arguments, fields in refusals:
        with pytest.raises(kind):
            getattr(tasks, method)(*arguments, **fields)
