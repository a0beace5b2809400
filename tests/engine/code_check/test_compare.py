"""A comparison says that a run would fail if, and only if, it then does with that code."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeAlias

from pydantic import BaseModel
from tests.engine.harness import MINUTE, SECOND, only_run

from cloudsched import App, Context, Schedule, Settings
from cloudsched.engine.code_check.compare import CodeReport, Mismatch
from cloudsched.engine.code_check.replays import Comparison
from cloudsched.engine.code_check.stored_work import StoredWork
from cloudsched.errors import EventTimedOut, NotAllowed, StepFailed
from cloudsched.testing import START, Simulation

Request: TypeAlias = tuple[str, str]
"""A request of the handler: what it asks for, and under which name."""
HISTORIES = 150


class Word(BaseModel):
    """What the handler takes."""

    text: str


class Code:
    """An app whose durable handler makes the requests of a list, which the test may change."""

    def __init__(self, chance: random.Random) -> None:
        self.app = App(Settings())
        self.requests = [random_request(chance) for _ in range(chance.randrange(1, 7))]
        self.is_looked_at = False
        self.called_while_looked_at = 0

        @self.app.handler("flow", retry=0)
        def flow(ctx: Context, word: Word) -> None:  # noqa: ARG001 - it is checked all the same
            for kind, name in [*self.requests]:
                self._request(ctx, kind, name)

        @self.app.handler("leaf", retry=0)
        def leaf() -> int:
            return self._work()

        @self.app.handler("bough", retry=0)
        def bough() -> int:
            return self._work()

    def _work(self) -> int:
        self.called_while_looked_at += self.is_looked_at
        return 1

    def _fail(self) -> None:
        self._work()
        raise ValueError("as it is meant to")

    def _request(self, ctx: Context, kind: str, name: str) -> None:
        try:
            match kind:
                case "step":
                    ctx.step(name, self._work)
                case "broken step":
                    ctx.step(name, self._fail, retry=1)
                case "sleep":
                    ctx.sleep(7 * MINUTE)
                case "event":
                    ctx.wait_for(name, timeout=30 * MINUTE)
                case "now":
                    ctx.now()
                case "call":
                    ctx.call({"a": "leaf", "b": "bough"}[name]).result()
                case "open call":
                    ctx.call({"a": "leaf", "b": "bough"}[name])
                case "race":
                    ctx.race(ctx.call("leaf"), ctx.call("bough"))
                case _:
                    ctx.step(name, self._work) if ctx.version(name, 2) > 1 else ctx.sleep(MINUTE)
        except (StepFailed, EventTimedOut):
            return

    def change(self, chance: random.Random) -> None:
        """Change the list somewhere, or not at all."""
        at = chance.randrange(len(self.requests))
        match chance.randrange(5):
            case 0:
                self.requests[at] = random_request(chance)
            case 1:
                self.requests.insert(at, random_request(chance))
            case 2:
                del self.requests[at]
            case 3:
                chance.shuffle(self.requests)


def random_request(chance: random.Random) -> Request:
    kinds = ("step", "step", "broken step", "sleep", "event", "now", "call", "open call", "race", "version")
    return chance.choice(kinds), chance.choice("ab")


def compare(app: App, sim: Simulation) -> CodeReport:
    comparison = Comparison(
        app.container.registry,
        sim.clock,
    )
    store, blobs = app.container.store, app.container.blobs
    for each in StoredWork(store, blobs, comparison.report).read():
        comparison.look(each)
    return comparison.report


def send_all(app: App, task_id: str) -> None:
    for name in "ab":
        try:
            app.send_event(task_id, name, {"by": "ada"})
        except NotAllowed:
            continue


def run_history(seed: int) -> str:
    """Let a run begin, change the code, compare, let the run end, and return which of both said no."""
    chance = random.Random(seed)  # noqa: S311 - must be repeatable
    code = Code(chance)
    with Simulation(code.app, seed=seed) as sim:
        app = code.app
        task = app.create(owner="ada", handler="flow", payload={"text": "x"}, schedule=Schedule.once(START))
        for _ in range(chance.randrange(1, 5)):
            sim.advance(chance.choice((SECOND, 3 * MINUTE, 8 * MINUTE)))
            if chance.random() < 0.5:
                send_all(app, task.id)
        is_open = bool(app.get(task.id).runs)
        code.change(chance)
        code.is_looked_at = True
        before = app.get(task.id)
        report = compare(app, sim)
        code.is_looked_at = False
        assert code.called_while_looked_at == 0, "a step ran"
        assert app.get(task.id) == before
        for _ in range(40):
            sim.advance(10 * MINUTE)
            send_all(app, task.id)
        ended = only_run(sim, task)
        fails = is_open and ended.error is not None and ended.error.type == "JournalMismatch"
        found = {each.cause for each in report.differences}
        assert found == ({Mismatch.STEPS} if fails else set()), (seed, ended.error, report)
        assert not report.unknown, (seed, report)
        if not is_open:
            return "was over"
        return "fails" if fails else "goes on"


def test_a_comparison_is_right_about_every_change(
    histories: int | None, record_property: Callable[[str, str], None]
) -> None:
    """No run fails of which it said nothing, none goes on of which it said that it would fail; nothing runs."""
    count = histories or HISTORIES
    seen = [run_history(seed) for seed in range(count)]
    record_property("histories", str(count))
    assert {"fails", "goes on"} <= {*seen}
