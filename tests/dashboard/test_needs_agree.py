"""What needs attention is the same on Home, in the list of tasks, in the overview and in a search for one cause."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from tests.conftest import MakeTask
from tests.contract.conftest import make_delivery
from tests.dashboard.conftest import visit
from tests.dashboard.role_pages import Pages
from tests.web.callers import DAY, HOUR, MINUTE, SECOND

from cloudsched.dashboard.views.causes import list_path
from cloudsched.domain.documents.execution import Attempt, ExecutionStatus, Lease, Run, Suspension
from cloudsched.domain.documents.policy import Overlap
from cloudsched.domain.documents.task import Hold, NeedCause, Parent, Task, TaskStatus
from cloudsched.domain.transitions.commit import Commit

TASKS = 48
"""Fewer than a page of the list has, and than the due tasks that an overview looks at."""


def make_run(chance: random.Random, now: datetime) -> Run:
    failed = Attempt(number=1, started_at=now, finished_at=now, status=ExecutionStatus.FAILED)
    deadline = chance.choice([None, *[now + days * DAY for days in (1, 2, 20)]])
    waits = Suspension(at=now, reason="waits for approved", deadline=deadline)
    lease = Lease(token_hash="", started_at=now, until=now + 5 * MINUTE)
    state: dict[str, Any] = chance.choice([{}, *[{"suspension": waits}] * 3, {"lease": lease}, {"attempts": (failed,)}])
    return Run(execution_id="e", scheduled_for=now, due_at=now, started_at=now, **state)


def make_any(make_task: MakeTask, chance: random.Random, number: int, now: datetime) -> Task:
    """Return a task in any state, also in one that the engine would not leave it in."""
    status = chance.choice([*TaskStatus, *[TaskStatus.ACTIVE, TaskStatus.PAUSED] * 3])
    failures = chance.choice([0, 0, 1, 3])
    since = now - chance.choice([1, 5, 500]) * MINUTE
    kinds: list[dict[str, Any]] = [
        {"parent": Parent(task_id="above", execution_id="e", step=1, depth=1)},
        {"handler": "cloudsched.delivery", "delivery": make_delivery()},
        {"deleted_at": now},
    ]
    pause = Hold(at=since + chance.choice([-1, 0, 1]) * SECOND, is_alone=chance.random() < 0.7)
    return make_task(
        id=f"task-{number}",
        status=status,
        status_changed_at=since,
        consecutive_failures=failures,
        failing_since=since if failures else None,
        next_execution_time=chance.choice([since, now + HOUR]) if status is TaskStatus.ACTIVE else None,
        overlap=chance.choice([*Overlap]),
        runs=chance.choice([(), (make_run(chance, now),)]),
        hold=chance.choice([None, pause]),
        **chance.choice([{}, {}, {}, *kinds]),
    )


@pytest.mark.parametrize("seed", range(4))
def test_all_answers_agree_on_what_needs_somebody(pages: Pages, make_task: MakeTask, seed: int) -> None:
    """Each task counts for the causes that lists show with it. A delivery is in no list but that of its cause."""
    sim = pages.sim
    chance = random.Random(seed)  # noqa: S311 - the same tasks in each run
    for number in range(TASKS):
        sim.app.container.store.commit(Commit(make_any(make_task, chance, number, sim.now)))

    overview = sim.app.container.many_tasks.overview
    overview.forget()
    needing = overview.count(None)[0].needs
    counted = {each.cause: each.count for each in needing}
    assert sum(map(bool, counted.values())) > len(NeedCause) / 2, "hardly a cause was tried"

    listed = list_tasks(pages, "calls=true")
    needs = {each["id"]: set(each["needs"].split()) for each in listed}
    shown = {cause: {task_id for task_id in needs if cause in needs[task_id]} for cause in NeedCause}
    assert not [each["id"] for each in listed if each["parent.taskId"] and needs[each["id"]] - {NeedCause.OVERDUE}]

    for cause in NeedCause:
        found = {
            each["id"] for each in list_tasks(pages, list_path(cause, replace(visit(), now=sim.now)).partition("?")[2])
        }
        assert cause in {NeedCause.DELIVERY, NeedCause.OVERDUE} or found == shown[cause], cause
        shown[cause] = shown[cause] if cause == NeedCause.OVERDUE else found
    assert counted == {cause: len(found) for cause, found in shown.items()}

    common = {each.subject: each.count or 0 for each in sim.app.container.causes.find(None)}  # unregistered handlers
    failing = [group for each in needing if each.cause is NeedCause.FAILED for group in each.groups]
    told = sum(each.count for each in failing if each.count <= common.get(each.handler, 0))
    home = pages.words("/")
    assert f"<p>{sum(counted.values()) - told + len(common)} things need you" in home
    linked = re.findall(r'href="[^"]*tasks\?([^"]*trouble=([A-Z]+)[^"]*)"', home)
    assert linked
    for address, cause in linked:
        assert {each["id"] for each in list_tasks(pages, address)} <= shown[NeedCause(cause)], address
        assert list_tasks(pages, address), f"{address} leads to nothing"


def list_tasks(pages: Pages, query: str) -> list[dict[str, str]]:
    return pages.rows(f"/tasks?{query}")
