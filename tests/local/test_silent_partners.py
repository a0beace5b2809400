"""A partner that takes connections and never answers holds a share of the threads, and is named. Due work goes on."""

from __future__ import annotations

import json
import socket
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.harness import wait_until
from tests.people.senders.messages import make_message
from tests.people.senders.test_fcm import OwnCredentials

from cloudsched import App, RetryPolicy, Schedule, Settings
from cloudsched.adapters.circuit_breaker import CircuitBreakerProxy, Places
from cloudsched.adapters.safe_http import limit_session, make_session
from cloudsched.adapters.safe_http.dead_man_switch import PingSender
from cloudsched.adapters.safe_http.user_posts import UserPosts
from cloudsched.dashboard.views.need_rows import build_needs
from cloudsched.domain.documents.delivery_channels import COMPLETION, PING, USERS_CHANNELS, DeliveryChannel
from cloudsched.drafts.wiring import DraftsWiring
from cloudsched.engine.ports.sender import Recipient
from cloudsched.features.calendars import sources
from cloudsched.features.calendars.wiring import CalendarsWiring
from cloudsched.local.service import Service, run_service
from cloudsched.people.senders import fcm, smtp
from cloudsched.people.senders.channel_senders import Senders
from cloudsched.people.senders.slack import SlackApp
from cloudsched.people.senders.smtp import SmtpSender, SmtpServer
from cloudsched.people.senders.telegram import TelegramBot
from cloudsched.people.senders.webhook import WebhookSender
from cloudsched.people.wiring import PeopleWiring

THREADS = 8
CALLS = 30
SHORT = 0.4
make_local = partial(make_session, ["127.0.0.0/8"], max_bytes=1000)


class Partner:
    """A server that accepts. It says nothing, or a letter now and then, until it is to answer."""

    def __init__(self, drip: bytes) -> None:
        self.drip = drip
        self.answer = b""
        self.open = 0
        self.most = 0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._hold, args=(connection,), daemon=True).start()

    def _hold(self, connection: socket.socket) -> None:
        with self._lock:
            self.open += 1
            self.most = max(self.most, self.open)
        with connection, suppress(OSError):
            connection.settimeout(SHORT / 8)
            is_open = True
            while is_open:
                if self.answer:
                    connection.sendall(self.answer)
                    break
                if self.drip:
                    connection.sendall(self.drip)
                with suppress(TimeoutError):
                    is_open = connection.recv(65_536) != b""
        with self._lock:
            self.open -= 1

    def close(self) -> None:
        self._listener.close()


@dataclass(frozen=True)
class Row:
    """How a partner is called, and what shows that it answers again."""

    name: str
    """What it is called in ``/health``."""
    call: Callable[[App, Partner], object]
    said: str
    make: Callable[[Partner], Any] | None = None
    answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    drip: bytes = b"H"


def send(channel: str, app: App, partner: Partner) -> None:
    address = "ada@example.com" if channel == DeliveryChannel.EMAIL else f"{partner.url}/hook"
    recipient = Recipient(address=address, secrets=("whsec_c2VjcmV0",))
    PeopleWiring.of(app.container).senders[channel].send(make_message(), recipient)


def ask_model(app: App, _partner: Partner) -> None:
    DraftsWiring.of(app.container).language_models.find(None).complete("", {}, {})


def fetch_calendar(app: App, partner: Partner) -> None:
    CalendarsWiring.of(app.container).calendars._source.fetch(f"{partner.url}/days.ics", None)  # noqa: SLF001 - no task yet


def of_channel(channel: str, said: str, make: Callable[[Partner], Any], **more: Any) -> Row:
    return Row(channel.lower(), partial(send, channel), said, make, **more)


def make_smtp(partner: Partner) -> SmtpSender:
    return SmtpSender(SmtpServer.from_url(f"smtp://127.0.0.1:{partner.port}"), "cloudsched@example.com")


def make_webhooks(_: Partner) -> WebhookSender:
    return WebhookSender(make_local, allows_http=True, timeout=SHORT)


ROWS = [
    of_channel(DeliveryChannel.EMAIL, "The channel EMAIL", make_smtp, answer=b"421 busy\r\n", drip=b"2"),
    of_channel(DeliveryChannel.WEBHOOK, "The channel WEBHOOK at 127.0.0.1", make_webhooks),
    of_channel(COMPLETION, "The channel COMPLETION at 127.0.0.1", make_webhooks),
    of_channel(PING, "The channel PING at 127.0.0.1", lambda _: PingSender(make_local, allows_http=True)),
    of_channel(
        DeliveryChannel.MOBILE,
        "The channel MOBILE",
        lambda _: fcm.FcmSender("demo-plants", limit_session),
        answer=b"HTTP/1.1 503 Busy\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
    ),
    of_channel(
        DeliveryChannel.TELEGRAM, "The channel TELEGRAM", lambda it: TelegramBot("1:A", "secret", make_local, it.url)
    ),
    of_channel(DeliveryChannel.SLACK, "The channel SLACK", lambda it: SlackApp("xoxb", "secret", make_local, it.url)),
    Row("calendar", fetch_calendar, "The calendar's server at 127.0.0.1"),
    Row("assistant", ask_model, "The assistant"),
]


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smtp, "TIMEOUT_SECONDS", SHORT)
    monkeypatch.setattr(fcm, "TIMEOUT_SECONDS", SHORT)
    monkeypatch.setattr(sources, "FETCH_SECONDS", SHORT)
    monkeypatch.setitem(cast("dict[str, Any]", UserPosts.__init__.__kwdefaults__), "timeout", SHORT)
    defaults = cast("dict[str, Any]", CircuitBreakerProxy.__init__.__kwdefaults__)
    monkeypatch.setitem(defaults, "recovery", timedelta(seconds=SHORT))
    monkeypatch.setattr("google.auth.default", lambda **_: (OwnCredentials(), None))  # type: ignore[no-untyped-call]  # it has no types


def ask(service: Service, path: str) -> Any:  # noqa: ANN401 - JSON
    with urllib.request.urlopen(f"{service.url}{path}", timeout=10) as answer:  # noqa: S310 - of this test
        assert answer.status == 200
        return json.loads(answer.read())


class Scene:
    """A service whose tasks call a partner, and one task that is due again and again."""

    def __init__(self, service: Service, beats: list[int]) -> None:
        self.service = service
        self.app = service.app
        self._beats = beats

    def require_due_work(self) -> None:
        """Wait until due work has started three times more."""
        count = len(self._beats)
        wait_until(lambda: len(self._beats) >= count + 3)

    def find_state(self, name: str) -> str:
        return str(ask(self.service, "/health")["circuits"].get(name))

    def explain(self, channel: DeliveryChannel) -> str:
        """Return the explanation of a task that delivers by a channel."""
        task = self.app.create(
            owner="ada", handler="beat", delivery_channels=(channel,), schedule=Schedule.once(now() + timedelta(days=1))
        )
        return " ".join(each["sentence"] for each in ask(self.service, f"/v1/tasks/{task.id}/explain")["findings"])

    def list_home(self) -> list[str]:
        """Return the lines of what needs attention on Home."""
        counts = ask(self.service, "/v1/overview")
        answer = {"counts": counts, "tasks": {}, "records": {}, "sent": {}, "startable": [], "waits": [], "latest": {}}
        visit: Any = SimpleNamespace(role="admin", may_change=True, now=datetime.now(UTC))
        return [each.title for each in build_needs(answer, {}, [], visit)]


@contextmanager
def open_scene(folder: Path, rows: list[tuple[Row, Partner]], monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    url = rows[0][1].url
    monkeypatch.setattr("firebase_admin.messaging._MessagingService.FCM_URL", f"{url}/v1/projects/{{0}}/messages:send")
    monkeypatch.setenv("CLOUDSCHED_OPEN", "on")
    monkeypatch.setenv("CLOUDSCHED_REACHABLE", "127.0.0.0/8")
    monkeypatch.setenv("CLOUDSCHED_MODEL", "openai:small")
    monkeypatch.setenv("CLOUDSCHED_MODEL_URL", url)
    monkeypatch.setenv("CLOUDSCHED_ASSISTANT", "on")
    settings = Settings.from_environment()
    settings = replace(settings, assistant=replace(settings.assistant, timeout=timedelta(seconds=SHORT)))
    app = App()
    beats: list[int] = []

    @app.handler("beat")
    def beat() -> None:
        beats.append(1)

    @app.handler("call", retry=RetryPolicy.build(max_retries=20, base=timedelta(seconds=1), factor=1.0))
    def call(payload: dict[str, int]) -> None:
        row, partner = rows[payload["number"]]
        row.call(app, partner)

    with run_service(app, settings, data=folder, threads=THREADS) as service:
        senders = PeopleWiring.of(app.container).senders
        assert isinstance(senders, Senders)
        for row, partner in rows:
            if row.make is not None:
                senders._makers[_find_channel(row)] = partial(row.make, partner)  # noqa: SLF001 - they are elsewhere
        app.put_person(
            "ada",
            email={"address": "ada@example.com", "verified": True},
            devices=[{"token": "phone"}],
            webhook={"url": "https://127.0.0.1/hook", "verified": True},
            telegram={"id": "17", "verified": True},
            slack={"id": "U17", "verified": True},
        )
        app.create(owner="ada", handler="beat", schedule=Schedule(rrule="FREQ=SECONDLY", timezone="UTC"))
        for number in range(len(rows)):
            for _ in range(CALLS // len(rows) + 1):
                app.create(owner="ada", handler="call", payload={"number": number}, schedule=Schedule.once(now()))
        yield Scene(service, beats)


def now() -> datetime:
    return datetime.now(UTC)


def _find_channel(row: Row) -> str:
    return next(str(each) for each in (*DeliveryChannel, COMPLETION, PING) if each.lower() == row.name)


@pytest.mark.parametrize("manner", ["silent", "dripping"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_partner_that_never_answers_holds_its_share_and_is_named(
    row: Row, manner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A quarter of the threads at most, until its circuit opens; it closes once the partner answers."""
    partner = Partner(row.drip if manner == "dripping" else b"")
    try:
        with open_scene(tmp_path, [(row, partner)], monkeypatch) as scene:
            wait_until(lambda: partner.open > 0)
            scene.require_due_work()
            wait_until(lambda: scene.find_state(row.name) != "closed")
            assert partner.most <= THREADS // 4
            wait_until(lambda: any(row.said in line for line in scene.list_home()))
            assert ask(scene.service, "/ready")["circuits"][row.name] != "closed"
            assert row.said in " ".join(caplog.messages)
            if row.name.upper() in USERS_CHANNELS:
                assert row.said.partition(" at ")[0] in scene.explain(DeliveryChannel(row.name.upper()))
            scene.require_due_work()
            partner.answer = row.answer
            wait_until(lambda: scene.find_state(row.name) == "closed")
            assert f"{row.said} answers again" in caplog.messages
    finally:
        partner.close()


def test_all_partners_together_leave_half_of_the_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many of them say nothing at once."""
    partner = Partner(b"")
    try:
        with open_scene(tmp_path, [(row, partner) for row in ROWS], monkeypatch) as scene:
            wait_until(lambda: partner.open > 0)
            scene.require_due_work()
            assert partner.most <= THREADS // 2
    finally:
        partner.close()


def test_many_calls_without_a_place_come_again_one_after_the_other() -> None:
    """However many wait, a service with a few threads is not kept busy by their asking."""
    places = Places()
    places.threads = THREADS
    assert [places.take(("", "mail")) for _ in range(THREADS // 4)] == [0, 0]
    waits = [places.take(("", "mail")) for _ in range(100)]
    assert sorted(waits) == waits
    assert waits[0] > 1
    assert waits[-1] - waits[0] > 10
