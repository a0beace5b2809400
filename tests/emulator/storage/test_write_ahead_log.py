"""`--data FILE`: nothing acknowledged is lost, wherever the process dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from google.api_core import exceptions
from tests.emulator.conftest import PATIENCE

from cloudsched.emulator import CloudTasksEmulator, MovableClock, UnreadableData

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.emulator.conftest import Client, Connect, Target

LOCATION = "projects/demo/locations/us-central1"
QUEUE = f"{LOCATION}/queues/default"
START = datetime(2027, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
URL = "http://127.0.0.1:9/"


def state(client: Client) -> tuple[Any, Any]:
    """All that a client can see."""
    queues = list(client.list_queues(parent=LOCATION))
    tasks = {
        queue.name: list(client.list_tasks(request={"parent": queue.name, "response_view": 2})) for queue in queues
    }
    return queues, tasks


def emulator_with(data: Path, at: datetime = START) -> CloudTasksEmulator:
    return CloudTasksEmulator(clock=MovableClock(at, frozen=True), data=data, seed=3)


def fill(client: Client) -> None:
    """One of everything that is kept."""
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
    routing = {"service": "s", "version": "v"}
    app_engine = {"relative_uri": "/x", "http_method": "PUT", "body": b"b", "app_engine_routing": routing}
    client.create_task(parent=QUEUE, task={"app_engine_http_request": app_engine, "schedule_time": START + DAY})
    name = f"{QUEUE}/tasks/gone"
    client.create_task(parent=QUEUE, task={"name": name, "http_request": {"url": URL}, "schedule_time": START + DAY})
    client.delete_task(name=name)


def test_everything_is_there_again(tmp_path: Path, connect: Connect) -> None:
    data = tmp_path / "queues.data"
    with emulator_with(data) as emulator:
        client = connect(emulator.address)
        fill(client)
        before = state(client)
    for _ in range(2):  # the second time from a file that was written anew
        with emulator_with(data) as emulator:
            client = connect(emulator.address)
            assert state(client) == before
            with pytest.raises(exceptions.AlreadyExists):
                client.create_task(parent=QUEUE, task={"name": f"{QUEUE}/tasks/gone", "http_request": {"url": URL}})
            with pytest.raises(exceptions.FailedPrecondition):
                client.create_queue(parent=LOCATION, queue={"name": f"{LOCATION}/queues/deleted"})


def test_a_retry_goes_on_where_it_was(tmp_path: Path, connect: Connect, target: Target) -> None:
    data = tmp_path / "queues.data"
    target.answer = lambda _hit: 404
    with emulator_with(data) as emulator:
        client = connect(emulator.address)
        client.create_queue(parent=LOCATION, queue={"name": QUEUE, "retry_config": {"min_backoff": {"seconds": 100}}})
        task = {"http_request": {"url": target.url}, "schedule_time": START + DAY}
        name = client.create_task(parent=QUEUE, task=task).name
        assert emulator.advance(DAY) == 1
    target.answer = lambda _hit: 200
    with emulator_with(data, START + DAY) as emulator:
        task = connect(emulator.address).get_task(name=name)
        assert (task.dispatch_count, task.response_count) == (1, 1)
        assert task.schedule_time == START + DAY + timedelta(seconds=100)
        assert emulator.run_until_idle() == 1
    headers = target.hits[1].headers
    assert headers["X-CloudTasks-TaskRetryCount"] == "1"
    assert headers["X-CloudTasks-TaskExecutionCount"] == "1"
    assert headers["X-CloudTasks-TaskPreviousResponse"] == "404"
    with emulator_with(data, START + DAY) as emulator:
        assert emulator.waiting() == []


@pytest.fixture
def filled(tmp_path: Path, connect: Connect) -> tuple[Path, list[tuple[int, int]]]:
    """A journal, and for points in time how long the file was and how many tasks had been acknowledged."""
    data = tmp_path / "queues.data"
    marks: list[tuple[int, int]] = []
    with emulator_with(data) as emulator:
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


def test_a_file_cut_anywhere_has_all_that_was_acknowledged_before(filled: tuple[Path, list[tuple[int, int]]]) -> None:
    """Acknowledged means synced: the file held it when the call returned."""
    data, marks = filled
    whole = data.read_bytes()
    for length in range(marks[0][0], len(whole) + 1, 37):
        data.write_bytes(whole[:length])
        acknowledged = max(count for size, count in marks if size <= length)
        with emulator_with(data) as emulator:
            assert len(emulator.waiting()) == acknowledged


def test_a_damaged_end_is_dropped_and_the_rest_kept(
    filled: tuple[Path, list[tuple[int, int]]], connect: Connect
) -> None:
    data, _ = filled
    whole = bytearray(data.read_bytes())
    whole[-5] ^= 0xFF
    data.write_bytes(bytes(whole) + os.urandom(50))
    with emulator_with(data) as emulator:
        assert len(emulator.waiting()) == 5
        client = connect(emulator.address)
        client.create_task(parent=QUEUE, task={"http_request": {"url": URL}, "schedule_time": START + DAY})
    with emulator_with(data) as emulator:
        assert len(emulator.waiting()) == 6


def test_a_file_that_is_not_a_log_is_refused_and_left_unchanged(tmp_path: Path) -> None:
    data = tmp_path / "notes.txt"
    data.write_text("my only copy", "utf-8")
    with pytest.raises(UnreadableData, match="not a log"):
        CloudTasksEmulator(data=data).start()
    assert data.read_text("utf-8") == "my only copy"


def test_two_emulators_cannot_share_a_file(tmp_path: Path) -> None:
    data = tmp_path / "queues.data"
    with emulator_with(data), pytest.raises(UnreadableData, match="running"):
        CloudTasksEmulator(data=data).start()
    with emulator_with(data):
        """It is free again."""


def test_reset_is_kept_too(tmp_path: Path, connect: Connect) -> None:
    data = tmp_path / "queues.data"
    with emulator_with(data) as emulator:
        fill(connect(emulator.address))
        emulator.reset()
    with emulator_with(data) as emulator:
        assert not list(connect(emulator.address).list_queues(parent=LOCATION))


@pytest.mark.parametrize("run", range(3))
def test_kill_9_in_the_middle_of_creating(tmp_path: Path, connect: Connect, run: int) -> None:
    """Every create that was acknowledged before the kill is there after it."""
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
        process.wait(PATIENCE)
        process.stdout.close()
    assert len(acknowledged) > 20
    with CloudTasksEmulator(clock=MovableClock(frozen=True), data=data) as emulator:
        kept = {explanation.name for explanation in emulator.waiting()}
    assert kept >= set(acknowledged)


def test_a_call_returns_only_after_a_sync(tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs: list[int] = []
    real = os.fsync

    def count(descriptor: int) -> None:
        real(descriptor)
        syncs.append(descriptor)

    with emulator_with(tmp_path / "queues.data") as emulator:
        client = connect(emulator.address)
        client.create_queue(parent=LOCATION, queue={"name": QUEUE})
        monkeypatch.setattr(os, "fsync", count)
        for done in range(5):
            assert len(syncs) == done
            client.create_task(parent=QUEUE, task={"http_request": {"url": URL}, "schedule_time": START + DAY})


def test_a_full_disk_refuses_and_recovers(tmp_path: Path, connect: Connect) -> None:
    """Half a record is written, then nothing more: what was acknowledged before and after is all there."""
    resource = pytest.importorskip("resource")
    data = tmp_path / "queues.data"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    task = {"http_request": {"url": URL}, "schedule_time": START + DAY}
    with emulator_with(data) as emulator:
        client = connect(emulator.address)
        client.create_queue(parent=LOCATION, queue={"name": QUEUE})
        acknowledged = {client.create_task(parent=QUEUE, task=task).name}
        resource.setrlimit(resource.RLIMIT_FSIZE, (data.stat().st_size + 50, limits[1]))
        try:
            with pytest.raises(exceptions.ServiceUnavailable, match="cannot write"):
                client.create_task(parent=QUEUE, task=task, timeout=PATIENCE, retry=None)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        acknowledged.add(client.create_task(parent=QUEUE, task=task).name)
    with emulator_with(data) as emulator:
        assert {explanation.name for explanation in emulator.waiting()} >= acknowledged


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Let no file grow beyond a size, as on a full disk."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_without_room_for_a_second_file_it_starts_with_the_first(tmp_path: Path, connect: Connect) -> None:
    """Tasks that are there and tasks that are added survive, a cut record hides nothing, and no half copy stays."""
    data = tmp_path / "queues.data"
    with emulator_with(data) as emulator:
        client = connect(emulator.address)
        client.create_queue(parent=LOCATION, queue={"name": QUEUE})
        request = {"url": URL, "body": b"x" * 2000}
        names = {
            client.create_task(parent=QUEUE, task={"http_request": request, "schedule_time": START + DAY}).name
            for _ in range(3)
        }
    size = data.stat().st_size
    data.write_bytes(data.read_bytes() + b"\0\0\0\x09cut")
    emulator = emulator_with(data)
    with file_size_limit(size // 2):
        emulator.start()
    emulator.stop()
    assert data.stat().st_size == size
    assert sorted(path.name for path in tmp_path.iterdir()) == ["queues.data", "queues.data.lock"]
    with file_size_limit(size // 2):
        emulator.start()
    client = connect(emulator.address)
    names.add(client.create_task(parent=QUEUE, task={"http_request": {"url": URL}, "schedule_time": START + DAY}).name)
    emulator.stop()
    with emulator_with(data) as emulator:
        assert {explanation.name for explanation in emulator.waiting()} == names


def test_a_file_that_cannot_be_compacted_keeps_growing(
    tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without room for a copy, calls are still acknowledged, and the half copy is removed."""
    data = tmp_path / "queues.data"
    with emulator_with(data):
        """Starting the emulator creates the file."""
    monkeypatch.setattr("cloudsched.emulator.storage.write_ahead_log.MIN_REWRITE_BYTES", 2_000)
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with emulator_with(data) as emulator:
        client = connect(emulator.address)
        client.create_queue(parent=LOCATION, queue={"name": QUEUE})
        task = {"http_request": {"url": URL, "body": b"x" * 500}, "schedule_time": START + DAY}
        names = {client.create_task(parent=QUEUE, task=task, timeout=PATIENCE).name for _ in range(20)}
    assert not list(tmp_path.glob("*.new"))
    monkeypatch.undo()
    with emulator_with(data) as emulator:
        assert {explanation.name for explanation in emulator.waiting()} == names


def test_a_file_that_has_grown_is_compacted(tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloudsched.emulator.storage.write_ahead_log.MIN_REWRITE_BYTES", 20_000)
    data = tmp_path / "queues.data"
    largest = 0
    with emulator_with(data) as emulator:
        client = connect(emulator.address)
        client.create_queue(parent=LOCATION, queue={"name": QUEUE})
        for number in range(60):
            request = {"url": URL, "body": b"x" * 1000}
            name = client.create_task(parent=QUEUE, task={"http_request": request, "schedule_time": START + DAY}).name
            if number % 10:
                client.delete_task(name=name)
            largest = max(largest, data.stat().st_size)
        before = state(client)
    assert largest < 45_000
    with emulator_with(data) as emulator:
        assert state(connect(emulator.address)) == before
