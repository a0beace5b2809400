"""One request searches so much at most, whatever it asks for; and what a list shows is stored, and not searched."""

from __future__ import annotations

import pytest
from tests.call_counts import count_calls
from tests.web.callers import DAY
from tests.web.conftest import Call, fetch

from cloudsched.domain.recurrence import allowance
from cloudsched.domain.recurrence.allowance import REQUEST_STEPS, TASK_STEPS, Allowance
from cloudsched.domain.recurrence.recurrence_set import compile_recurrence
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.domain.transitions.task_draft import TaskDraft
from cloudsched.errors import InvalidInput, QuotaExceeded
from cloudsched.testing import Simulation
from cloudsched.web.api.task_operations import create_or_edit
from cloudsched.web.auth.roles import Caller, Role

START = {"dtstart": "2027-01-01T09:00:00", "timezone": "Europe/Paris"}
LATER_SPARSE = "FREQ=SECONDLY;INTERVAL=86413;BYHOUR=9;BYMINUTE=0;BYSECOND=0"
"""Fires at its start, and then so late that the search gives up."""
TASK = {"owner": "ada", "handler": "anything", "payload": {}}


class CountedAllowance(Allowance):
    """Remembers what was spent altogether."""

    spent = 0

    def spend(self, steps: int) -> None:
        if self._within is None:
            type(self).spent += steps
        super().spend(steps)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> type[CountedAllowance]:
    """Count what all searches of a test spend."""
    compile_recurrence.cache_clear()
    monkeypatch.setattr(allowance, "Allowance", CountedAllowance)
    monkeypatch.setattr(CountedAllowance, "spent", 0)
    return CountedAllowance


def test_a_preview_that_takes_too_long_is_refused_with_what_to_do(call: Call, counted: type[CountedAllowance]) -> None:
    days = [{"date": f"{year}-01-01", "until": f"{year}-12-31"} for year in range(1970, 2100)]
    assert call("PUT", "/v1/calendars/full", {"title": "full", "days": days}).status_code == 200
    schedule = {"rrule": "FREQ=SECONDLY", **START, "calendars": [{"id": "full", "on": "after"}]}
    answer = call("POST", "/v1/schedules/preview", {"schedule": schedule, "count": 1000})
    assert answer.status_code == 400
    problem = answer.json
    assert problem["type"].endswith("search-limit-reached")
    assert problem["field"] == "schedule"
    assert problem["hint"]
    assert counted.spent < REQUEST_STEPS * 1.1


def test_a_calendar_of_the_whole_week_is_answered_at_once(call: Call, counted: type[CountedAllowance]) -> None:
    """111 bytes took 2.3 s: the search went through 2,000 years for a free day."""
    week = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]
    call("PUT", "/v1/calendars/full", {"title": "full", "weekdays": week})
    for rule in ("FREQ=SECONDLY", "FREQ=YEARLY"):
        for on in ("skip", "before", "after"):
            schedule = {"rrule": rule, **START, "calendars": [{"id": "full", "on": on}]}
            answer = call("POST", "/v1/schedules/preview", {"schedule": schedule})
            assert answer.json["occurrences"] == []
    assert counted.spent < 200


def test_a_batch_has_one_allowance(call: Call, counted: type[CountedAllowance]) -> None:
    """40 tasks of 20 rules took 21 s. Those that do not fit are refused, each by itself, and are not stored."""
    ordinary = {**TASK, "schedule": {"rrule": "FREQ=DAILY", **START}}
    counts = [f"FREQ=DAILY;BYHOUR={each};COUNT=99999" for each in range(20)]
    long_ago = {"rrule": counts, "dtstart": "1990-01-01T09:00:00"}
    tasks = [{**TASK, "title": str(number), "schedule": long_ago} for number in range(40)]
    results = call("POST", "/v1/tasks/batchCreate", {"tasks": [ordinary, *tasks]}).json["results"]
    assert counted.spent < REQUEST_STEPS * 1.2
    refused = [each["problem"] for each in results if "problem" in each]
    assert refused
    assert {each["field"] for each in refused} == {"schedule"}
    stored = fetch(call, "/v1/tasks?pageSize=100")["tasks"]
    assert len(stored) == len(results) - len(refused)


def test_a_task_for_which_there_is_no_room_is_not_read(sim: Simulation) -> None:
    """Once a batch has met the quota, the rest of it is not even parsed: what is wrong with it is not looked for."""
    caller = Caller("ada", Role.USER, owner="ada")
    refusal = QuotaExceeded("tasks that have not ended", 5, "Cancel some.")
    with pytest.raises(QuotaExceeded):
        create_or_edit(sim.app, caller, {"schedule": 7}, None, 3, refusal)
    with pytest.raises(InvalidInput):  # it may be there already
        create_or_edit(sim.app, caller, {"id": "a", "schedule": 7}, None, 3, refusal)


def test_lists_search_no_schedule(call: Call, counted: type[CountedAllowance]) -> None:
    """What may be done with each of 25 tasks is stored with it: a list spends nothing."""
    calendars = [{"id": "weekends", "on": "after"}]
    for number in range(25):
        fields = {"rrule": f"FREQ=HOURLY;INTERVAL={number + 1}", **START, "calendars": calendars}
        assert call("POST", "/v1/tasks", {**TASK, "schedule": fields}).status_code == 201
    compile_recurrence.cache_clear()
    counted.spent = 0
    tasks = fetch(call, "/v1/tasks?pageSize=100")["tasks"]
    assert len(tasks) == 25
    assert counted.spent == 0
    with count_calls() as calls:
        call("GET", "/v1/tasks?pageSize=100")
    assert calls.count < 60_000


@pytest.mark.parametrize("day", ["2026-12-01", "2027-01-05"])
def test_a_past_to_backfill_is_known_without_a_search(call: Call, sim: Simulation, day: str) -> None:
    """From the first occurrence on, also if the task was created later, edited or paused over it."""

    def may_backfill() -> bool:
        return "backfill" in fetch(call, "/v1/tasks/a")["allowedVerbs"]

    def has_past() -> bool:
        first = sim.app.get("a").schedule.first()
        return first is not None and first <= sim.now

    schedule = {"rrule": "FREQ=DAILY", "dtstart": f"{day}T09:00:00"}
    assert call("POST", "/v1/tasks", {**TASK, "id": "a", "schedule": schedule}).status_code == 201
    assert may_backfill() == has_past()
    sim.advance(6 * DAY)
    assert may_backfill()
    call("PATCH", "/v1/tasks/a", {"schedule": {"rrule": "FREQ=DAILY", "dtstart": "2027-01-20T09:00:00"}})
    assert not may_backfill()
    assert not has_past()
    call("POST", "/v1/tasks/a/pause")
    sim.advance(20 * DAY)
    call("POST", "/v1/tasks/a/resume")
    assert may_backfill()
    assert has_past()


def test_one_task_does_not_use_up_a_list_of_all(call: Call, sim: Simulation, counted: type[CountedAllowance]) -> None:
    """Those of the others are listed, and the answer says from when on some are missing."""
    many = [f"FREQ=DAILY;BYHOUR=10;BYMINUTE={each}" for each in range(20)]
    call("POST", "/v1/tasks", {**TASK, "id": "a", "schedule": {"rrule": "FREQ=DAILY", **START}})
    draft = TaskDraft.of(**TASK, id="b", schedule=Schedule(rrule=many, **START))
    sim.app.put(draft)
    sim.app.put(TaskDraft.of(**TASK, id="c", schedule=Schedule(rrule=LATER_SPARSE, **START)))
    answer = fetch(call, "/v1/occurrences?until=2028-01-01T00:00:00Z&pageSize=500")
    assert {each["taskId"] for each in answer["occurrences"]} == {"a", "b", "c"}
    assert answer["completeUntil"] < "2027-01-03"
    assert counted.spent < 2 * TASK_STEPS + 30_000


def test_a_task_that_becomes_too_sparse_to_search_is_paused(call: Call, sim: Simulation) -> None:
    """It runs, and says why it runs no more. Its dispatch was delivered again and again, and searched each time."""
    sim.app.put(TaskDraft.of(**TASK, id="c", schedule=Schedule(rrule=LATER_SPARSE, **START)))
    sim.advance(3 * DAY)
    task = fetch(call, "/v1/tasks/c")
    assert task["status"] == "PAUSED"
    assert "next occurrence was not found" in task["message"]
    assert [each.status for each in sim.executions("c")] == ["SUCCEEDED"]
    assert call("POST", "/v1/tasks/c/resume").status_code == 400
    patched = call("PATCH", "/v1/tasks/c", {"schedule": {"rrule": "FREQ=DAILY", **START}})
    assert patched.status_code == 200
    assert call("POST", "/v1/tasks/c/resume").json["status"] == "ACTIVE"
