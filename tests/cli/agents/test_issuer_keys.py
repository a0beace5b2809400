"""An authorization server's keys are found from its name: its own metadata alone says where, and seldom is it asked."""

from __future__ import annotations

import io
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import jwt
import pytest
import requests
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.exceptions import PyJWKClientConnectionError, PyJWTError
from requests.adapters import HTTPAdapter
from tests.cli.agents.conftest import http_agent, serve_http
from tests.cli.agents.test_tools import NEW

from cloudsched.cli.agents import issuer_keys
from cloudsched.cli.agents.authorization import OAuth
from cloudsched.cli.agents.issuer_keys import IssuerKeys, list_metadata_addresses
from cloudsched.errors import Misconfigured

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cli.conftest import CommandResult

    from cloudsched.testing import Simulation

RESOURCE = "https://mcp.example/mcp"
PRIVATE_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OAUTH, OPENID = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"


class Issuer:
    """An authorization server on this machine; `documents` has what it answers by path, None an error of its own."""

    def __init__(self, address: str) -> None:
        self.name = address
        self.asked: list[str] = []
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(PRIVATE_KEY.public_key()))
        self.documents: dict[str, Any] = {"/keys": {"keys": [{**public, "kid": "k", "use": "sig", "alg": "RS256"}]}}

    def publish(self, path: str = OAUTH, **changes: Any) -> None:
        """Publish the metadata there."""
        self.documents[path] = {"issuer": self.name, "jwks_uri": f"{self.name}/keys", **changes}

    def token(self, kid: str = "k") -> str:
        """Return a token of ada's."""
        claims = {
            "iss": self.name,
            "aud": RESOURCE,
            "sub": "ada",
            "exp": int(time.time()) + 600,
            "scp": ["tasks:read", "tasks:write"],
        }
        return jwt.encode(claims, PRIVATE_KEY, algorithm="RS256", headers={"kid": kid})


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    """An authorization server that publishes nothing yet but its keys."""
    made: list[Issuer] = []

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made[0].asked.append(self.path)
            content = made[0].documents.get(self.path, b"")
            body = content if isinstance(content, bytes) else json.dumps(content).encode()
            status = 500 if content is None else 302 if body.startswith(b"http") else 200 if body else 404
            self.send_response(status)
            if status == 302:
                self.send_header("Location", body.decode())
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        made.append(Issuer(f"http://127.0.0.1:{server.server_port}"))
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield made[0]
        server.shutdown()
        thread.join()


class Time:
    """Seconds that a test moves."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        """Return them."""
        return self.seconds


def test_the_issuers_name_is_enough(sim: Simulation, url: str, issuer: Issuer) -> None:
    """A server that is told no more takes its tokens; the metadata and the keys are fetched once for all of them."""
    issuer.publish()
    with serve_http(url, None, oauth=OAuth(issuer.name, RESOURCE)) as address:
        ada = http_agent(address, issuer.token())
        for _ in range(2):
            task_id = ada.call("create_task", **NEW)["task_id"]
    assert sim.app.get(task_id).owner == "ada"
    assert issuer.asked == [OAUTH, "/keys"]


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("", OAUTH),
        ("", OPENID),
        ("/tenant", f"{OAUTH}/tenant"),
        ("/tenant/", f"{OPENID}/tenant"),
        ("/tenant", f"/tenant{OPENID}"),
    ],
)
def test_the_metadata_is_found_where_the_standards_put_it(issuer: Issuer, path: str, where: str) -> None:
    """RFC 8414 puts the well-known part before an issuer's path, OpenID Connect behind it, too."""
    keys = f"{issuer.name}/keys"
    issuer.name += path
    issuer.publish(where, jwks_uri=keys)
    assert IssuerKeys(issuer.name).find_address() == keys
    assert issuer.asked[-1] == where


def test_the_addresses_come_in_order() -> None:
    """OAuth's before OpenID's."""
    assert list_metadata_addresses("https://a.example/b") == [
        "https://a.example/.well-known/oauth-authorization-server/b",
        "https://a.example/.well-known/openid-configuration/b",
        "https://a.example/b/.well-known/openid-configuration",
    ]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"issuer": "https://evil.example"}, "to the letter"),
        ({"issuer": None}, "to the letter"),
        ({"issuer": "SLASH"}, "to the letter"),
        ({"jwks_uri": None}, "--jwks"),
        ({"jwks_uri": "http://keys.example/keys"}, "https://"),
        ({"jwks_uri": "file:///etc/passwd"}, "jwks_uri"),
    ],
)
def test_metadata_that_does_not_count_is_refused(issuer: Issuer, changes: dict[str, Any], problem: str) -> None:
    """That of another issuer, even by a slash, or with keys that are fetched without TLS."""
    changes = {name: f"{issuer.name}/" if value == "SLASH" else value for name, value in changes.items()}
    issuer.publish(**changes)
    with pytest.raises(Misconfigured, match=problem):
        IssuerKeys(issuer.name).find_address()
    assert issuer.asked == [OAUTH]


@pytest.mark.parametrize("keys", ["https://127.0.0.1/keys", "http://localhost:8080/keys", "https://[::1]/keys"])
def test_a_public_issuer_may_not_name_this_machine(monkeypatch: pytest.MonkeyPatch, keys: str) -> None:
    """Its metadata is what an attacker would write."""

    class Answer(HTTPAdapter):
        def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
            response = requests.Response()
            response.status_code, response.request, response.url = 200, request, str(request.url)
            response.raw = io.BytesIO(json.dumps({"issuer": "https://login.example", "jwks_uri": keys}).encode())
            return response

    def make_session(*_: Any, **__: Any) -> requests.Session:
        session = requests.Session()
        session.mount("https://", Answer())
        return session

    monkeypatch.setattr(issuer_keys, "make_session", make_session)
    with pytest.raises(Misconfigured, match="on this machine"):
        IssuerKeys("https://login.example").find_address()


@pytest.mark.parametrize("address", ["https://10.0.0.1", "https://169.254.169.254", "https://[fd00::1]"])
def test_an_issuer_in_a_private_network_is_asked_only_if_the_operator_says_so(address: str) -> None:
    """CLOUDSCHED_REACHABLE says so; nothing is sent otherwise."""
    with pytest.raises(Misconfigured, match="CLOUDSCHED_REACHABLE"):
        IssuerKeys(address).find_address()


@pytest.mark.parametrize(
    "name", ["http://login.example", "login.example", "ftp://login.example", "https://", "https://u@login.example"]
)
def test_an_issuer_is_an_https_address(name: str) -> None:
    """Anything else is refused before it is asked."""
    with pytest.raises(Misconfigured, match="--issuer"):
        IssuerKeys(name)


@pytest.mark.parametrize("keys", [b"", b"<html>", None, {"keys": 1}, {"keys": [1]}, [], {"keys": []}, b"x" * 300_000])
def test_without_keys_no_token_is_taken(issuer: Issuer, keys: object) -> None:
    """Whatever stands in their place, or a redirection to them."""
    issuer.publish()
    issuer.documents["/keys"] = keys
    with pytest.raises(PyJWTError):
        IssuerKeys(issuer.name).get_signing_key_from_jwt(issuer.token())


def test_no_redirection_is_followed(issuer: Issuer) -> None:
    """Neither of the metadata nor of the keys."""
    issuer.publish("/elsewhere")
    issuer.documents[OAUTH] = f"{issuer.name}/elsewhere".encode()
    with pytest.raises(Misconfigured, match="--jwks"):
        IssuerKeys(issuer.name).find_address()
    assert "/elsewhere" not in issuer.asked


def test_an_issuer_that_fails_is_asked_seldom(issuer: Issuer) -> None:
    """Not by every request, but again after a pause; and then its tokens are taken."""
    clock = Time()
    keys = IssuerKeys(issuer.name, now=clock)
    issuer.documents[OAUTH] = None
    for _ in range(5):
        with pytest.raises(PyJWKClientConnectionError):
            keys.get_signing_key_from_jwt(issuer.token())
    assert issuer.asked == [OAUTH]
    issuer.publish()
    clock.seconds += issuer_keys.PAUSE_SECONDS
    assert keys.get_signing_key_from_jwt(issuer.token()).key_id == "k"


def test_the_keys_outlive_a_short_failure_of_the_issuer(issuer: Issuer) -> None:
    """For an hour; longer they might be withdrawn without anybody's notice. So long the metadata is kept, too."""
    clock = Time()
    issuer.publish()
    keys = IssuerKeys(issuer.name, now=clock)
    known = keys.fetch_data()
    issuer.documents["/keys"] = issuer.documents[OAUTH] = None
    clock.seconds += issuer_keys.STALE_SECONDS - 1
    assert keys.fetch_data() == known
    assert issuer.asked == [OAUTH, "/keys", "/keys"]
    clock.seconds += issuer_keys.PAUSE_SECONDS
    with pytest.raises(PyJWKClientConnectionError):
        keys.fetch_data()


def test_an_unknown_key_does_not_make_every_request_ask(issuer: Issuer) -> None:
    """Anybody can send a token with an invented key."""
    issuer.publish()
    keys = IssuerKeys(issuer.name)
    keys.get_signing_key_from_jwt(issuer.token())
    for number in range(5):
        with pytest.raises(PyJWTError):
            keys.get_signing_key_from_jwt(issuer.token(f"invented-{number}"))
    assert issuer.asked == [OAUTH, "/keys"]


def test_a_wrong_issuer_is_told_at_the_start(issuer: Issuer, run_command: Callable[..., CommandResult]) -> None:
    """With what to give instead, before the server takes requests."""
    issuer.publish(issuer="https://login.example")
    told = run_command("mcp", "--http", "--issuer", issuer.name, "--resource", RESOURCE)
    assert told.code != 0
    assert "'https://login.example'" in told.err
