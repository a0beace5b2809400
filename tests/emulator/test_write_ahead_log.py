"""`--data FILE`: nothing that was acknowledged is lost, wherever the process dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from google.api_core import exceptions
from tests.emulator.conftest import Client, Connect, Target
from tests.harness import WAIT_SECONDS

from cloudsched.emulator import CloudTasksEmulator, MovableClock, UnreadableData

LOCATION = "projects/demo/locations/us-central1"
QUEUE = f"{LOCATION}/queues/default"
START = datetime(2027, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
URL = "http://127.0.0.1:9/"


def read_state(client: Client) -> tuple[Any, Any]:
    """Return everything that a client can see."""
    queues = list(client.list_queues(parent=LOCATION))
    tasks = {
        queue.name: list(client.list_tasks(request={"parent": queue.name, "response_view": 2})) for queue in queues
    }
    return queues, tasks


def open_emulator(data: Path, at: datetime = START) -> CloudTasksEmulator:
    return CloudTasksEmulator(clock=MovableClock(at, frozen=True), data=data, seed=3)


def fill_emulator(client: Client) -> None:
    """Create one of everything that is stored."""
    for name in ("default", "paused", "deleted"):
        client.create_queue(parent=LOCATION, queue={"name": f"{LOCATION}/queues/{name}"})
    retry = {"max_attempts": 9, "max_doublings": 0, "min_backoff": {"nanos": 250_000_000}}
    limits = {"max_dispatches_per_second": 2.5, "max_concurrent_dispatches": 3}
    target = {"uri_override": {"host": "example.com"}, "header_overrides": [{"header": {"key": "a", "value": "b"}}]}
    changed = {"name": QUEUE, "retry_config": retry, "rate_limits": limits, "http_target": target}
    client.update_queue(queue=changed, update_mask={"paths": ["retry_config.max_doublings"]})
    client.update_queue(
        queue=changed, update_mask={"paths": ["retry_config.max_attempts", "rate_limits", "http_target"]}
    )
    client.pause_queue(name=f"{LOCATION}/queues/paused")
    client.delete_queue(name=f"{LOCATION}/queues/deleted")
    request = {
        "url": URL,
        "http_method": "PATCH",
        "headers": {"X-a": "ü"},
        "body": bytes(range(256)),
        "oidc_token": {"service_account_email": "a@b.c", "audience": "me"},
    }
    client.create_task(
        parent=QUEUE,
        task={
            "name": f"{QUEUE}/tasks/full",
            "http_request": request,
            "schedule_time": START + DAY,
            "dispatch_deadline": {"seconds": 77},
            "retry_config": {"max_attempts": 2},
        },
    )
    name = f"{QUEUE}/tasks/gone"
    client.create_task(parent=QUEUE, task={"name": name, "http_request": {"url": URL}, "schedule_time": START + DAY})
    client.delete_task(name=name)


def test_queues_and_tasks_survive_a_restart(tmp_path: Path, connect: Connect) -> None:
    data = tmp_path / "queues.data"
    with open_emulator(data) as emulator:
        client = connect(emulator.address)
        fill_emulator(client)
        before = read_state(client)
    for _ in range(2):  # the second time from a file that was written anew
        with open_emulator(data) as emulator:
            client = connect(emulator.address)
            assert read_state(client) == before
            with pytest.raises(exceptions.AlreadyExists):
                client.create_task(parent=QUEUE, task={"name": f"{QUEUE}/tasks/gone", "http_request": {"url": URL}})
            with pytest.raises(exceptions.FailedPrecondition):
                client.create_queue(parent=LOCATION, queue={"name": f"{LOCATION}/queues/deleted"})


def test_a_retry_continues_after_a_restart(tmp_path: Path, connect: Connect, target: Target) -> None:
    data = tmp_path / "queues.data"
    target.answer = lambda _hit: 404
    with open_emulator(data) as emulator:
        client = connect(emulator.address)
        client.create_queue(parent=LOCATION, queue={"name": QUEUE, "retry_config": {"min_backoff": {"seconds": 100}}})
        task = {"http_request": {"url": target.url}, "schedule_time": START + DAY}
        name = client.create_task(parent=QUEUE, task=task).name
        assert emulator.advance(DAY) == 1
    target.answer = lambda _hit: 200
    with open_emulator(data, START + DAY) as emulator:
        task = connect(emulator.address).get_task(name=name)
        assert (task.dispatch_count, task.response_count) == (1, 1)
        assert task.schedule_time == START + DAY + timedelta(seconds=100)
        assert emulator.run_until_idle() == 1
    headers = target.hits[1].headers
    assert headers["X-CloudTasks-TaskRetryCount"] == "1"
    assert headers["X-CloudTasks-TaskExecutionCount"] == "1"
    assert headers["X-CloudTasks-TaskPreviousResponse"] == "404"
    with open_emulator(data, START + DAY) as emulator:
        assert emulator.waiting() == []


@pytest.fixture
def filled(tmp_path: Path, connect: Connect) -> tuple[Path, list[tuple[int, int]]]:
    """A log file, and the file's length and the number of acknowledged tasks at several moments."""
    data = tmp_path / "queues.data"
    marks: list[tuple[int, int]] = []
    with open_emulator(data) as emulator:
        client = connect(emulator.address)
        client.create_queue(parent=LOCATION, queue={"name": QUEUE})
        for number in range(6):
            marks.append((data.stat().st_size, number))
            task = {"http_request": {"url": URL}, "schedule_time": START + DAY}
            client.create_task(parent=QUEUE, task=task)
        marks.append((data.stat().st_size, 6))
        whole = data.read_bytes()
    data.write_bytes(whole)
    return data, marks


def test_a_file_cut_anywhere_keeps_all_tasks_acknowledged_before_the_cut(
    filled: tuple[Path, list[tuple[int, int]]],
) -> None:
    """The file contained a task's record when its call returned."""
    data, marks = filled
    whole = data.read_bytes()
    for length in range(marks[0][0], len(whole) + 1, 37):
        data.write_bytes(whole[:length])
        acknowledged = max(count for size, count in marks if size <= length)
        with open_emulator(data) as emulator:
            assert len(emulator.waiting()) == acknowledged


def test_a_damaged_last_record_is_dropped_and_the_rest_kept(
    filled: tuple[Path, list[tuple[int, int]]], connect: Connect
) -> None:
    data, _ = filled
    whole = bytearray(data.read_bytes())
    whole[-5] ^= 0xFF
    data.write_bytes(bytes(whole) + os.urandom(50))
    with open_emulator(data) as emulator:
        assert len(emulator.waiting()) == 5
        client = connect(emulator.address)
        client.create_task(parent=QUEUE, task={"http_request": {"url": URL}, "schedule_time": START + DAY})
    with open_emulator(data) as emulator:
        assert len(emulator.waiting()) == 6


def test_a_file_that_is_not_a_log_is_refused_and_left_unchanged(tmp_path: Path) -> None:
    data = tmp_path / "notes.txt"
    data.write_text("my only copy", "utf-8")
    with pytest.raises(UnreadableData, match="not a log"):
        CloudTasksEmulator(data=data).start()
    assert data.read_text("utf-8") == "my only copy"


def test_two_emulators_cannot_share_a_file(tmp_path: Path) -> None:
    data = tmp_path / "queues.data"
    with open_emulator(data), pytest.raises(UnreadableData, match="running"):
        CloudTasksEmulator(data=data).start()
    with open_emulator(data):
        """It is free again."""


def test_a_reset_survives_a_restart(tmp_path: Path, connect: Connect) -> None:
    data = tmp_path / "queues.data"
    with open_emulator(data) as emulator:
        fill_emulator(connect(emulator.address))
        emulator.reset()
    with open_emulator(data) as emulator:
        assert not list(connect(emulator.address).list_queues(parent=LOCATION))


@pytest.mark.parametrize("run", range(3))
def test_acknowledged_tasks_survive_kill_9(tmp_path: Path, connect: Connect, run: int) -> None:
    """Every creation that was acknowledged before the kill is there after it."""
    data = tmp_path / "queues.data"
    command = [sys.executable, "-m", "cloudsched.emulator", "--port", "0", "--data", str(data), "--queue", QUEUE]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own program
    assert process.stdout is not None
    acknowledged: list[str] = []
    try:
        client = connect(process.stdout.readline().split()[-1])
        later = datetime.now(UTC) + DAY
        for number in range(40 + 30 * run):
            task = {"http_request": {"url": URL, "body": b"x" * 5000}, "schedule_time": later}
            acknowledged.append(client.create_task(parent=QUEUE, task=task).name)
            if number == 20 + 30 * run:
                process.send_signal(signal.SIGKILL)
    except (exceptions.ServiceUnavailable, exceptions.RetryError, exceptions.Unknown):
        pass
    finally:
        process.kill()
        process.wait(WAIT_SECONDS)
        process.stdout.close()
    assert len(acknowledged) > 20
    with CloudTasksEmulator(clock=MovableClock(frozen=True), data=data) as emulator:
        kept = {explanation.name for explanation in emulator.waiting()}
    assert kept >= set(acknowledged)


def test_a_call_returns_only_after_the_file_is_synced(
    tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs: list[int] = []
    real = os.fsync

    def count(descriptor: int) -> None:
        real(descriptor)
        syncs.append(descriptor)

    with open_emulator(tmp_path / "queues.data") as emulator:
        client = connect(emulator.address)
        client.create_queue(parent=LOCATION, queue={"name": QUEUE})
        monkeypatch.setattr(os, "fsync", count)
        for done in range(5):
            assert len(syncs) == done
            client.create_task(parent=QUEUE, task={"http_request": {"url": URL}, "schedule_time": START + DAY})


def test_a_full_disk_refuses_calls_until_there_is_room(tmp_path: Path, connect: Connect) -> None:
    """Half a record is written; everything that was acknowledged before and afterwards is kept."""
    resource = pytest.importorskip("resource")
    data = tmp_path / "queues.data"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    task = {"http_request": {"url": URL}, "schedule_time": START + DAY}
    with open_emulator(data) as emulator:
        client = connect(emulator.address)
        client.create_queue(parent=LOCATION, queue={"name": QUEUE})
        acknowledged = {client.create_task(parent=QUEUE, task=task).name}
        resource.setrlimit(resource.RLIMIT_FSIZE, (data.stat().st_size + 50, limits[1]))
        try:
            with pytest.raises(exceptions.ServiceUnavailable, match="cannot write"):
                client.create_task(parent=QUEUE, task=task, timeout=WAIT_SECONDS, retry=None)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        acknowledged.add(client.create_task(parent=QUEUE, task=task).name)
    with open_emulator(data) as emulator:
        assert {explanation.name for explanation in emulator.waiting()} >= acknowledged


@contextmanager
def limit_file_size(size: int) -> Iterator[None]:
    """Let no file grow beyond a size, as on a full disk."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_without_room_to_compact_the_emulator_starts_with_the_file_as_it_is(tmp_path: Path, connect: Connect) -> None:
    """Stored and added tasks survive, a cut record hides no other, and no partial copy is left."""
    data = tmp_path / "queues.data"
    with open_emulator(data) as emulator:
        client = connect(emulator.address)
        client.create_queue(parent=LOCATION, queue={"name": QUEUE})
        request = {"url": URL, "body": b"x" * 2000}
        names = {
            client.create_task(parent=QUEUE, task={"http_request": request, "schedule_time": START + DAY}).name
            for _ in range(3)
        }
    size = data.stat().st_size
    data.write_bytes(data.read_bytes() + b"\0\0\0\x09cut")
    emulator = open_emulator(data)
    with limit_file_size(size // 2):
        emulator.start()
    emulator.stop()
    assert data.stat().st_size == size
    assert sorted(path.name for path in tmp_path.iterdir()) == ["queues.data", "queues.data.lock"]
    with limit_file_size(size // 2):
        emulator.start()
    client = connect(emulator.address)
    names.add(client.create_task(parent=QUEUE, task={"http_request": {"url": URL}, "schedule_time": START + DAY}).name)
    emulator.stop()
    with open_emulator(data) as emulator:
        assert {explanation.name for explanation in emulator.waiting()} == names


def test_calls_succeed_while_the_file_cannot_be_compacted(
    tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without room for a copy, calls are still acknowledged, and the partial copy is removed."""
    data = tmp_path / "queues.data"
    with open_emulator(data):
        """Starting the emulator creates the file."""
    monkeypatch.setattr("cloudsched.emulator.write_ahead_log.MIN_REWRITE_BYTES", 2_000)
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with open_emulator(data) as emulator:
        client = connect(emulator.address)
        client.create_queue(parent=LOCATION, queue={"name": QUEUE})
        task = {"http_request": {"url": URL, "body": b"x" * 500}, "schedule_time": START + DAY}
        names = {client.create_task(parent=QUEUE, task=task, timeout=WAIT_SECONDS).name for _ in range(20)}
    assert not list(tmp_path.glob("*.new"))
    monkeypatch.undo()
    with open_emulator(data) as emulator:
        assert {explanation.name for explanation in emulator.waiting()} == names


def test_a_file_that_has_grown_is_compacted(tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloudsched.emulator.write_ahead_log.MIN_REWRITE_BYTES", 20_000)
    data = tmp_path / "queues.data"
    largest = 0
    with open_emulator(data) as emulator:
        client = connect(emulator.address)
        client.create_queue(parent=LOCATION, queue={"name": QUEUE})
        for number in range(60):
            request = {"url": URL, "body": b"x" * 1000}
            name = client.create_task(parent=QUEUE, task={"http_request": request, "schedule_time": START + DAY}).name
            if number % 10:
                client.delete_task(name=name)
            largest = max(largest, data.stat().st_size)
        before = read_state(client)
    assert largest < 45_000
    with open_emulator(data) as emulator:
        assert read_state(connect(emulator.address)) == before
