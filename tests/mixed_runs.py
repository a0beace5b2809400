"""Tasks whose runs end in every way, at random, for properties of what is counted."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Final

from cloudsched import App, Context, Schedule
from cloudsched.testing import Simulation

HOUR: Final = timedelta(hours=1)
OWNERS: Final = ("ada", "bob", "ops")
_HANDLERS: Final = ("works", "fails", "flaky", "calls", "slow", "asks")


def make_mixed_app() -> App:
    """Return an app with handlers that end in every way."""
    app = App()

    @app.handler("works", access="users")
    def work() -> None: ...

    @app.handler("fails", access="users", retry=0)
    def fail() -> None:
        raise ValueError("no")

    @app.handler("flaky", access="users", retry=1)
    def fail_at_first(ctx: Context) -> None:
        if ctx.attempt == 1 and ctx.scheduled_for.hour % 2:
            raise ValueError("at first")

    @app.handler("calls", access="users", retry=0)
    def call(ctx: Context) -> None:
        ctx.call("works")
        if ctx.scheduled_for.hour % 3 == 0:
            ctx.call("fails")

    @app.handler("slow", access="users")
    def sleep(ctx: Context) -> None:
        ctx.sleep(3 * HOUR)

    @app.handler("asks", access="users")
    def ask(ctx: Context) -> None:
        ctx.wait_for("word", timeout=5 * HOUR)

    return app


def live(sim: Simulation, chance: random.Random) -> None:
    """Let a random set of tasks live for a day and a half, with an outage of some hours in it."""
    for number in range(12):
        start = sim.now + chance.randrange(60) * HOUR / 60
        sim.app.create(
            title=f"T{number}",
            owner=chance.choice(OWNERS),
            handler=chance.choice(_HANDLERS),
            schedule=Schedule.every(chance.choice([1, 2, 5]) * HOUR, start=start),
            overlap=chance.choice(["SKIP", "BUFFER", "ALLOW"]),
            catch_up=chance.choice(["LATEST", "ALL", "NONE"]),
        )
    sim.advance(chance.randrange(12, 24) * HOUR)
    sim.clock.move_to(sim.now + chance.randrange(3, 9) * HOUR)  # nothing starts meanwhile
    sim.advance(chance.randrange(2, 6) * HOUR)
