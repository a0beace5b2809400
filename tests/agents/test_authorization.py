"""Who may use the tools over HTTP: nobody without the bearer key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.agents.conftest import BEARER, http_agent, serve_http
from tests.agents.test_tools import NEW, ZONE
from tests.cli import conftest as cli_conftest
from tests.cli.conftest import CommandResult
from werkzeug.wrappers import Request

from cloudsched import App
from cloudsched.agents.command import require_bearer
from cloudsched.errors import Misconfigured
from cloudsched.testing import Simulation
from cloudsched.web.functions import serve_api

PING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
ACCEPT = {"Accept": "application/json, text/event-stream"}


def post(address: str, token: str | None, scheme: str = "Bearer") -> httpx.Response:
    headers = {**ACCEPT, **({} if token is None else {"Authorization": f"{scheme} {token}"})}
    return httpx.post(address, json=PING, headers=headers, timeout=60)


@pytest.mark.parametrize("token", [None, "wrong", BEARER[:-1], BEARER + "x", BEARER.upper()])
def test_without_the_bearer_key_nothing_is_answered(url: str, token: str | None) -> None:
    """401, whatever else is sent; the key itself is let in."""
    with serve_http(url, BEARER) as address:
        refused = post(address, token)
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert post(address, BEARER, "Basic").status_code == 401
        assert post(address, BEARER, "bearer").status_code == 200  # a scheme has no case (RFC 9110, section 11.1)
        assert http_agent(address, BEARER).call("list_tasks", timezone=ZONE)["tasks"] == []


def test_a_key_that_can_be_guessed_is_refused(run_command: Callable[..., CommandResult]) -> None:
    """So is HTTP that is open to everybody."""
    with pytest.raises(Misconfigured, match="16"):
        require_bearer(lambda *_: None, "short")  # type: ignore[arg-type]
    assert "--bearer" in run_command("mcp", "--http").err


def test_the_key_is_not_passed_on(sim: Simulation, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No request to the API has the caller's key, in any header or anywhere in its address."""
    seen: list[str] = []

    def record(app: App, request: Request) -> Any:  # noqa: ANN401 - whatever it answers
        seen.append(f"{request.method} {request.url} {dict(request.headers)}")
        return serve_api(app, request)

    monkeypatch.setattr(cli_conftest, "serve_api", record)
    with serve_http(url, BEARER) as address:
        http_agent(address, BEARER).call("create_task", **NEW)
    assert len(sim.app.tasks().items) == 1
    assert any(each.startswith("POST") for each in seen)
    assert not [each for each in seen if BEARER in each]


def test_a_user_gets_no_more_than_the_front_door_gives(sim: Simulation, url: str) -> None:
    """Whatever the server's own key may do: handlers for servers, and the name of the server itself."""
    with serve_http(url, BEARER, "ada") as address:
        ada = http_agent(address, BEARER)
        assert "audit" in ada.call("create_task", **{**NEW, "handler": "audit", "payload": {}})
        assert sim.app.tasks().items == []
        created = ada.call("create_task", **NEW)["task_id"]
        assert (task := sim.app.get(created)).defined_by == "users"
        assert [(each.by.subject, each.by.via) for each in task.history if each.by] == [("user:ada", "anybody")]
