"""Results in the blob store are removed together with their task or execution."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.engine.harness import DAY, HOUR, MINUTE, Create

from cloudsched import App, Context, Schedule, Settings
from cloudsched.domain.documents.journal import MAX_INLINE_RESULT_BYTES
from cloudsched.testing import START, Simulation

LARGE = "x" * (MAX_INLINE_RESULT_BYTES + 1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "tasks.db-results"


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    with closing(App(Settings(store="sqlite", data=tmp_path / "tasks.db"))) as made:

        @made.handler("work")
        def work(ctx: Context) -> None:
            ctx.step("large", lambda: LARGE)

        yield made


@pytest.fixture
def sim(app: App, tmp_path: Path) -> Iterator[Simulation]:
    with Simulation(app, store=app.container.store, data=tmp_path / "tasks.db") as opened:
        yield opened


def blob_names(folder: Path) -> list[str]:
    return sorted(str(each.relative_to(folder)).partition("/")[0] for each in folder.rglob("*") if each.is_file())


def test_large_results_are_removed_with_a_deleted_task(app: App, create: Create, sim: Simulation, folder: Path) -> None:
    for name in ("one", "two"):
        create(id=name)
    sim.advance(MINUTE)
    assert blob_names(folder) == ["one", "two"]
    app.delete("one")
    sim.advance(MINUTE)
    assert blob_names(folder) == ["two"]


def test_large_results_are_removed_with_an_expired_execution(
    app: App, create: Create, sim: Simulation, folder: Path
) -> None:
    schedule = Schedule(rrule="FREQ=DAILY;COUNT=3", dtstart=START.replace(tzinfo=None))
    create(id="one", schedule=schedule, execution_retention=30 * HOUR)
    sim.advance(2 * DAY + MINUTE)
    app.sweep()
    assert len(blob_names(folder)) == 2
    (last, before) = sim.executions("one")
    assert sorted(each.name for each in (folder / "one").iterdir()) == sorted([before.id, last.id])


def test_results_that_cannot_be_removed_do_not_keep_their_task(
    create: Create,
    sim: Simulation,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The task and those after it are removed; the log names the results that are left."""

    def fail(*_: object) -> None:
        raise OSError("no")

    for name in ("one", "two"):
        create(id=name, retention=DAY)
    sim.advance(MINUTE)
    monkeypatch.setattr("cloudsched.adapters.blobs.shutil.rmtree", fail)
    sim.advance(DAY + MINUTE)
    assert sim.app.tasks().items == []
    assert blob_names(folder) == ["one", "two"]
    assert "results of one not removed: The folder for results cannot be reached: no" in caplog.text
