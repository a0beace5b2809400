"""An occurrence that comes due while a run of its task is open, whatever has started that run and whatever it does."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal

import pytest
from tests.engine.harness import HOUR, MINUTE
from tests.instants import about, spread

from cloudsched import App, Context, Execution, Fail, Retry, Schedule, Snooze
from cloudsched.testing import START, Simulation

EARLIER, FIRST, SECOND = START + HOUR, START + 3 * HOUR, START + 3 * HOUR + MINUTE
OPENS, ENDS = FIRST - MINUTE / 2, FIRST + 3 * MINUTE / 2

STARTS: dict[str, list[datetime | None]] = {
    "SKIP": [None, None],
    "BUFFER": [None, ENDS],
    "ALLOW": [FIRST, SECOND],
}
"""When the first and the second begin, by the policy. None is SKIPPED."""


def snooze_until_then(sim: Simulation) -> None:
    sim.advance_to(OPENS - HOUR)
    sim.app.snooze("t", HOUR)


def at_opening(do: Callable[[Simulation], object]) -> Callable[[Simulation], None]:
    def open_run(sim: Simulation) -> None:
        sim.advance_to(OPENS)
        do(sim)

    return open_run


OPENINGS: dict[str, tuple[list[datetime], Callable[[Simulation], None]]] = {
    "planned": ([OPENS], at_opening(lambda _: None)),
    "late": ([OPENS - 5 * MINUTE], lambda sim: sim.clock.move_to(OPENS)),  # nothing is delivered before
    "manual": ([], at_opening(lambda sim: sim.app.trigger("t"))),
    "snoozed": ([], snooze_until_then),
    "retried": ([], at_opening(lambda sim: sim.app.retry("t"))),
    "backfilled": ([], at_opening(lambda sim: sim.app.backfill("t", EARLIER, EARLIER))),
}
"""What else is planned, and what is done, so that a run is open from `OPENS` on."""


def run(_ctx: Context, sim: Simulation) -> object:
    sim.clock.move_to(ENDS)
    return None


def sleep(ctx: Context, _sim: Simulation) -> object:
    ctx.sleep(ENDS - OPENS)
    return None


def retry(_ctx: Context, sim: Simulation) -> object:
    return None if sim.now >= ENDS else Retry("not yet", after=ENDS - sim.now)


def put_off(_ctx: Context, sim: Simulation) -> object:
    return None if sim.now >= ENDS else Snooze(ENDS)


def simulate(does: Callable[[Context, Simulation], object], **more: Any) -> Simulation:
    """Return a world whose handler fails at first, and does this in the run that is open from `OPENS` on."""
    app = App()
    sim = Simulation(app)
    opened: list[str] = []

    @app.handler("work", retry=3, expected_duration=HOUR, **more)
    def work(ctx: Context) -> object:
        if sim.now < OPENS:
            return Fail("at first")
        opened.append(ctx.execution_id)
        return does(ctx, sim) if ctx.execution_id == opened[0] else None

    return sim


def list_starts(sim: Simulation, records: list[Execution]) -> list[datetime | None]:
    """Return when each of the two began, or None if it is SKIPPED, which its record explains."""
    found = [each for each in records if each.trigger == "SCHEDULE" and each.scheduled_for in {FIRST, SECOND}]
    opened = next(each.scheduled_for for each in records if each.finished_at and each.finished_at >= ENDS)
    for each in found:
        assert (each.status == "SKIPPED") == (each.started_at is None)
        assert each.status == "SUCCEEDED" or f"The run of {opened:%a} {opened.day} Jan 2027 at {opened:%H:%M}" in (
            each.message or ""
        )
    assert sim.app.get("t").status == "COMPLETED"
    return [each.started_at for each in found]


@pytest.mark.parametrize("catch_up", ["LATEST", "ALL"])
@pytest.mark.parametrize("opening", list(OPENINGS))
@pytest.mark.parametrize(
    ("does", "overlap"),
    # While a handler runs in a simulation, nothing else does: so what may overlap is tried beside those that wait.
    [
        (does, policy)
        for does in (run, sleep, retry, put_off, "worker")
        for policy in STARTS
        if does is not run or policy != "ALLOW"
    ],
)
def test_overlap_decides_about_what_comes_due_while_any_run_is_open(
    does: Callable[[Context, Simulation], object] | str,
    opening: str,
    overlap: Literal["SKIP", "BUFFER", "ALLOW"],
    catch_up: Literal["LATEST", "ALL"],
) -> None:
    """SKIP leaves it out, BUFFER runs the newest at that run's end, ALLOW runs it at once: the same for each kind."""
    is_working = isinstance(does, str)
    with simulate(put_off if isinstance(does, str) else does, pull="q" if is_working else None) as sim:
        if is_working:
            sim.add_worker("q")
        more, open_run = OPENINGS[opening]
        dates = [f"{at:%Y-%m-%dT%H:%M:%S}" for at in (EARLIER, *more, FIRST, SECOND)]
        schedule = Schedule(dtstart=dates[0], rdates=dates[1:])
        sim.app.create(id="t", handler="work", schedule=schedule, overlap=overlap, catch_up=catch_up)
        open_run(sim)
        sim.advance_to(ENDS + MINUTE)
        found = list_starts(sim, spread(sim.executions("t"), sim.app.get("t").schedule))
        assert found == [at and about(at) for at in STARTS[overlap]]


@pytest.mark.parametrize(("overlap", "starts"), [("SKIP", None), ("BUFFER", FIRST + 3 * MINUTE)])
def test_the_end_of_the_run_beside_which_it_came_due_decides(
    overlap: Literal["SKIP", "BUFFER"], starts: datetime | None
) -> None:
    """Also if another run is open by then, which began later."""
    with Simulation(App()) as sim:

        @sim.app.handler("work")
        def work(ctx: Context) -> None:
            ctx.sleep(2 * MINUTE)

        schedule = Schedule(dtstart=f"{OPENS:%Y-%m-%dT%H:%M:%S}", rdates=[f"{FIRST:%Y-%m-%dT%H:%M:%S}"])
        sim.app.create(id="t", handler="work", schedule=schedule, overlap=overlap)
        sim.advance_to(FIRST + MINUTE)
        sim.app.trigger("t")
        sim.advance_to(FIRST + HOUR)
        (found,) = (each for each in sim.executions("t") if each.scheduled_for == FIRST)
        assert found.started_at == (starts and about(starts))


def test_a_run_that_is_retried_was_not_open_before() -> None:
    """What came due between its end and the retry waits for it, and catchUp decides."""
    with simulate(sleep) as sim:
        schedule = Schedule(dtstart=f"{EARLIER:%Y-%m-%dT%H:%M:%S}", rdates=[f"{FIRST:%Y-%m-%dT%H:%M:%S}"])
        sim.app.create(id="t", handler="work", schedule=schedule)
        sim.advance_to(EARLIER)
        sim.clock.move_to(FIRST + MINUTE)
        sim.app.retry("t")
        sim.advance(HOUR)
        assert [each.status.value for each in sim.executions("t")] == ["SUCCEEDED", "SUCCEEDED"]


def test_a_skip_loses_nothing_that_is_due_before_it() -> None:
    """What is due beside it still runs, the earlier ones as well as the later ones."""
    with Simulation(App()) as sim:
        sim.app.handler("log")(lambda: None)
        sim.app.create(id="t", handler="log", schedule=Schedule.every(HOUR, start=EARLIER), catch_up="ALL")
        sim.clock.move_to(START + 4.5 * HOUR)
        sim.app.skip("t", START + 3 * HOUR)
        sim.advance(MINUTE)
        assert [each.status.value for each in sim.executions("t")] == ["SUCCEEDED", "SUCCEEDED", "SKIPPED", "SUCCEEDED"]
