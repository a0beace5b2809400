"""The requests that a target gets, and what its responses lead to."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from tests.cases import try_each
from tests.emulator.conftest import DAY, QUEUE, START, Client, Connect, Target, add
from tests.harness import WAIT_SECONDS, wait_until
from tests.instants import SECOND

from cloudsched.emulator import CloudTasksEmulator
from cloudsched.emulator.runtime.http_sender import parse_retry_after


def test_a_request_has_the_headers_of_cloud_tasks(
    emulator: CloudTasksEmulator, grpc_client: Client, target: Target
) -> None:
    headers = {
        "content-TYPE": "text/plain",
        "X-CloudTasks-TaskName": "forged",
        "Host": "forged",
        "User-Agent": "forged",
    }
    name = add(grpc_client, url=f"{target.url}/path?a=b%20c", http_method="PUT", headers=headers, body=b"\0body")
    emulator.advance(DAY)
    (hit,) = target.hits
    assert (hit.method, hit.path, hit.body) == ("PUT", "/path?a=b%20c", b"\0body")
    assert hit.headers == {
        "Host": target.url.removeprefix("http://"),
        "User-Agent": "Google-Cloud-Tasks",
        "content-TYPE": "text/plain",
        "Content-Length": "5",
        "X-CloudTasks-QueueName": "default",
        "X-CloudTasks-TaskName": name.rpartition("/")[2],
        "X-CloudTasks-TaskRetryCount": "0",
        "X-CloudTasks-TaskExecutionCount": "0",
        "X-CloudTasks-TaskETA": f"{(START + DAY).timestamp():.6f}",
    }


@pytest.mark.parametrize("method", ["POST", "GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_every_http_method_is_sent(
    emulator: CloudTasksEmulator, grpc_client: Client, target: Target, method: str
) -> None:
    add(grpc_client, url=target.url, http_method=method)
    emulator.advance(DAY)
    assert [hit.method for hit in target.hits] == [method]
    assert emulator.attempts()[0].answer.ok


def test_a_retry_has_headers_about_the_previous_attempts(
    emulator: CloudTasksEmulator, grpc_client: Client, target: Target
) -> None:
    """Every retry is counted; only responses below 500 count as executions."""
    answers = [500, 404, 302, 200]
    target.answer = lambda _hit: answers[len(target.hits) - 1]
    add(grpc_client, url=target.url)
    assert emulator.run_until_idle() == 4

    def seen(header: str) -> list[str | None]:
        return [hit.headers.get(f"X-CloudTasks-{header}") for hit in target.hits]

    assert seen("TaskRetryCount") == ["0", "1", "2", "3"]
    assert seen("TaskExecutionCount") == ["0", "0", "1", "2"]
    assert seen("TaskPreviousResponse") == [None, "500", "404", "302"]
    assert seen("TaskRetryReason") == [None, "", "", ""]
    etas = [float(str(eta)) for eta in seen("TaskETA")]
    assert etas == pytest.approx([(START + DAY).timestamp() + wait for wait in (0, 0.1, 0.3, 0.7)])


def test_a_redirect_is_not_followed(emulator: CloudTasksEmulator, grpc_client: Client, target: Target) -> None:
    target.answer = lambda _hit: (302, {"Location": "/elsewhere"}, b"")
    grpc_client.update_queue(queue={"name": QUEUE, "retry_config": {"max_attempts": 3}})
    add(grpc_client, url=f"{target.url}/here")
    assert emulator.run_until_idle() == 3
    assert target.paths == ["/here"] * 3


def test_retry_after_delays_the_next_attempt(emulator: CloudTasksEmulator, grpc_client: Client, target: Target) -> None:
    target.answer = lambda _hit: (503, {"Retry-After": "60"}, b"") if len(target.hits) == 1 else 200
    add(grpc_client, url=target.url)
    emulator.run_until_idle()
    assert target.hits[1].at - target.hits[0].at == 60 * SECOND


@try_each(
    "value, seconds",
    [
        ("0", 0),
        ("120", 120),
        ("Fri, 01 Jan 2027 00:01:00 GMT", 60),
        ("Fri, 01 Jan 2021 00:01:00 GMT", 0),
        ("9" * 400, 30 * 86400),
        ("", None),
        ("soon", None),
        ("-5", None),
    ],
)
def test_retry_after_may_be_seconds_or_a_date(value: str, seconds: int | None) -> None:
    assert parse_retry_after(value, START) == (None if seconds is None else timedelta(seconds=seconds))


def test_an_attempt_ends_as_504_at_its_deadline(connect: Connect, target: Target) -> None:
    """The clock is running, and is moved past the deadline while the target does not respond."""
    released = threading.Event()
    target.answer = lambda _hit: 200 if len(target.hits) > 1 or released.wait(WAIT_SECONDS) else 500
    with CloudTasksEmulator(queues=[QUEUE]) as emulator:
        client = connect(emulator.address)
        client.create_task(
            parent=QUEUE, task={"http_request": {"url": target.url}, "dispatch_deadline": {"seconds": 15}}
        )
        wait_until(lambda: len(target.hits) == 1)
        emulator.clock.freeze(emulator.clock.now() + 16 * SECOND)
        emulator.clock.resume()
        wait_until(lambda: len(emulator.attempts()) == 2)
    released.set()
    assert emulator.attempts()[0].answer.timed_out
    assert target.hits[1].headers["X-CloudTasks-TaskPreviousResponse"] == "504"


@contextmanager
def raw_target(behave: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that reads a request and then misbehaves."""
    listener = socket.create_server(("127.0.0.1", 0))
    stopped = threading.Event()

    def serve() -> None:
        while not stopped.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(WAIT_SECONDS)
                try:
                    connection.recv(65536)
                    behave(connection)
                except OSError:
                    pass

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        stopped.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(WAIT_SECONDS)


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def endless(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        connection.sendall(b"x" * 1024 * 1024)


def garbage(connection: socket.socket) -> None:
    connection.sendall(b"\x16\x03\x01nonsense\r\n\r\n")


def cut(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")


def nothing(_connection: socket.socket) -> None:
    """Close without a response."""


@pytest.mark.parametrize("behave", [reset, endless, garbage, cut, nothing])
def test_any_misbehaviour_of_a_target_is_a_failed_attempt(
    emulator: CloudTasksEmulator, grpc_client: Client, behave: Callable[[socket.socket], None], target: Target
) -> None:
    grpc_client.update_queue(queue={"name": QUEUE, "retry_config": {"max_attempts": 2}})
    with raw_target(behave) as url:
        add(grpc_client, url=url)
        assert emulator.run_until_idle() == 2
    for attempt in emulator.attempts():
        assert not attempt.answer.ok
        assert attempt.answer.failure
    before = len(emulator.attempts())
    add(grpc_client, url=target.url)
    emulator.run_until_idle()
    assert [attempt.answer.ok for attempt in emulator.attempts()[before:]] == [True]  # the queue goes on


def test_get_task_shows_the_last_response(emulator: CloudTasksEmulator, client: Client, target: Target) -> None:
    target.answer = lambda _hit: 500
    name = add(client, url=target.url)
    emulator.advance(DAY)
    task = client.get_task(name=name)
    assert (task.dispatch_count, task.response_count) == (1, 1)
    assert task.first_attempt.dispatch_time == START + DAY
    assert task.last_attempt.response_time == START + DAY
    assert task.last_attempt.response_status.code == 13
    assert "500" in task.last_attempt.response_status.message
