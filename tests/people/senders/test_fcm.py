"""Pushes go out as FCM documents it, and its answers are taken as it means them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from google.auth.credentials import Credentials
from tests.people.senders.fcm_server import FcmServer, serve_fcm
from tests.people.senders.messages import make_message

from cloudsched import App, Settings
from cloudsched.adapters.safe_http import limit_session
from cloudsched.domain.documents.person import PersonSpec
from cloudsched.engine.authority import OWN_CODE
from cloudsched.engine.ports.sender import Recipient
from cloudsched.errors import AddressGone, DeliveryDelayed, DeliveryRefused
from cloudsched.people.senders.channel_senders import Senders
from cloudsched.people.senders.fcm import FcmSender
from cloudsched.people.wiring import PeopleWiring
from cloudsched.testing import Simulation

PHONE = Recipient(address="phone:1")


class OwnCredentials(Credentials):
    """What Google's library would find on a machine that has some."""

    def refresh(self, request: object) -> None:
        """Get a token, of which there is one."""
        del request
        self.token = "of-the-test"  # noqa: S105 - of nothing


@pytest.fixture(autouse=True)
def _have_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("google.auth.default", lambda **_: (OwnCredentials(), None))  # type: ignore[no-untyped-call]  # it has no types


@pytest.fixture
def fcm(monkeypatch: pytest.MonkeyPatch) -> Iterator[FcmServer]:
    with serve_fcm() as server:
        url = f"{server.url}/v1/projects/{{0}}/messages:send"
        monkeypatch.setattr("firebase_admin.messaging._MessagingService.FCM_URL", url)
        yield server


def send(fcm: FcmServer, recipient: Recipient = PHONE, **changes: Any) -> str:
    del fcm  # it is at the address
    return FcmSender("demo-plants", limit_session).send(make_message(**changes), recipient)


def test_a_push_has_what_the_device_shows_and_what_the_app_needs(fcm: FcmServer) -> None:
    """And it is known by FCM's name for it. This program's own credentials are with it."""
    assert send(fcm, data={"taskId": "t", "executionId": "e", "content": [1]}) == "projects/demo-plants/messages/0:1"
    assert fcm.credentials == ["Bearer of-the-test"]
    (push,) = fcm.pushed
    assert push["token"] == PHONE.address
    assert push["notification"] == {"title": "Water the plants", "body": "All of them.\n\nThe fern twice."}
    assert push["data"] == {"messageId": "msg_4f9aT1", "kind": "notification", "taskId": "t", "executionId": "e"}


def test_a_repeat_replaces_what_the_device_shows(fcm: FcmServer) -> None:
    """All tries have one tag, and another message has another, however long its id is."""
    send(fcm)
    send(fcm)
    send(fcm, id="m" * 200)
    tags = [
        (
            each["android"]["notification"]["tag"],
            each["apns"]["headers"]["apns-collapse-id"],
            each["webpush"]["notification"]["tag"],
        )
        for each in fcm.pushed
    ]
    assert tags[0] == tags[1] == ("msg_4f9aT1",) * 3
    assert tags[2] != tags[0]
    assert all(len(each) <= 64 for each in tags[2])


@pytest.mark.parametrize("text", ["ä" * 5_000, "\n" * 5_000, '"' * 5_000, "🪴" * 5_000, "\x07" * 5_000])
def test_a_long_text_is_shortened_to_what_fcm_takes(fcm: FcmServer, text: str) -> None:
    """Instead of being refused."""
    send(fcm, title=text[:500], body=text, data={"taskId": "t" * 200, "executionId": "e"})
    assert len(fcm.pushed) == 1


@pytest.mark.parametrize(
    ("code", "is_gone"),
    [("UNREGISTERED", True), ("bad", True), ("SENDER_ID_MISMATCH", False), ("INVALID_ARGUMENT", False)],
)
def test_a_device_that_is_gone_gets_nothing_more(fcm: FcmServer, code: str, *, is_gone: bool) -> None:
    """Its token is unregistered, or no token at all. If the push, or the project, may be at fault, it is not gone."""
    if code == "bad":
        fcm.bad_tokens.add("phone:1")
    else:
        fcm.errors["phone:1"] = code
    with pytest.raises(AddressGone if is_gone else DeliveryRefused, match=None if is_gone else code) as caught:
        send(fcm)
    assert isinstance(caught.value, AddressGone) == is_gone


@pytest.mark.parametrize(
    ("code", "header", "wait"),
    [
        ("QUOTA_EXCEEDED", "120", timedelta(minutes=2)),
        ("QUOTA_EXCEEDED", None, timedelta(minutes=1)),
        ("UNAVAILABLE", "30", timedelta(seconds=30)),
        ("INTERNAL", "never", None),
    ],
)
def test_what_may_pass_is_tried_later(fcm: FcmServer, code: str, header: str | None, wait: timedelta | None) -> None:
    """Not before the time for which FCM asks."""
    fcm.errors["phone:1"] = code
    fcm.headers = {} if header is None else {"Retry-After": header}
    with pytest.raises(DeliveryDelayed, match=code) as caught:
        send(fcm)
    assert caught.value.retry_after == wait
    assert len(fcm.credentials) == 1  # the library itself would have waited, and tried again


@pytest.mark.parametrize("raw", [(502, "<html>"), (404, "Not Found"), (500, "[1]"), (503, '{"error": "x"}'), (302, "")])
def test_what_a_proxy_answers_is_tried_later(fcm: FcmServer, raw: tuple[int, str]) -> None:
    """A 404 without FCM's own words does not end a device."""
    fcm.raw = raw
    with pytest.raises(DeliveryDelayed):
        send(fcm)


def test_devices_that_are_gone_are_removed_and_others_get_the_push(fcm: FcmServer) -> None:
    """From the task to the device, through FCM's own protocol; one device that takes it is enough."""
    app = App(Settings())
    app.handler("say")(lambda: "Water the plants")
    fcm.errors["phone:1"] = "UNREGISTERED"
    devices = [{"token": "phone:1"}, {"token": "laptop:1"}]
    with Simulation(app) as sim:
        PeopleWiring.of(app.container).replace(senders=Senders(Settings(fcm_project="demo-plants")))
        PeopleWiring.of(app.container).people.put("ada", PersonSpec.model_validate({"devices": devices}), by=OWN_CODE)
        app.create(owner="ada", title="Plants", handler="say", schedule=sim.now, delivery_channels=["MOBILE"])
        sim.advance(timedelta(minutes=1))
        (push,) = fcm.pushed
        assert (push["token"], push["notification"]["title"]) == ("laptop:1", "Plants")
        assert [each.token for each in PeopleWiring.of(app.container).people.get("ada").devices] == ["laptop:1"]
