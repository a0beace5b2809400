"""Measure the outbox: rows written and handed over a second, and how late a task is after its transaction's commit.

    python -m benchmarks.outbox [--rows 2000] [--lateness 200] [--json]

The floor of writing is the same transaction without the outbox's row, that of handing over `app.create` alone. Each
database is a file of SQLite, or a PostgreSQL server of Debian's package in a temporary folder. The app is embedded in
this process, and every commit is synced. Processor times are this process's, so PostgreSQL's own are not among them.
Lateness is by the clock, from the end of a commit until the task is stored, by a relay that polls once an hour: one of
the outbox that has written, or one that PostgreSQL tells (LISTEN).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Column, Integer, MetaData, String, Table, create_engine, insert
from sqlalchemy.orm import Session
from tests.outbox.postgres_server import find_binaries, run_server

import cloudsched
from cloudsched import App, Settings
from cloudsched.outbox.sqlalchemy import SqlalchemyOutbox, metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Engine

ORDERS = Table("orders", MetaData(), Column("id", Integer, primary_key=True), Column("owner", String(100)))
TASK: dict[str, Any] = {
    "handler": "remind",
    "payload": {"text": "Pay, please"},
    "owner": "ada",
    "schedule": "in 3 days",
}
HOUR = timedelta(hours=1)
SQLITE, POSTGRESQL = "SQLite", "PostgreSQL"


@dataclass(frozen=True, slots=True)
class Result:
    """What was measured with one database."""

    database: str
    write_cpu: float
    """Milliseconds of the processor for a transaction with an order and a row; the floor is one with an order."""
    floor_write_cpu: float
    write_rate: float
    """Transactions a second by one thread."""
    relay_cpu: float
    """Milliseconds of the processor for a row that is handed over; the floor is `app.create`."""
    floor_relay_cpu: float
    relay_rate: float
    late_half: float
    """Milliseconds from the commit to the task: half of them were not later."""
    late_most: float
    """99 of 100 were not later."""
    told_half: float | None
    """The same by another outbox's relay, told by PostgreSQL."""
    told_most: float | None


def measure(name: str, engine: Engine, folder: Path, rows: int, late: int) -> Result:
    """Measure with one database."""
    ORDERS.metadata.create_all(engine)
    metadata.create_all(engine)
    app = App(Settings())

    @app.handler("remind")
    def remind(payload: dict[str, str]) -> str:
        return payload["text"]

    with cloudsched.embedded(app, folder / "data"):
        return measure_app(name, app, engine, rows, late)


def measure_app(name: str, app: App, engine: Engine, rows: int, late: int) -> Result:
    """Measure with an app that takes tasks."""
    outbox = SqlalchemyOutbox(engine, app)

    def place(*, writes_row: bool) -> None:
        with Session(engine) as session, session.begin():
            session.execute(insert(ORDERS).values(owner="ada"))
            if writes_row:
                outbox.create(session, **TASK)

    place(writes_row=True)
    outbox.hand_over()
    floor_write, _ = time_each(lambda: place(writes_row=False), rows)
    write, write_rate = time_each(lambda: place(writes_row=True), rows)
    began, used = time.perf_counter(), time.process_time()
    handed = outbox.hand_over()
    relay = (time.process_time() - used) * 1000 / handed
    relay_rate = handed / (time.perf_counter() - began)
    floor_relay, _ = time_each(lambda: app.create(**TASK), rows)
    half, most = measure_lateness(app, engine, late, is_told=False)
    told = measure_lateness(app, engine, late, is_told=True) if name == POSTGRESQL else (None, None)
    return Result(name, write, floor_write, write_rate, relay, floor_relay, relay_rate, half, most, *told)


def time_each(call: Callable[[], object], count: int) -> tuple[float, float]:
    """Return the processor's milliseconds for one call, and how many are done in a second."""
    began, used = time.perf_counter(), time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - used) * 1000 / count, count / (time.perf_counter() - began)


def measure_lateness(app: App, engine: Engine, count: int, *, is_told: bool) -> tuple[float, float]:
    """Return how many milliseconds after a commit its task is stored: the median, and the 99th percentile."""
    writer = SqlalchemyOutbox(engine, app, notify=is_told)
    relaying = SqlalchemyOutbox(engine, app, notify=True) if is_told else writer
    stored, late = threading.Event(), []
    create = app.put

    def put(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - as the app's
        result = create(*arguments, **named)
        stored.set()
        return result

    vars(app)["put"] = put
    try:
        with relaying.relay(poll=HOUR):
            for _ in range(count):
                with Session(engine) as session, session.begin():
                    writer.create(session, **TASK)
                began = time.perf_counter()
                assert stored.wait(30), "the relay was not woken"
                late.append((time.perf_counter() - began) * 1000)
                stored.clear()
                while writer.rows("PENDING"):  # it notes that first
                    time.sleep(0.001)
    finally:
        del vars(app)["put"]
    late.sort()
    return statistics.median(late), late[min(len(late) - 1, int(len(late) * 0.99))]


@contextmanager
def open_databases(folder: Path) -> Iterator[dict[str, Engine]]:
    """Yield the databases that there are, by name."""
    with ExitStack() as parts:
        engines = {SQLITE: create_engine(f"sqlite:///{folder / 'shop.db'}")}
        if find_binaries() is not None:
            address = parts.enter_context(run_server(synced=True))
            engines[POSTGRESQL] = create_engine(f"postgresql+psycopg://postgres@{address}/postgres")
        for engine in engines.values():
            parts.callback(engine.dispose)
        yield engines


def show(result: Result) -> None:
    """Print what was measured with one database."""
    print(result.database)
    print(f"  order and row     {result.write_cpu:6.2f} ms of the processor, {result.write_rate:7,.0f}/s")
    print(f"  order alone       {result.floor_write_cpu:6.2f} ms")
    print(f"  hand a row over   {result.relay_cpu:6.2f} ms of the processor, {result.relay_rate:7,.0f}/s")
    print(f"  app.create alone  {result.floor_relay_cpu:6.2f} ms")
    print(f"  commit to task    {result.late_half:6.2f} ms, 99 of 100 within {result.late_most:.2f} ms")
    if result.told_half is not None:
        print(f"  by LISTEN         {result.told_half:6.2f} ms, 99 of 100 within {result.told_most:.2f} ms")


def main() -> None:
    """Measure with each database that there is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=2000, help="how many rows are written and handed over")
    parser.add_argument("--lateness", type=int, default=200, help="of how many rows the lateness is measured")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as place, open_databases(Path(place)) as engines:
        for name, engine in engines.items():
            folder = Path(place) / name
            folder.mkdir()
            results.append(measure(name, engine, folder, arguments.rows, arguments.lateness))
    if arguments.json:
        json.dump([asdict(each) for each in results], sys.stdout)
        return
    for result in results:
        show(result)


if __name__ == "__main__":
    main()
