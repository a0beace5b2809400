"""An update writes the fields that have changed, and leaves the document that writing everything would have left."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from pydantic_core import to_jsonable_python
from tests.conftest import MakeTask
from tests.contract.conftest import load
from tests.harness import new_project

from cloudsched import App, Context, Fail, RetryPolicy, Schedule, Settings
from cloudsched.adapters.firestore.list_fields import to_document
from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.adapters.firestore.values import decode
from cloudsched.domain.documents.delivery_channels import Delivery
from cloudsched.domain.documents.task import Task
from cloudsched.domain.transitions.commit import Commit, VersionedTask
from cloudsched.testing import START, Simulation

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
DELIVERY = Delivery(
    channel="EMAIL", task_id="t", execution_id="e", category="OTHERS", created_at=START, message_id="m", thread="t"
)
SENT = DELIVERY.model_copy(update={"siblings": ("d",)})


def to_text(data: object) -> str:
    """Return data as JSON, which tells 1 from true and from 1.0."""
    return json.dumps(to_jsonable_python(data), sort_keys=True)


class ComparedStore(FirestoreStore):
    """Compares each task that is committed with what a write of all its fields says."""

    def __init__(self, address: str, project: str = "", *, shards: int = 1) -> None:
        self.project = project or new_project()
        super().__init__(project=self.project, emulator=address, deadline=MINUTE, shards=shards)
        self.masks: dict[str, list[set[str]]] = {}
        send = self._rpc.commit

        def commit(writes: Sequence[Any]) -> Any:  # noqa: ANN401 - a protobuf message
            for write in writes:
                if write.update.name and write.HasField("update_mask"):
                    name = write.update.name.partition("/documents/")[2]
                    self.masks.setdefault(name, []).append(set(write.update_mask.field_paths))
            return send(writes)

        self.send = commit
        self.read = self._rpc.get
        self._rpc.commit = commit  # type: ignore[method-assign]

    def commit(self, commit: Commit) -> VersionedTask:
        committed = super().commit(commit)
        for each in (commit, *commit.others):
            document, _ = self._rpc.get(f"{self._documents}/tasks/{each.task.id}")
            assert document is not None
            assert to_document(Task, document) == each.task
            stored = decode(document.fields)
            assert stored["private"].pop("commitId")
            assert stored["private"]["changed"].pop("at")
            whole = decode(self._writes.build_document(each.task, "tasks", each.task.id).update.fields)
            assert to_text(stored) == to_text(whole)
        return committed


@pytest.fixture
def compared(firestore_address: str) -> ComparedStore:
    return ComparedStore(firestore_address)


def test_updates_leave_what_writing_everything_would_have_left(compared: ComparedStore) -> None:
    """Runs, failures, retries, durable steps, children, offers to workers, edits and a pause, after each commit."""
    app = App(Settings())

    @app.handler("tick")
    def tick(ctx: Context, payload: dict[str, Any]) -> int:
        ctx.used(queries=1)
        return len(payload)

    @app.handler("fail")
    def fail(ctx: Context) -> Fail | None:
        if ctx.attempt == 1:
            raise RuntimeError("once")
        return Fail("for good")

    @app.handler("order")
    def order(ctx: Context) -> object:
        ctx.step("charge", lambda: 1)
        ctx.sleep(20 * MINUTE)
        return ctx.wait_for("paid", timeout=30 * MINUTE)

    with Simulation(app, store=compared) as sim:
        hourly = Schedule.every(HOUR, start=START + HOUR)
        deep = {"list": [1, [2]], "one": 1}
        app.create(
            id="tick", owner="ada", title="T", handler="tick", schedule=hourly, payload=deep, delivery_channels=("WEB",)
        )
        app.create(id="fail", owner="ada", title="F", handler="fail", schedule=hourly, retry=RetryPolicy(max_retries=1))
        app.create(id="order", owner="ada", title="O", handler="order", schedule=Schedule.once(START + HOUR))
        app.create(id="pull", owner="ada", title="P", handler="tick", schedule=hourly, pull="presses", lock_key="one")
        children = ({"title": "A", "handler": "tick"}, {"title": "B", "handler": "fail"})
        app.create(id="both", owner="ada", title="C", children=children, schedule=Schedule.once(START + HOUR))
        sim.advance(HOUR + 25 * MINUTE)
        app.send_event("order", "paid", {"by": [1, True]})
        app.update("tick", payload={**deep, "one": True}, description="To see", retry=RetryPolicy(max_retries=7))
        app.update("tick", payload={**deep, "one": 1.0}, description="", retry=RetryPolicy())
        app.pause("fail")
        sim.advance(HOUR)
        app.resume("fail")
        app.trigger("tick")
        sim.advance(HOUR)
        app.cancel("tick")
        app.delete("pull")
        sim.advance(5 * MINUTE)
        assert app.get("tick").run_count == 3
    compared.close()


def test_a_delivery_keeps_its_hidden_fields_where_they_are(compared: ComparedStore, make_task: MakeTask) -> None:
    """What lists would find it by stays one level deeper, also when it changes or goes."""
    task = make_task(delivery=DELIVERY)
    stored = compared.commit(Commit(task, None))
    for changes in (
        {"status": "PAUSED"},
        {"next_execution_time": None},
        {"next_execution_time": START},
        {"delivery": SENT},
    ):
        stored = compared.commit(Commit(stored.task.model_copy(update=changes), stored))
    hidden = [["unlisted.status"], *[["unlisted.nextExecutionTime"]] * 2]
    assert compared.masks[f"tasks/{task.id}"] == [{"private.commitId", *paths} for paths in (*hidden, ["delivery"])]
    compared.close()


def test_an_update_corrects_the_shard(firestore_address: str, make_task: MakeTask) -> None:
    """A writer that knows of more shards says so whatever it changes, as one that writes everything did."""
    few = ComparedStore(firestore_address)
    many = ComparedStore(firestore_address, few.project, shards=50)
    task = make_task(id="in-another-shard")
    few.commit(Commit(task, None))
    stored = load(many, task.id)
    stored = many.commit(Commit(stored.task.model_copy(update={"title": "X"}), stored))
    many.commit(Commit(stored.task.model_copy(update={"title": "Y"}), stored))
    assert many.masks[f"tasks/{task.id}"] == [
        {"title", "private.commitId", "private.changed.shard"},
        {"title", "private.commitId"},
    ]
    few.close()
    many.close()
