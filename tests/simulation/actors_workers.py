"""The workers of a history: they poll when something may be offered, and do all that workers do with their claims.

Some work at the store, by `start`, `invoke_handler` and `finish`; others by ids and the lease's token, as through the
HTTP API. They come late and too many at once, forget heartbeats, release runs, and report a result twice.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from cloudsched import App, Cancel, Done, Fail, Retry, Snooze, Task
from cloudsched.domain.documents.execution import ProgressNote
from cloudsched.domain.transitions.finish import AttemptReport
from cloudsched.engine.execution.attempt import Attempt
from cloudsched.engine.ports.procedure import run_procedure
from cloudsched.errors import LeaseLost, NotFound, StoreUnavailable
from cloudsched.features.pull.claims import WorkerClaims
from cloudsched.features.pull.fields import queue_keys
from cloudsched.features.pull.wiring import PullWiring
from cloudsched.features.pull.work_queue import THIS_PROCESS, WorkerFilter

if TYPE_CHECKING:
    from tests.simulation.world import World


_SKILLS = {"gpu": ("cuda", "metal"), "press": ("ink",)}
"""The two queues and their skills."""
QUEUE_KEYS = tuple(lane for queue, skills in _SKILLS.items() for lane in queue_keys(queue, skills))
_PULLS = (None, None, "gpu", "gpu", "press", {"queue": "gpu", "skill": "cuda"}, {"queue": "press", "skill": "ink"})
_MOST_PLANNED = 4


def random_pull(chance: Random) -> Any:  # noqa: ANN401 - all that a task accepts
    return chance.choice(_PULLS)


class Workers:
    def __init__(self, world: World) -> None:
        self._world = world
        self._visits: list[datetime] = []

    def next_at(self) -> datetime | None:
        """Return when the next worker polls, if workers were notified."""
        return self._visits[0] if self._visits else None

    def notify(self, soonest: float = 0) -> None:
        """Let a worker poll soon, since something may be offered."""
        insort(self._visits, self._world.now + timedelta(seconds=soonest + self._delay()))
        del self._visits[_MOST_PLANNED:]

    def _delay(self) -> float:
        world = self._world
        if world.fault_profile.is_fault_free or not world.faults_enabled:
            return world.random.choice([0, 1, 10])
        waits = [0, 0, 60, 20_000] if world.fault_profile.is_long else [0, 0, 5, 60, 900]
        return world.random.choice(waits) * world.random.random()

    def next_pause(self) -> float:
        """Return how many seconds a piece of work takes."""
        world = self._world
        if world.fault_profile.is_fault_free or not world.faults_enabled:
            return (15 if world.faults_enabled else 4) * world.random.random()
        return world.random.choice([0, 1, 10, 30, 60, 400]) * world.random.random()

    def start_visit(self) -> None:
        """Let some workers poll at the same time; others follow while something is offered."""
        world = self._world
        self._visits.pop(0)
        for _ in range(world.random.choice([1, 1, 2] if world.fault_profile.is_fault_free else [1, 1, 2, 3])):
            app, wanted = world.random.choice(world.apps[4:]), self._pick_filter()
            world.start_process("worker", app, partial(visit_queue, world, app, wanted), wanted=wanted)
        if world.real_store.list_offers(QUEUE_KEYS, None, limit=1):
            self.notify(1)

    def _pick_filter(self) -> WorkerFilter:
        choose = self._world.random.choice
        offered = self._world.real_store.list_offers(QUEUE_KEYS, None, limit=5)
        is_kind = self._world.fault_profile.is_fault_free or not self._world.faults_enabled
        if offered and (is_kind or self._world.random.random() < 0.6):
            queue, _, skill = choose(offered).queue_key.partition("/")
            return WorkerFilter(queue, (skill,) if skill else (), worker="ann")
        queue = choose(list(_SKILLS))
        skills = [skill for skill in _SKILLS[queue] if choose([True, False])]
        handlers = choose([None, None, {"work"}, {"chore", "flow"}])
        return WorkerFilter(queue, skills, handlers, choose([None, None, "ada", "bob"]), "ben")


def visit_queue(world: World, app: App, wanted: WorkerFilter) -> None:
    limit = world.random.choice([1, 2] if world.fault_profile.is_fault_free else [1, 1, 2, 3])
    world.log(f"comes for {limit} of {wanted}")
    world.pulls.on_worker_visit()
    claims = PullWiring.of(app.container).work_queue.claim(wanted, THIS_PROCESS, limit)
    world.log(f"has {[(each.task.id, each.run.execution_id) for each in claims]}")
    world.pulls.on_claimed(wanted, limit, claims)
    for claim in claims:
        work = ClaimedTask(world, app, claim)
        (work.run_at_store if world.random.random() < 0.6 else work.run_through_api)()


class ClaimedTask:
    """The actions of a worker on one claim."""

    def __init__(self, world: World, app: App, claim: Attempt) -> None:
        self._world = world
        self._app = app
        self._claim = claim
        self._run = claim.run
        self._task: Task = claim.task
        lease = claim.run.lease
        assert lease
        self._until = lease.until
        self._key = (self._task.id, claim.run.execution_id, claim.lease_token)

    @property
    def _api(self) -> WorkerClaims:
        return PullWiring.of(self._world.random.choice(self._world.apps).container).worker_claims

    def _pause(self) -> None:
        self._world.wait(self._world.workers.next_pause())

    # ── With the store ─────────────────────────────────────────────────────────────────────────────────────────────

    def run_at_store(self) -> None:
        """Run the handler and report its result; a second process may send heartbeats."""
        world = self._world
        begun = PullWiring.of(self._app.container).worker_claims.start(self._claim)
        if begun is None:
            return
        draw = world.random.random()
        if draw < 0.1:
            self._give_back(partial(PullWiring.of(self._app.container).worker_claims.release, begun))
            return
        if draw < 0.4:
            world.spawn_sibling("beat", partial(self._send_heartbeats, begun))
        report = run_procedure(self._app.container.executor.call(begun))
        if world.random.random() < 0.2:
            self._pause()
        for _ in range(world.random.choice([1, 2, 4])):
            try:
                finished = PullWiring.of(self._app.container).worker_claims.finish(begun, report)
            except StoreUnavailable:
                continue
            world.log("has ended it" if finished else "has lost it")
            if finished:
                world.pulls.on_result_accepted(self._key)
            else:
                world.pulls.on_result_refused(self._key)
            break
        if world.random.random() < 0.2:
            self._finish(report)

    def _send_heartbeats(self, begun: Attempt) -> None:
        for _ in range(3):
            self._pause()
            begun.context.heartbeat()

    # ── From afar ────────────────────────────────────────────────────────────────────────────────────────────────

    def run_through_api(self) -> None:
        """Work through the API alone, where any process may answer a request."""
        world, rules = self._world, self._world.rules
        left = self._until - self._app.container.clock.now()
        if left <= timedelta(0):
            return
        rules.on_attempt_start(self._task, self._run.execution_id, left)
        try:
            for _ in range(world.random.choice([0, 1, 2, 4])):
                self._pause()
                if world.random.random() < 0.5 and not self._renew_lease():
                    return
        except NotFound:
            return
        finally:
            rules.on_handler_end(world.current)
        draw = world.random.random()
        if draw < 0.08 and not world.fault_profile.is_fault_free:
            world.log("forgets what it has claimed")
        elif draw < 0.2:
            self._give_back(lambda reason: self._api.release_by_token(*self._key, reason))
        else:
            report = self._report()
            if world.random.random() < 0.15:
                world.spawn_sibling("again", partial(self._finish, report))
            self._finish(report)

    def _renew_lease(self) -> bool:
        world, app = self._world, self._world.random.choice(self._world.apps)
        said = world.random.choice([None, self._progress()])
        try:
            state = PullWiring.of(app.container).worker_claims.heartbeat(*self._key, said)
        except StoreUnavailable:
            return True
        if state.until is None:
            world.pulls.on_result_refused(self._key)
            return world.random.random() < 0.3
        world.rules.on_lease_renewed(state.until - app.container.clock.now())
        return True

    def _progress(self) -> Sequence[ProgressNote]:
        return (ProgressNote(at=self._world.now, text="half of it"),)

    def _report(self) -> AttemptReport:
        world = self._world
        later = timedelta(seconds=world.random.choice([0, 1, 90, 1000]))
        if world.random.random() < 0.6:
            return AttemptReport(Done({"from": "afar"}), progress=self._progress())
        endings = (Retry("no"), Retry("later", later), Snooze(later), Snooze(world.now + later), Fail("no"))
        return AttemptReport(world.random.choice((*endings, Cancel("no"))))

    # ── How it ends ──────────────────────────────────────────────────────────────────────────────────────────────

    def _finish(self, report: AttemptReport) -> None:
        """Report the result once or repeatedly, perhaps after the lease was lost."""
        world = self._world
        for _ in range(world.random.choice([1, 1, 2, 3])):
            try:
                self._api.finish_by_token(*self._key, report)
            except StoreUnavailable:
                pass
            except LeaseLost:
                world.log("is told that it has lost it")
                world.pulls.on_result_refused(self._key, is_told_twice=True)
            except NotFound:
                world.pulls.on_task_missing(self._key)
            else:
                world.log("is told that it has ended it")
                world.pulls.on_result_accepted(self._key)
            if world.random.random() < 0.2:
                self._pause()

    def _give_back(self, give_back: Any) -> None:  # noqa: ANN401 - of either sort
        world = self._world
        world.log("gives it back")
        world.rules.on_client_request("give back")
        for _ in range(world.random.choice([1, 2])):
            try:
                if give_back("Its worker stops.") is None:
                    world.pulls.on_result_refused(self._key)
                else:
                    world.pulls.on_result_accepted(self._key)
            except StoreUnavailable:
                continue
            except LeaseLost:
                world.pulls.on_result_refused(self._key)
            except NotFound:
                world.pulls.on_task_missing(self._key)
        world.rules.on_client_request("")
