"""Forty and more errands of an assistant. What judges each is what is stored, what ran, and what was delivered.

An errand succeeds, or its caller is told why not and nothing has changed: no word is a promise that is not kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import pytest
from tests.agents.conftest import KEYS, Caller
from tests.agents.test_effects import look

from cloudsched import Context, Fail, Schedule
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.testing import Simulation

DAY = timedelta(days=1)
PARIS = ZoneInfo("Europe/Paris")
STRETCH: Final[dict[str, Any]] = {
    "title": "Stretch",
    "handler": "remind",
    "payload": {"text": "stretch", "city": "Rome"},
}
WEEKDAYS = "every weekday at 9:00"


class Desk:
    """Ada's tools, and the oracle: what is stored and what ran."""

    def __init__(self, sim: Simulation, ada: Caller) -> None:
        self.sim = sim
        self.ada = ada
        self.bob = Caller(ada.url, KEYS["bob"])
        self.broken = True
        sim.app.handler("breaks", access="users", retry=False)(lambda: Fail("down") if self.broken else "up")
        sim.app.handler("cut", access="users", pull="workshop")(lambda: "cut")

        @sim.app.handler("ask", access="users")
        def ask(ctx: Context) -> object:
            return ctx.wait_for("approval").ok

        @sim.app.handler("ask-ada", access="users")
        def ask_ada(ctx: Context) -> object:
            return ctx.wait_for("approval", by=["user:ada"], question="May I?").ok

    def new(self, when: str = WEEKDAYS, **given: Any) -> str:
        """Create a task by the tool, and return its id."""
        created = self.ada("create_task", **{**STRETCH, "when": when, **given})
        assert isinstance(created, dict), created
        return str(created["id"])

    def ran(self, task_id: str) -> list[str]:
        """Return the local times at which a task has run, the first one first."""
        runs = [each for each in self.sim.executions(task_id) if each.started_at]
        return sorted(f"{each.started_at.astimezone(PARIS):%d %H:%M}" for each in runs if each.started_at)

    def is_refused(self, *words: str, tool: str, **given: Any) -> None:
        """Check that a call is refused with these words, and has no effect."""
        before = look(self.sim)
        told = self.ada(tool, **given)
        assert isinstance(told, str), told
        assert all(word in told for word in words), told
        assert look(self.sim) == before


def once_at_a_time(desk: Desk) -> None:
    task = desk.new("tomorrow at 9:00")
    desk.sim.advance(3 * DAY)
    assert desk.ran(task) == ["02 09:00"]


def in_ten_minutes(desk: Desk) -> None:
    task = desk.new("in 10 minutes", channels=["WEB"])
    desk.sim.advance(timedelta(minutes=11))
    assert [each.body for each in desk.sim.inbox("ada")] == ["stretch"]
    assert len(desk.ran(task)) == 1


def now(desk: Desk) -> None:
    task = desk.new("now")
    desk.sim.advance(timedelta(minutes=1))
    assert len(desk.ran(task)) == 1


def on_weekdays(desk: Desk) -> None:
    task = desk.new()
    desk.sim.advance(10 * DAY)
    assert desk.ran(task) == [f"{day:02} 09:00" for day in (1, 4, 5, 6, 7, 8)]


def across_the_change_of_clocks(desk: Desk) -> None:
    task = desk.new("every day at 9:00")
    desk.sim.advance(100 * DAY)
    assert {each.partition(" ")[2] for each in desk.ran(task)} == {"09:00"}


def a_lost_answer(desk: Desk) -> None:
    first = desk.new("tomorrow at 9:00")
    desk.sim.advance(timedelta(minutes=2))
    assert "Not created again" in desk.ada("create_task", **STRETCH, when="tomorrow at 9:00")["told"]
    assert [each.id for each in desk.sim.app.tasks(TaskQuery(owner="ada")).items] == [first]


def the_same_again_on_purpose(desk: Desk) -> None:
    tasks = [desk.new("tomorrow at 9:00", key=key) for key in ("один", "два")]
    desk.sim.advance(2 * DAY)
    assert [len(desk.ran(each)) for each in tasks] == [1, 1]


def an_old_task_by_words(desk: Desk) -> None:
    old = desk.new(title="Renew the passport")
    for number in range(30):
        desk.sim.app.create(owner="ada", title=f"Task {number}", handler="report", schedule="every day at 9:00")
    assert [each["id"] for each in desk.ada("find_tasks", words="passport")["tasks"]] == [old]


def what_came_of_it(desk: Desk) -> None:
    task = desk.new()
    desk.sim.advance(DAY)
    (run,) = desk.ada("read_task", id=task)["runs"]
    assert (run["status"], run["result"]) == ("SUCCEEDED", "stretch")


def another_title_or_text(desk: Desk) -> None:
    task = desk.new()
    assert desk.ada("read_task", id=task)["payload"] == STRETCH["payload"]
    desk.is_refused("payload_merge", tool="change_task", id=task)
    desk.is_refused("payload_merge", "times", tool="change_task", id=task, payload_merge={"times": "many"})
    desk.is_refused("snooze", tool="snooze_task", id=task)
    assert "so already" in desk.ada("change_task", id=task, title="Stretch")["told"]
    desk.ada("change_task", id=task, title="Bend")
    assert (desk.sim.app.get(task).title, desk.sim.app.get(task).payload) == ("Bend", STRETCH["payload"])
    desk.ada("change_task", id=task, payload_merge={"text": "bend"})
    assert desk.sim.app.get(task).payload == {"text": "bend", "city": "Rome"}
    desk.ada("change_task", id=task, payload_merge={"city": None})
    assert desk.sim.app.get(task).payload["text"] == "bend"
    assert desk.sim.app.get(task).payload.get("city", "") == ""


def what_is_paused(desk: Desk) -> None:
    paused = desk.new()
    desk.new(title="Other")
    desk.ada("pause_task", id=paused)
    assert [each["id"] for each in desk.ada("find_tasks", status="PAUSED")["tasks"]] == [paused]
    assert "by its owner" in json.dumps(desk.ada("read_task", id=paused)["why"]).lower()


def what_no_task_can_be(desk: Desk) -> None:
    for words, given in (
        (("'when'", "past"), {"when": "2020-01-01T09:00:00Z"}),
        (("'when'",), {"when": "whenever the moon is blue"}),
        (("'payload.txt'", "'text'"), {"payload": {"txt": "x"}}),
        (("'owner'",), {"owner": "bob"}),
        (("'channels'",), {"delivery_channels": ["EMAIL"]}),
    ):
        desk.is_refused(*words, tool="create_task", **{**STRETCH, "when": WEEKDAYS, **given})
    desk.is_refused(tool="skip_next", id=desk.new("tomorrow at 9:00"))


def by_another_channel(desk: Desk) -> None:
    task = desk.new("in 10 minutes")
    changed = desk.ada("change_task", id=task, channels=["WEB"])
    assert (changed["told"].split(".")[0], changed["doubts"]) == ("Changed", [])
    desk.sim.advance(timedelta(minutes=11))
    assert [each.body for each in desk.sim.inbox("ada")] == ["stretch"]


def tomorrow_only_although_it_runs_today(desk: Desk) -> None:
    task = desk.new("every day at 9:00")
    coming = desk.ada("read_task", id=task)["next"]
    moved = desk.ada("move_next", id=task, to="17:00", run_at=coming[1])
    assert moved["next"][:2] == ["2027-01-01T09:00:00+01:00", "2027-01-02T17:00:00+01:00"]
    desk.ada("skip_next", id=task, run_at=coming[2])
    desk.sim.advance(4 * DAY)
    assert desk.ran(task) == ["01 09:00", "02 17:00", "04 09:00"]


def a_run_that_there_is_not(desk: Desk) -> None:
    task = desk.new()
    for tool, given in (("move_next", {"to": "17:00"}), ("skip_next", {})):
        desk.is_refused("run_at", tool=tool, id=task, run_at="2027-01-02T09:00:00+01:00", **given)
        desk.is_refused("run_at", tool=tool, id=task, run_at="tomorrow", **given)


def another_time_for_all(desk: Desk) -> None:
    task = desk.new()
    desk.ada("change_task", id=task, when="make it 10:00")
    desk.sim.advance(5 * DAY)
    assert desk.ran(task) == ["01 10:00", "04 10:00", "05 10:00"]


def only_the_next_one_later(desk: Desk) -> None:
    task = desk.new()
    desk.ada("move_next", id=task, to="17:00")
    desk.sim.advance(5 * DAY)
    assert desk.ran(task) == ["01 17:00", "04 09:00", "05 09:00"]


def tomorrow_only(desk: Desk) -> None:
    task = desk.new()
    for words in ("tomorrow at 17:00", "now", "in 5 minutes", "2027-01-02T17:00:00+01:00"):
        desk.is_refused("move_next", "turn_into_single_run", tool="change_task", id=task, when=words)
    desk.is_refused(tool="change_task", id=task, when="make it 17:00 tomorrow only")
    desk.is_refused(tool="change_task", id=task, when="pause until 15 December")
    desk.sim.advance(5 * DAY)
    assert desk.ran(task) == ["01 09:00", "04 09:00", "05 09:00"]


def a_series_that_ends_with_one_run(desk: Desk) -> None:
    task = desk.new()
    desk.ada("change_task", id=task, when="tomorrow at 17:00", turn_into_single_run=True)
    desk.sim.advance(10 * DAY)
    assert desk.ran(task) == ["02 17:00"]


def not_the_next_one(desk: Desk) -> None:
    task = desk.new()
    desk.ada("skip_next", id=task)
    desk.sim.advance(5 * DAY)
    assert desk.ran(task) == ["04 09:00", "05 09:00"]


def away_until_a_day(desk: Desk) -> None:
    task = desk.new()
    desk.ada("pause_task", id=task, until="15 January")
    desk.sim.advance(18 * DAY)
    assert desk.ran(task) == ["15 09:00", "18 09:00"]


def away_and_back(desk: Desk) -> None:
    task = desk.new()
    desk.ada("pause_task", id=task)
    desk.sim.advance(4 * DAY)
    assert desk.ran(task) == []
    desk.ada("resume_task", id=task)
    desk.sim.advance(DAY)
    assert desk.ran(task) == ["05 09:00"]


def away_with_a_run_that_is_due(desk: Desk) -> None:
    task = desk.new("every day at 9:00")
    desk.sim.clock.advance(timedelta(hours=10))  # and nothing has started it
    for tool, given, begins in (
        ("pause_task", {"until": "3 January"}, "3 January 2027 at 00:0"),
        ("resume_task", {}, "1 January 2027 at 11:0"),
    ):
        told = desk.ada(tool, id=task, **given)["told"]
        assert begins in told.partition(" After that, it runs on ")[0]
    desk.sim.advance(DAY)
    assert desk.ran(task) == ["01 11:00", "02 09:00"]


def stop_it(desk: Desk) -> None:
    task = desk.new()
    assert "does not run again" in desk.ada("cancel_task", id=task)["told"]
    for tool, given in (
        ("change_task", {"when": "every day at 9:00"}),
        ("move_next", {"to": "17:00"}),
        ("retry_run", {}),
        ("run_task", {}),
        ("snooze_task", {}),
        ("resume_task", {}),
        ("pause_task", {}),
    ):
        desk.is_refused("CANCELLED", tool=tool, id=task, **given)
    desk.sim.advance(5 * DAY)
    assert desk.ran(task) == []


def stop_what_is_over(desk: Desk) -> None:
    task = desk.new("now")
    desk.sim.advance(timedelta(minutes=1))
    told = desk.ada("cancel_task", id=task)
    assert "COMPLETED" in (told if isinstance(told, str) else told["told"])
    assert desk.sim.app.get(task).status == "COMPLETED"


def once_more_now(desk: Desk) -> None:
    task = desk.new()
    assert desk.ada("run_task", id=task)["run"]
    desk.sim.advance(DAY)
    assert desk.ran(task) == ["01 01:00", "01 09:00"]


def not_now_later(desk: Desk) -> None:
    task = desk.new("tomorrow at 9:00")
    desk.sim.advance(timedelta(days=1, hours=9))
    desk.ada("snooze_task", id=task, duration="2 hours")
    desk.sim.advance(DAY)
    assert len(desk.ran(task)) == 2


def try_it_again(desk: Desk) -> None:
    task = desk.new("now", handler="breaks", payload={})
    desk.sim.advance(timedelta(minutes=1))
    assert "down" in desk.ada("read_task", id=task)["runs"][0]["error"]
    desk.broken = False
    desk.ada("retry_run", id=task)
    desk.sim.advance(timedelta(minutes=1))
    assert [str(each.status) for each in desk.sim.executions(task)] == ["SUCCEEDED"]


def try_again_what_went_well(desk: Desk) -> None:
    task = desk.new("now")
    desk.sim.advance(timedelta(minutes=1))
    desk.is_refused("succeeded", tool="retry_run", id=task)


def what_it_logged(desk: Desk) -> None:
    task = desk.new("now")
    desk.is_refused("not run yet", tool="read_log", id=desk.new())
    desk.sim.advance(timedelta(minutes=1))
    desk.is_refused("may not", tool="read_log", id=task)  # a server's handler
    assert "lines" in Caller(desk.ada.url, KEYS["admin"])("read_log", id=task)


def approve_it(desk: Desk) -> None:
    task = desk.new("now", handler="ask", payload={})
    desk.sim.advance(timedelta(minutes=1))
    desk.is_refused("'approval'", tool="answer", id=task, event="aproval")
    desk.ada("answer", id=task, event="approval", payload={"ok": True})
    desk.sim.advance(timedelta(minutes=1))
    assert [each.content for each in desk.sim.executions(task)] == [True]


def answer_what_another_asks(desk: Desk) -> None:
    task = desk.sim.app.create(owner="bob", title="Holiday", handler="ask-ada", schedule=Schedule.once(desk.sim.now))
    desk.sim.advance(timedelta(minutes=1))
    (question,) = desk.ada("find_tasks")["questions"]
    assert (question["id"], question["question"]) == (task.id, "May I?")
    for end in (desk.sim.app.cancel, desk.sim.app.delete):  # what is over asks nothing any more
        other = desk.sim.app.create(owner="bob", handler="ask-ada", schedule=Schedule.once(desk.sim.now)).id
        desk.sim.advance(timedelta(minutes=1))
        assert len(desk.ada("find_tasks")["questions"]) == 2
        end(other)
        assert desk.ada("find_tasks")["questions"] == [question]
    for _ in range(101):  # what came since fills more than a page
        desk.sim.app.create(owner="ada", handler="breaks", delivery_channels=["WEB"])
    desk.sim.advance(timedelta(minutes=1))
    assert desk.ada("find_tasks")["questions"] == [question]
    sent = desk.ada("answer", id=question["id"], event=question["event"], run=question["run"], payload={"ok": True})
    assert sent["told"] == "Sent."
    assert desk.ada("find_tasks")["questions"] == []
    desk.sim.advance(timedelta(minutes=1))
    assert desk.ada("find_tasks")["questions"] == []
    assert [each.content for each in desk.sim.executions(task.id)] == [True]


def on_a_journey(desk: Desk) -> None:
    at_home = desk.new()
    desk.ada("i_am_in", zone="Asia/Tokyo")
    there = desk.new("tomorrow at 9:00", title="There")
    assert desk.sim.app.upcoming(there)[0].astimezone(UTC).hour == 0
    assert desk.sim.app.upcoming(at_home)[0].astimezone(UTC).hour == 8
    desk.is_refused("Europe/Paris", "Asia/Tokyo", tool="change_task", id=at_home, when="make it 8:00")
    for tool, name, words in (
        ("move_next", "to", "17:00"),
        ("pause_task", "until", "15 January"),
        ("snooze_task", "duration", "tomorrow at 9:00"),
    ):
        desk.is_refused("offset", f"'{name}'", tool=tool, id=at_home, **{name: words})
    desk.ada("move_next", id=at_home, to="2027-01-01T18:00:00+09:00")
    assert desk.sim.app.upcoming(at_home)[0] == datetime(2027, 1, 1, 9, tzinfo=UTC)
    desk.ada("change_task", id=at_home, move_to_zone="Asia/Tokyo")
    assert desk.sim.app.get(at_home).timezone == "Asia/Tokyo"


def a_zone_that_is_none(desk: Desk) -> None:
    desk.is_refused("'zone'", "Europe/Paris", tool="i_am_in", zone="Paris")
    desk.is_refused("'move_to_zone'", tool="change_task", id=desk.new(), move_to_zone="CEST+1")


def somebody_in_utc(desk: Desk) -> None:
    assert "i_am_in" in desk.bob("create_task", **STRETCH, when=WEEKDAYS)
    desk.bob("i_am_in", zone="UTC")
    assert desk.bob("create_task", **STRETCH, when=WEEKDAYS)["next"][0] == "2027-01-01T09:00:00+00:00"


def by_mail_without_an_address(desk: Desk) -> None:
    told = desk.ada("create_task", **STRETCH, when=WEEKDAYS, channels=["EMAIL"])["told"]
    assert told.startswith("Created, but ")
    assert "address" in told


def what_no_worker_serves(desk: Desk) -> None:
    created = desk.ada("create_task", title="Cut", handler="cut", when="now")
    read = desk.ada("read_task", id=created["id"])
    assert not created["scheduled"] or not read["scheduled"]
    assert "worker" in created["told"] + json.dumps(read["doubts"])


def words_with_two_meanings(desk: Desk) -> None:
    told = desk.ada("preview", when="every day at 5")
    meant = told.split("'")[-2]
    task = desk.new(meant)
    assert desk.sim.app.upcoming(task)[0].astimezone(PARIS).hour in {5, 17}


def what_there_is(desk: Desk) -> None:
    handlers = {each["handler"]: each for each in desk.ada("list_handlers")["handlers"]}
    assert "audit" not in handlers
    assert handlers["remind"]["payload"]["required"] == ["text"]
    desk.is_refused("remind", tool="create_task", **{**STRETCH, "handler": "audit"}, when=WEEKDAYS)


def a_task_of_another(desk: Desk) -> None:
    task = desk.sim.app.create(owner="bob", handler="remind", payload={"text": "x"}, schedule="every day at 9:00").id
    desk.is_refused("no task", tool="read_task", id=task)
    desk.is_refused("no task", tool="cancel_task", id=task)


def only_a_look(desk: Desk) -> None:
    before = look(desk.sim)
    assert len(desk.ada("preview", when=WEEKDAYS)["next"]) == 5
    assert look(desk.sim) == before


def what_is_due_already(desk: Desk) -> None:
    task = desk.new("in 1 minute")
    desk.sim.clock.advance(timedelta(minutes=20))  # and nothing has started it
    read = desk.ada("read_task", id=task)
    assert read["next"] == []
    assert not read["scheduled"]
    assert desk.ada("find_tasks")["tasks"][0]["next"] is None


def once_more_after_it_was_over(desk: Desk) -> None:
    task = desk.new("in 10 minutes")
    desk.sim.advance(timedelta(minutes=11))
    assert "runs again" in desk.ada("change_task", id=task, when="tomorrow at 9:00")["told"]
    desk.sim.advance(2 * DAY)
    assert len(desk.ran(task)) == 2


def what_has_no_such_id(desk: Desk) -> None:
    for wrong in ("../x", "..", "", "é", "a/b"):
        desk.is_refused("find_tasks", tool="read_task", id=wrong)
        desk.is_refused("read_task", tool="retry_run", id=desk.new(), run=wrong or "x")


def all_of_a_year(desk: Desk) -> None:
    task = desk.new("every last Friday of the month at 16:00")
    desk.sim.advance(365 * DAY)
    assert len(desk.ran(task)) == 12


ERRANDS: Final[dict[str, Callable[[Desk], None]]] = {
    name: each
    for name, each in globals().items()
    if callable(each) and getattr(each, "__annotations__", {}).get("desk") == "Desk"
}


@pytest.mark.parametrize("errand", ERRANDS)
def test_an_errand_is_done_or_its_caller_is_told_why_not(errand: str, sim: Simulation, ada: Caller) -> None:
    """And nothing else has changed: no task of another, and none that was not meant."""
    theirs = sim.app.create(owner="carol", handler="report", schedule="every day at 12:00")
    ERRANDS[errand](Desk(sim, ada))
    assert sim.app.get(theirs.id).status == "ACTIVE"
    assert len(sim.app.tasks(TaskQuery(owner="carol")).items) == 1
