"""How the API answers requests for documents that it cannot read."""

from __future__ import annotations

from typing import Any

import pytest
from tests.web.conftest import Call

from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.engine.ports.store import Commit
from cloudsched.errors import DamagedDocument
from cloudsched.testing import Simulation

SECRET = "what is in the document is nobody's business"  # noqa: S105 - a text to look for


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/tasks/t", None),
        ("PATCH", "/v1/tasks/t", {"title": "Another"}),
        ("POST", "/v1/tasks/t/pause", None),
        ("POST", "/v1/tasks/t/cancel", None),
        ("DELETE", "/v1/tasks/t", None),
    ],
)
@pytest.mark.parametrize("kind", ["damaged", "newer"])
def test_a_request_for_an_unreadable_document_is_answered_plainly(  # noqa: PLR0913 - parameters and fixtures
    *,
    sim: Simulation,
    call: Call,
    greeting: dict[str, Any],
    method: str,
    path: str,
    body: object,
    kind: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A problem that names the document and says what to do, with nothing of its content; no trace in the log."""
    task = sim.app.create(**greeting, id="t")
    if kind == "newer":
        stored = sim.app.container.store.load("t")
        assert stored
        sim.app.container.store.commit(Commit(task.model_copy(update={"schema_version": 7}), stored))
    else:

        def load(_: SqliteStore, task_id: str) -> None:
            type(task).from_stored(task_id, {"schemaVersion": 1, "handler": [SECRET]})

        monkeypatch.setattr(SqliteStore, "load", load)
    response = call(method, path, body)
    assert response.status_code == 500
    problem = response.get_json()
    expected = {"newer": ("Unsupported document", "Deploy the newer"), "damaged": ("Damaged document", "from a backup")}
    title, hint = expected[kind]
    assert problem["title"] == title
    assert hint in problem["hint"]
    assert "t" in problem["detail"].replace("'", "").split()
    assert SECRET not in response.get_data(as_text=True)
    told = [each for each in caplog.records if getattr(each, "action", None) == "unreadable"]
    assert told
    assert not any(each.exc_info for each in told)
    assert SECRET not in caplog.text


def test_damage_is_described_without_the_values() -> None:
    """Where it is and what kind of error; the values stay where they are."""
    error = DamagedDocument("Task", "t", "handler is not valid (string_type)")
    assert str(error).startswith("The stored task 't' is damaged: handler is not valid (string_type). Restore it")
