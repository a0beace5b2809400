"""The recipe for Pub/Sub and Eventarc: a signed push becomes an event of the task that waits for it."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.oauth2 import id_token
from tests.recipes.conftest import Load, post

from cloudsched.errors import StoreUnavailable
from cloudsched.testing import Simulation

if TYPE_CHECKING:
    import httpx

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PEM = KEY.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
).decode()  # fmt: skip


class Setup:
    """The service, a simulation of its app, and a task that waits."""

    def __init__(self, sim: Simulation, module: ModuleType) -> None:
        self.sim = sim
        self.module = module
        self.task = sim.app.run_now("ship", {"number": 7}, id="order-7")
        sim.queue.deliver_due()

    def sign(self, **claims: Any) -> dict[str, str]:
        now = int(time.time())
        default = {
            "iss": "https://accounts.google.com",
            "aud": self.module.AUDIENCE,
            "email": self.module.SENDER,
            "email_verified": True,
            "iat": now,
            "exp": now + 600,
        }
        token = jwt.encode({**default, **claims}, KEY, algorithm="RS256", headers={"kid": "k"})
        return {"Authorization": f"Bearer {token}"}

    def post(self, path: str, **request: Any) -> httpx.Response:
        return post(self.module.service, path, **request)

    def push(self, payload: object = None, **attributes: str) -> dict[str, Any]:
        data = base64.b64encode(json.dumps(payload).encode()).decode()
        return {"message": {"data": data, "attributes": attributes, "messageId": "1"}, "subscription": "s"}

    def result(self) -> object:
        self.sim.run_until_idle()
        return self.sim.executions(self.task.id)[0].content


@pytest.fixture(name="setup")
def open_service(load: Load, monkeypatch: pytest.MonkeyPatch) -> Iterator[Setup]:
    handlers = load("approvals.md", "shipping")
    module = load("approvals.md", "service")
    monkeypatch.setattr(id_token, "_fetch_certs", lambda *_: {"k": PEM})
    with Simulation(handlers.app) as sim:
        yield Setup(sim, module)


def test_a_message_of_pub_sub_is_an_event(setup: Setup) -> None:
    """The attributes name task and event, the data is the payload."""
    message = setup.push({"amount": 12}, task="order-7", event="paid")
    answer = setup.post("/events/pubsub", json=message, headers=setup.sign())
    assert (answer.status_code, setup.result()) == (204, "order 7, paid 12")


def test_a_cloud_event_of_eventarc_is_an_event(setup: Setup) -> None:
    """Its subject ends in the task's id, its type in the event's name."""
    headers = {**setup.sign(), "ce-subject": "orders/order-7", "ce-type": "com.shop.paid"}
    answer = setup.post("/events/eventarc", json={"amount": 3}, headers=headers)
    assert (answer.status_code, setup.result()) == (204, "order 7, paid 3")


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ({"aud": "https://another.example"}, 401),
        ({"iss": "https://evil.example"}, 401),
        ({"exp": 1}, 401),
        ({"email": "somebody@else.example"}, 403),
        ({"email_verified": False}, 403),
    ],
    ids=str,
)
def test_others_are_refused(claims: dict[str, Any], status: int, setup: Setup) -> None:
    """Whoever has no token of that account for this service sends nothing."""
    message = setup.push({"amount": 1}, task="order-7", event="paid")
    assert setup.post("/events/pubsub", json=message, headers=setup.sign(**claims)).status_code == status
    assert setup.post("/events/pubsub", json=message).status_code == 401
    assert setup.sim.app.get("order-7").events == ()


def test_what_can_never_be_delivered_is_acknowledged(setup: Setup) -> None:
    """An unknown task or event would be pushed for days; an outage is worth another push."""
    for attributes in ({"task": "none", "event": "paid"}, {}, {"task": "order-7", "event": "a b"}):
        answer = setup.post("/events/pubsub", json=setup.push(1, **attributes), headers=setup.sign())
        assert answer.status_code == 204


def test_an_outage_is_pushed_again(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    """503 makes Pub/Sub repeat the message."""

    def fail(*_: object, **__: object) -> None:
        raise StoreUnavailable("The store", "down")

    monkeypatch.setattr(type(setup.sim.app), "send_event", fail)
    message = setup.push({"amount": 1}, task="order-7", event="paid")
    assert setup.post("/events/pubsub", json=message, headers=setup.sign()).status_code == 503
