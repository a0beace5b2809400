"""The world's workers: they come when something may be offered, and do with what they claim all that workers do.

Some work at the store itself, by `begin`, `call` and `end`; some from afar, by ids and the lease's token, as through
the HTTP API. They come late and too many at once, forget their heartbeats, give back, and say twice how it ended.
"""

from __future__ import annotations

from bisect import insort
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from cloudsched import Cancel, Done, Fail, Retry, Snooze
from cloudsched.domain.documents.execution import ProgressStep
from cloudsched.domain.documents.pull import lanes_of
from cloudsched.domain.transitions.finish import Report
from cloudsched.engine.pull.offers import Wanted
from cloudsched.errors import LeaseLost, NotFound, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from random import Random

    from tests.simulation.world import World

    from cloudsched import App, Task
    from cloudsched.engine.execution.attempts import Begun
    from cloudsched.engine.pull.claims import Pulls
    from cloudsched.engine.pull.offers import Claim

_SKILLS = {"gpu": ("cuda", "metal"), "press": ("ink",)}
"""What there is in the two queues."""
LANES = tuple(lane for queue, skills in _SKILLS.items() for lane in lanes_of(queue, skills))
_PULLS = (None, None, "gpu", "gpu", "press", {"queue": "gpu", "skill": "cuda"}, {"queue": "press", "skill": "ink"})
_MOST_PLANNED = 4


def drawn_pull(chance: Random) -> Any:  # noqa: ANN401 - all that a task may say
    """Return which workers a task is for, or None."""
    return chance.choice(_PULLS)


class Workers:
    """When workers come, and for what."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._visits: list[datetime] = []

    def next_at(self) -> datetime | None:
        """Return when the next one comes, if something has rung."""
        return self._visits[0] if self._visits else None

    def ring(self, soonest: float = 0) -> None:
        """Let somebody come before long, since something may be offered."""
        insort(self._visits, self._world.now + timedelta(seconds=soonest + self._delay()))
        del self._visits[_MOST_PLANNED:]

    def _delay(self) -> float:
        world = self._world
        if world.weather.is_calm or not world.is_stormy:
            return world.random.choice([0, 1, 10])
        waits = [0, 0, 60, 20_000] if world.weather.is_long else [0, 0, 5, 60, 900]
        return world.random.choice(waits) * world.random.random()

    def rest(self) -> float:
        """Return how many seconds a bit of work takes."""
        world = self._world
        if world.weather.is_calm or not world.is_stormy:
            return (15 if world.is_stormy else 4) * world.random.random()
        return world.random.choice([0, 1, 10, 30, 60, 400]) * world.random.random()

    def come(self) -> None:
        """Let some workers come at the same time; others follow as long as something is offered."""
        world = self._world
        self._visits.pop(0)
        for _ in range(world.random.choice([1, 1, 2] if world.weather.is_calm else [1, 1, 2, 3])):
            app, wanted = world.random.choice(world.apps[4:]), self._wanted()
            world.begin("worker", app, partial(_visit, world, app, wanted), wanted=wanted)
        if world.inner.offered(LANES, limit=1):
            self.ring(1)

    def _wanted(self) -> Wanted:
        choose = self._world.random.choice
        offered = self._world.inner.offered(LANES, limit=5)
        is_kind = self._world.weather.is_calm or not self._world.is_stormy
        if offered and (is_kind or self._world.random.random() < 0.6):
            pull = choose(offered).task.pull
            assert pull
            return Wanted(pull.queue, (pull.skill,) if pull.skill else (), worker="ann")
        queue = choose(list(_SKILLS))
        skills = [skill for skill in _SKILLS[queue] if choose([True, False])]
        handlers = choose([None, None, {"work"}, {"chore", "flow"}])
        return Wanted(queue, skills, handlers, choose([None, None, "ada", "bob"]), "ben")


def _visit(world: World, app: App, wanted: Wanted) -> None:
    limit = world.random.choice([1, 2] if world.weather.is_calm else [1, 1, 2, 3])
    world.say(f"comes for {limit} of {wanted}")
    world.pulls.came()
    claims = app.pulls.claim(wanted, limit)
    world.say(f"has {[(each.stored.task.id, each.run.execution_id) for each in claims]}")
    world.pulls.was_given(wanted, limit, claims)
    for claim in claims:
        work = Work(world, app, claim)
        (work.at_the_store if world.random.random() < 0.6 else work.from_afar)()


class Work:
    """What a worker does with one claim."""

    def __init__(self, world: World, app: App, claim: Claim) -> None:
        self._world = world
        self._app = app
        self._claim = claim
        self._run = claim.run
        self._task: Task = claim.stored.task
        lease = claim.run.lease
        assert lease
        self._until = lease.until
        self._key = (self._task.id, claim.run.execution_id, lease.token)

    @property
    def _api(self) -> Pulls:
        return self._world.random.choice(self._world.apps).pulls

    def _rest(self) -> None:
        self._world.rest(self._world.workers.rest())

    # ── At the store ─────────────────────────────────────────────────────────────────────────────────────────────

    def at_the_store(self) -> None:
        """Call the handler and bring its result, with a thread beside it that sends heartbeats, if it does."""
        world = self._world
        begun = self._app.pulls.begin(self._claim)
        if begun is None:
            return
        draw = world.random.random()
        if draw < 0.1:
            self._give_back(partial(self._app.pulls.release, begun))
            return
        if draw < 0.4:
            world.begin_beside("beat", partial(self._beat, begun))
        report = self._app.pulls.call(begun)
        if world.random.random() < 0.2:
            self._rest()
        for _ in range(world.random.choice([1, 2, 4])):
            try:
                finished = self._app.pulls.end(begun, report)
            except StoreUnavailable:
                continue
            world.say("has ended it" if finished else "has lost it")
            if finished:
                world.pulls.was_heard(self._key)
            else:
                world.pulls.was_refused(self._key)
            break
        if world.random.random() < 0.2:
            self._finish(report)

    def _beat(self, begun: Begun) -> None:
        for _ in range(3):
            self._rest()
            begun.context.heartbeat()

    # ── From afar ────────────────────────────────────────────────────────────────────────────────────────────────

    def from_afar(self) -> None:
        """Do what a worker does that reaches its tasks through the API alone, which any process may answer."""
        world, rules = self._world, self._world.rules
        left = self._until - self._app.clock.now()
        if left <= timedelta(0):
            return
        rules.began(self._task, self._run.execution_id, left)
        try:
            for _ in range(world.random.choice([0, 1, 2, 4])):
                self._rest()
                if world.random.random() < 0.5 and not self._renew():
                    return
        except NotFound:
            return
        finally:
            rules.ended(world.current)
        draw = world.random.random()
        if draw < 0.08 and not world.weather.is_calm:
            world.say("forgets what it has claimed")
        elif draw < 0.2:
            self._give_back(lambda reason: self._api.give_back(*self._key, reason))
        else:
            report = self._report()
            if world.random.random() < 0.15:
                world.begin_beside("again", partial(self._finish, report))
            self._finish(report)

    def _renew(self) -> bool:
        """Send a heartbeat; return whether to go on."""
        world, app = self._world, self._world.random.choice(self._world.apps)
        said = world.random.choice([None, self._progress()])
        try:
            state = app.pulls.heartbeat(*self._key, said)
        except StoreUnavailable:
            return True
        if state.until is None:
            world.pulls.was_refused(self._key)
            return world.random.random() < 0.3
        world.rules.beat(state.until - app.clock.now())
        return True

    def _progress(self) -> Sequence[ProgressStep]:
        return (ProgressStep(at=self._world.now, text="half of it"),)

    def _report(self) -> Report:
        world = self._world
        later = timedelta(seconds=world.random.choice([0, 1, 90, 1000]))
        if world.random.random() < 0.6:
            return Report(Done({"from": "afar"}), progress=self._progress())
        endings = (Retry("no"), Retry("later", later), Snooze(later), Snooze(world.now + later), Fail("no"))
        return Report(world.random.choice((*endings, Cancel("no"))))

    # ── How it ends ──────────────────────────────────────────────────────────────────────────────────────────────

    def _finish(self, report: Report) -> None:
        """Say how it ended: once, or again and again, and perhaps when nobody waits for it any more."""
        world = self._world
        for _ in range(world.random.choice([1, 1, 2, 3])):
            try:
                self._api.finish(*self._key, report)
            except StoreUnavailable:
                pass
            except LeaseLost:
                world.say("is told that it has lost it")
                world.pulls.was_refused(self._key, is_told_twice=True)
            except NotFound:
                world.pulls.was_gone(self._key)
            else:
                world.say("is told that it has ended it")
                world.pulls.was_heard(self._key)
            if world.random.random() < 0.2:
                self._rest()

    def _give_back(self, give_back: Any) -> None:  # noqa: ANN401 - of either sort
        world = self._world
        world.say("gives it back")
        world.rules.asked("give back")
        for _ in range(world.random.choice([1, 2])):
            try:
                if give_back("Its worker stops.") is None:
                    world.pulls.was_refused(self._key)
                else:
                    world.pulls.was_heard(self._key)
            except StoreUnavailable:
                continue
            except LeaseLost:
                world.pulls.was_refused(self._key)
            except NotFound:
                world.pulls.was_gone(self._key)
        world.rules.asked("")
