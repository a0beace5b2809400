"""A service whose disk is full, or whose file another process keeps locked, says so and goes on afterwards."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import pytest
from tests.harness import request, wait_until
from tests.instants import SECOND

from cloudsched import App, Context
from cloudsched.adapters import in_process_queue
from cloudsched.adapters.sqlite import database as sqlite_database
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.config.access import Access
from cloudsched.config.settings import Settings
from cloudsched.engine.concurrency import service_threads
from cloudsched.local import maintenance
from cloudsched.local.data_folder import STORE_FILE_NAME
from cloudsched.local.service import Service, run_service


@pytest.fixture
def ran() -> list[str]:
    return []


@pytest.fixture
def service(ran: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A service that waits nowhere for long."""
    monkeypatch.setattr(sqlite_database, "BUSY_TIMEOUT_SECONDS", 0.05)
    monkeypatch.setattr(in_process_queue, "MAX_BACKOFF", 0.1 * SECOND)
    monkeypatch.setattr(service_threads, "MAX_PAUSE", 0.01)
    for module in (in_process_queue, maintenance):
        monkeypatch.setattr(module, "CLOCK_CHECK_SECONDS", 0.01)
    app = App()

    @app.handler("note", access="users")
    def note(ctx: Context) -> None:
        ran.append(ctx.task.id)

    with run_service(app, Settings(access=Access(open=True)), data=tmp_path) as found:
        yield found


class FullDisk:
    """SQLite's connection on a disk without room: whatever is committed fails."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.is_full = True

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        if statement == "COMMIT" and self.is_full:
            raise sqlite3.OperationalError("database or disk is full")
        return self._connection.execute(statement, *values)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the connection has
        return getattr(self._connection, name)


def fill_disk(service: Service, _folder: Path) -> Callable[[], object]:
    """Let no write succeed; return what gives the disk room."""
    commits = cast("SqliteStore", service.app.container.store).database._commits  # noqa: SLF001 - from inside
    disk = FullDisk(commits._connection)  # noqa: SLF001 - the same
    commits._connection = disk  # type: ignore[assignment]  # noqa: SLF001 - all that it calls
    return lambda: setattr(disk, "is_full", False)


def lock_file(_service: Service, folder: Path) -> Callable[[], object]:
    """Keep the file locked for writers, as another process does; return what lets go of it."""
    other = sqlite3.connect(folder / STORE_FILE_NAME, isolation_level=None, timeout=60)
    other.execute("BEGIN IMMEDIATE")
    return other.close


def list_statuses(service: Service, task_id: str) -> list[str]:
    found = request(service.url, "GET", f"/v1/tasks/{task_id}/executions").body["executions"]
    return [each["status"] for each in found]


@pytest.mark.parametrize("begin", [fill_disk, lock_file])
def test_it_says_so_and_goes_on(
    service: Service, ran: list[str], tmp_path: Path, begin: Callable[[Service, Path], Callable[[], object]]
) -> None:
    """Nothing that was acknowledged is lost, and what was due meanwhile runs; each once."""

    def create(task_id: str, due_in: float) -> int:
        schedule = {"at": (datetime.now(UTC) + timedelta(seconds=due_in)).isoformat()}
        task = {"id": task_id, "owner": "ada", "handler": "note", "title": "Note", "schedule": schedule}
        return request(service.url, "POST", "/v1/tasks", task).status

    ready = request(service.url, "GET", "/ready")
    assert (ready.status, ready.body["release"]) == (200, version("cloudsched"))
    created, due_at = [f"due-{number}" for number in range(8)], datetime.now(UTC) + 2 * SECOND
    for task_id in created:
        assert create(task_id, (due_at - datetime.now(UTC)).total_seconds()) == 201
    with ExitStack() as stack:
        end = begin(service, tmp_path)
        stack.callback(end)
        assert create("refused", 3600) == 503
        reply = request(service.url, "GET", "/ready")
        assert reply.status == 503
        assert "full" in reply.body["detail"] or "locked" in reply.body["detail"]
        assert request(service.url, "GET", "/health").status == 200
        assert request(service.url, "GET", "/v1/tasks").status == 200, "reads go on"
        wait_until(lambda: datetime.now(UTC) > due_at, "the tasks are due")
        assert not ran
    wait_until(lambda: request(service.url, "GET", "/ready").status == 200, "it can write again")
    wait_until(lambda: {*ran} >= {*created}, "what was due runs")
    assert create("after", 3600) == 201
    for task_id in created:
        wait_until(lambda task_id=task_id: list_statuses(service, task_id) == ["SUCCEEDED"], "one record")  # type: ignore[misc]


def test_what_ran_while_the_disk_was_full_is_tried_again_at_once(tmp_path: Path, service: Service) -> None:
    """Its result could not be stored; the process knows that it no longer runs, and waits for no lease."""
    disk = list[Callable[[], object]]()
    app = service.app

    @app.handler("fill")
    def fill() -> None:
        if not disk:
            disk.append(fill_disk(service, tmp_path))

    app.create(id="a", owner="ada", title="Fill", handler="fill", retry=3)
    wait_until(lambda: disk and request(service.url, "GET", "/ready").status == 503, "its result cannot be stored")
    assert list_statuses(service, "a") == ["RUNNING"]
    disk[0]()
    wait_until(lambda: list_statuses(service, "a") == ["SUCCEEDED"], "it has run again")
    (record,) = request(service.url, "GET", "/v1/tasks/a/executions").body["executions"]
    assert [each.get("error", {}).get("type") for each in record["attempts"]] == ["ResultLost", None]
