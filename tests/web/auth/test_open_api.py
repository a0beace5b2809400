"""The open API: closed unless a setting says otherwise, and then open only to requests from the same machine."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.cases import try_each
from tests.greeting_app import app
from tests.harness import LocalClient
from werkzeug.test import Client
from werkzeug.wrappers import Request, Response

from cloudsched import App, Settings
from cloudsched.config.access import Access
from cloudsched.errors import Misconfigured
from cloudsched.local.stack import run_stack
from cloudsched.testing import Simulation
from cloudsched.web.functions import serve_api, serve_sweep

pytestmark = pytest.mark.usefixtures("own_process")  # what is deployed configures its logging
HERE = "127.0.0.1"
SERVE: dict[str, Callable[[App, Request], Response]] = {"api": serve_api, "sweep": serve_sweep}


def request_status(
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
    assert request_status(Access()) == 503
    assert request_status(Access(), "sweep") == 401


@pytest.mark.parametrize("function", SERVE)
@try_each("peer", [HERE, "127.8.9.10", "::1", "::ffff:127.0.0.1"])
def test_an_open_api_admits_its_own_machine(function: str, peer: str) -> None:
    """By any loopback address, in both families."""
    assert request_status(Access(open=True), function, peer=peer) == 200


@pytest.mark.parametrize("function", SERVE)
@try_each("peer", [None, "", "10.0.0.7", "::ffff:10.0.0.7", "169.254.1.1", "2001:db8::1", "localhost"])
def test_an_open_api_refuses_other_machines(function: str, peer: str | None) -> None:
    """Also a peer without an address, as behind a Unix socket."""
    assert request_status(Access(open=True), function, peer=peer) == 401


@pytest.mark.parametrize("function", SERVE)
@try_each(
    "header",
    ["Forwarded", "x-forwarded-host", "X-Real-IP", "Via", "CF-Connecting-IP", "True-Client-IP", "X-Newcloud-Client-Ip"],
)
def test_an_open_api_refuses_what_a_proxy_forwards(function: str, header: str) -> None:
    """A proxy on the same machine may forward requests from anywhere, and not all proxies are known."""
    assert request_status(Access(open=True), function, headers={header: HERE}) == 401


@pytest.mark.parametrize("function", SERVE)
@try_each("host", ["evil.example", "evil.example:8080", "localhost.evil.example", "10.0.0.7", "["])
def test_an_open_api_refuses_names_that_may_be_rebound(function: str, host: str) -> None:
    """A page's own name that leads here, with and without an Origin: the browser would run the page's requests."""
    for headers in ({"Host": host}, {"Host": host, "Origin": f"http://{host}"}):
        assert request_status(Access(open=True), function, headers=headers) == 403


@pytest.mark.parametrize("function", SERVE)
@try_each("host", ["localhost", "localhost:8080", "app.localhost:8080", "127.0.0.1:8080", "[::1]:8080"])
def test_an_open_api_answers_to_the_names_of_its_machine(function: str, host: str) -> None:
    """Browsers take each of them to this machine, whoever would like it otherwise."""
    assert request_status(Access(open=True), function, headers={"Host": host}) == 200


def test_a_malformed_origin_is_refused() -> None:
    """It is no mistake of the server's."""
    assert request_status(Access(open=True), headers={"Origin": "http://["}) == 403


def test_a_refused_request_is_told_what_to_do(sim: Simulation) -> None:
    """Whoever works through a proxy, such as Cloud Shell's web preview, learns which header it was, and what to do."""
    client = LocalClient(Request.application(lambda request: serve_api(sim.app, request)))
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
    assert request_status(Access(open=True, firebase_project="p")) == 401


def test_the_cloud_refuses_to_be_open() -> None:
    """Neither the settings are accepted there, nor are requests, should they be made otherwise."""
    with pytest.raises(Misconfigured, match="CLOUDSCHED_OPEN"):
        Settings.from_environment({"CLOUDSCHED_OPEN": "on", "K_SERVICE": "api"})
    assert Settings.from_environment({"CLOUDSCHED_OPEN": "on"}).access.open
    assert request_status(Access(open=True), is_deployed=True) == 503
    assert request_status(Access(open=True, firebase_project="p"), is_deployed=True) == 503


def test_the_description_names_handlers_only_where_the_api_is_open(sim: Simulation) -> None:
    """A remote caller of an open API does not learn what it can run."""
    client = Client(Request.application(lambda request: serve_api(sim.app, request)))
    here, there = (client.get("/openapi.json", environ_base={"REMOTE_ADDR": peer}) for peer in (HERE, "10.0.0.7"))
    rebound = client.get("/openapi.json", environ_base={"REMOTE_ADDR": HERE}, headers={"Host": "evil.example"})
    assert ['"greet"' in answer.text for answer in (here, there, rebound)] == [True, False, False]


def test_the_local_stack_is_open() -> None:
    """`cloudsched dev` sets the option itself, and passes it to the processes that it starts."""
    with run_stack(App(), base=dataclasses.replace(Settings(), access=Access()), store="sqlite") as stack:
        assert stack.settings.access.open
        assert stack.to_environment()["CLOUDSCHED_OPEN"] == "on"
