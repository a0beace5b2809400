"""Who may read what an execution has logged."""

from __future__ import annotations

import logging

import pytest
from tests.web.callers import MINUTE, ApiWorld

from cloudsched import App, Schedule, Settings
from cloudsched.errors import Misconfigured
from cloudsched.testing import START

log = logging.getLogger("tests.bank")


app = App(Settings())


@app.handler("inner", access="users")
def inner() -> None:
    log.warning("the password is hunter2")


@app.handler("outer", access="users", logs="owner")
def outer() -> None:
    log.warning("we thank you")


def test_owners_read_what_handlers_say_is_theirs(world: ApiWorld) -> None:
    """Admins read all, an owner what the handler opens, and nobody another's; no other answer has a line."""
    ids = {}
    for name in ("inner", "outer"):
        schedule = Schedule.once(START + MINUTE)
        ids[name] = world.sim.app.create(owner="ada", handler=name, schedule=schedule).id
    bobs = world.sim.app.create(owner="bob", handler="outer", schedule=Schedule.once(START + MINUTE)).id
    world.sim.advance(2 * MINUTE)

    def read(who: str, task_id: str) -> tuple[int, list[str]]:
        execution = world.sim.executions(task_id)[0].id
        answer = world.ask(who, f"/v1/tasks/{task_id}/executions/{execution}/logs", method="GET")
        return answer.status_code, [each["text"] for each in answer.json.get("lines", [])]

    assert read("root", ids["inner"]) == (200, ["the password is hunter2"])
    assert read("ada", ids["inner"]) == (403, [])
    assert read("ada", ids["outer"]) == (200, ["we thank you"])
    assert read("ada", bobs)[0] == 404
    for path in ("executions", f"tasks/{ids['inner']}/executions", f"tasks/{ids['inner']}"):
        for who in ("ada", "root"):
            text = world.ask(who, f"/v1/{path}", method="GET").text
            assert "hunter2" not in text
            assert '"log":' not in text
    none = world.ask("root", f"/v1/tasks/{ids['inner']}/executions/20270102T000000Z/logs", method="GET")
    assert none.status_code == 404


def test_an_unknown_reader_is_refused() -> None:
    """When the handler is registered."""
    with pytest.raises(Misconfigured, match="logs is"):
        App(Settings()).handler("h", logs="everybody")
