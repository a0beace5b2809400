"""Lists across tasks, through both clients: each returns what the API has, parsed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from cloudsched.client import Client
    from cloudsched.testing import Simulation

NOW = datetime(2027, 1, 1, tzinfo=UTC)


def test_everything_that_is_listed_can_be_read(client: Client, sim: Simulation) -> None:
    """What ran, what will run, what waits, who works, what is counted, what may be named."""
    fields: dict[str, Any] = {"owner": "ada", "handler": "greet", "payload": {"name": "Ada"}}
    client.create(title="Now", id="now", labels=["team=a"], category="REPORT", **fields)
    client.create(title="Work", id="work", pull="gpu", lock_key="printer", **fields)
    client.create(title="Later", id="later", schedule="every day at 9", **fields)
    sim.advance(timedelta(minutes=6))
    (ran,) = client.find_executions(label="team=a", since=NOW, until=NOW + timedelta(days=1))
    assert (ran.task_id, ran.title, ran.status) == ("now", "Now", ExecutionStatus.SUCCEEDED)
    assert (ran.category, list(client.find_executions(category=Category.REPORT))) == (Category.REPORT, [ran])
    assert list(client.find_executions(category="ANALYSIS")) == []
    coming = list(client.occurrences(NOW + timedelta(days=2), owner="ada", since=NOW))
    assert [(one.task_id, one.utc) for one in coming] == [
        ("later", NOW + timedelta(hours=9)),
        ("later", NOW + timedelta(hours=33)),
    ]
    assert [(one.queue, one.waiting) for one in client.queues()] == [("gpu", 1)]
    assert [one.title for one in client.queued_tasks("gpu")] == ["Work"]
    assert (list(client.locks()), client.workers()) == ([], [])
    assert client.claim("gpu", worker="box")
    assert [[one.task_id for one in lock.holders] for lock in client.locks()] == [["work"]]
    assert [(one.worker, one.is_listening) for one in client.workers()] == [("box", True)]
    assert client.overview("ada").tasks[TaskStatus.COMPLETED] == 1
    assert client.change_cursor() == client.change_cursor()
    assert "greet" in [one.name for one in client.handlers()]


def test_a_task_is_tried_before_it_is_made(client: Client) -> None:
    """Nothing is stored; an edit is tried by the task's id."""
    fields: dict[str, Any] = {"owner": "ada", "handler": "greet", "payload": {"name": "Ada"}}
    tried = client.validate_task(title="T", id="t", schedule="every day at 9", **fields)
    assert len(tried.upcoming or ()) == 10
    assert list(client.tasks()) == []
    client.create(title="T", id="t", **fields)
    assert client.validate_task("t", title="U").title == "U"
    assert client.get("t").title == "T"
    with pytest.raises(InvalidInput, match="title"):
        client.validate_task("t", title="")


def test_all_that_match_are_changed(client: Client, sim: Simulation) -> None:
    """They are counted as they are changed; without a filter nothing is."""
    fields: dict[str, Any] = {"owner": "ada", "handler": "greet", "payload": {"name": "Ada"}, "schedule": "every year"}
    for name in ("a", "b"):
        client.create(title="T", id=name, **fields)
    until = NOW + timedelta(days=400)
    assert client.count_matching("pause", owner="ada", due_until=until) == 2
    task = client.batch_change("pause", ids=["a", "c"], idempotency_key="k")
    assert client.batch_change("pause", ids=["a", "c"], idempotency_key="k").id == task.id
    sim.advance(timedelta(minutes=1))
    assert client.wait(task.id, timedelta(seconds=1)).content["changed"] == 1
    assert {each.id: each.status for each in client.tasks(handler="greet")} == {"a": "PAUSED", "b": "ACTIVE"}
    with pytest.raises(InvalidInput, match="would match every task"):
        client.batch_change("delete")
