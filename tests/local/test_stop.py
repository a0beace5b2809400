"""A service that is stopped while a handler runs for longer than it waits."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.harness import wait_until
from tests.instants import SECOND

from cloudsched import App, Settings
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.config.access import Access
from cloudsched.local import runner
from cloudsched.local.service import run_service


def test_what_still_runs_is_given_up_and_costs_no_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log names it, and its record says why. The next process runs it again, and all of its retries are left."""
    monkeypatch.setattr(runner, "GRACE", 0.1 * SECOND)
    app, settings = App(), Settings(access=Access(open=True))
    begun, may_end, runs = threading.Event(), threading.Event(), list[int]()

    @app.handler("work", retry=False)
    def work() -> str:
        runs.append(1)
        begun.set()
        may_end.wait()
        return "done"

    with run_service(app, settings, data=tmp_path):
        app.create(id="it", handler="work")
        assert begun.wait(10)
    assert "they run again after the next start: 'work'." in caplog.text
    store = SqliteStore(tmp_path / "tasks.db")
    (record,) = store.search.list_executions("it", limit=10).items
    assert (record.status, record.message, record.attempts) == ("RETRYING", "Its process was stopped.", ())
    store.close()
    may_end.set()  # what it returns is dropped, and the folder is free
    wait_until(lambda: not [each for each in threading.enumerate() if each.name == "cloudsched-folder-lock"])
    with run_service(app, settings, data=tmp_path):
        wait_until(lambda: app.get("it").has_ended, "it has run again")
        (record,) = app.executions("it").items
    assert (record.status, len(record.attempts), len(runs)) == ("SUCCEEDED", 1, 2)
