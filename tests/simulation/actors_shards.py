"""A store that gets more shards while it is used, as Firestore does: which tasks each process finds by them.

At first every process is of a version that stores no shards. One after the other is replaced by one that spreads what
it writes over three; a walk gives every task its shard, and fails and dies as often as anything else; only then lists
rely on them. Then all of it again, for five. A history may stop anywhere in that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from tests.engine.harness import SECOND
from tests.simulation.faulty_ports import FaultyStore

from cloudsched import App
from cloudsched.engine.ports.sweep import choose_shard

if TYPE_CHECKING:
    from tests.simulation.world import World


_COUNTS = (3, 5)
_PAUSE = 20 * SECOND


class GrowingShards:
    """The shards of a world's store."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._placed = 0
        self._shards: dict[str, int | None] = {}
        self._events: deque[tuple[datetime, Callable[[], None]]] = deque()
        if world.fault_profile.is_sharded:
            acts: list[Callable[[], None]] = []
            for count in _COUNTS:
                acts += (partial(self._replace, app, count) for app in world.apps)
                acts.append(partial(self._walk, count))
            acts = acts[: world.random.randrange(len(acts) + 1)]
            length = world.fault_profile.length.total_seconds()
            times = sorted(world.random.random() * length for _ in acts)
            self._events.extend((world.now + timedelta(seconds=at), act) for at, act in zip(times, acts, strict=True))

    def next_at(self) -> datetime | None:
        """Return when the next process is replaced, or a walk begins."""
        return self._events[0][0] if self._events else None

    def act(self) -> None:
        """Replace the next process, or begin a walk."""
        self._events.popleft()[1]()

    def on_commit(self, task_id: str, count: int) -> None:
        """Store a task as a process does that knows of so many shards; with 0 it stores none."""
        self._shards[task_id] = choose_shard(task_id, count) if count else None

    def count_for(self, count: int) -> int:
        """Return how many shards such a process sweeps."""
        return max(count, self._placed) if count > 1 and self._placed else 1

    def is_in(self, task_id: str, shard: int) -> bool:
        """Whether a query for a shard finds the task."""
        return self._shards.get(task_id) == shard

    def check_end_state(self) -> None:
        """Require that all of it has happened."""
        assert not self._events

    @staticmethod
    def _replace(app: App, count: int) -> None:
        store = app.container.store
        assert isinstance(store, FaultyStore)
        store.shards = count

    def _walk(self, count: int) -> None:
        app = self._world.apps[3]
        self._world.start_process("walk", app, partial(self._place_all, count))

    def _place_all(self, count: int) -> None:
        try:
            for task_id in sorted(self._shards):
                self._world.yield_control()
                self._shards[task_id] = choose_shard(task_id, count)
                self._world.maybe_crash("in the walk")
            self._world.yield_control()
            self._placed = count
            self._world.log(f"EVERY TASK IS IN ONE OF {count} SHARDS")
        except BaseException:
            self._events.appendleft((self._world.now + _PAUSE, partial(self._walk, count)))
            raise
