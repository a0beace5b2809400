"""A simulation warns of handlers that read the machine's clock, at the line."""

from __future__ import annotations

import datetime as dt
import time
import warnings
from collections.abc import Callable
from datetime import date, datetime
from time import time as now

import pytest

from cloudsched import App, Context
from cloudsched.testing import Simulation


def read_elsewhere() -> date:
    return date.today()  # noqa: DTZ011 - what is warned of


READS: dict[str, Callable[[], object]] = {
    "a class": lambda: datetime.now(dt.UTC),
    "a module's class": lambda: dt.datetime.now(dt.UTC),
    "a module": lambda: str(time.time()),
    "a function": lambda: str(now()),
    "a day": lambda: str(date.today()),  # noqa: DTZ011 - the same
    "no zone": lambda: str(datetime.utcnow()),  # noqa: DTZ003 - the same
    "in another function": lambda: str(read_elsewhere()),
    "in a list": lambda: [time.time_ns() for _ in "ab"],
}
FINE: dict[str, Callable[[], object]] = {
    "a stopwatch": lambda: str(time.monotonic()),
    "a given time": lambda: datetime(2027, 1, 1, tzinfo=dt.UTC),
    "an attribute of another": lambda: pytest.param(1).values,
}


def simulate(handler: Callable[..., object]) -> list[warnings.WarningMessage]:
    app = App()
    app.handler("work")(handler)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with Simulation(app):
            pass
    return warned


@pytest.mark.parametrize("read", READS)
def test_a_read_of_the_machines_clock_is_told_at_its_line(read: str) -> None:
    """With what to write instead, in a handler and in what it calls of its own module."""
    (told,) = simulate(READS[read])
    code = (read_elsewhere if read == "in another function" else READS[read]).__code__
    assert told.filename == __file__
    assert told.lineno in {line for _, _, line in code.co_lines()}
    assert "ctx.now()" in str(told.message)


@pytest.mark.parametrize("way", FINE)
def test_other_times_are_not_told(way: str) -> None:
    """Measuring is no reading of the time, nor is making one."""
    assert not simulate(FINE[way])


def test_the_time_of_the_context_is_not_told() -> None:
    """It is that of the simulation."""

    async def work(ctx: Context) -> str:
        return ctx.now().isoformat()

    assert not simulate(work)
