"""Deleting and exporting all that is stored of a person, also when the process dies in between."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from tests.authorities import A_USER, as_user
from tests.record_kinds import list_record_kinds

from cloudsched import App, Context, Schedule, Settings
from cloudsched.adapters.sqlite.database import SqliteDatabase
from cloudsched.domain.control_flow import ControlFlow
from cloudsched.domain.documents.person import EmailContact, PersonSpec, WebhookContact
from cloudsched.domain.documents.queue_pause import QueuePause
from cloudsched.domain.documents.task import Task, TaskStatus
from cloudsched.domain.documents.task_link import TaskLink
from cloudsched.engine.authority import OWN_CODE
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.sweep.shard_sweeps import SweepNote
from cloudsched.engine.sweep.zone_watch import ZoneRelease
from cloudsched.errors import InvalidInput
from cloudsched.features.budgets.budget import Budget
from cloudsched.people import person_data, person_erasure, person_export
from cloudsched.people.documents import ExportPart, LinkKey, PersonJob
from cloudsched.people.person_data import list_exported_records, list_owned_records
from cloudsched.people.person_jobs import PersonJobs
from cloudsched.people.wiring import PeopleWiring
from cloudsched.testing import Simulation

DAILY = timedelta(days=1)


class Killed(ControlFlow):
    """The process has died."""


def make_app() -> App:
    """Return an app whose handler tells its owner something, and costs something."""
    app = App(Settings())

    @app.handler("tell")
    def tell(ctx: Context) -> str:
        ctx.notify("Hello", "You!" * 100)
        ctx.used(queries=2, tokens=3)
        return "told"

    return app


def fill(sim: Simulation, owner: str, tasks: int = 3) -> None:
    """Store something of every kind."""
    app = sim.app
    for number in range(tasks):
        app.create(owner=owner, title=f"T{number}", handler="tell", schedule=Schedule.every(DAILY))
    spec = PersonSpec(
        email=EmailContact(address=f"{owner}@example.com"), webhook=WebhookContact(url="https://x.example/")
    )
    PeopleWiring.of(app.container).people.put(owner, spec, by=A_USER)
    PeopleWiring.of(app.container).feeds.create(owner, by=OWN_CODE)


def what_is_left(sim: Simulation, owner: str) -> list[object]:
    """Return all that is stored of an owner, except the deletion itself."""
    store = sim.app.container.store
    left: list[object] = [
        task
        for task in store.list_tasks(TaskQuery(owner=owner), limit=500).items
        if task.handler != "cloudsched.erase-person"
    ]
    left += store.inbox.list(owner, limit=500).items
    for kind in list_owned_records():
        left += store.records.list(kind, owner, limit=500)
    left += (each for each in store.records.list_all(PersonJob, limit=500) if each.owner == owner)
    return left


@pytest.fixture
def sim() -> Iterator[Simulation]:
    """Ada and Bob have something of every kind, and three days have passed."""
    with Simulation(make_app()) as simulation:
        fill(simulation, "ada")
        fill(simulation, "bob")
        simulation.advance(timedelta(days=3))
        yield simulation


def jobs(sim: Simulation) -> PersonJobs:
    return PeopleWiring.of(sim.app.container).person_jobs


def finish(sim: Simulation, task: Task) -> Task:
    for _ in range(40):
        sim.advance(timedelta(minutes=2))
        if (ended := sim.app.get(task.id)).has_ended:
            return ended
    raise AssertionError("it does not end")


def test_every_kind_of_record_is_deleted() -> None:
    """Whoever adds a kind has to say whether it is a person's.

    Jobs, keys, budgets, calendars' and sweeps' notes, paused queues and the time zone data's release are not.
    """
    assert list_record_kinds() == {
        *list_owned_records(),
        PersonJob,
        LinkKey,
        TaskLink,
        SweepNote,
        ZoneRelease,
        QueuePause,
        Budget,
    }
    assert set(list_exported_records()) <= {*list_owned_records(), Budget}


def test_everything_is_deleted_and_nobody_else_s(sim: Simulation) -> None:
    """Tasks with executions, messages, contacts, secrets, feeds; the task says how far it is, and goes, too."""
    bobs = len(what_is_left(sim, "bob"))
    assert len(what_is_left(sim, "ada")) == bobs > 10
    task = jobs(sim).erase("ada", by=OWN_CODE)
    ended = finish(sim, task)
    assert ended.status is TaskStatus.COMPLETED
    assert what_is_left(sim, "ada") == []
    assert len(what_is_left(sim, "bob")) == bobs
    (execution,) = sim.executions(task.id)
    notes = [note.text for note in execution.progress]
    assert "3 tasks deleted" in notes
    assert any("of people deleted" in note for note in notes)
    sim.advance(timedelta(days=2))
    assert sim.app.container.store.load(task.id) is None


def test_a_repeated_request_finds_what_is_under_way(sim: Simulation) -> None:
    """Also for an export; after its end, another one is made."""
    for start in (jobs(sim).erase, jobs(sim).export):
        first = start("bob", by=OWN_CODE)
        again = start("bob", by=OWN_CODE)
        assert isinstance(first, Task)
        assert isinstance(again, Task)
        assert first.id == again.id
        finish(sim, first)
    later = jobs(sim).erase("bob", by=OWN_CODE)
    assert finish(sim, later).status is TaskStatus.COMPLETED
    assert later.id != first.id


def test_users_cannot_make_such_tasks_themselves(sim: Simulation) -> None:
    """The handlers are for the API's operations."""
    from cloudsched.domain.transitions.task_draft import TaskDraft  # noqa: PLC0415 - likewise

    for handler in ("cloudsched.erase-person", "cloudsched.export-person"):
        with pytest.raises(InvalidInput):
            as_user(sim.app).put(TaskDraft(owner="ada", title="x", handler=handler))


def export_lines(sim: Simulation, owner: str) -> list[dict[str, Any]]:
    job = jobs(sim).export(owner, by=OWN_CODE)
    if isinstance(job, Task):
        assert finish(sim, job).status is TaskStatus.COMPLETED
        job = jobs(sim).export(owner, by=OWN_CODE)
    assert isinstance(job, PersonJob)
    text = "".join(jobs(sim).read_part(job, number) for number in range(job.cursor.parts))
    return [json.loads(line) for line in text.splitlines()]


def test_an_export_has_everything_once(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no secrets; in parts of a limited size, whose texts belong together."""
    monkeypatch.setattr(person_export, "MAX_PART_BYTES", 1000)
    lines = export_lines(sim, "ada")
    counts = {kind: sum(line["kind"] == kind for line in lines) for kind in {line["kind"] for line in lines}}
    messages = len(sim.app.container.store.inbox.list("ada", limit=500).items)
    own = sim.app.tasks(TaskQuery(owner="ada", handler="tell"), limit=100).items
    executions = sum(len(sim.executions(task.id)) for task in own)
    assert messages > 3
    assert counts == {
        "person": 1,
        "feed": 1,
        "monthlyUsage": 2,
        "task": 4,
        "execution": executions,
        "message": messages,
    }
    ids = [line["data"]["id"] for line in lines if line["kind"] == "message"]
    assert len(set(ids)) == len(ids)
    text = json.dumps(lines)
    assert "whsec_" not in text
    assert "leaseToken" not in text
    assert len(sim.app.container.store.records.list(ExportPart, "ada", limit=100)) > 3


@pytest.mark.parametrize("kind", ["erase", "export"])
def test_a_job_that_takes_long_goes_on_in_another_attempt(
    sim: Simulation, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A piece at a time, without using up attempts."""
    monkeypatch.setattr(person_erasure, "_TASKS_PAGE", 1)
    monkeypatch.setattr(person_export, "_PAGE", 1)
    monkeypatch.setattr(person_data, "MIN_TIME_LEFT", timedelta(days=1))
    if kind == "export":
        assert sum(line["kind"] == "task" for line in export_lines(sim, "ada")) == 4
    else:
        assert finish(sim, jobs(sim).erase("ada", by=OWN_CODE)).status is TaskStatus.COMPLETED
        assert what_is_left(sim, "ada") == []


@pytest.mark.parametrize("kind", ["erase", "export"])
@pytest.mark.parametrize("is_written", [False, True])
def test_a_process_that_dies_costs_only_time(kind: str, *, is_written: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before or after any of its writes: the next attempt goes on, and the result is the same."""
    write = SqliteDatabase.write
    for number in range(1, 60, 3):
        left = [number]

        def die(self: SqliteDatabase, work: Callable[..., Any], left: list[int] = left) -> Any:  # noqa: ANN401 - as it is
            left[0] -= 1
            if left[0] == 0 and not is_written:
                raise Killed
            result = write(self, work)
            if left[0] == 0:
                raise Killed
            return result

        with Simulation(make_app()) as sim:
            fill(sim, "ada", 2)
            sim.advance(timedelta(days=1))
            task = getattr(jobs(sim), kind)("ada", by=OWN_CODE)
            with monkeypatch.context() as patch:
                patch.setattr(SqliteDatabase, "write", die)
                with suppress(Killed):
                    sim.advance(timedelta(seconds=5))
            if kind == "erase":
                assert finish(sim, task).status is TaskStatus.COMPLETED, number
                assert what_is_left(sim, "ada") == []
            else:
                lines = export_lines(sim, "ada")
                assert [line["kind"] for line in lines].count("task") == 3, number
            if left[0] > 0:
                return
    pytest.fail("it makes more writes than were tried")
