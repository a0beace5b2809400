"""A user may start a server's task only if they could have created it as it is; stopping it is theirs in any case."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cases import try_each
from tests.web.callers import DAY, RoleHarness

from cloudsched import App, Fail, Settings

STARTS: dict[str, object] = {
    "trigger": None,
    "retry": None,
    "backfill": {"start": "2027-01-01T00:00:00Z", "end": "2027-01-01T12:00:00Z"},
    "resume": None,
}
DAILY = {"rrule": "FREQ=DAILY", "dtstart": "2026-12-01T09:00:00"}


app = App(Settings())
"""Handlers that fail, one for users and one for servers, both tools, and one in the operator's queue."""
app.handler("open", access="users", tool=True, retry=False)(lambda: Fail("open"))
app.handler("closed", tool=True, retry=False)(lambda: Fail("closed"))


def create(roles: RoleHarness, **fields: Any) -> str:
    """Create a task for ada in a server's name that has run once, and failed."""
    task = {"title": "Theirs", "owner": "ada", "schedule": DAILY, **fields}
    created = roles.create_task("admin", task)
    roles.sim.advance(DAY)
    return str(created.json["id"])


def start(roles: RoleHarness, who: str, task_id: str, action: str) -> int:
    """Let a caller start a task, and return the status of the response."""
    return roles.ask(who, "POST", f"/v1/tasks/{task_id}/{action}", STARTS[action]).status_code


FOR_SERVERS: dict[str, dict[str, Any]] = {
    "a handler for servers": {"handler": "closed"},
    "a handler that only workers know": {"handler": "unknown", "pull": "theirs"},
    "a child for servers": {"children": [{"handler": "open"}, {"handler": "closed"}]},
    "a server's script": {"script": {"source": "return await tools.closed({})"}},
    "a server's script with a tool for servers": {"script": {"source": "throw 1", "tools": ["open", "closed"]}},
    "the operator's priority": {"handler": "open", "priority": "CRITICAL"},
    "an operator's queue": {"handler": "open", "pull": "theirs"},
    "an operator's lock": {"handler": "open", "lockKey": "press"},
    "a child with an operator's lock": {"children": [{"handler": "open", "lockKey": "press"}]},
}
"""What a server's task for ada may run, and ada may not ask for."""


@pytest.mark.parametrize("action", STARTS)
@try_each("fields", FOR_SERVERS.values())
def test_a_user_cannot_start_what_only_servers_may_ask_for(
    roles: RoleHarness, fields: dict[str, Any], action: str
) -> None:
    """Nothing of it runs, and nothing changes; its server may start it, and ada may stop it."""
    task_id = create(roles, **fields)
    if action == "resume":
        assert roles.ask("admin", "POST", f"/v1/tasks/{task_id}/pause").status_code == 200
    before = roles.fetch("admin", f"/v1/tasks/{task_id}")
    is_offered = action == "retry" and "pull" in fields  # it waits for a worker, and has not ended
    assert start(roles, "ada", task_id, action) == (409 if is_offered else 403)
    assert roles.fetch("admin", f"/v1/tasks/{task_id}") == before
    assert start(roles, "admin", task_id, action) == (409 if is_offered else 200)
    assert roles.ask("ada", "POST", f"/v1/tasks/{task_id}/cancel").status_code == 200
    assert roles.ask("ada", "DELETE", f"/v1/tasks/{task_id}").status_code == 204


def test_a_user_may_end_their_own_pause_only(roles: RoleHarness) -> None:
    """A server's pause stays a server's, also if the user pauses the task again; asking twice changes nothing."""
    task_id = create(roles, handler="closed")

    def ask(who: str, action: str) -> int:
        return roles.ask(who, "POST", f"/v1/tasks/{task_id}/{action}").status_code

    assert [ask("ada", action) for action in ("pause", "pause", "resume", "resume")] == [200] * 4
    assert [ask("admin", "pause"), ask("ada", "pause"), ask("ada", "resume")] == [200, 200, 403]
    assert [ask("admin", "resume"), ask("ada", "pause"), ask("admin", "pause"), ask("ada", "resume")] == [200] * 4
