"""What needs attention is the same on Home, in the overview, in lists and in the tasks themselves."""

from __future__ import annotations

import random
import re
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.conftest import MakeTask
from tests.contract.conftest import make_delivery
from tests.dashboard.role_pages import Pages
from tests.web.callers import DAY, HOUR, MINUTE, SECOND, RoleHarness

from cloudsched.domain.documents.execution import Attempt, ExecutionStatus, Lease, Run, Suspension
from cloudsched.domain.documents.policy import Overlap
from cloudsched.domain.documents.run_counts import LATE, is_late
from cloudsched.domain.documents.task import Hold, NeedCause, Parent, Task, TaskStatus
from cloudsched.domain.explanation.need_words import NEED_WORDS
from cloudsched.domain.transitions.commit import Commit
from cloudsched.domain.transitions.needs import find_needs

TASKS = 160
"""More than a page of the list has, and fewer than the due tasks that an overview looks at."""
HANDLERS = 14
"""More than have a row each."""


def make_run(chance: random.Random, now: datetime) -> Run:
    failed = Attempt(number=1, started_at=now, finished_at=now, status=ExecutionStatus.FAILED)
    deadline = chance.choice([None, *[now + days * DAY for days in (-1, 0, 1, 2, 20)]])
    waits = Suspension(at=now, reason="waits for approved", events=("approved",), deadline=deadline)
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
        {"handler": "cloudsched.delivery", "delivery": make_delivery(), "runs": ()},
        {"deleted_at": now, "runs": ()},
    ]
    pause = Hold(at=since + chance.choice([-1, 0, 1]) * SECOND, is_alone=chance.random() < 0.7)
    fields: dict[str, Any] = {
        "id": f"task-{number}",
        "handler": f"h{chance.randrange(chance.randrange(HANDLERS) + 1)}",
        "owner": chance.choice(["ada", "bob"]),
        "status": status,
        "status_changed_at": since,
        "consecutive_failures": failures,
        "failing_since": since if failures else None,
        "next_execution_time": chance.choice([since, now + HOUR]) if status is TaskStatus.ACTIVE else None,
        "overlap": chance.choice([*Overlap]),
        "jitter": chance.choice([0, 0, 1]) * HOUR,
        "runs": chance.choice([(), (make_run(chance, now),)]),
        "hold": chance.choice([None, pause]),
    }
    return make_task(**fields | chance.choice([{}, {}, {}, *kinds]))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("who", ["admin", "ada"])
def test_each_number_is_that_of_the_list_to_which_it_leads(
    pages: Pages, make_task: MakeTask, seed: int, who: str
) -> None:
    """Over any store, for each role, by the API and on the page. No task that needs somebody is in none of them."""
    sim, roles = pages.sim, RoleHarness(pages.sim, pages.keys)
    chance = random.Random(seed)  # noqa: S311 - the same tasks in each run
    for number in range(1, HANDLERS):
        sim.app.handler(f"h{number}")(lambda: None)
    tasks = [make_any(make_task, chance, number, sim.now) for number in range(TASKS)]
    for task in tasks:
        sim.app.container.store.commit(Commit(task))

    def walk(query: dict[str, str]) -> list[str]:
        found: list[str] = []
        asked = {**query, "pageSize": "7"}
        while True:
            answer = roles.fetch(who, f"/v1/tasks?{urlencode(asked)}")
            found += [each["id"] for each in answer["tasks"]]
            if "nextPageToken" not in answer:
                return found
            asked["pageToken"] = answer["nextPageToken"]

    pages.forget()
    rows = roles.fetch(who, "/v1/overview")["needs"]
    home = pages.words("/", who)
    told: dict[str, set[str]] = {}
    for row in rows:
        assert row["sentence"] in home
        assert f'href="./{row["path"]}' in home
        if row["path"] != "tasks":
            told.setdefault(row["cause"], set()).add(row["path"].removeprefix("tasks/"))
            continue
        listed = walk(row["query"])
        assert row["count"] == {"value": len(listed), "atLeast": False}, row["sentence"]
        assert f"{len(listed):,} task" in row["sentence"]
        page = pages.read(f"/tasks?{urlencode(row['query'])}", who)
        on_page = re.findall(r'<tr data-key="([^"]+)"', page)
        assert {*on_page} <= {*listed}
        assert len(on_page) == min(len(listed), 50)
        told.setdefault(row["cause"], set()).update(listed)

    assert len(told) > 5, "hardly a cause was tried"
    unknown = {row["subject"] for row in rows if row["cause"] == NeedCause.UNKNOWN_HANDLER}
    seen = [each for each in tasks if who in {"admin", each.owner}]
    waits = [(task.id, run.suspension) for task in seen for run in task.runs if run.suspension]
    asking = {name for name, wait in waits if not wait.deadline or wait.deadline > sim.now}
    assert told[NeedCause.WAITING] == asking, "whatever else is wrong with it, and none whose time is over"
    assert f"{len(asking)} tasks have asked for an answer." in pages.words("/decisions", who)
    for task in seen:
        if task.handler not in unknown:
            assert {*find_needs(task, sim.now)} <= {cause for cause, ids in told.items() if task.id in ids}, task


def test_all_doors_agree_on_what_is_late(pages: Pages, make_task: MakeTask) -> None:
    """At the limit it is not, and just after it is: in the domain, the overview, the lists, and on each page."""
    sim, roles = pages.sim, RoleHarness(pages.sim, pages.keys)
    sim.app.handler("known")(lambda: None)
    due = sim.now
    task = make_task(id="t", title="T", owner="ada", handler="known", next_execution_time=due, wake_at=due)
    sim.app.container.store.commit(Commit(task))
    for past, is_so in ((-SECOND, False), (SECOND, True)):
        sim.clock.move_to(due + LATE + past)
        pages.forget()
        listed = roles.fetch("admin", "/v1/tasks")["tasks"][0]
        needs = roles.fetch("admin", "/v1/overview")["needs"]
        doors = {
            "domain": is_late(due, sim.now),
            "overview": any(each["cause"] == "OVERDUE" for each in needs),
            "list": "OVERDUE" in listed.get("needs", ()),
            "home": NEED_WORDS["OVERDUE"].one in pages.text("/"),
            "health": "✕ late" in pages.text("/"),
            "tasks": ">late</small>" in pages.read("/tasks"),
            "task": "Late since" in pages.text("/tasks/t"),
            "explain": "it seems not to run" in str(sim.app.explain("t")),
        }
        assert set(doors.values()) == {is_so}, doors
        assert "1 not started" in pages.text("/calendar"), "it says nothing of a limit"
        assert roles.ask("admin", "GET", "/ready").status_code == 200
