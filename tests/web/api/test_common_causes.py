"""What keeps many tasks from running is told by its name, in the same sentence by the overview and by explanations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.web.callers import MINUTE, RoleHarness

from cloudsched import App, Schedule, Settings
from cloudsched.domain.documents.queue_pause import QueuePause
from cloudsched.engine.authority import OWN_CODE
from cloudsched.features.budgets.budgets import Budgets
from cloudsched.testing import Simulation

DAILY = Schedule(rrule="FREQ=DAILY", dtstart="2027-01-02T09:00:00", timezone="UTC")


Ask = Callable[..., Any]


def find_causes(ask: Ask, who: str) -> list[dict[str, Any]]:
    causes: list[dict[str, Any]] = ask(who, "/v1/overview").json["needs"]
    return causes


def explain(ask: Ask, who: str, task_id: str) -> list[str]:
    return [each["sentence"] for each in ask(who, f"/v1/tasks/{task_id}/explain").json["findings"]]


app = App(Settings())
for name in ("work", "slow6"):
    app.handler(name, access="users")(lambda: None)


@pytest.fixture
def ask(roles: RoleHarness) -> Ask:
    """Read as one of the callers of `roles`."""
    return lambda who, path: roles.ask(who, "GET", path, None)


def test_a_paused_queue_is_the_cause_and_not_the_sweep(sim: Simulation, app: App, ask: Ask) -> None:
    """Those who see all tasks learn which queue, who paused it and when; a user that it is paused."""
    note = QueuePause(id="simulated", owner="system", created_at=sim.now, updated_at=sim.now, by="key:grace")
    app.container.store.records.write(note, None)
    sim.queue.holds = True
    app.container.replace(queue_watch=sim.queue)
    app.create(id="t", owner="ada", handler="work")
    sim.advance(10 * MINUTE)
    app.container.forget_causes()
    [cause] = find_causes(ask, "admin")
    assert (cause["cause"], cause["subject"]) == ("QUEUE_PAUSED", "simulated")
    assert cause["sentence"].startswith("The queue simulated is paused, by key:grace on ")
    told = explain(ask, "admin", "t")
    assert told[0] == cause["sentence"]
    assert "and its queue is paused" in " ".join(told)
    assert "sweep" not in " ".join(told)
    [mine] = find_causes(ask, "ada")
    assert "simulated" not in str(mine) + str(explain(ask, "ada", "t"))
    assert explain(ask, "ada", "t")[0] == mine["sentence"]
    assert find_causes(ask, "bob") == [], "who has no task that it carries is not told"


def test_a_handler_that_is_gone_is_told_before_anything_fails(app: App, ask: Ask) -> None:
    """With the number of active tasks, of those whom one sees. What workers run is theirs to know."""
    for number in range(3):
        app.create(id=f"s{number}", owner="bob", handler="slow6", schedule=DAILY)
    app.create(id="w", owner="ada", handler="work", schedule=DAILY)
    app.pause(app.create(owner="bob", handler="slow6", schedule=DAILY).id)
    assert find_causes(ask, "admin") == []
    del app.container.registry.registrations.handlers["slow6"]
    app.container.forget_causes()
    [cause] = find_causes(ask, "admin")
    assert cause["sentence"] == "Not registered: slow6 (3 tasks). Deploy code that has this handler."
    assert (cause["count"]["value"], cause["subject"]) == (3, "slow6")
    assert find_causes(ask, "ada") == []
    told = explain(ask, "admin", "s0")
    assert told[0] == "Not registered: slow6. Deploy code that has this handler."
    assert told[1].startswith("It would run next ")


def test_a_budget_that_is_used_up_is_one_cause_however_many_tasks_wait(app: App, roles: RoleHarness, ask: Ask) -> None:
    """Whoever raises it sees at once that it keeps nobody any more, though causes are kept for some seconds.

    That holds on a clock that stands still, too.
    """
    for number in range(7):
        app.create(id=f"o{number}", owner="ada", handler="work", schedule=DAILY)
    Budgets.of(app.container).put("ada", 0, by=OWN_CODE)
    Budgets.of(app.container).put("bob", 0, by=OWN_CODE)
    app.container.forget_causes()
    [ada] = find_causes(ask, "admin")
    assert (ada["subject"], ada["count"]["value"]) == ("ada", 7)
    assert ": 7 tasks wait until 1 February, or until an admin raises it." in ada["sentence"]
    assert ada.pop("act") == {"label": "Raise", "path": "usage", "query": {"owner": "ada"}}
    assert find_causes(ask, "ada") == [ada], "who may not raise it is offered nothing"
    assert explain(ask, "ada", "o0")[0].partition(": ")[2].startswith("ada has used up its budget (0 of 0 queries")
    raised = roles.ask("admin", "PUT", "/v1/people/ada/budget", {"maxQueriesPerMonth": 10})
    assert raised.status_code == 200
    assert find_causes(ask, "admin") == []
