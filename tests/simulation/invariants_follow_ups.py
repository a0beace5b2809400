"""F1 to F3: follow-ups are created with the success that they belong to, or not at all.

* F1: the commit that records a success creates all follow-ups that its handler returned and that did not exist yet.
* F2: no other commit creates a follow-up.
* F3: each committed follow-up is run in time, which `RunInvariants` checks as for any other task.

A handler's follow-ups depend only on its execution, so every attempt and every replay returns the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING

from tests.simulation.actors_workers import random_pull
from tests.simulation.invariants_runs import fail

from cloudsched import Context, Execution, Schedule, Task, TaskDraft
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.transitions.commit import TaskWrite

if TYPE_CHECKING:
    from tests.simulation.world import Process, World


PREFIX = "then-"


class FollowUpInvariants:
    """Checks the follow-ups that handlers return against what the commits of their successes create and edit."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._given: dict[tuple[Process | None, str, str], tuple[TaskDraft, ...]] = {}
        """What a process's call of a handler gave; a worker at the API gives nothing."""
        self._known = set[str]()

    def give(self, ctx: Context) -> tuple[TaskDraft, ...]:
        """Return the follow-ups of an execution: usually none; follow-ups themselves have none."""
        key = (self._world.current, ctx.task.id, ctx.execution_id)
        if ctx.task.id not in self._world.ids:
            return ()
        origin = f"{ctx.task.id}-{ctx.task.created_at:%d%H%M%S%f}-{ctx.execution_id}"
        chance = Random(f"{self._world.seed} {origin}")  # noqa: S311 - a history is to be repeatable
        if chance.random() < 0.6:
            return ()
        shared = f"{PREFIX}shared-{ctx.task.id}"
        ids = [*(f"{PREFIX}{origin}-{number}" for number in range(chance.choice([0, 1, 2]))), shared]
        drafts = tuple(
            TaskDraft.of(
                id=task_id,
                owner="ada",
                title=f"After {origin}",
                handler="work",
                schedule=Schedule.once(self._world.now + timedelta(minutes=chance.choice([1, 5, 40]))),
                pull=random_pull(chance) if self._world.fault_profile.has_workers else None,
            )
            for task_id in ids
        )
        self._given[key] = drafts
        return drafts

    def on_commit(self, task: Task, executions: Sequence[Execution], others: Sequence[TaskWrite]) -> None:
        ended = [each.id for each in executions if each.status is ExecutionStatus.SUCCEEDED]
        given = [draft for each in ended for draft in self._given.get((self._world.current, task.id, each), ())]
        written = {other.task.id for other in others}
        if strange := written - {str(draft.id) for draft in given}:
            fail(f"F2: {sorted(strange)} came with {task.id}, whose handler did not give them")
        for draft in given:
            stored = self._world.real_store.load(str(draft.id))
            if stored is None or (draft.id not in written and stored.task.title != draft.title):
                fail(f"F1: {task.id}'s {ended} succeeded without its follow-up {draft.id}")
        if task.id.startswith(PREFIX) and task.id not in self._known:
            fail(f"F2: {task.id} was created on its own")
        self._known |= written
