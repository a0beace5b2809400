"""Write the stored documents of this folder. Run it with the code whose documents they are to be.

    python tests/contract/stored_before/write.py FOLDER

It leaves ``tasks.db.gz``, a SQLite file, and ``firestore.tar.gz``, an export of Google's emulator. Both have the same
tasks.
"""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
import sys
import tarfile
import urllib.request
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

from cloudsched import App, Context, Fail, RetryPolicy, Schedule, Settings
from cloudsched.adapters.firestore.emulator import EmulatorNotFound, find_emulator
from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.category import Category
from cloudsched.engine.ports.store import Store
from cloudsched.testing import START, Simulation

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
PROJECT = "stored-before"


def make_app() -> App:
    """Return an app with handlers that succeed, fail, wait and are run by workers."""
    app = App(Settings())

    @app.handler("tick")
    def tick(ctx: Context, payload: dict[str, Any]) -> str:
        ctx.used(queries=2, tokens=30)
        return f"tock {len(payload)}"

    @app.handler("fail")
    def fail(ctx: Context) -> Fail:
        ctx.progress("it is about to fail")
        return Fail("There is nothing there.")

    @app.handler("stumble")
    def stumble() -> None:
        raise RuntimeError("not yet")

    @app.handler("order")
    def order(ctx: Context) -> None:
        ctx.step("charge", lambda: {"amount": [1, [2, 3]]})
        ctx.sleep(30 * DAY)

    return app


def fill(store: Store) -> None:
    """Store a task of each kind, and what running them leaves."""
    app = make_app()
    with Simulation(app, store=store) as sim:
        hourly = Schedule.every(HOUR, start=START + HOUR)
        app.create(id="hourly", owner="ada", title="Tick", handler="tick", schedule=hourly)
        app.create(id="failing", owner="ada", title="Fails", handler="fail", schedule=hourly, labels=("team=a",))
        app.create(
            id="stumbling", owner="ada", title="Fails once", handler="stumble", schedule=Schedule.once(START + HOUR)
        )
        app.create(id="order", owner="bob", title="Order", handler="order", schedule=Schedule.once(START + HOUR))
        app.create(
            id="everything",
            owner="bob",
            title="Everything is set",
            description="A description",
            purpose="A purpose",
            category=Category.REPORT,
            labels=("team=b", "tier=1"),
            handler="tick",
            payload={"deep": {"list": [1, [2, None], "three"], "none": None, "float": 2.0}},
            delivery_channels=("WEB",),
            delivery_title="Your report",
            query_per_execution=1.5,
            tokens_per_execution=100,
            retry=RetryPolicy(max_retries=1, base=timedelta(seconds=1.5)),
            expected_duration=timedelta(minutes=2),
            jitter=timedelta(seconds=0),
            overlap="allow",
            catch_up={"mode": "none", "window": 90},
            expiration=HOUR,
            pause_after_failures=3,
            execution_retention=timedelta(days=40_00),
            retention=timedelta(days=90),
            lock_key="printer",
            lock_limit=2,
            max_runs=50,
            priority="HIGH",
            until=START + 400 * DAY,
            schedule=Schedule(
                rrule="FREQ=DAILY;BYHOUR=9", dtstart="2027-01-01T09:00:00", timezone="Europe/Paris", gap="skip",
                exdates=("2027-01-03",), calendars=("weekends",),
            ),
        )  # fmt: skip
        app.create(
            id="pulled", owner="bob", title="For workers", handler="tick", pull="presses",
            schedule=Schedule.once(START + HOUR),
        )  # fmt: skip
        app.create(
            id="children", owner="bob", title="Two children", schedule=Schedule.once(START + 30 * DAY),
            children=(
                {"title": "First", "handler": "tick", "payload": {"n": 1}},
                {"title": "Second", "handler": "tick"},
            ),
        )  # fmt: skip
        app.update("failing", title="Fails, always", retry=RetryPolicy(max_retries=0))
        sim.advance(39 * HOUR + MINUTE)
        app.pause("failing")
        app.trigger("hourly")
        sim.advance(MINUTE)


def main() -> None:
    """Write both."""
    folder = Path(sys.argv[1])
    path = folder / "tasks.db"
    store = SqliteStore(path)
    fill(store)
    store.close()
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = DELETE")
        database.execute("VACUUM")
    (folder / "tasks.db.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    path.unlink()
    emulator = find_emulator()
    if isinstance(emulator, EmulatorNotFound):
        sys.exit(emulator.reason)
    with emulator:
        documents = FirestoreStore(project=PROJECT, emulator=emulator.address)
        fill(documents)
        documents.close()
        content = {"database": f"projects/{PROJECT}/databases/(default)"}
        content |= {"export_directory": str(folder), "export_name": "firestore"}
        request = urllib.request.Request(
            f"http://{emulator.address}/emulator/v1/projects/{PROJECT}:export",
            json.dumps(content).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as reply:  # noqa: S310 - the same
            reply.read()
    with tarfile.open(folder / "firestore.tar.gz", "w:gz") as archive:
        archive.add(folder / "firestore", "firestore")
    shutil.rmtree(folder / "firestore")


if __name__ == "__main__":
    main()
