"""Pings reach a check as healthchecks.io takes them, and a user's URL leads nowhere that it should not."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from tests.cases import try_each
from tests.people.senders.messages import make_message
from werkzeug.wrappers import Request, Response

from cloudsched.adapters.safe_http import make_session
from cloudsched.adapters.safe_http.dead_man_switch import PingSender
from cloudsched.engine.ports.sender import Recipient
from cloudsched.errors import DeliveryDelayed, DeliveryRefused
from cloudsched.local.wsgi_server import WebServer

LOCAL_SESSION = partial(make_session, ["127.0.0.0/8"], max_bytes=1_000)


class Checks:
    """A server with checks: what is posted to ``/ID``, ``/ID/start`` and ``/ID/fail`` is kept with the call."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, bytes]] = []
        self.address = ""
        self.status = 200
        self.headers: dict[str, str] = {}

    def send(self, path: str, sender: PingSender | None = None) -> str:
        sender = sender or PingSender(LOCAL_SESSION, allows_http=True)
        return sender.send(make_message(), Recipient(address=self.address + path))


@pytest.fixture
def checks() -> Iterator[Checks]:
    state = Checks()

    @Request.application
    def answer(request: Request) -> Response:
        state.calls.append((request.method, request.path, request.get_data()))
        return Response("OK" * 10_000, status=state.status, headers=state.headers)

    with WebServer(answer) as server:
        server.serve()
        state.address = f"http://{server.address}"
        yield state


def test_a_check_is_posted_the_text(checks: Checks) -> None:
    """And its answer, however long, is not read."""
    message = make_message()
    assert checks.send("/id/start") == message.id
    assert checks.calls == [("POST", "/id/start", message.body.encode())]


@pytest.mark.parametrize("status", [404, 410])
def test_a_check_that_is_gone_gets_nothing_more(checks: Checks, status: int) -> None:
    """Trying again would not bring it back."""
    checks.status = status
    with pytest.raises(DeliveryRefused, match=f"answered {status}: there is no such check"):
        checks.send("/id")


@pytest.mark.parametrize("status", [302, 400, 429, 500])
def test_every_other_answer_is_tried_again(checks: Checks, status: int) -> None:
    """As late as it asks for; a redirect is not followed."""
    checks.status, checks.headers = status, {"Retry-After": "90", "Location": f"{checks.address}/elsewhere"}
    with pytest.raises(DeliveryDelayed) as delayed:
        checks.send("/id")
    assert delayed.value.retry_after is not None
    assert delayed.value.retry_after.total_seconds() == 90
    assert len(checks.calls) == 1


@try_each(
    "url",
    [
        "http://hc.example/id",
        "https://user:password@hc.example/id",
        "ftp://hc.example/id",
        "https://127.0.0.1/id",
        "https://169.254.169.254/computeMetadata/v1/",
        "https://[fd00:ec2::254]/latest/",
        "https://10.0.0.1/id",
        "https://localhost/id",
        "https://[::1/id",
    ],
)
def test_an_address_that_users_may_not_reach_gets_nothing(url: str) -> None:
    """Not https, with a password, or inside: refused for good, before anything is sent."""
    sender = PingSender(partial(make_session, max_bytes=1_000))
    with pytest.raises(DeliveryRefused):
        sender.send(make_message(), Recipient(address=url))
