"""One machine whose executor commits in groups: claims and ends of several deliveries, in one call of the store.

Each delivery is a process, which waits for one that commits for all, with its claim and with its end. The store may
fail or that process crash between any two commits of a group. To the invariants a delivery itself makes its commits.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from cloudsched.engine.execution.group_executor import EndedRun, GroupExecutor
from cloudsched.engine.ports.queue import QueueMessage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.simulation.world import Process, World

    from cloudsched import App


@dataclass(eq=False)
class _Waiting:
    """A delivery that waits for a commit."""

    process: Process
    task_id: str
    what: QueueMessage | EndedRun
    call: Callable[[], EndedRun | None] | None = None
    is_over: bool = False
    failure: BaseException | None = None


class Groups:
    """The deliveries that wait for a commit, by the app that received them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._waiting: dict[App, list[_Waiting]] = {}
        self._next: dict[App, Process] = {}
        """The process that commits for those that wait."""
        self._owners: dict[Process, dict[str, Process]] = {}
        """The delivery that changes a task, for each of those that are committed now."""
        self.sizes: list[int] = []
        """How many deliveries each group had."""

    def deliver(self, app: App, body: bytes, token: str, task_id: str) -> None:
        """Run what a dispatch begins, in the current process."""
        call = self._wait(app, task_id, QueueMessage("", self._world.now, body, token))
        while call is not None:
            ended = call()
            call = None if ended is None else self._wait(app, task_id, ended)

    def _wait(self, app: App, task_id: str, what: QueueMessage | EndedRun) -> Callable[[], EndedRun | None] | None:
        """Wait until it is committed; return what to call next, if anything."""
        world = self._world
        assert world.current
        mine = _Waiting(world.current, task_id, what)
        self._add(app, [mine])
        while not mine.is_over:
            if mine in self._waiting.get(app, []):
                self._begin_group(app)  # if the one that was to commit this has crashed before it began
            world.yield_control()
        if mine.failure is not None:
            raise mine.failure
        return mine.call

    def _add(self, app: App, waiting: list[_Waiting]) -> None:
        self._waiting.setdefault(app, []).extend(waiting)
        self._begin_group(app)

    def _begin_group(self, app: App) -> None:
        """Let a process commit for those that wait, unless there is one."""
        if self._next.get(app) not in self._world.processes:
            self._next[app] = self._world.create_process("group", app, partial(self._commit, app))

    def _commit(self, app: App) -> None:
        world = self._world
        for _ in range(world.random.choice([0, 3, 9])):  # while another commit is under way, others join
            world.yield_control()
        del self._next[app]
        group = [each for each in self._waiting.pop(app, []) if each.process in world.processes]
        messages = [each for each in group if isinstance(each.what, QueueMessage)]
        ends = {each.task_id: each for each in group if isinstance(each.what, EndedRun)}
        later = [each for each in group if isinstance(each.what, EndedRun) and each is not ends[each.task_id]]
        if later:  # so that it is clear whose commit of a task it is
            self._add(app, later)
        group = [*ends.values(), *messages]
        self.sizes.append(len(group))
        assert world.current
        owners = self._owners[world.current] = {}
        for each in group:
            owners.setdefault(each.task_id, each.process)
        parts: Any = app.container
        executor = GroupExecutor(parts.engine, parts.executor, parts.attempt_runner, parts.tracer, app.deliver)
        whats: Any = [each.what for each in messages], [each.what for each in ends.values()]
        try:
            calls, left = executor.commit(*whats)
            for each, call in zip(group, (*left, *calls), strict=True):
                each.call = call
        except BaseException as error:
            for each in group:
                each.failure = error
            raise
        finally:
            for each in group:
                each.is_over = True

    @contextmanager
    def acting_for(self, task_id: str) -> Iterator[None]:
        """Let the delivery that changes a task be the current process."""
        world = self._world
        assert world.current
        before, world.current = world.current, self._owners.get(world.current, {}).get(task_id, world.current)
        try:
            yield
        finally:
            world.current = before
