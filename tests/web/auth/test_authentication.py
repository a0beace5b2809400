"""Tokens: Google's own verification with a key of the tests' own, and all the ways in which a token can be wrong."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import jwt
import pytest
import time_machine
from tests.cases import try_each
from tests.greeting_app import app
from tests.subject_cases import REFUSED
from tests.web.auth.token_issuer import (
    AUDIENCE,
    MAX_AGE,
    PROJECT,
    Issuer,
    account_claims,
    publish_keys,
    user_claims,
)
from tests.web.callers import HOUR, MINUTE, clear_authenticators, open_api
from werkzeug.test import Client
from werkzeug.wrappers import Request, Response

from cloudsched import App, Settings
from cloudsched.adapters.google.id_tokens import REMOVED_SIGNATURE
from cloudsched.config.access import Access
from cloudsched.errors import Misconfigured
from cloudsched.testing import Simulation
from cloudsched.web.auth.authentication import authenticator_for
from cloudsched.web.functions import serve_api, serve_sweep

pytestmark = pytest.mark.usefixtures("own_process")  # what is deployed configures its logging
ROBOT = "robot@demo.iam.gserviceaccount.com"
ACCESS = Access(firebase_project=PROJECT, service_accounts=(f"{ROBOT}=admin",), audiences=(AUDIENCE, "https://b"))


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    """The key that is taken for Google's."""
    return Issuer()


@pytest.fixture(autouse=True)
def issuer_requests(issuer: Issuer) -> Iterator[list[str]]:
    """The requests of Google's libraries; each test starts with an empty cache."""
    clear_authenticators()
    with publish_keys(issuer) as issuer_requests:
        yield issuer_requests
    clear_authenticators()


def request_status(token: str, access: Access = ACCESS, **headers: str) -> int:
    """Return the status of the response to a list request with this token."""
    with Simulation(app, access=access) as sim:
        client = open_api(sim.app)
        answer = client.get("/v1/tasks", headers={"Authorization": f"Bearer {token}", **headers})
        if answer.status_code == 401:
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")
            assert token not in answer.get_data(as_text=True)
        return answer.status_code


def make_unsigned_token(claims: dict[str, Any], alg: str = "none") -> str:
    """Return a token without a signature, as the Firebase Auth emulator makes them."""
    parts = [json.dumps({"alg": alg, "typ": "JWT"}), json.dumps(claims)]
    return ".".join(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts) + "."


def with_instants(claims: dict[str, Any]) -> dict[str, Any]:
    """Return claims with instants for durations from now on: they are written long before the last tests run."""
    now = int(time.time())
    return {
        name: now + int(value.total_seconds()) if isinstance(value, timedelta) else value
        for name, value in claims.items()
    }


def test_tokens_of_users_and_accounts_are_accepted(issuer: Issuer) -> None:
    """A token that Google signed for this project, or for this API, identifies its caller."""
    assert request_status(issuer.make_user_token()) == 200
    assert request_status(issuer.make_account_token(ROBOT)) == 200
    assert request_status(issuer.make_account_token(ROBOT, aud="https://b")) == 200


@pytest.mark.parametrize(("claim", "sees"), [(True, True), (False, False), ("true", False), (1, False), (None, False)])
def test_an_admin_claim_sees_all(
    issuer: Issuer,
    simulate: Callable[..., Simulation],
    claim: object,
    sees: bool,  # noqa: FBT001 - a parameter
) -> None:
    """A user whose token has `admin: true` sees all tasks; values that merely resemble true do not count."""
    sim = simulate(access=ACCESS)
    sim.app.create(owner="bob", handler="anything")
    client = open_api(sim.app)
    answer = client.get("/v1/tasks", headers={"Authorization": f"Bearer {issuer.make_user_token(admin=claim)}"})
    assert len(answer.get_json()["tasks"]) == sees


def test_nothing_is_created_after_a_tokens_end(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by a request either that came before it, and took long: one by one, each task of a batch is a 401."""
    monkeypatch.setattr("cloudsched.web.api.router.time", SimpleNamespace(time=lambda: time.time() + 7200))
    task = {"handler": "anything", "payload": {}, "schedule": "every day at 9", "timezone": "UTC"}
    with Simulation(app, access=ACCESS) as sim:
        client = open_api(sim.app)
        credential = {"Authorization": f"Bearer {issuer.make_user_token()}"}
        answer = client.post("/v1/tasks/batchCreate", headers=credential, json={"tasks": [task, task]})
        assert [each["status"] for each in answer.get_json()["results"]] == [401, 401]
        monkeypatch.undo()
        assert client.post("/v1/tasks", headers=credential, json=task).status_code == 201


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": -MINUTE},
        {"exp": None},
        {"exp": "tomorrow"},
        {"iat": HOUR},
        {"aud": "another-project", "iss": "https://securetoken.google.com/another-project"},
        {"aud": "another-project"},
        {"iss": "https://securetoken.google.com/another-project"},
        {"iss": "https://securetoken.google.com.evil.example/demo-users"},
        {"iss": "https://accounts.google.com"},
        {"iss": None},
        {"sub": None},
        {"sub": ""},
        {"sub": "x" * 129},
        {"sub": 5},
    ],
    ids=range(14),
)
def test_a_user_token_with_wrong_claims_is_refused(issuer: Issuer, claims: dict[str, Any]) -> None:
    """Expired, not yet valid, of another project, of another issuer, without a subject: all are 401."""
    assert request_status(issuer.make_user_token(**with_instants(claims))) == 401


@try_each("name", REFUSED)
def test_a_user_who_can_be_nobody_is_refused(issuer: Issuer, name: str) -> None:
    """A token of the system's own name, or of what cannot be an owner, is a 401, even with an admin's claim."""
    assert request_status(issuer.make_user_token(sub=name)) == 401
    assert request_status(issuer.make_user_token(sub=name, admin=True)) == 401


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": -MINUTE},
        {"iat": HOUR},
        {"aud": "https://another.example"},
        {"aud": PROJECT},
        {"iss": "https://accounts.evil.example"},
        {"email": "stranger@demo.iam.gserviceaccount.com"},
        {"email": None},
        {"email_verified": False},
        {"email_verified": "true"},
        {"email_verified": None},
    ],
    ids=range(10),
)
def test_an_account_token_with_wrong_claims_is_refused(issuer: Issuer, claims: dict[str, Any]) -> None:
    """Expired, made for another service, of another account, with an unverified address: all are 401."""
    assert request_status(issuer.make_account_token(ROBOT, **with_instants(claims))) == 401


def test_a_swapped_key_is_refused(issuer: Issuer) -> None:
    """A forged key under the id of Google's key, or under an unknown id, is not accepted."""
    assert request_status(Issuer(kid=issuer.kid).make_user_token()) == 401
    assert request_status(Issuer(kid="another").make_user_token()) == 401
    assert request_status(Issuer(kid=issuer.kid).make_account_token(ROBOT)) == 401
    assert request_status(Issuer(kid="another").make_account_token(ROBOT)) == 401


def test_keys_that_google_exchanges_are_found_in_time(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are kept for as long as Google says, and no longer: then the new ones count, and the old ones do not."""

    def list_statuses(signer: Issuer) -> list[int]:
        return [request_status(token) for token in (signer.make_user_token(), signer.make_account_token(ROBOT))]

    old, new = Issuer(issuer.kid, issuer.key), Issuer("key-2")
    assert list_statuses(old) == [200, 200]
    monkeypatch.setattr(issuer, "kid", new.kid)
    monkeypatch.setattr(issuer, "key", new.key)
    assert list_statuses(new) == [401, 401]
    with time_machine.travel(time.time() + MAX_AGE + 1):
        assert list_statuses(new) == [200, 200]
        assert list_statuses(old) == [401, 401]


@try_each("alg", ["none", "None", "RS256", "HS256"])
def test_a_token_without_a_signature_is_refused(alg: str) -> None:
    """`alg: none`, in any spelling, is for the emulator alone; so is a signature that is missing."""
    assert request_status(make_unsigned_token(user_claims("ada"), alg)) == 401
    assert request_status(make_unsigned_token(account_claims(ROBOT), alg)) == 401


def test_a_public_key_is_not_accepted_as_an_hmac_secret(issuer: Issuer) -> None:
    """A token signed with the public certificate as an HMAC secret is refused (algorithm confusion)."""
    digits = base64.urlsafe_b64encode(json.dumps({"alg": "HS256", "kid": issuer.kid}).encode()).decode().rstrip("=")
    claims = base64.urlsafe_b64encode(json.dumps(user_claims("ada")).encode()).decode().rstrip("=")
    key = jwt.get_algorithm_by_name("HS256")
    secret = issuer.certificate.replace("CERTIFICATE", "X").encode()  # PyJWT will not sign with a PEM as it is
    signature = base64.urlsafe_b64encode(key.sign(f"{digits}.{claims}".encode(), secret)).decode().rstrip("=")
    assert request_status(f"{digits}.{claims}.{signature}") == 401


@try_each(
    "token",
    [
        "x",
        "a.b.c",
        "..",
        "e30.e30.e30",
        "W10.W10.W10",
        "bnVsbA.bnVsbA.x",
        "eyJhbGciOiJSUzI1NiJ9." + base64.urlsafe_b64encode(b"[" * 5000).decode() + ".x",
        "é.é.é",
        "x" * 9000,
        "a.b.c.d.e",
    ],
)
def test_a_malformed_token_is_refused(token: str) -> None:
    """Whatever stands where a token should, it is a 401 and never a 500."""
    assert request_status(token.encode().decode("latin-1")) == 401


def test_a_token_cut_short_or_changed_is_refused(issuer: Issuer) -> None:
    """Every part of a token is under its signature."""
    head, body, signature = issuer.make_user_token().split(".")
    admin = base64.urlsafe_b64encode(json.dumps({**user_claims("ada"), "admin": True}).encode()).decode()
    assert request_status(f"{head}.{body}.{signature[:-4]}") == 401
    assert request_status(f"{head}.{admin.rstrip('=')}.{signature}") == 401
    assert request_status(f"{head}.{body}.") == 401


def test_a_token_of_a_kind_that_is_not_configured_is_refused(issuer: Issuer) -> None:
    """Users are admitted only if a Firebase project is set, and accounts only if they are listed."""
    only_accounts = Access(service_accounts=ACCESS.service_accounts, audiences=ACCESS.audiences)
    assert request_status(issuer.make_user_token(), only_accounts) == 401
    assert request_status(issuer.make_account_token(ROBOT), Access(firebase_project=PROJECT)) == 401


def test_the_emulators_tokens_need_the_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unsigned tokens are taken if, and only if, the Firebase Auth emulator is configured; expired ones never."""
    token = make_unsigned_token(user_claims("ada"))
    assert request_status(token) == 401
    monkeypatch.setenv("FIREBASE_AUTH_EMULATOR_HOST", "localhost:9099")
    clear_authenticators()
    emulated = Access(firebase_project=PROJECT, firebase_emulator="localhost:9099")
    assert request_status(token, emulated) == 200
    assert request_status(make_unsigned_token({**user_claims("ada"), "exp": int(time.time()) - 60}), emulated) == 401
    assert request_status(make_unsigned_token({**user_claims("ada"), "aud": "x"}), emulated) == 401
    assert request_status(token, ACCESS) == 503, "the environment says so, but the settings do not"


def test_the_emulator_is_refused_in_the_cloud() -> None:
    """A function in the cloud that is configured for the emulator does not start: anyone could forge a token."""
    with pytest.raises(Misconfigured, match="FIREBASE_AUTH_EMULATOR_HOST"):
        Settings.from_environment({"FIREBASE_AUTH_EMULATOR_HOST": "localhost:9099", "K_SERVICE": "api"})


def test_a_deployed_api_without_credentials_says_so(
    caplog: pytest.LogCaptureFixture, simulate: Callable[..., Simulation]
) -> None:
    """With no authentication configured, a deployed API answers only its health check, and logs what to set."""
    sim = simulate(is_deployed=True, tasks_emulator="none")
    client = open_api(sim.app)
    paths = ("/v1/tasks", "/ready", "/v1/tasks/x", "/v1/inboxes/ada/messages")
    assert {client.get(path).status_code for path in paths} == {503}
    assert client.get("/health").status_code == 200
    assert "CLOUDSCHED_FIREBASE_PROJECT" in caplog.text


def test_accounts_need_an_audience() -> None:
    """A token that was made for any other service must not do here, so the API has to know its own address."""
    with pytest.raises(Misconfigured, match="CLOUDSCHED_AUDIENCES"):
        authenticator_for(Settings(access=Access(service_accounts=(f"{ROBOT}=admin",))))


def test_an_account_listed_twice_is_refused() -> None:
    """Two roles for one service account contradict each other: neither is taken in silence."""
    with pytest.raises(Misconfigured, match=f"CLOUDSCHED_SERVICE_ACCOUNTS lists {ROBOT} more than once"):
        Access(service_accounts=(f"{ROBOT}=viewer", f"{ROBOT}=admin"), audiences=(AUDIENCE,))


def test_tokens_without_signature_need_trust_in_cloud_run(issuer: Issuer) -> None:
    """A token whose signature Cloud Run took off is believed if the settings say that Cloud Run checks all tokens."""
    stripped = issuer.make_account_token(ROBOT).rpartition(".")[0] + "." + REMOVED_SIGNATURE
    trusting = Access(service_accounts=ACCESS.service_accounts, audiences=ACCESS.audiences, trust_cloud_run=True)
    assert request_status(stripped) == 401
    assert request_status(stripped, trusting) == 200
    old = issuer.make_account_token(ROBOT, exp=int(time.time()) - 60).rpartition(".")[0] + "." + REMOVED_SIGNATURE
    other = issuer.make_account_token("eve@x.iam.gserviceaccount.com").rpartition(".")[0] + "." + REMOVED_SIGNATURE
    user = issuer.make_user_token().rpartition(".")[0] + "." + REMOVED_SIGNATURE
    assert {request_status(token, trusting) for token in (old, other, user)} == {401}


def test_the_sweep_accepts_only_its_own_account(issuer: Issuer, simulate: Callable[..., Simulation]) -> None:
    """With a sweeper named, only a token of that account for this service sweeps."""
    sim = simulate(access=Access(sweeper=ROBOT, audiences=(AUDIENCE,)))
    client = open_api(sim.app, serve_sweep)

    def sweep_status(token: str) -> int:
        return client.post("/", headers={"Authorization": f"Bearer {token}"}).status_code

    assert sweep_status(issuer.make_account_token(ROBOT)) == 200
    others = (
        issuer.make_account_token("eve@x.iam.gserviceaccount.com"),
        issuer.make_account_token(ROBOT, aud="https://other"),
        issuer.make_user_token(),
        Issuer(kid=issuer.kid).make_account_token(ROBOT),
        "",
    )
    assert {sweep_status(token) for token in others} == {401}


def test_googles_keys_out_of_reach_are_not_the_callers_fault(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """While Google's keys cannot be fetched, no caller is admitted; the answer is 503, which is retried."""
    from requests.adapters import HTTPAdapter  # noqa: PLC0415 - only this test breaks it
    from requests.exceptions import ConnectionError as Unreachable  # noqa: PLC0415 - the same

    def send(*_: object, **__: object) -> Response:
        raise Unreachable("no route")

    monkeypatch.setattr(HTTPAdapter, "send", send)
    assert request_status(issuer.make_user_token()) == 503
    assert request_status(issuer.make_account_token(ROBOT)) == 503


HERE = "127.0.0.1"
SERVE: dict[str, Callable[[App, Request], Response]] = {"api": serve_api, "sweep": serve_sweep}


def ask_openly(
    access: Access,
    function: str = "api",
    *,
    peer: str | None = HERE,
    headers: Mapping[str, str] | None = None,
    is_deployed: bool = False,
) -> int:
    """Return how one of the functions answers a request without credentials."""
    serve = SERVE[function]
    path, method = ("/v1/tasks", "GET") if function == "api" else ("/", "POST")
    base = {} if peer is None else {"REMOTE_ADDR": peer}
    cloud: dict[str, Any] = {"is_deployed": True, "tasks_emulator": "none"} if is_deployed else {}
    with Simulation(app, access=access, **cloud) as sim:
        client = Client(Request.application(lambda request: serve(sim.app, request)))
        return client.open(path, method=method, environ_base=base, headers=headers or {}).status_code


def test_without_settings_the_api_is_closed_outside_the_cloud_too() -> None:
    """A container or a VM without settings admits no caller, not even from the same machine."""
    assert ask_openly(Access()) == 503
    assert ask_openly(Access(), "sweep") == 401


@pytest.mark.parametrize("function", SERVE)
@try_each("peer", [HERE, "127.8.9.10", "::1", "::ffff:127.0.0.1"])
def test_an_open_api_admits_its_own_machine(function: str, peer: str) -> None:
    """By any loopback address, in both families."""
    assert ask_openly(Access(open=True), function, peer=peer) == 200


@pytest.mark.parametrize("function", SERVE)
@try_each("peer", [None, "", "10.0.0.7", "::ffff:10.0.0.7", "169.254.1.1", "2001:db8::1", "localhost"])
def test_an_open_api_refuses_other_machines(function: str, peer: str | None) -> None:
    """Also a peer without an address, as behind a Unix socket."""
    assert ask_openly(Access(open=True), function, peer=peer) == 401


@pytest.mark.parametrize("function", SERVE)
@try_each(
    "header",
    ["Forwarded", "x-forwarded-host", "X-Real-IP", "Via", "CF-Connecting-IP", "True-Client-IP", "X-Newcloud-Client-Ip"],
)
def test_an_open_api_refuses_what_a_proxy_forwards(function: str, header: str) -> None:
    """A proxy on the same machine may forward requests from anywhere, and not all proxies are known."""
    assert ask_openly(Access(open=True), function, headers={header: HERE}) == 401


@pytest.mark.parametrize("function", SERVE)
@try_each("host", ["evil.example", "evil.example:8080", "localhost.evil.example", "10.0.0.7", "["])
def test_an_open_api_refuses_names_that_may_be_rebound(function: str, host: str) -> None:
    """A page's own name that leads here, with and without an Origin: the browser would run the page's requests."""
    for headers in ({"Host": host}, {"Host": host, "Origin": f"http://{host}"}):
        assert ask_openly(Access(open=True), function, headers=headers) == 403


@pytest.mark.parametrize("function", SERVE)
@try_each("host", ["localhost", "localhost:8080", "app.localhost:8080", "127.0.0.1:8080", "[::1]:8080"])
def test_an_open_api_answers_to_the_names_of_its_machine(function: str, host: str) -> None:
    """Browsers take each of them to this machine, whoever would like it otherwise."""
    assert ask_openly(Access(open=True), function, headers={"Host": host}) == 200


def test_a_malformed_origin_is_refused() -> None:
    """It is no mistake of the server's."""
    assert ask_openly(Access(open=True), headers={"Origin": "http://["}) == 403


def test_a_refused_request_is_told_what_to_do(sim: Simulation) -> None:
    """Whoever works through a proxy, such as Cloud Shell's web preview, learns which header it was, and what to do."""
    client = open_api(sim.app)
    forwarded = client.get("/v1/tasks", headers={"X-Forwarded-For": "10.0.0.7"}).get_json()["detail"]
    renamed = client.get("/v1/tasks", headers={"Host": "8080-shell.cloudshell.dev"}).get_json()["detail"]
    remote = client.get("/v1/tasks", environ_base={"REMOTE_ADDR": "10.0.0.7"}).get_json()["detail"]
    assert "X-Forwarded-For" in forwarded
    assert "8080-shell.cloudshell.dev" in renamed
    for detail in (forwarded, remote):
        assert "http://localhost" in detail
        assert "CLOUDSCHED_API_KEYS" in detail


def test_credentials_close_an_open_api() -> None:
    """Where a credential is configured, requests from the same machine need one as well."""
    assert ask_openly(Access(open=True, firebase_project="p")) == 401


def test_the_cloud_refuses_to_be_open() -> None:
    """Neither the settings are accepted there, nor are requests, should they be made otherwise."""
    with pytest.raises(Misconfigured, match="CLOUDSCHED_OPEN"):
        Settings.from_environment({"CLOUDSCHED_OPEN": "on", "K_SERVICE": "api"})
    assert Settings.from_environment({"CLOUDSCHED_OPEN": "on"}).access.open
    assert ask_openly(Access(open=True), is_deployed=True) == 503
    assert ask_openly(Access(open=True, firebase_project="p"), is_deployed=True) == 503
