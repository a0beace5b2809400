"""The durable handler of a history: its operations are drawn from its task, so every replay asks for the same ones.

The results of its steps and its outcome are drawn from the world's random numbers: a step that is called again returns
something else, so a repeated call cannot be mistaken for the recorded result.
"""

from __future__ import annotations

import random
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tests.engine.harness import DAY, MINUTE, SECOND
from tests.simulation.actors_handlers import HandlerError, take_time
from tests.simulation.actors_workers import random_pull

from cloudsched import App, Cancel, Context, Fail, Retry, RetryPolicy, Snooze
from cloudsched.engine.durable.durable_run import CallHandle
from cloudsched.errors import CallFailed, EventTimedOut, StepFailed, WorkflowError

if TYPE_CHECKING:
    from tests.simulation.world import World


EVENTS = ("go", "stop")
_LENGTHS = ((2, 3, 5), (1, 2, 3), (1, 2))
"""How many operations a flow asks for, by nesting depth."""
_LATER = RetryPolicy(max_retries=2, first_delay=90 * SECOND)


def register_durable_handlers(app: App, world: World) -> None:
    @app.handler("stream", access="users")
    @app.handler("flow", access="users")
    def flow(ctx: Context) -> object:
        world.rules.on_handler_start(ctx)
        try:
            answer = _RandomWorkflow(ctx, world).run()
        finally:
            world.rules.on_handler_end(world.current)
        if isinstance(answer, HandlerError):
            raise answer
        return answer


def child_fields(script: random.Random, world: World) -> dict[str, Any]:
    """Return the fields of a task that runs child tasks instead of a handler."""
    handlers = script.choices(["work", "flow"], k=script.choice([1, 2, 3]))
    return {
        "children": [
            {
                "handler": each,
                "retry": _retry(script).model_dump(mode="json", by_alias=True),
                **_pick_fields(script, world),
            }
            for each in handlers
        ],
        "parallel": script.random() < 0.5,
        "on_child_failure": script.choice(["fail", "skip", "continue"]),
    }


def _retry(script: random.Random) -> RetryPolicy:
    return RetryPolicy(max_retries=script.choice([0, 0, 1]), base=5 * SECOND)


def _pick_fields(script: random.Random, world: World) -> dict[str, Any]:
    pull = random_pull(script) if world.fault_profile.has_workers else None
    return {
        **({"lock_key": "one thing"} if script.random() < 0.15 else {}),
        **({"pull": pull} if pull else {}),
    }


class _RandomWorkflow:
    """One attempt of a flow."""

    def __init__(self, ctx: Context, world: World) -> None:
        self._ctx = ctx
        self._world = world
        self._depth = ctx.task.parent.depth if ctx.task.parent else 0
        self._told: tuple[int, set[int]] = (0, set())
        task = ctx.task
        kind = "" if task.handler == "flow" else f" {task.handler}"
        self._script = random.Random(f"{world.seed} {task.id} {task.created_at} {ctx.execution_id}{kind}")  # noqa: S311
        self._acts = {
            self._step: 6,
            self._call: 4 if self._depth < 2 else 0,
            self._gather: 3 if self._depth < 2 else 0,
            self._race: 2 if self._depth < 2 else 0,
            self._leave_call_open: 0.5 if self._depth < 2 else 0,
            self._sleep: 2,
            self._wait: 2,
            self._check_now: 1,
            self._draw: 1,
            self._version: 1,
        }

    def run(self) -> object:
        """Ask for one operation after the other; return the outcome of the attempt."""
        try:
            return self._run_operations()
        finally:
            at, failed = self._told
            self._world.journals.on_handler_finished(
                self._ctx, self._number(), failed if at == self._number() else set()
            )

    def _run_operations(self) -> object:
        for place in range(self._script.choice(_LENGTHS[min(self._depth, 2)])):
            (act,) = self._script.choices(list(self._acts), list(self._acts.values()))
            catches = self._script.random() < 0.5
            try:
                act(place)
            except WorkflowError as error:
                self._world.journals.check_mismatch(self._ctx, error)
                if isinstance(error, StepFailed | EventTimedOut):
                    self._fails(self._number())
                if not catches:
                    raise
            self._maybe_raise()
        if self._world.random.random() < 0.8:
            return {"flow": self._world.random.getrandbits(32)}
        later = timedelta(seconds=self._world.random.choice([0, 1, 90]))
        endings = (
            HandlerError("broke"),
            Retry("again"),
            Retry("later", later),
            Snooze(later),
            Fail("no use"),
            Cancel("enough"),
        )
        return self._world.random.choice(endings)

    def _maybe_raise(self) -> None:
        """Extend the lease or fail between two operations, at random."""
        draw = self._world.random.random()
        if draw < 0.05:
            self._world.rules.on_heartbeat(self._ctx, is_held=self._ctx.heartbeat())
        elif draw < 0.08:
            raise HandlerError("broke between two steps")

    def _fails(self, *numbers: int) -> None:
        """Note that the handler has seen the failure of some of these."""
        at, failed = self._told
        self._told = (self._number(), {*numbers, *(failed if at == self._number() else ())})

    def _number(self) -> int:
        return self._ctx.durable_run.perform("the journal", lambda cursor: cursor.position)

    # ── What it asks for ─────────────────────────────────────────────────────────────────────────────────────────

    def _step(self, place: int) -> None:
        retry = self._script.choice([None, 0, 1, _LATER])
        value = self._ctx.step(f"step {place}", self._perform, retry=retry)
        self._world.journals.check_result_seen(self._ctx, self._number(), value, is_recorded=True)

    def _perform(self) -> dict[str, int]:
        self._world.journals.on_step_called(self._ctx, self._number())
        for _ in range(self._world.random.choice([0, 0, 1, 4])):
            take_time(self._world)
        if self._world.random.random() < 0.25:
            raise HandlerError("broke in a step")
        return {"once": self._world.random.getrandbits(32)}

    def _start_call(self) -> CallHandle[Any]:
        handler = self._script.choice(["work", "flow"] if self._depth < 1 else ["work"])
        fields: dict[str, Any] = {"retry": _retry(self._script), **_pick_fields(self._script, self._world)}
        if self._script.random() < 0.2:
            fields["retention"] = 5 * MINUTE
        return self._ctx.call(handler, **fields)

    def _call(self, place: int) -> None:
        call = self._start_call()
        if self._script.random() < 0.3:
            self._step(place)
        try:
            self._world.journals.check_result_seen(self._ctx, call.number, call.result())
        except CallFailed:
            self._fails(call.number)
            raise

    def _gather(self, _: int) -> None:
        calls = [self._start_call() for _ in range(self._script.choice([2, 2, 3]))]
        returns_failures = self._script.random() < 0.5
        try:
            results = self._ctx.gather(*calls, return_failures=returns_failures)
        except CallFailed:
            self._fails(*(call.number for call in calls))
            raise
        if any(isinstance(result, CallFailed) for result in results):
            self._fails(*(call.number for call in calls))
        for call, result in zip(calls, results, strict=True):
            self._world.journals.check_result_seen(self._ctx, call.number, result)

    def _race(self, _: int) -> None:
        calls = [self._start_call() for _ in range(self._script.choice([2, 2, 3]))]
        cancels = self._script.random() < 0.7
        try:
            result, winner = self._ctx.race(*calls, cancel_losers=cancels)
        except CallFailed:
            self._fails(*(call.number for call in calls))
            raise
        self._world.journals.check_race_seen(self._ctx, self._number(), winner.number, result)

    def _leave_call_open(self, _: int) -> None:
        self._start_call()

    def _sleep(self, _: int) -> None:
        naps = [timedelta(0), SECOND, 90 * SECOND, 20 * MINUTE]
        self._ctx.sleep(40 * DAY if self._world.fault_profile.is_long else self._script.choice(naps))

    def _wait(self, _: int) -> None:
        timeout = self._script.choice([None, timedelta(0), MINUTE, 30 * MINUTE])
        value = self._ctx.wait_for(self._script.choice(EVENTS), timeout=timeout)
        self._world.journals.check_result_seen(self._ctx, self._number(), value, is_recorded=True)

    def _check_now(self, _: int) -> None:
        now = self._ctx.now()
        self._world.journals.check_result_seen(self._ctx, self._number(), now)

    def _draw(self, place: int) -> None:
        self._world.journals.check_random_value(self._ctx, place, f"{self._ctx.uuid()} {self._ctx.random.random()}")

    def _version(self, place: int) -> None:
        newest = self._world.random.choice([2, 3])  # the code changes during the history
        version = self._ctx.version(f"change {place}", newest)
        self._world.journals.check_result_seen(self._ctx, self._number(), version)
