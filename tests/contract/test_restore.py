"""Backup and restore, with the emulator's own export and import: what waits is sent again, nothing runs twice."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.engine.harness import DAY, HOUR, MINUTE
from tests.harness import new_project, request

from cloudsched import App, Context, Schedule, Settings
from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.engine.ports.queue import QueueMessage
from cloudsched.testing import START, Simulation


def make_app(effects: list[tuple[str, Any]]) -> App:
    """Handlers that record what they do in the outside world."""
    app = App(Settings())

    @app.handler("note")
    def note(ctx: Context) -> None:
        effects.append((ctx.task.title, ctx.scheduled_for - START))

    @app.handler("order")
    def order(ctx: Context) -> None:
        ctx.step("charge", lambda: effects.append(("charge", None)))
        ctx.sleep(40 * MINUTE)
        ctx.step("ship", lambda: effects.append(("ship", None)))

    return app


def move_database(address: str, folder: Path, old: str, new: str) -> None:
    """Export a project's database, and import that into another project's, which is empty."""
    content = {"export_directory": str(folder), "export_name": "backup"}
    _ask_emulator(address, old, "export", content)
    import_database(address, folder / "backup/backup.overall_export_metadata", new)


def import_database(address: str, metadata: Path, project: str) -> None:
    _ask_emulator(address, project, "import", {"export_directory": str(metadata)})


def _ask_emulator(address: str, project: str, verb: str, place: dict[str, str]) -> None:
    content = {"database": f"projects/{project}/databases/(default)"} | place
    reply = request(f"http://{address}", "POST", f"/emulator/v1/projects/{project}:{verb}", content)
    assert reply.status == 200, reply


def open_store(address: str) -> tuple[str, FirestoreStore]:
    project = new_project()
    return project, FirestoreStore(project=project, emulator=address, deadline=MINUTE)


def list_documents(address: str, project: str, path: str = "") -> dict[str, Any]:
    """Return every document's fields by its path, those below documents included."""
    root = f"/v1/projects/{project}/databases/(default)/documents"
    listed = request(f"http://{address}", "POST", f"{root}{path}:listCollectionIds", {}).body.get("collectionIds", [])
    found: dict[str, Any] = {}
    for collection in listed:
        page = request(f"http://{address}", "GET", f"{root}{path}/{collection}?pageSize=300&showMissing=true").body
        for document in page.get("documents", []):
            below = document["name"].partition("/documents")[2]
            if "fields" in document:
                found[below] = json.dumps(document["fields"], sort_keys=True)
            found |= list_documents(address, project, below)
    return found


def test_a_restored_database_goes_on_and_runs_nothing_twice(firestore_address: str, tmp_path: Path) -> None:
    """A project is lost at its backup, and restored into an empty one without a queue twelve minutes later.

    Every document is there. Each occurrence of the time before, of the gap and after it runs once: those of a recurring
    task, of tasks that wait for minutes or beyond a queue's thirty days, and the steps of a durable run around its
    sleep. That holds although the dispatches that waited in the old queue arrive as well, some of them twice.
    """
    effects: list[tuple[str, Any]] = []
    app = make_app(effects)
    project, store = open_store(firestore_address)
    with Simulation(app, store=store) as sim:

        def create(title: str, after: timedelta, handler: str = "note", rrule: str | None = None) -> str:
            schedule = Schedule.once(START + after) if rrule is None else Schedule(rrule=rrule, dtstart=_text(START))
            return app.create(owner="ada", title=title, handler=handler, schedule=schedule).id

        create("often", timedelta(), rrule="FREQ=MINUTELY;INTERVAL=10;COUNT=10")
        for title, after in (
            ("done", 5 * MINUTE),
            ("in the gap", 35 * MINUTE),
            ("later", 60 * MINUTE),
            ("far", 45 * DAY),
        ):
            create(title, after)
        create("order", 10 * MINUTE, "order")
        paused = create("paused", 50 * MINUTE)
        app.pause(paused)
        sim.advance(30 * MINUTE)
        waiting = sim.pending()
    assert ("charge", None) in effects
    assert ("ship", None) not in effects
    backed_up = list_documents(firestore_address, project)
    restored_to, restored = open_store(firestore_address)
    move_database(firestore_address, tmp_path, project, restored_to)
    assert list_documents(firestore_address, restored_to) == backed_up
    store.close()

    with Simulation(app, START + 42 * MINUTE, store=restored) as sim:

        def deliver_old() -> None:
            for message in waiting:
                sim.redeliver(_sign_again(sim, message))

        assert sim.pending() == []
        deliver_old()
        sim.advance(10 * MINUTE)
        deliver_old()
        sim.advance(2 * HOUR)
        deliver_old()
        sim.advance(46 * DAY)
        assert sim.pending() == []
        assert app.get(paused).status == "PAUSED"
    restored.close()
    once = [
        ("done", 5),
        ("in the gap", 35),
        ("later", 60),
        ("far", 45 * 24 * 60),
        *(("often", 10 * n) for n in range(10)),
    ]
    expected = [(title, minutes * MINUTE) for title, minutes in once] + [("charge", None), ("ship", None)]
    assert Counter(effects) == Counter(expected)


def _text(at: datetime) -> str:
    return at.replace(tzinfo=None).isoformat()


def _sign_again(sim: Simulation, message: QueueMessage) -> QueueMessage:
    """Return a dispatch as both deployments would sign it, if they had the same secret; simulations have their own."""
    return replace(message, token=sim.sign(message.body))
