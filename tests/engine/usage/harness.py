"""What the tests of usage share: a task whose use is easy to count."""

from __future__ import annotations

from typing import Any

from cloudsched import Schedule, Task, TaskDraft, TaskStatus
from cloudsched.engine.authority import OWN_CODE
from cloudsched.features.budgets.budget import Budget
from cloudsched.features.budgets.budgets import Budgets
from cloudsched.testing import Simulation


def create_hourly(sim: Simulation, handler: str = "spend", **more: object) -> str:
    """Create a task that runs every hour, on the half hour, unless told otherwise; return its id."""
    hourly = Schedule(rrule="FREQ=HOURLY", dtstart="2027-01-01T00:30:00")
    fields = {"owner": "ada", "handler": handler, "schedule": hourly, **more}
    return sim.app.create(TaskDraft.of(**fields)).id


def put_budget(sim: Simulation, *queries: int, owner: str = "ada", **more: Any) -> Budget:
    """Set an owner's budget of a month, as a server does."""
    return Budgets.of(sim.app.container).put(owner, *queries, by=OWN_CODE, **more)[0]


def status(sim: Simulation, task: Task | str) -> TaskStatus:
    """Return the status of a task by now."""
    return sim.app.get(task if isinstance(task, str) else task.id).status
