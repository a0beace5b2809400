"""Dependencies of handlers: made for each attempt, shared within it, and closed when it ends, however it ends."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any

import pytest
from tests.engine.harness import DAY, MINUTE, Row, create, only_run, run, run_to_end

from cloudsched import App, AsyncContext, Context, Depends
from cloudsched.errors import Misconfigured
from cloudsched.testing import Simulation

LOG: list[str] = []


def connect() -> Iterator[str]:
    LOG.append("connect")
    try:
        yield "connection"
    except BaseException as error:
        LOG.append(f"roll back {type(error).__name__}")
        raise
    finally:
        LOG.append("disconnect")


async def open_session(connection: Annotated[str, Depends(connect)], ctx: Context) -> AsyncIterator[str]:
    await asyncio.sleep(0)
    LOG.append("open")
    try:
        yield f"session {ctx.attempt} on {connection}"
    finally:
        await asyncio.sleep(0)
        LOG.append("close")


async def count() -> int:
    await asyncio.sleep(0)
    LOG.append("count")
    return sum(each == "count" for each in LOG)


Session = Annotated[str, Depends(open_session)]
Connection = Annotated[str, Depends(connect)]
OPENED, CLOSED = ["connect", "open"], ["close", "disconnect"]


@pytest.fixture(autouse=True)
def _empty_log() -> None:
    LOG.clear()


def register(app: App, body: Callable[[str, str], Any], *, asynchronous: bool) -> None:
    """Register a handler of either kind that takes two dependencies, of which one needs the other."""
    if asynchronous:

        @app.handler("work", retry=1)
        async def work(ctx: AsyncContext, row: Row, session: Session, *, connection: Connection) -> object:
            await asyncio.sleep(0)
            assert (ctx.task.handler, row.n) == ("work", 3)
            return body(session, connection)
    else:

        @app.handler("work", retry=1)
        def plain(ctx: Context, row: Row, session: Session, *, connection: Connection) -> object:
            assert (ctx.task.handler, row.n) == ("work", 3)
            return body(session, connection)


def work(app: App) -> Any:  # noqa: ANN401 - the record
    with Simulation(app) as sim:
        task = create(app, payload={"n": 3})
        return run_to_end(sim, task, DAY)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_they_are_open_during_the_attempt_and_made_once(app: App, *, asynchronous: bool) -> None:
    """A factory that two depend on is called once; what was opened last is closed first."""

    def body(session: str, connection: str) -> list[str]:
        LOG.append("work")
        return [session, connection]

    register(app, body, asynchronous=asynchronous)
    assert work(app).content == ["session 1 on connection", "connection"]
    assert [*OPENED, "work", *CLOSED] == LOG


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_failure_is_raised_at_the_yield(app: App, *, asynchronous: bool) -> None:
    """So a session rolls back; each attempt has its own."""

    def body(session: str, _: str) -> str:
        if session.startswith("session 1"):
            raise KeyError("no")
        return session

    register(app, body, asynchronous=asynchronous)
    execution = work(app)
    assert execution.content == "session 2 on connection"
    assert [*OPENED, "close", "roll back KeyError", "disconnect", *OPENED, *CLOSED] == LOG


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("replay", [False, True])
def test_a_suspension_closes_them_and_cannot_be_swallowed(app: App, *, asynchronous: bool, replay: bool) -> None:
    """A suspended handler holds no connection for weeks; a factory that catches everything changes nothing."""

    def swallow() -> Iterator[str]:
        LOG.append("in")
        try:
            yield "x"
        except BaseException as error:  # noqa: BLE001 - the mistake that must do no harm
            LOG.append(type(error).__name__)
        LOG.append("out")

    if asynchronous:

        @app.handler("work")
        async def work(ctx: AsyncContext, value: Annotated[str, Depends(swallow)]) -> str:
            await ctx.sleep(DAY)
            return value
    else:

        @app.handler("work")
        def plain(ctx: Context, value: Annotated[str, Depends(swallow)]) -> str:
            ctx.sleep(DAY)
            return value

    assert run(app, replay=replay).content == "x"
    assert LOG[:4] == ["in", "Suspended", "out", "in"]
    assert LOG[-2:] == ["in", "out"]


def test_a_failure_cannot_be_swallowed(app: App) -> None:
    """The attempt fails although a factory catches its exception; a failure to close fails it, too."""

    def swallow() -> Iterator[str]:
        try:
            yield "x"
        except ValueError:
            return

    def fail_late() -> Iterator[str]:
        yield "x"
        raise OSError("commit failed")

    @app.handler("work", retry=False)
    def work(_: Annotated[str, Depends(swallow)]) -> None:
        raise ValueError("no")

    @app.handler("late", retry=False)
    def late(_: Annotated[str, Depends(fail_late)]) -> str:
        return "fine"

    with Simulation(app) as sim:
        tasks = create(app), create(app, handler="late")
        sim.advance(MINUTE)
        errors = [only_run(sim, task).error for task in tasks]
    assert [error and error.message for error in errors] == ["no", "commit failed"]
    trace = (errors[0] and errors[0].traceback) or ""
    assert ", in work\n" in trace.splitlines(keepends=True)[1]
    assert "contextlib" not in trace


def test_without_the_cache_each_has_its_own(app: App) -> None:
    """`use_cache=False` asks the factory again; with it, all share one value in one attempt."""
    Own = Annotated[int, Depends(count, use_cache=False)]  # noqa: N806 - a type

    @app.handler("work")
    def work(
        a: Annotated[int, Depends(count)],
        b: Annotated[int, Depends(count)],
        c: Own,
        d: Any = Depends(count),  # noqa: ANN401, B008 - the older form that FastAPI has
    ) -> list[int]:
        return [a, b, c, d]

    assert run(app).content[:2] == [1, 1]
    assert len(LOG) == 2


def test_tests_can_override_them(app: App) -> None:
    """Wherever the factory is needed, nested too; the other one may have dependencies of its own."""

    def fake(number: Annotated[int, Depends(count)]) -> str:
        return f"fake {number}"

    register(app, lambda session, connection: [session, connection], asynchronous=False)
    app.dependency_overrides[connect] = fake
    assert work(app).content == ["session 1 on fake 1", "fake 1"]
    assert LOG == ["count", "open", "close"]
    app.dependency_overrides.clear()
    assert work(app).content == ["session 1 on connection", "connection"]


def test_a_factory_that_fails_fails_the_attempt(app: App) -> None:
    """It is retried as the handler is; what was opened before it is closed."""

    async def fail(_: Connection) -> None:
        raise ConnectionError("down")

    @app.handler("work", retry=1)
    def work(_: Annotated[None, Depends(fail)]) -> None: ...

    execution = run(app)
    assert execution.error is not None
    assert (execution.error.type, len(execution.attempts)) == ("ConnectionError", 2)
    assert LOG == ["connect", "roll back ConnectionError", "disconnect"] * 2


def test_mistakes_are_found_at_import(app: App) -> None:
    """A parameter without a source, a circle, and what is not a function."""

    def needs(name: str) -> str:
        return name

    def circle(_: object) -> None: ...

    circle.__annotations__["_"] = Annotated[None, Depends(circle)]

    def first(_: Annotated[str, Depends(needs)]) -> None: ...

    def second(_: Annotated[None, Depends(circle)]) -> None: ...

    with pytest.raises(Misconfigured, match="'needs' needs 'name'"):
        app.handler("a")(first)
    with pytest.raises(Misconfigured, match="depends on itself"):
        app.handler("b")(second)
    with pytest.raises(Misconfigured, match="needs a function"):
        Depends("connect")  # type: ignore[arg-type]
