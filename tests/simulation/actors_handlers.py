"""The handler of a history: it takes time, may extend its lease, and ends with every possible outcome."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from cloudsched import App, Cancel, Context, Done, Fail, Retry, Snooze

if TYPE_CHECKING:
    from tests.simulation.world import World


class HandlerError(Exception):
    """The error of a failing handler."""


def register_handlers(app: App, world: World) -> None:
    @app.handler("chore")
    def chore(ctx: Context) -> object:
        return run(ctx)

    @app.handler("work", access="users")
    def work(ctx: Context, payload: dict[str, int]) -> object:
        world.rules.on_payload(ctx, payload)
        return run(ctx)

    def run(ctx: Context) -> object:
        world.rules.on_handler_start(ctx)
        if world.fault_profile.has_budgets:
            ctx.used(queries=world.random.choice([0, 1, 3]))
        try:
            for _ in range(world.random.choice([2, 5] if world.fault_profile.is_crowded else [0, 0, 1, 3])):
                take_time(world)
                if world.random.random() < 0.4:
                    world.rules.on_heartbeat(ctx, is_held=ctx.heartbeat())
            answer = _pick_outcome(ctx, world)
        finally:
            world.rules.on_handler_end(world.current)
        if isinstance(answer, HandlerError):
            raise answer
        return answer


def take_time(world: World) -> None:
    """Let other processes run; on a worker, time passes as well."""
    assert world.current
    if world.current.wanted is None:
        world.yield_control()
    else:
        world.wait(world.workers.next_pause())


def _pick_outcome(ctx: Context, world: World) -> object:
    draw = world.random.random()
    later = timedelta(seconds=world.random.choice([0, 1, 90, 1000]))
    if draw < 0.62:
        if world.random.random() < 0.3:
            ctx.notify("Done", ctx.execution_id)
        return Done({"attempt": ctx.attempt}, then=world.follow_ups.give(ctx))
    endings = (HandlerError("broke"), Retry("again"), Retry("later", later), Snooze(later), Snooze(ctx.now() + later))
    rare = (Fail("no use"), Cancel("not needed"))
    return world.random.choice(endings if draw < 0.93 else rare)
