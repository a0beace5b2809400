"""One machine: the executors and sweeps are one process, which has the store for itself, dies and is started again.

With it dies everything that it ran, and its queue. Workers and clients are processes of their own and live on.

H1  What its attempts held when it died is over: the next start dispatches each, however long its lease is.
H2  Nobody else's lease ends by it: a worker's is renewed and ended by its holder alone (W5).
H3  An attempt that its process no longer runs, such as one whose result could not be stored, may be closed by it.
"""

from __future__ import annotations

import json
import random
from collections import deque
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from tests.engine.harness import MINUTE
from tests.simulation.invariants_runs import fail

from cloudsched import App
from cloudsched.domain.documents.execution import Lease
from cloudsched.engine.execution.executor import WorkInProgress

if TYPE_CHECKING:
    from tests.simulation.world import World


_AHEAD = 10 * MINUTE


class Restarts:
    """The lives of a world's server."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._lives = 0
        self._times: deque[datetime] = deque()
        profile = world.fault_profile
        if profile.restarts:
            chance = random.Random(f"restarts {world.seed}")  # noqa: S311 - a history is to be repeatable
            self._times.extend(sorted(world.now + profile.length * chance.random() for _ in range(profile.restarts)))
            self._name()

    def next_at(self) -> datetime | None:
        return self._times[0] if self._times else None

    def act(self) -> None:
        """Kill the server with all that it runs, and start it again."""
        self._times.popleft()
        world, executors = self._world, self._world.apps[:3]
        world.log("THE SERVER IS KILLED")
        for process in [each for each in world.processes if each.app in executors]:
            world.crash(process)
        world.replace_queue()
        self._name()
        world.start_process("start", executors[0], partial(self._load, executors[0]))

    def _load(self, app: App) -> None:
        self._world.log(f"loads {app.container.sweeper.resend(self._world.now + _AHEAD)}")
        queued = [json.loads(each.target.body) for each in self._world.model.tasks.values()]
        dispatched = {(each.get("taskId"), each.get("executionId")) for each in queued}
        for task in self._world.tasks():
            for run in task.runs:
                is_over = run.lease is not None and self.has_ended(run.lease) and task.deleted_at is None
                if is_over and task.delivery is None and (task.id, run.execution_id) not in dispatched:
                    fail(f"H1: {run.execution_id} of {task.id} was not dispatched at the start")

    def _name(self) -> None:
        self._lives += 1
        in_progress = WorkInProgress()
        for app in self._world.apps[:3]:
            app.container.executor.holder = app.container.sweeper._holder = f"life {self._lives}"  # noqa: SLF001 - a new life of it
            app.container.executor._in_progress = in_progress  # noqa: SLF001 - they are one process

    def has_ended(self, lease: Lease) -> bool:
        """Return whether the life of the server that held a lease has ended."""
        return lease.holder not in {None, f"life {self._lives}"}

    def is_lost(self, lease: Lease) -> bool:
        """Return whether an attempt of a server is run by nobody any more."""
        return lease.holder is not None and not any(lease.token_hash in each.tokens for each in self._world.processes)
