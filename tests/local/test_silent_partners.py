"""A partner that takes connections and never answers holds a share of the threads, and is named. Due work goes on."""

from __future__ import annotations

import json
import socketserver
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from tests.harness import wait_until
from tests.instants import DAY, SECOND
from tests.people.senders.messages import make_message
from tests.people.senders.test_fcm import OwnCredentials

from cloudsched import App, RetryPolicy, Schedule, Settings
from cloudsched.adapters.circuit_breaker import CircuitBreakerProxy, Places
from cloudsched.adapters.safe_http import limit_session, make_session
from cloudsched.adapters.safe_http.dead_man_switch import PingSender
from cloudsched.adapters.safe_http.user_posts import UserPosts
from cloudsched.domain.documents.delivery_channels import COMPLETION, PING, USERS_CHANNELS, DeliveryChannel
from cloudsched.drafts.wiring import DraftsWiring
from cloudsched.engine.ports.sender import Recipient
from cloudsched.features.calendars import sources
from cloudsched.features.calendars.wiring import CalendarsWiring
from cloudsched.local.service import run_service
from cloudsched.people.senders import fcm, smtp
from cloudsched.people.senders.slack import SlackApp
from cloudsched.people.senders.smtp import SmtpSender, SmtpServer
from cloudsched.people.senders.telegram import TelegramBot
from cloudsched.people.senders.webhook import WebhookSender
from cloudsched.people.wiring import PeopleWiring

THREADS = 8
CALLS = 30
SHORT = 0.2
make_local = partial(make_session, ["127.0.0.0/8"], max_bytes=1000)


class Partner(socketserver.ThreadingTCPServer):
    """A server that accepts. It says nothing, or a letter now and then, until it is to answer."""

    request_queue_size = 128
    daemon_threads = True
    block_on_close = False

    def __init__(self, drip: bytes) -> None:
        self.drip = drip
        self.answer = b""
        self.open = self.most = 0
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), self._hold)
        self.at = f"127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, args=[SHORT], daemon=True).start()

    def server_close(self) -> None:
        self.shutdown()
        super().server_close()

    def _hold(self, connection: Any, _address: object, _server: object) -> Any:  # noqa: ANN401 - a socket
        with self._lock:
            self.open += 1
            self.most = max(self.most, self.open)
        connection.settimeout(SHORT / 8)
        with suppress(OSError):
            is_open = True
            while is_open and not self.answer:
                connection.sendall(self.drip)
                with suppress(TimeoutError):
                    is_open = connection.recv(65_536) != b""
            connection.sendall(self.answer)
        with self._lock:
            self.open -= 1


class Row(NamedTuple):
    """How a partner is called, and what shows that it answers again."""

    name: str
    """What it is called in ``/health``."""
    said: str
    make: Callable[[str], Any] | None = None
    """Makes the sender of the channel that is named so, to an address."""
    answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"


def make_webhooks(_at: str) -> WebhookSender:
    return WebhookSender(make_local, allows_http=True, timeout=SHORT)


def make_smtp(at: str) -> SmtpSender:
    return SmtpSender(SmtpServer.from_url(f"smtp://{at}"), "cloudsched@example.com")


ROWS = [
    Row(DeliveryChannel.EMAIL, "The channel EMAIL", make_smtp, b"421 busy\r\n"),
    Row(DeliveryChannel.WEBHOOK, "The channel WEBHOOK at 127.0.0.1", make_webhooks),
    Row(COMPLETION, "The channel COMPLETION at 127.0.0.1", make_webhooks),
    Row(PING, "The channel PING at 127.0.0.1", lambda _: PingSender(make_local, allows_http=True)),
    Row(
        DeliveryChannel.MOBILE,
        "The channel MOBILE",
        lambda _: fcm.FcmSender("demo-plants", limit_session),
        b"HTTP/1.1 503 Busy\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
    ),
    Row(
        DeliveryChannel.TELEGRAM,
        "The channel TELEGRAM",
        lambda at: TelegramBot("1:A", "secret", make_local, f"http://{at}"),
    ),
    Row(DeliveryChannel.SLACK, "The channel SLACK", lambda at: SlackApp("xoxb", "secret", make_local, f"http://{at}")),
    Row("calendar", "The calendar's server at 127.0.0.1"),
    Row("assistant", "The assistant"),
]


def call(app: App, row: Row, at: str) -> None:
    if row.make is not None:
        address = "ada@example.com" if row.name == DeliveryChannel.EMAIL else f"http://{at}/hook"
        recipient = Recipient(address=address, secrets=("whsec_c2VjcmV0",))
        PeopleWiring.of(app.container).senders[row.name].send(make_message(), recipient)
    elif row.name == "calendar":
        CalendarsWiring.of(app.container).calendars._source.fetch(f"http://{at}/", None)  # noqa: SLF001 - no task yet
    else:
        DraftsWiring.of(app.container).language_models.find(None).complete("", {}, {})


class Scene(NamedTuple):
    """A service whose tasks call a partner."""

    app: App
    url: str

    def ask(self, path: str) -> Any:  # noqa: ANN401 - JSON
        with urllib.request.urlopen(f"{self.url}{path}", timeout=10) as answer:  # noqa: S310 - of this test
            return json.loads(answer.read())

    def create(self, handler: str, **more: Any) -> str:
        return self.app.create(**{"owner": "ada", "handler": handler, "schedule": at_once(), **more}).id

    def require_due_work(self) -> None:
        task = self.create("beat")
        wait_until(
            lambda: any(each.status == "SUCCEEDED" for each in self.app.executions(task).items), "due work runs", 20
        )


def at_once() -> Schedule:
    return Schedule.once(datetime.now(UTC))


@contextmanager
def open_scene(folder: Path, rows: list[Row], partner: Partner, patch: pytest.MonkeyPatch) -> Iterator[Scene]:
    patch.setattr(smtp, "TIMEOUT_SECONDS", SHORT)
    patch.setattr(fcm, "TIMEOUT_SECONDS", SHORT)
    patch.setattr(sources, "FETCH_SECONDS", SHORT)
    patch.setitem(cast("dict[str, Any]", UserPosts.__init__.__kwdefaults__), "timeout", SHORT)
    defaults = cast("dict[str, Any]", CircuitBreakerProxy.__init__.__kwdefaults__)
    patch.setitem(defaults, "recovery", timedelta(seconds=SHORT))
    patch.setattr("google.auth.default", lambda **_: (OwnCredentials(), None))  # type: ignore[no-untyped-call]  # it has no types
    patch.setattr("firebase_admin.messaging._MessagingService.FCM_URL", f"http://{partner.at}/{{0}}")
    for name, value in {
        "OPEN": "on",
        "REACHABLE": "127.0.0.0/8",
        "MODEL": "openai:small",
        "MODEL_URL": f"http://{partner.at}",
        "ASSISTANT": "on",
    }.items():
        patch.setenv(f"CLOUDSCHED_{name}", value)
    settings = Settings.from_environment()
    settings = replace(settings, assistant=replace(settings.assistant, timeout=timedelta(seconds=SHORT)))
    app = App()

    @app.handler("beat")
    def beat() -> None:
        pass

    @app.handler("call", retry=RetryPolicy.build(max_retries=20, base=SECOND, factor=1.0))
    def call_partner(payload: dict[str, int]) -> None:
        call(app, rows[payload["number"]], partner.at)

    with run_service(app, settings, data=folder, threads=THREADS) as service:
        senders: Any = PeopleWiring.of(app.container).senders
        senders._makers |= {row.name: partial(row.make, partner.at) for row in rows if row.make}  # noqa: SLF001 - they are elsewhere
        app.put_person(
            "ada",
            email={"address": "ada@example.com", "verified": True},
            devices=[{"token": "phone"}],
            webhook={"url": "https://127.0.0.1/hook", "verified": True},
            telegram={"id": "17", "verified": True},
            slack={"id": "U17", "verified": True},
        )
        scene = Scene(app, service.url)
        for number in range(CALLS):
            scene.create("call", payload={"number": number % len(rows)})
        wait_until(lambda: partner.open)
        scene.require_due_work()
        yield scene


@pytest.mark.parametrize("drip", [b"", b"H"], ids=["silent", "dripping"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name.lower())
def test_a_partner_that_never_answers_holds_its_share_and_is_named(
    row: Row, drip: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A quarter of the threads at most, until its circuit opens; it closes once the partner answers."""
    with Partner(drip) as partner, open_scene(tmp_path, [row], partner, monkeypatch) as scene:
        name = row.name.lower()
        wait_until(lambda: scene.ask("/health")["circuits"].get(name, "closed") != "closed", "it opens", 20)
        assert partner.most < THREADS // 2  # at the partner, what was just given up may still be open
        assert scene.ask("/ready")["circuits"][name] != "closed"
        assert row.said in " ".join(caplog.messages)
        assert any(row.said in each["sentence"] for each in scene.ask("/v1/overview")["needs"])
        if row.name in USERS_CHANNELS:
            later = Schedule.once(datetime.now(UTC) + DAY)
            task = scene.create("beat", delivery_channels=(row.name,), schedule=later)
            assert row.said.partition(" at ")[0] in str(scene.ask(f"/v1/tasks/{task}/explain")["findings"])
        scene.require_due_work()
        partner.answer = row.answer
        wait_until(lambda: scene.ask("/health")["circuits"][name] == "closed", "it closes", 20)
        assert f"{row.said} answers again" in caplog.messages


def test_all_partners_together_leave_half_of_the_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many of them say nothing at once."""
    with Partner(b"") as partner, open_scene(tmp_path, ROWS, partner, monkeypatch):
        assert partner.most <= THREADS // 2


def test_many_calls_without_a_place_come_again_one_after_the_other() -> None:
    """However many wait, a service with a few threads is not kept busy by their asking."""
    places = Places()
    places.threads = THREADS
    assert [places.take(("", "mail")) for _ in range(THREADS // 4)] == [0, 0]
    waits = [places.take(("", "mail")) for _ in range(100)]
    assert sorted(waits) == waits
    assert waits[0] > 1
    assert waits[-1] - waits[0] > 10
