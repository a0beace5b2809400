"""What handlers log is kept with their executions: the latest lines, for who may see them, at no cost."""

from __future__ import annotations

import asyncio
import builtins
import io
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.engine.harness import DAY, MINUTE, only_run

from cloudsched import App, AsyncContext, Context, RetryPolicy, Schedule, Settings, Task
from cloudsched.domain.documents.log_lines import MAX_LINE_BYTES, MAX_LINES, MAX_LOG_BYTES, RunLog
from cloudsched.engine.queries.execution_search import load_sealed_log
from cloudsched.engine.state import attempt_log
from cloudsched.engine.state.log_keeper import LogSeal
from cloudsched.testing import START, Simulation

log = logging.getLogger("tests.shop")


@pytest.fixture(autouse=True)
def _level() -> Iterator[None]:
    """Let the logger pass on what a deployment's configuration passes on."""
    log.setLevel(logging.DEBUG)
    yield
    log.setLevel(logging.NOTSET)


@pytest.fixture
def does() -> dict[str, Callable[[Context], object]]:
    return {}


@pytest.fixture
def app(does: dict[str, Callable[[Context], object]]) -> App:
    app = App(Settings())

    @app.handler("work", retry=RetryPolicy(max_retries=1))
    def work(ctx: Context) -> object:
        return does["work"](ctx)

    @app.handler("async")
    async def async_work(ctx: AsyncContext) -> None:
        log.info("in a coroutine of %s", ctx.task.title)
        await asyncio.to_thread(log.info, "in its thread")

    return app


def create(app: App, handler: str = "work", **fields: Any) -> Task:
    return app.create(title="Shop", handler=handler, schedule=Schedule.once(START + MINUTE), **fields)


def read(app: App, task: Task, execution_id: str = "20270101T000100Z") -> RunLog:
    engine, stored = app.container.engine, app.get(task.id)
    found = engine.logs.read(task.id, execution_id, load_sealed_log(engine, stored, execution_id)[1])
    assert found is not None
    return found


def texts(found: RunLog) -> list[str]:
    return [each.text for each in found.lines]


def test_lines_are_kept_with_their_attempts(sim: Simulation, app: App, does: dict[str, Any]) -> None:
    """From INFO on, of each attempt, with the end of a traceback; a retry by hand adds to them."""

    def fail(ctx: Context) -> None:
        log.debug("not kept")
        log.info("attempt %s", ctx.attempt)
        try:
            int("out of paper")
        except ValueError:
            log.exception("printing failed")
            raise

    does["work"] = fail
    task = create(app)
    sim.advance(DAY)
    found = read(app, task)
    assert [(each.attempt, each.level) for each in found.lines] == [
        (1, "INFO"),
        (1, "ERROR"),
        (2, "INFO"),
        (2, "ERROR"),
    ]
    assert texts(found)[0] == "attempt 1"
    assert texts(found)[1].startswith("printing failed\n")
    assert texts(found)[1].endswith("with base 10: 'out of paper'")
    does["work"] = lambda _: log.info("mended")
    app.retry(task.id)
    sim.advance(MINUTE)
    assert texts(read(app, task))[-1] == "mended"
    assert len(read(app, task).lines) == 5


class Unhashable(io.StringIO):
    """A file that compares by its content, as some libraries' do."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unhashable) and other.getvalue() == self.getvalue()


@pytest.fixture
def _own_print() -> Iterator[None]:
    before = builtins.print
    yield
    builtins.print = before
    attempt_log._note_prints.cache_clear()  # noqa: SLF001 - it is replaced once in a process


@pytest.mark.usefixtures("_own_print")
def test_what_it_prints_is_kept_if_the_settings_say_so(
    app: App, does: dict[str, Any], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """As lines of INFO, once each and in order, and it is still printed; what goes to a file is nobody's log."""

    def work(ctx: Context) -> None:
        print("found", 3, "plants", sep=" ")  # noqa: T201 - what is tried
        log.warning("one is dry")
        print("it is", ctx.step("a name", lambda: "Fern"), file=sys.stderr)  # noqa: T201 - the same
        with (tmp_path / "list").open("w") as file:
            print("Fern", file=file)
        print("nowhere", file=Unhashable())
        print()  # noqa: T201 - the same
        ctx.sleep(MINUTE)

    does["work"] = work
    with Simulation(app, keeps_print=True) as sim:
        task = create(app)
        print("not of a handler")  # noqa: T201 - the same
        sim.advance(DAY)
        found = read(app, task)
    assert [(each.logger, each.level, each.text) for each in found.lines] == [
        ("print", "INFO", "found 3 plants"),
        ("tests.shop", "WARNING", "one is dry"),
        ("print", "INFO", "it is Fern"),
    ]
    printed = capsys.readouterr()
    assert "found 3 plants\n" in printed.out
    assert "it is Fern\n" in printed.err


def test_the_process_keeps_its_own_print_and_logging(
    sim: Simulation, app: App, does: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing of them is replaced, and once no handler runs the root logger has the handlers of the app alone."""
    own = builtins.print, dict(vars(logging.Logger)), list(logging.root.handlers)

    def work(_: Context) -> None:
        print("to the terminal")  # noqa: T201 - what is tried
        log.info("to the log")
        assert (builtins.print, dict(vars(logging.Logger))) == own[:2]

    does["work"] = work
    task = create(app)
    sim.advance(DAY)
    assert texts(read(app, task)) == ["to the log"]
    assert "to the terminal\n" in capsys.readouterr().out
    assert (builtins.print, dict(vars(logging.Logger)), logging.root.handlers) == own


@pytest.mark.parametrize("configures", ["root", "logger", "nothing"])
def test_a_warning_is_printed_as_often_as_without_it(
    sim: Simulation,
    app: App,
    does: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    configures: str,
) -> None:
    """Once: by the app's own handler, wherever that is, and by Python where nobody has configured logging."""
    own = logging.StreamHandler(sys.stderr)
    monkeypatch.setattr(logging.root, "handlers", [own] if configures == "root" else [])
    monkeypatch.setattr(log, "handlers", [own] if configures == "logger" else [])

    def work(_: Context) -> None:
        log.info("not for the terminal") if configures == "nothing" else None
        log.warning("it is dry")

    does["work"] = work
    task = create(app)
    sim.advance(DAY)
    assert texts(read(app, task))[-1] == "it is dry"
    assert capsys.readouterr().err.count("\n") == 1


def test_a_configuration_made_by_a_handler_loses_no_lines(sim: Simulation, app: App, does: dict[str, Any]) -> None:
    """Also one that removes all handlers: from the next run on, lines are kept again."""
    root = list(logging.root.handlers)

    def work(ctx: Context) -> None:
        if ctx.attempt == 1:
            logging.root.handlers[:] = root
            raise ValueError
        log.info("again")

    does["work"] = work
    task = create(app)
    sim.advance(DAY)
    assert texts(read(app, task)) == ["again"]


def test_they_are_seen_while_it_runs(sim: Simulation, app: App, does: dict[str, Any]) -> None:
    """After each commit that happens anyway: progress, a heartbeat."""
    seen: list[list[str]] = []

    def work(ctx: Context) -> None:
        log.info("one")
        ctx.progress("half")
        seen.append(texts(read(app, ctx.task)))
        log.info("two")
        ctx.heartbeat()
        seen.append(texts(read(app, ctx.task)))

    does["work"] = work
    task = create(app)
    sim.advance(2 * MINUTE)
    assert seen == [["one"], ["one", "two"]]
    assert texts(read(app, task)) == ["one", "two"]


@pytest.mark.parametrize("replay", [False, True])
def test_a_replay_does_not_repeat_them(app: App, does: dict[str, Any], *, replay: bool) -> None:
    """A durable handler's lines are there once, those of its steps too, however often it is replayed."""

    def work(ctx: Context) -> None:
        log.info("begins")
        ctx.step("first", lambda: log.info("in a step"))
        log.info("sleeps")
        ctx.sleep(DAY)
        log.info("wakes")

    does["work"] = work
    with Simulation(app, replay=replay) as sim:
        task = create(app)
        sim.advance(3 * DAY)
        assert texts(read(app, task)) == ["begins", "in a step", "sleeps", "wakes"]


def test_coroutines_and_threads_with_their_context(sim: Simulation, app: App) -> None:
    """What `asyncio.to_thread` runs counts; what a thread without the context logs belongs to nobody."""
    task = create(app, "async")
    sim.advance(2 * MINUTE)
    assert texts(read(app, task)) == ["in a coroutine of Shop", "in its thread"]


def test_the_latest_are_kept_and_the_others_counted(sim: Simulation, app: App, does: dict[str, Any]) -> None:
    """By number and by size; long lines are cut."""

    def shout(_: Context) -> None:
        for number in range(1000):
            log.info("%s %s", number, "\N{SNOWMAN}" * 5000)

    does["work"] = shout
    task = create(app)
    sim.advance(2 * MINUTE)
    found = read(app, task)
    assert found.omitted_lines + len(found.lines) == 1000
    assert texts(found)[-1].startswith("999 ")
    assert all(len(text.encode()) <= MAX_LINE_BYTES for text in texts(found))
    assert sum(len(text.encode()) for text in texts(found)) <= MAX_LOG_BYTES

    def count(_: Context) -> None:
        for number in range(MAX_LINES + 7):
            log.info("%s", number)

    does["work"] = count
    short = app.create(title="Shop", handler="work", schedule=Schedule.once(sim.now + MINUTE))
    sim.advance(2 * MINUTE)
    execution = only_run(sim, short)
    kept = read(app, short, execution.id)
    assert (len(kept.lines), kept.omitted_lines) == (MAX_LINES, 7)


def test_documents_do_not_show_them(sim: Simulation, app: App, does: dict[str, Any]) -> None:
    """A task's owner can read its documents and its records: neither has a line, nor has the record as JSON its log."""

    def work(ctx: Context) -> None:
        log.info("the password is hunter2")
        ctx.heartbeat()
        assert "hunter2" not in app.get(ctx.task.id).to_stored_json()
        assert app.get(ctx.task.id).runs[0].log

    does["work"] = work
    task = create(app)
    sim.advance(2 * MINUTE)
    execution = only_run(sim, task)
    assert "hunter2" in texts(read(app, task))[0]
    assert execution.log
    assert "hunter2" not in execution.to_stored_json()
    assert "log" not in execution.to_wire()


@pytest.mark.parametrize(("level", "kept"), [("off", []), ("error", ["broken"]), ("debug", ["detail", "broken"])])
def test_the_setting_says_what_is_kept(app: App, does: dict[str, Any], level: str, kept: list[str]) -> None:
    """From which level on; or nothing."""

    def work(_: Context) -> None:
        log.debug("detail")
        log.error("broken")

    does["work"] = work
    with Simulation(app, kept_logs=level) as sim:
        task = create(app)
        sim.advance(2 * MINUTE)
        assert texts(read(app, task)) == kept


def test_only_the_secret_opens_a_log() -> None:
    """Also the previous one; not another one, nor for another execution."""
    old, new = LogSeal("a" * 16), LogSeal("b" * 16, "a" * 16)
    sealed = old.seal(RunLog(omitted_lines=3), "t/e")
    assert new.open(sealed, "t/e") == RunLog(omitted_lines=3)
    assert LogSeal("b" * 16).open(sealed, "t/e") is None
    assert new.open(sealed, "t/f") is None
    assert new.open(None, "t/e") == RunLog()
