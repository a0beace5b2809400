"""Handlers whose files change while the local stack runs are reloaded or reported as outdated, never in part."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cloudsched import TaskStatus
from cloudsched.local.app_loader import load_app
from cloudsched.local.handler_watch import HandlerWatch
from cloudsched.testing import Simulation

SOURCE = """
from cloudsched import App, Context, Schedule
from {helper} import answer

app = App()

@app.handler("work")
def work(ctx: Context) -> str:
    return answer()

@app.handler("more")
def more(ctx: Context) -> str:
    return app.get(ctx.task.id).title  # through the module's own app
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Path]]:
    """A file with handlers, and a module that it imports."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(sys, "path", [*sys.path])
    unique = uuid.uuid4().hex[:8]
    handlers, helper = tmp_path / f"handlers_{unique}.py", tmp_path / f"helper_{unique}.py"
    handlers.write_text(SOURCE.format(helper=helper.stem))
    helper.write_text("def answer(): return 'one'\n")
    yield handlers, helper
    for name in (handlers.stem, helper.stem):
        sys.modules.pop(name, None)


@pytest.fixture
def run(project: tuple[Path, Path]) -> Iterator[tuple[Simulation, Callable[[], HandlerWatch], Callable[[str], object]]]:
    loaded = load_app(str(project[0]))
    with Simulation(loaded.app) as sim:

        def result(handler: str) -> object:
            task = loaded.app.create(owner="ada", title="T", handler=handler)
            sim.run_until_idle()
            return sim.executions(task.id)[0].content

        def watch(*, reloads: bool = True) -> HandlerWatch:
            assert loaded.target is not None
            return HandlerWatch(loaded.app, loaded.target, loaded.folder, reloads=reloads)

        yield sim, watch, result


Run = tuple["Simulation", "Callable[..., HandlerWatch]", "Callable[[str], object]"]


def test_a_change_is_loaded_with_what_it_imports(project: tuple[Path, Path], run: Run) -> None:
    """A module that the handlers import counts as well; the tasks stay, and the new module's app reaches them."""
    sim, watch, result = run
    watching, now = watch(), sim.now
    assert result("work") == "one"
    watching.check()
    project[1].write_text("def answer(): return 'three'\n")
    watching.check()
    assert result("work") == "three"
    assert result("more") == "T", "app.get in the new module asks the same store"
    assert len(sim.app.tasks().items) == 3
    assert sim.now >= now


def test_handlers_come_and_go(project: tuple[Path, Path], run: Run) -> None:
    """A new handler may be named at once, one that was removed no more."""
    sim, watch, result = run
    watching = watch()
    text = project[0].read_text().replace('"work"', '"renamed"')
    project[0].write_text(text + "\n@app.on_failure\ndef page(task, execution): ...\n")
    watching.check()
    assert {handler.name for handler in sim.app.container.registry} == {"renamed", "more"}
    assert len(sim.app.container.registry.registrations.failure_hooks) == 1
    assert result("renamed") == "one"


def test_a_file_that_does_not_load_changes_nothing(
    project: tuple[Path, Path], run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    """The old handlers stay in use, the log names file and line, and the next valid version is loaded."""
    _, watch, result = run
    watching, good = watch(), project[0].read_text()
    project[0].write_text(good + "\nx = (\n")
    watching.check()
    assert "cannot be loaded, so the handlers are still the old ones" in caplog.text
    assert f"{project[0].name}, line " in caplog.text
    assert result("work") == "one"
    project[0].write_text(good.replace("return answer()", "return 'mended'"))
    watching.check()
    assert result("work") == "mended"


def test_declared_schedules_follow_the_files(
    project: tuple[Path, Path], run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    """A new one is created, a changed one edited, one that is gone paused, and one that comes back resumed."""
    sim, watch, _ = run
    watching, plain = watch(), project[0].read_text()

    def save(schedule: str) -> None:
        line = f'@app.scheduled("{schedule}", id="declared")\n@app.handler("work")' if schedule else ""
        project[0].write_text(plain.replace('@app.handler("work")', line or '@app.handler("work")'))
        watching.check()

    save("every day at 9")
    assert "09:00" in sim.app.get("declared").schedule.describe()
    save("every day at 10")
    assert "10:00" in sim.app.get("declared").schedule.describe()
    save("")
    assert sim.app.get("declared").status is TaskStatus.PAUSED
    save("every day at 11")
    assert sim.app.get("declared").status is TaskStatus.ACTIVE
    save("every blue moon")
    assert "the schedules of the code cannot be applied" in caplog.text
    assert "11:00" in sim.app.get("declared").schedule.describe()
