"""Who may use the tools over HTTP: nobody without the bearer key, or a token that was issued for this server."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.cli import conftest as cli_conftest
from tests.cli.agents.conftest import BEARER, http_agent, serve_http
from tests.cli.agents.test_tools import NEW, ZONE
from tests.subject_cases import REFUSED

from cloudsched.cli.agents.authorization import OAuth, require_bearer
from cloudsched.errors import Misconfigured
from cloudsched.web.functions import serve_api

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cli.conftest import CommandResult
    from werkzeug.wrappers import Request

    from cloudsched import App
    from cloudsched.testing import Simulation

ISSUER, RESOURCE = "https://issuer.example", "https://mcp.example/mcp"
BOTH = "tasks:read tasks:write"
PING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
ACCEPT = {"Accept": "application/json, text/event-stream"}


def post(address: str, token: str | None) -> httpx.Response:
    headers = {**ACCEPT, **({} if token is None else {"Authorization": f"Bearer {token}"})}
    return httpx.post(address, json=PING, headers=headers, timeout=60)


@pytest.mark.parametrize("token", [None, "wrong", BEARER[:-1], BEARER + "x", BEARER.upper()])
def test_without_the_bearer_key_nothing_is_answered(url: str, token: str | None) -> None:
    """401, whatever else is sent; the key itself is let in."""
    with serve_http(url, BEARER) as address:
        refused = post(address, token)
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert http_agent(address, BEARER).call("list_tasks", timezone=ZONE)["tasks"] == []


def test_a_key_that_can_be_guessed_is_refused(run_command: Callable[..., CommandResult]) -> None:
    """So is HTTP that is open to everybody."""
    with pytest.raises(Misconfigured, match="16"):
        require_bearer(lambda *_: None, "short")  # type: ignore[arg-type]
    assert "--bearer" in run_command("mcp", "--http").err
    assert "belong together" in run_command("mcp", "--http", "--issuer", ISSUER).err


class Issuer:
    """An authorization server's keys."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def token(self, key: rsa.RSAPrivateKey | None = None, **changes: Any) -> str:
        """Return a token of ada's for the server, with changes; None leaves a claim out."""
        claims = {"iss": ISSUER, "aud": RESOURCE, "sub": "ada", "exp": int(time.time()) + 600, "scope": BOTH, **changes}
        kept = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(kept, key or self.key, algorithm="RS256", headers={"kid": "k"})


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    """An authorization server that publishes its key."""
    made: list[Issuer] = []

    class Keys(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(made[0].key.public_key()))
            body = json.dumps({"keys": [{**public, "kid": "k", "use": "sig", "alg": "RS256"}]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Keys) as server:
        made.append(Issuer(f"http://127.0.0.1:{server.server_port}/jwks"))
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield made[0]
        server.shutdown()
        thread.join()


def test_a_token_names_its_owner(sim: Simulation, url: str, issuer: Issuer) -> None:
    """Each caller sees and creates only their own tasks; the API is asked with the server's own credentials."""
    with serve_http(url, None, oauth=OAuth(ISSUER, RESOURCE, issuer.address)) as address:
        ada, bob = (http_agent(address, issuer.token(sub=name)) for name in ("ada", "bob"))
        task_id = ada.call("create_task", **NEW)["task_id"]
        assert sim.app.get(task_id).owner == "ada"
        assert bob.call("list_tasks", timezone=ZONE)["tasks"] == []
        assert "list_tasks" in bob.call("cancel_task", task_id=task_id, timezone=ZONE)
        assert ada.call("get_task", task_id=task_id, timezone=ZONE)["status"] == "ACTIVE"


def test_no_token_is_passed_on(sim: Simulation, url: str, issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """No request to the API has the caller's token, in any header or anywhere in its address."""
    seen: list[str] = []

    def record(app: App, request: Request) -> Any:  # noqa: ANN401 - whatever it answers
        seen.append(f"{request.method} {request.url} {dict(request.headers)}")
        return serve_api(app, request)

    monkeypatch.setattr(cli_conftest, "serve_api", record)
    token = issuer.token()
    with serve_http(url, None, oauth=OAuth(ISSUER, RESOURCE, issuer.address)) as address:
        http_agent(address, token).call("create_task", **NEW)
    assert len(sim.app.tasks().items) == 1
    assert any(each.startswith("POST") for each in seen)
    assert not [each for each in seen if token in each or token.rpartition(".")[2] in each]


def test_only_tokens_for_this_server_are_taken(url: str, issuer: Issuer) -> None:
    """Not one for another audience, of another issuer or key, without an end, over, or of who can be no user."""
    stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    bad = [
        *(
            issuer.token(aud="https://other.example/mcp"),
            issuer.token(aud=None),
            issuer.token(iss="https://evil.example"),
        ),
        *(
            issuer.token(exp=int(time.time()) - 600),
            issuer.token(exp=None),
            issuer.token(sub=None),
            *(issuer.token(sub=name) for name in REFUSED),
        ),
        *(issuer.token(stranger), "x.y.z", jwt.encode({"sub": "ada"}, "", algorithm="none"), None),
    ]
    with serve_http(url, None, oauth=OAuth(ISSUER, RESOURCE, issuer.address)) as address:
        for token in bad:
            assert post(address, token).status_code == 401, token
        refused = post(address, None)
        where = refused.headers["www-authenticate"].partition('resource_metadata="')[2].partition('"')[0]
        assert where == "https://mcp.example/.well-known/oauth-protected-resource/mcp"
        metadata = httpx.get(address.replace("/mcp", where.removeprefix("https://mcp.example"))).json()
    assert metadata["resource"] == RESOURCE
    assert [each.rstrip("/") for each in metadata["authorization_servers"]] == [ISSUER]


def test_a_user_gets_no_more_than_the_front_door_gives(sim: Simulation, url: str, issuer: Issuer) -> None:
    """Whatever the server's own key may do: handlers for servers, and the name of the server itself."""
    with serve_http(url, None, oauth=OAuth(ISSUER, RESOURCE, issuer.address)) as address:
        ada = http_agent(address, issuer.token())
        assert "audit" in ada.call("create_task", **{**NEW, "handler": "audit", "payload": {}})
        assert sim.app.tasks().items == []
        created = ada.call("create_task", **NEW)["task_id"]
        assert (task := sim.app.get(created)).defined_by == "users"
        assert [(each.by.subject, each.by.via) for each in task.history if each.by] == [("user:ada", "anybody")]


def test_a_token_needs_the_scopes(sim: Simulation, url: str, issuer: Issuer) -> None:
    """Without the scope to read nothing is answered; without that to write, no tool changes anything."""
    oauth = OAuth(ISSUER, RESOURCE, issuer.address)
    task = sim.app.create(owner="ada", handler="remind", payload={"text": "x"}, schedule="every day at 9:00").id
    with serve_http(url, None, oauth=oauth) as address:
        for scope in (None, "", "tasks:write", "tasks:readx", 7, ["tasks:write"]):
            assert post(address, issuer.token(scope=scope)).status_code == 403, scope
        reader = http_agent(address, issuer.token(scope=None, scp=["tasks:read", 7]))
        for name, tool in reader.tools().items():
            given = {"task_id": task, "event": "e", "title": "T", "history": 0, **NEW}
            answer = reader.call(
                name, **{each: given[each] for each in tool.input_schema["properties"] if each in given}
            )
            assert ("tasks:write" in answer) == (not tool.annotations.read_only_hint), (name, answer)
        where = "/.well-known/oauth-protected-resource/mcp"
        metadata = httpx.get(address.replace("/mcp", where)).json()
    assert metadata["scopes_supported"] == ["tasks:read", "tasks:write"]
    assert sim.app.get(task).status == "ACTIVE"
    assert sim.app.get(task).revision == 1
