"""What every dispatcher promises: delivery at least once, not before its instant, again until it is accepted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engine.harness import SECOND
from tests.harness import WAIT_SECONDS, in_steps, wait_until

from cloudsched.adapters import in_process_queue as inprocess
from cloudsched.adapters.clocks import ManualClock
from cloudsched.adapters.google.cloud_tasks import CloudTasksDispatcher
from cloudsched.adapters.in_process_queue import InProcessDispatcher
from cloudsched.emulator import CloudTasksEmulator, MovableClock
from cloudsched.engine.ports.queue import Dispatcher, QueueMessage
from cloudsched.errors import QueueUnavailable

NOW = datetime(2027, 1, 1, 9, tzinfo=UTC)


@dataclass
class Executor:
    """Receives dispatches: records each with its instant, and refuses as many as the test says."""

    now: Callable[[], datetime]
    to_refuse: int = 0
    received: list[tuple[datetime, bytes, str]] = field(default_factory=list)
    accepted: list[bytes] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def deliver(self, body: bytes, token: str) -> None:
        with self._lock:
            self.received.append((self.now(), body, token))
            if self.to_refuse:
                self.to_refuse -= 1
                raise ConnectionError("refused, as the test says")
            self.accepted.append(body)

    def wait_for(self, count: int) -> None:
        wait_until(lambda: len(self.accepted) >= count, lambda: f"{len(self.accepted)} of {count} were delivered")


@dataclass
class DispatcherUnderTest:
    """A dispatcher, the executor that it delivers to, and its clock."""

    dispatcher: Dispatcher
    executor: Executor
    advance: Callable[[timedelta], object]

    def send(self, name: str, after: timedelta = timedelta(0), **fields: object) -> None:
        envelope = QueueMessage(name, NOW + after, name.encode(), f"token of {name}", **fields)  # type: ignore[arg-type]
        self.dispatcher.create(envelope)

    def advance_until_accepted(self) -> None:
        """Move the clock in small steps until a dispatch is accepted: the time of the redelivery is not known."""

        def advance() -> list[bytes]:
            self.advance(timedelta(milliseconds=100))
            return self.executor.accepted

        wait_until(advance, lambda: f"{len(self.executor.received)} were received, none accepted")


OpenLine = Callable[[], "AbstractContextManager[DispatcherUnderTest]"]


@contextmanager
def in_process() -> Iterator[DispatcherUnderTest]:
    clock = ManualClock(NOW)
    executor = Executor(clock.now)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inprocess, "CLOCK_CHECK_SECONDS", 0.002)  # its clock runs as real time does; the test's is moved
        with InProcessDispatcher(clock, in_steps(executor.deliver), workers=3) as dispatcher:
            yield DispatcherUnderTest(dispatcher, executor, clock.advance)


@contextmanager
def cloud_tasks() -> Iterator[DispatcherUnderTest]:
    clock = MovableClock(NOW, frozen=True)
    executor = Executor(clock.now)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            is_whole = self.path == "/execute" and self.headers["Content-Type"] == "application/json"
            try:
                assert is_whole, f"{self.path} {self.headers}"
                executor.deliver(body, self.headers["X-Cloudsched-Token"])
            except ConnectionError:
                self.send_error(503)
            else:
                self.send_response(204)
                self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket.listen(64)  # not 5: beyond it connections may be reset, and a stopped clock redelivers nothing
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        with CloudTasksEmulator(clock=clock, auto_create_queues=True) as emulator:
            dispatcher = CloudTasksDispatcher(
                project="demo",
                location="us-central1",
                queue="cloudsched",
                url=f"http://127.0.0.1:{server.server_port}/execute",
                emulator=emulator.address,
                deadline=timedelta(seconds=WAIT_SECONDS),
            )
            yield DispatcherUnderTest(dispatcher, executor, emulator.advance)
            dispatcher.close()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module", params=[in_process, cloud_tasks], ids=["in-process", "cloud-tasks"])
def open_dispatcher(request: pytest.FixtureRequest) -> OpenLine:
    """Open a new, empty dispatcher of each kind."""
    opened: OpenLine = request.param
    return opened


@pytest.fixture
def line(open_dispatcher: OpenLine) -> Iterator[DispatcherUnderTest]:
    with open_dispatcher() as opened:
        yield opened


def test_body_and_token_arrive_as_they_were_sent(line: DispatcherUnderTest) -> None:
    line.send("one")
    line.executor.wait_for(1)
    assert line.executor.received == [(NOW, b"one", "token of one")]


@pytest.mark.parametrize("after", [timedelta(0), -SECOND, timedelta(days=-400)])
def test_a_past_instant_is_delivered_now(line: DispatcherUnderTest, after: timedelta) -> None:
    line.send("one", after)
    line.executor.wait_for(1)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(delays=st.lists(st.integers(0, 20 * 86_400 * 10**6), min_size=1, max_size=6))
def test_nothing_is_delivered_before_its_instant_and_all_at_it(open_dispatcher: OpenLine, delays: list[int]) -> None:
    """The clock is moved from instant to instant; the dispatch due then shows that the queue has read the clock."""
    due = [timedelta(microseconds=delay) for delay in delays]
    with open_dispatcher() as line:
        for number, after in enumerate(due):
            line.send(f"n{number}", after)
        passed = timedelta(0)
        for at in sorted(set(due)):
            line.advance(at - passed)
            passed = at
            line.executor.wait_for(sum(after <= at for after in due))
            assert len(line.executor.received) == sum(after <= at for after in due)
        for received_at, body, _ in line.executor.received:
            assert received_at >= NOW + due[int(body[1:])]


def test_a_refused_dispatch_is_redelivered(line: DispatcherUnderTest) -> None:
    line.executor.to_refuse = 3
    line.send("one")
    line.advance_until_accepted()
    assert [body for _, body, _ in line.executor.received] == [b"one"] * 4
    assert {token for _, _, token in line.executor.received} == {"token of one"}


def test_a_name_is_created_once_while_pending_and_after_delivery(line: DispatcherUnderTest) -> None:
    line.send("later", SECOND)
    line.send("later", timedelta(0))
    line.send("now")
    line.send("now")
    line.executor.wait_for(1)
    line.send("now")
    line.advance(SECOND)
    line.executor.wait_for(2)
    line.send("later")
    line.send("last")
    line.executor.wait_for(3)
    assert line.executor.accepted == [b"now", b"later", b"last"]


def test_a_name_is_taken_while_it_is_redelivered(line: DispatcherUnderTest) -> None:
    line.executor.to_refuse = 1
    line.send("one")
    wait_until(lambda: line.executor.received)
    line.send("one")
    line.advance_until_accepted()
    line.send("last")
    line.executor.wait_for(2)
    assert line.executor.accepted == [b"one", b"last"]


def test_many_threads_can_create_dispatches_at_once(line: DispatcherUnderTest) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: line.send(f"n{number % 50}"), range(150)))
    line.executor.wait_for(50)
    line.send("last")
    line.executor.wait_for(51)
    assert sorted(line.executor.accepted) == sorted([f"n{number}".encode() for number in range(50)] + [b"last"])


def test_a_closed_dispatcher_refuses_dispatches(open_dispatcher: OpenLine) -> None:
    with open_dispatcher() as line:
        line.send("one")
        line.executor.wait_for(1)
        line.dispatcher.close()
        line.dispatcher.close()
        with pytest.raises(QueueUnavailable):
            line.send("two")
