"""Webhooks are signed as Standard Webhooks says, and a user's URL leads nowhere that it should not."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError
from tests.cases import try_each
from tests.people.senders.messages import make_message
from werkzeug.wrappers import Request, Response

from cloudsched.adapters.safe_http import make_session
from cloudsched.engine.ports.sender import Recipient
from cloudsched.errors import AddressGone, DeliveryDelayed, DeliveryRefused
from cloudsched.local.wsgi_server import WebServer
from cloudsched.people.senders.webhook import WebhookSender, sign

OLD, NEW = (f"whsec_{base64.b64encode(bytes([each]) * 24).decode()}" for each in (1, 2))
LOCAL_SESSION = partial(make_session, ["127.0.0.0/8"])
SENDER = WebhookSender(LOCAL_SESSION, allows_http=True)


@dataclass
class Endpoint:
    address: str = ""
    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    requests: list[tuple[bytes, dict[str, str]]] = field(default_factory=list)

    def send(self, *secrets: str) -> str:
        """Send the usual message here."""
        return SENDER.send(make_message(), Recipient(address=f"{self.address}/hook", secrets=secrets or (NEW,)))


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    state = Endpoint()

    @Request.application
    def answer(request: Request) -> Response:
        state.requests.append((request.get_data(), dict(request.headers)))
        return Response("x" * 1000 if state.status != 204 else "", status=state.status, headers=state.headers)

    with WebServer(answer) as server:
        server.serve()
        state.address = f"http://{server.address}"
        yield state


def test_the_reference_library_verifies_what_is_sent(endpoint: Endpoint) -> None:
    """A receiver with the old or the new secret accepts the request, and one with another refuses it."""
    assert endpoint.send(NEW, OLD) == "msg_4f9aT1"
    ((body, headers),) = endpoint.requests
    for secret in (OLD, NEW):
        assert Webhook(secret).verify(body, headers)["data"]["title"] == "Water the plants"
    with pytest.raises(WebhookVerificationError):
        Webhook(base64.b64encode(b"eve" * 8).decode()).verify(body, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(NEW).verify(body.replace(b"plants", b"cables"), headers)


def test_all_tries_have_one_id_and_one_body(endpoint: Endpoint) -> None:
    """A receiver that keeps ids sees a repeat as one."""
    endpoint.send()
    endpoint.send()
    assert len({(body, headers["Webhook-Id"]) for body, headers in endpoint.requests}) == 1
    assert json.loads(endpoint.requests[0][0])["type"] == "notification"


@pytest.mark.parametrize("status", [301, 307, 400, 404, 429, 500, 503])
def test_every_other_answer_is_tried_again(endpoint: Endpoint, status: int) -> None:
    """Only 2xx is success; a redirect is not followed. 410 says that the URL wants nothing more."""
    endpoint.status, endpoint.headers = status, {"Location": f"{endpoint.address}/elsewhere", "Retry-After": "120"}
    with pytest.raises(DeliveryDelayed, match=str(status)) as caught:
        endpoint.send()
    assert caught.value.retry_after == timedelta(minutes=2)
    assert len(endpoint.requests) == 1
    endpoint.status = 410
    with pytest.raises(AddressGone):
        endpoint.send()


STRANGE = ("soon", "-1", "Thu, 99 Nov 2026", "²", "")


@pytest.mark.parametrize("text", [*STRANGE, "9" * 400, "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_strange_retry_after_is_ignored(endpoint: Endpoint, text: str) -> None:
    """An answer cannot make the sender stumble, nor wait for years: a day is the most."""
    endpoint.status, endpoint.headers = 503, {"Retry-After": text.encode().decode("latin-1")}
    with pytest.raises(DeliveryDelayed) as caught:
        endpoint.send()
    assert caught.value.retry_after == (None if text in STRANGE else timedelta(days=1))


@try_each(
    "url",
    [
        "http://example.com/hook",
        "ftp://example.com",
        "file:///etc/passwd",
        "https://user:pass@example.com",
        "https://",
        "https://[::1",
        "https://127.0.0.1/hook",
        "https://169.254.169.254/computeMetadata/v1/",
        "https://2130706433/",
        "https://[::ffff:127.0.0.1]/",
    ],
)
def test_a_url_to_what_only_this_machine_reaches_is_refused(url: str) -> None:
    """Metadata servers, this machine, other schemes and passwords: refused, and never tried again."""
    with pytest.raises(DeliveryRefused):
        WebhookSender(make_session).send(make_message(), Recipient(address=url, secrets=(NEW,)))


@try_each("secrets", [(), ("",), ("whsec_",), ("not base64!",)])
def test_nothing_is_sent_without_a_signature(secrets: tuple[str, ...]) -> None:
    """A webhook that nobody can verify is not sent."""
    with pytest.raises(DeliveryRefused):
        sign("msg", 1, b"{}", secrets)


def test_a_server_that_sends_a_line_now_and_then_is_cut_off() -> None:
    """The limit is that of the whole request: an answer in time would be this one, and it is not waited for."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connected, _ = listening.accept()
            with connected, suppress(OSError):
                for status in (*["100 Continue"] * 100, "204 No Content"):
                    connected.sendall(f"HTTP/1.1 {status}\r\n\r\n".encode())
                    was_stopped.wait(0.02)

        was_stopped, server = threading.Event(), threading.Thread(target=answer, daemon=True)
        server.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/hook"
        with pytest.raises(DeliveryDelayed):
            WebhookSender(LOCAL_SESSION, allows_http=True, timeout=0.3).send(
                make_message(), Recipient(address=url, secrets=(NEW,))
            )
        was_stopped.set()
        server.join(60)
