"""The operator's own channels are reached by Apprise, each once, and no address is shown."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.people.senders.messages import make_message
from werkzeug.wrappers import Request, Response

from cloudsched import Settings
from cloudsched.engine.ports.sender import Recipient
from cloudsched.errors import DeliveryDelayed, Misconfigured, MissingExtra
from cloudsched.local.wsgi_server import WebServer
from cloudsched.people.senders.apprise import AppriseSender
from cloudsched.people.senders.channel_senders import Senders

NOBODY = Recipient(address="")
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")
"""Apprise imports it, where Python still has it."""


@dataclass
class Team:
    """A team's server, which takes JSON."""

    address: str = ""
    status: dict[str, int] = field(default_factory=dict)
    received: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def url(self, room: str) -> str:
        """Return a room's address as Apprise writes it."""
        return f"json://user:s3cret@{self.address}/{room}"


@pytest.fixture
def team() -> Iterator[Team]:
    state = Team()

    @Request.application
    def answer(request: Request) -> Response:
        room = request.path.strip("/")
        status = state.status.get(room, 200)
        if status == 200:
            state.received.append((room, json.loads(request.get_data())))
        return Response(status=status)

    with WebServer(answer) as server:
        server.serve()
        state.address = server.address
        yield state


def test_a_channel_that_fails_is_tried_again_without_the_others(team: Team) -> None:
    """The one that has taken it gets it once. All get it by the settings, whoever the recipient is."""
    sender = Senders(Settings(apprise_urls=(team.url("alerts"), team.url("ops"))))["OPERATOR"]
    team.status["ops"] = 503
    with pytest.raises(DeliveryDelayed, match="1 of the operator's 2"):
        sender.send(make_message(), NOBODY)
    team.status.clear()
    assert sender.send(make_message(), NOBODY) == make_message().id
    assert [room for room, _ in team.received] == ["alerts", "ops"]
    assert {(each["title"], each["message"]) for _, each in team.received} == {
        ("Water the plants", "All of them.\n\nThe fern twice.")
    }


def test_an_address_that_is_none_is_refused_without_being_shown() -> None:
    """It contains a password."""
    with pytest.raises(Misconfigured, match="Address 1") as caught:
        AppriseSender(["nothing-known://user:s3cret@example.com"])
    assert "s3cret" not in str(caught.value)
    assert "s3cret" not in repr(Settings(apprise_urls=("json://user:s3cret@example.com",)))


def test_without_the_extra_the_error_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """An install without Apprise says what to type, and only when the channel is used."""
    monkeypatch.setitem(sys.modules, "apprise", None)
    senders = Senders(Settings(apprise_urls=("json://example.com/room",)))
    assert "OPERATOR" in senders, "to ask makes no sender"
    with pytest.raises(MissingExtra, match="its extra apprise"):
        senders["OPERATOR"].send(make_message(), NOBODY)
