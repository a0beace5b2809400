"""Who may use the tools over HTTP: whom the API lets in, and each with the rights of their own key alone."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest
from tests.agents.conftest import KEYS, http_agent, serve_http
from tests.agents.test_tools import NEW
from tests.cli.conftest import CommandResult, serve_api_of
from tests.drafts_app import make_app
from tests.web.auth.test_authentication import make_unsigned_token
from tests.web.auth.token_issuer import PROJECT, user_claims
from tests.web.callers import clear_authenticators

from cloudsched.agents.command import read_credential
from cloudsched.config.access import Access
from cloudsched.testing import Simulation

PING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
ACCEPT = {"Accept": "application/json, text/event-stream"}


def post(address: str, **headers: str) -> httpx.Response:
    return httpx.post(address, json=PING, headers={**ACCEPT, **headers}, timeout=60)


def test_without_a_key_of_the_api_nothing_is_answered(url: str) -> None:
    """401, whatever else is sent. Both ways to send a key are let in."""
    with serve_http(url) as address:
        for wrong in (
            "Bearer",
            "Bearer wrong",
            f"Basic {KEYS['ada']}",
            f"Bearer {KEYS['ada'].upper()}",
            "Bearer a.b.c",
        ):
            refused = post(address, Authorization=wrong)
            assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer"), wrong
        assert post(address).status_code == 401
        assert post(address, Authorization=f"bearer {KEYS['ada']}").status_code == 200
        assert post(address, **{"X-Api-Key": KEYS["ada"]}).status_code == 200
        assert post(address.replace("/mcp", "/else"), Authorization=f"bearer {KEYS['ada']}").status_code == 404


def test_other_sites_are_refused(url: str) -> None:
    """A page in a browser of this machine can name neither another host nor another origin."""
    with serve_http(url) as address:
        key = {"Authorization": f"Bearer {KEYS['ada']}"}
        assert post(address, **key, Host="evil.example").status_code == 421
        assert post(address, **key, Origin="https://evil.example").status_code == 403


def test_one_server_serves_many_people(sim: Simulation, url: str) -> None:
    """Each has their own tasks and their own zone. The history names who it was."""
    with serve_http(url) as address:
        ada = http_agent(address, KEYS["ada"])
        bob = http_agent(address, KEYS["bob"])
        ada.call("i_am_in", zone="Europe/Paris")
        bob.call("i_am_in", zone="Asia/Tokyo")
        of_ada = ada.call("create_task", **NEW)["id"]
        of_bob = bob.call("create_task", **NEW)
        assert of_bob["next"][0].endswith("+09:00")
        assert [each["id"] for each in ada.call("find_tasks")["tasks"]] == [of_ada]
        assert [each["id"] for each in bob.call("find_tasks")["tasks"]] == [of_bob["id"]]
        assert "There is no task" in bob.call("cancel_task", id=of_ada)
        task = sim.app.get(of_ada)
        assert (task.owner, task.status, task.defined_by) == ("ada", "ACTIVE", "users")
        assert [each.by.role for each in task.history if each.by] == ["owner"]
        assert "audit" in ada.call("create_task", **{**NEW, "handler": "audit", "payload": {}})


def test_users_bring_their_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of Firebase, each for the tasks of its own user."""
    monkeypatch.setenv("FIREBASE_AUTH_EMULATOR_HOST", "localhost:9099")
    clear_authenticators()
    access = Access(firebase_project=PROJECT, firebase_emulator="localhost:9099")
    with Simulation(make_app(), access=access) as sim, serve_api_of(sim.app) as api, serve_http(api) as address:
        ada, eve = (http_agent(address, make_unsigned_token(user_claims(name))) for name in ("ada", "eve"))
        ada.call("i_am_in", zone="Europe/Paris")
        created = ada.call("create_task", **NEW)["id"]
        assert sim.app.get(created).owner == "ada"
        assert eve.call("find_tasks")["tasks"] == []
        assert "There is no task" in eve.call("read_task", id=created)
        expired = make_unsigned_token({**user_claims("ada"), "exp": 1})
        assert post(address, Authorization=f"Bearer {expired}").status_code == 401


def test_who_may_only_read_sees_the_tools_that_read(sim: Simulation, url: str) -> None:
    """And cannot call the others, by whatever name."""
    task = sim.app.create(owner="ada", handler="remind", payload={"text": "x"}, schedule="every day at 9:00")
    with serve_http(url) as address:
        reader = http_agent(address, KEYS["reader"])
        offered = reader.tools()
        assert all(each.annotations.read_only_hint for each in offered.values())
        assert offered
        assert reader.call("read_task", id=task.id)["payload"] == {"text": "x"}
        assert reader.call("preview", when="every day at 9:00")["zone"] == "UTC"
        for name in http_agent(address, KEYS["ada"]).tools().keys() - offered.keys():
            assert "may only read" in reader.call(name)
    assert sim.app.get(task.id).updated_at == task.updated_at


def test_a_token_is_sent_as_one() -> None:
    """The API reads a user's token in another header than a key."""
    token = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEifQ.c2ln"  # noqa: S105 - nobody's
    sent = read_credential({"headers": [(b"authorization", f"Bearer {token}".encode())]})
    assert sent == {"Authorization": f"Bearer {token}"}
    assert read_credential({"headers": [(b"authorization", b"Bearer k\xc3\xa9y")]}) == {}


@pytest.mark.parametrize("words", [("--owner", "ada"), ("--key", "k"), ("--host", "0.0.0.0")])  # noqa: S104 - nothing is opened
def test_http_is_not_opened_to_strangers(
    words: tuple[str, ...], run_command: Callable[..., CommandResult], open_url: str
) -> None:
    """Nobody acts for one person there, and an API without keys is not handed on to other machines."""
    refused = run_command("mcp", "--http", "--url", open_url, "--port", "0", *words)
    assert refused.code == 2
    assert words[0] in refused.err
