"""An endpoint gets nothing before it has proven that it wants it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook
from tests.web.callers import RoleHarness
from werkzeug.test import TestResponse
from werkzeug.wrappers import Request, Response

from cloudsched.adapters.safe_http import make_session
from cloudsched.engine.ports.sender import OutgoingMessage, Recipient
from cloudsched.local.wsgi_server import WebServer
from cloudsched.people.senders.webhook import WebhookSender
from cloudsched.people.webhook_verification import WebhookVerification
from cloudsched.people.wiring import PeopleWiring

URL = "https://ada.example.com/hook"
VERIFY = "/v1/people/ada/webhook/verify"


@dataclass
class Network:
    """What is at the other end of all URLs."""

    answer: Callable[[str, bytes], Response] = lambda challenge, _: Response(challenge)
    requests: list[tuple[bytes, dict[str, str]]] = field(default_factory=list)
    urls: list[str] = field(default_factory=list)
    address: str = ""

    def ask(self, message: OutgoingMessage, recipient: Recipient) -> str:
        """Ask the endpoint, over HTTP, as a URL that a user could write down."""
        self.urls.append(recipient.address)
        sender = WebhookSender(partial(make_session, ["127.0.0.0/8"]), allows_http=True)
        there = type(recipient)(address=f"http://{self.address}/", secrets=recipient.secrets)
        return sender.ask(message, there)


@pytest.fixture
def network(roles: RoleHarness) -> Iterator[Network]:
    """A network in which all hosts answer as the test says."""
    state = Network()

    @Request.application
    def respond(request: Request) -> Response:
        data = request.get_data()
        state.requests.append((data, dict(request.headers)))
        return state.answer(json.loads(data)["data"]["challenge"], data)

    container = roles.sim.app.container
    asker = WebhookVerification(
        container.store.records, container.clock, PeopleWiring.of(container).people, lambda: state
    )
    PeopleWiring.of(container).replace(webhook_verification=asker)
    with WebServer(respond) as server:
        server.serve()
        state.address = server.address
        yield state


def put(roles: RoleHarness, url: str = URL, caller: str = "ada", **more: Any) -> TestResponse:
    return roles.ask(caller, "PUT", "/v1/people/ada", {"webhook": {"url": url, **more}})


def verify(roles: RoleHarness, caller: str = "ada") -> TestResponse:
    roles.sim.advance(timedelta(minutes=2))
    return roles.ask(caller, "POST", VERIFY)


def is_verified(roles: RoleHarness) -> bool:
    return bool(roles.ask("ada", "GET", "/v1/people/ada").get_json()["webhook"]["verified"])


def deliver(roles: RoleHarness) -> int:
    """Let a task of Ada's succeed; return how many webhooks have been sent."""
    roles.task("ada", deliveryChannels=["WEBHOOK"])
    roles.sim.advance(timedelta(hours=1))
    return len(roles.sim.sent("WEBHOOK"))


def test_an_endpoint_that_answers_with_the_challenge_gets_messages(roles: RoleHarness, network: Network) -> None:
    """The question is signed like everything else, so that the endpoint knows who asks; before it, nothing is sent.

    Another URL has to prove itself again, also one that differs in its path only; going back does not help.
    """
    secret = put(roles).get_json()["webhookSecret"]
    assert deliver(roles) == 0
    assert verify(roles).get_json()["webhook"] == {"url": URL, "verified": True}
    ((body, headers),) = network.requests
    asked = Webhook(secret).verify(body, headers)
    assert (asked["type"], network.urls) == ("webhook.verification", [URL])
    assert deliver(roles) == 1
    assert verify(roles).status_code == 200
    assert len(network.requests) == 1
    for url in (f"{URL}/other", URL):
        assert put(roles, url).get_json()["webhook"]["verified"] is False
    assert deliver(roles) == 1


def test_the_answer_may_be_json(roles: RoleHarness, network: Network) -> None:
    """As frameworks find it easier."""
    put(roles)
    network.answer = lambda challenge, _: Response(json.dumps({"challenge": challenge}))
    assert verify(roles).status_code == 200
    assert is_verified(roles)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda _, __: Response("ok"), id="a server that takes everything"),
        pytest.param(lambda _, body: Response(body), id="a server that repeats the body"),
        pytest.param(lambda c, _: Response(json.dumps({"args": {}, "data": c})), id="a server that repeats fields"),
        pytest.param(lambda c, _: Response(c[:-1]), id="not all of it"),
        pytest.param(lambda c, _: Response(f"{c} {c}"), id="more than it"),
        pytest.param(lambda c, _: Response("\xff" + c), id="other letters"),
        pytest.param(lambda c, _: Response(c, 500), id="an error"),
        pytest.param(lambda c, _: Response(c, 307, {"Location": "/elsewhere"}), id="a redirect"),
        pytest.param(lambda c, _: Response("x" * 5000 + c), id="a long page"),
    ],
)
def test_a_strangers_server_never_proves_anything(
    roles: RoleHarness, network: Network, answer: Callable[[str, bytes], Response]
) -> None:
    """Nor one that repeats whatever it gets; it gets one small request, and no message ever."""
    put(roles)
    network.answer = answer
    refused = verify(roles)
    assert (refused.status_code, refused.get_json()["field"]) == (400, "webhook.url")
    assert not is_verified(roles)
    assert deliver(roles) == 0
    assert len(network.requests) == 1


def test_a_stranger_is_not_asked_over_and_over(roles: RoleHarness, network: Network) -> None:
    """Once a minute, and five times a day for a host, whoever asks, whichever port, and however the URL is spelled."""
    network.answer = lambda _, __: Response("no")
    for number in range(8):
        put(roles, f"https://stranger.example.com:{8440 + number}/{number}")
        verify(roles)
    assert len(network.requests) == 5
    refused = verify(roles)
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) > 3600


def test_only_an_admin_vouches(roles: RoleHarness, network: Network) -> None:
    """A user who writes `verified` gets 403, and nothing changes; who writes what is known already does not."""
    put(roles)
    assert put(roles, verified=True).status_code == 403
    assert not is_verified(roles)
    assert put(roles, verified=True, caller="admin").get_json()["webhook"]["verified"] is True
    assert put(roles, verified=True).status_code == 200
    assert put(roles).get_json()["webhook"]["verified"] is True
    assert network.requests == []


def test_an_answer_for_a_url_that_was_replaced_meanwhile_proves_nothing(roles: RoleHarness, network: Network) -> None:
    """The endpoint that answered is not the one that is stored."""
    put(roles)

    def replace(challenge: str, _: bytes) -> Response:
        put(roles, "https://stranger.example.com/")
        return Response(challenge)

    network.answer = replace
    assert verify(roles).status_code == 400
    assert not is_verified(roles)
