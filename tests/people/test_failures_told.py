"""The owner of a task is told that it fails, once for a row, and that it works again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from cloudsched import App, Cancel, Context, Done, Execution, Fail, Schedule, Settings, Task
from cloudsched.domain.control_flow import ControlFlow
from cloudsched.domain.transitions.notices import explain_untold
from cloudsched.engine.authority import OWN_CODE
from cloudsched.people.wiring import PeopleWiring
from cloudsched.testing import Simulation

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
does: dict[str, Any] = {}
app = App(Settings())


class Killed(ControlFlow):
    """The process dies here."""


@app.handler("work", access="users", retry=1)
def work(ctx: Context) -> object:
    """Do what the test says, or say something."""
    act = does.get("work")
    return act(ctx) if act else "done"


@app.handler("strict", access="users")
def strict(payload: dict[str, int]) -> None:
    """Take numbers only."""


def breaks(_: Context) -> None:
    """Fail."""
    raise ValueError("no water")


def dies(_: Context) -> None:
    """End the process."""
    raise Killed


@pytest.fixture(autouse=True)
def _forget() -> None:
    does.clear()


def make(sim: Simulation, **more: Any) -> Task:
    fields: dict[str, Any] = {"owner": "ada", "title": "Plants", "handler": "work", "schedule": sim.now + HOUR}
    return app.create(**{**fields, **more})


def daily(sim: Simulation) -> Schedule:
    return Schedule.every(DAY, start=sim.now + HOUR)


def read_inbox(sim: Simulation, owner: str = "ada") -> list[str]:
    return [each.title for each in sim.inbox(owner)]


def last(sim: Simulation, task: Task) -> Execution:
    return sim.executions(task.id)[-1]


def test_a_daily_task_that_fails_is_told_once_and_that_it_works_again(sim: Simulation) -> None:
    """By its channels and in the inbox; the success that ends the row is one message with it."""
    does["work"] = breaks
    make(sim, schedule=daily(sim), delivery_channels=["EMAIL", "WEBHOOK"])
    sim.advance(30 * DAY)
    (mail,) = sim.sent("EMAIL", to="ada")
    assert mail.title == "Failed: Plants"
    assert "runs next on" in mail.body
    (hook,) = sim.sent("WEBHOOK")
    assert (hook.message.kind, hook.message.data["status"]) == ("execution.failed", "FAILED")
    assert read_inbox(sim) == ["Failed: Plants"]
    does.clear()
    sim.advance(3 * DAY)
    first, second, third = sim.sent("EMAIL", to="ada")[1:]
    assert (first.title, second.body, third.body) == ("Plants", "done", "done")
    assert first.body.startswith("done\n\nWorks again: Plants\n")
    assert "30 times in a row" in first.body
    assert sorted(read_inbox(sim)) == ["Failed: Plants", "Works again: Plants"]
    does["work"] = breaks
    sim.advance(2 * DAY)
    assert len(sim.sent("EMAIL")) == 5
    assert sim.sent("EMAIL")[-1].title == "Failed: Plants"


def test_a_silent_success_says_that_it_works_again_and_no_more(sim: Simulation) -> None:
    """The result is not delivered, and the end of the row is."""
    does["work"] = breaks
    make(sim, schedule=daily(sim), delivery_channels=["EMAIL", "WEB"])
    sim.advance(DAY)
    does["work"] = lambda _: Done("secret", silent=True)
    sim.advance(2 * DAY)
    assert [each.title for each in sim.sent("EMAIL")] == ["Failed: Plants", "Works again: Plants"]
    assert not [each for each in sim.inbox("ada") if "secret" in each.body]


@pytest.mark.parametrize(("tells", "count"), [("each", 5), ("first", 1), ("never", 0)])
def test_how_many_are_told_is_the_tasks_to_say(sim: Simulation, tells: str, count: int) -> None:
    """Each, the first, or none; a row that was told is ended in words. Why a later one was not told is known."""
    does["work"] = breaks
    task = make(sim, schedule=daily(sim), delivery_channels=["EMAIL"], tell_failures=tells)
    sim.advance(5 * DAY)
    does["work"] = lambda _: None
    sim.advance(2 * DAY)
    expected = ["Failed: Plants"] * count + ["Works again: Plants"] * bool(count)
    assert [each.title for each in sim.sent("EMAIL")] == expected
    assert sorted(read_inbox(sim)) == expected
    untold = str(explain_untold(app.get(task.id), sim.executions(task.id)[1]))
    assert (f"its tellFailures is {tells.upper()}" in untold) is (tells != "each")


def fail_by_exception(sim: Simulation) -> Task:
    does["work"] = breaks
    return make(sim)


def fail_by_outcome(sim: Simulation) -> Task:
    does["work"] = lambda _: Fail("no use")
    return make(sim)


def lose_the_process(sim: Simulation) -> Task:
    does["work"] = dies
    task = make(sim, retry=False)
    with pytest.raises(Killed):
        sim.advance(2 * HOUR)
    return task


def change_the_handler(sim: Simulation) -> Task:
    """Let the stored payload be one that the handler no longer takes."""
    task = make(sim, handler="strict", payload={"a": 1})
    stored = app.container.store.load(task.id)
    assert stored is not None
    app.container.engine.committer.try_to_change(stored, sim.now, payload={"a": "x"})
    return task


def remove_the_handler(sim: Simulation) -> Task:
    task = make(sim, retry=False)
    stored = app.container.store.load(task.id)
    assert stored is not None
    app.container.engine.committer.try_to_change(stored, sim.now, handler="gone")
    return task


def return_what_no_store_takes(sim: Simulation) -> Task:
    does["work"] = lambda _: {"big": "x" * 2_000_000}
    return make(sim)


def wait_for_no_worker(sim: Simulation) -> Task:
    return make(sim, pull="gpu", expiration=HOUR)


def let_a_worker_fail(sim: Simulation) -> Task:
    does["work"] = breaks
    sim.add_worker("gpu")
    return make(sim, pull="gpu")


def miss_the_instant(sim: Simulation) -> Task:
    task = make(sim, catch_up="none")
    sim.queue.is_down = True
    sim.clock.advance(3 * HOUR)
    sim.queue.is_down = False
    return task


def fail_below(sim: Simulation) -> Task:
    does["work"] = breaks
    return make(sim, handler=None, children=[{"handler": "work"}])


@pytest.mark.parametrize(
    "cause",
    [
        fail_by_exception,
        fail_by_outcome,
        lose_the_process,
        change_the_handler,
        remove_the_handler,
        return_what_no_store_takes,
        wait_for_no_worker,
        let_a_worker_fail,
        miss_the_instant,
        fail_below,
    ],
)
def test_each_way_to_fail_is_told_once(sim: Simulation, cause: Any) -> None:  # noqa: ANN401 - a function
    """However it ends: the owner has one message, and its retries have none. Why it did not start is told."""
    task = cause(sim)
    sim.advance(5 * DAY)
    (message,) = sim.inbox("ada")
    record = last(sim, task)
    assert message.title in {"Failed: Plants", "Missed: Plants"}
    assert message.execution_id == record.id
    if record.status in {"EXPIRED", "SKIPPED"}:
        assert str(record.message).rstrip(".") in message.body


def recover(ctx: Context) -> str:
    """Fail once."""
    if ctx.attempt == 1:
        breaks(ctx)
    return "done"


@pytest.mark.parametrize("act", [lambda _: Cancel("nothing to do"), lambda _: None, lambda _: "said", recover])
def test_nothing_is_told_of_what_has_not_failed(sim: Simulation, act: Any) -> None:  # noqa: ANN401 - a function
    """A run that its handler called off, one that is silent, one that succeeds, at once or when it is retried."""
    does["work"] = act
    make(sim, schedule=daily(sim))
    sim.advance(3 * DAY)
    assert read_inbox(sim) == []


def test_a_task_that_is_cancelled_tells_nothing(sim: Simulation) -> None:
    """Nobody waits for it any more, though its attempt still fails."""

    def fail_later(ctx: Context) -> Fail:
        app.cancel(ctx.task.id)
        return Fail("too late")

    does["work"] = fail_later
    task = make(sim)
    sim.advance(DAY)
    assert last(sim, task).status == "FAILED"
    assert read_inbox(sim) == []


@pytest.mark.parametrize(("act", "inbox"), [(None, []), (breaks, ["Failed: Plants"])])
def test_a_delivery_that_fails_makes_no_other_delivery(sim: Simulation, act: Any, inbox: list[str]) -> None:  # noqa: ANN401 - a function
    """That its mail was not sent is said in the record, and nowhere by mail. The inbox has a failure once."""
    does["work"] = act
    sim.channel("EMAIL").is_down = True
    task = make(sim, delivery_channels=["EMAIL"])
    sim.advance(9 * DAY)
    assert read_inbox(sim) == inbox
    assert inbox or "Not delivered by EMAIL" in str(last(sim, task).message)
    reports = {each.channel: each.status for each in app.deliveries(task.id, last(sim, task).id)}
    assert reports == {"EMAIL": "FAILED", **({"WEB": "SENT"} if inbox else {})}


def test_a_task_of_the_system_tells_the_channels_that_it_names(sim: Simulation) -> None:
    """Nobody reads the inbox of `system`: without a channel, the dashboard, the logs and alerts have the failure."""
    does["work"] = breaks
    make(sim, owner="system")
    make(sim, owner="system", delivery_channels=["OPERATOR"])
    sim.advance(DAY)
    assert [each.title for each in sim.sent("OPERATOR")] == ["Failed: Plants"]
    assert read_inbox(sim, "system") == []


def test_a_task_that_pauses_itself_says_so(sim: Simulation) -> None:
    """It was told of the row's beginning, and hears that nothing follows; once it is resumed, a new row begins."""
    does["work"] = breaks
    task = make(sim, schedule=daily(sim), pause_after_failures=3)
    sim.advance(10 * DAY)
    messages = sorted(sim.inbox("ada"), key=lambda each: each.created_at)
    assert [each.title for each in messages] == ["Failed: Plants"] * 2
    assert "Paused itself after 3 failures" in messages[1].body
    app.resume(task.id)
    sim.advance(2 * DAY)
    assert read_inbox(sim) == ["Failed: Plants"] * 3
    does.clear()
    sim.advance(2 * DAY)
    assert read_inbox(sim).count("Works again: Plants") == 1


def test_a_failed_run_that_is_retried_by_hand_delivers_its_result(sim: Simulation) -> None:
    """The same execution has told of its failure before, and now that it works again, with its result."""
    does["work"] = breaks
    task = make(sim, delivery_channels=["EMAIL"])
    sim.advance(DAY)
    app.retry(task.id)
    sim.advance(timedelta(minutes=1))
    assert [each.title for each in sim.sent("EMAIL")] == ["Failed: Plants"]
    assert not last(sim, task).is_delivered
    does.clear()
    app.retry(task.id)
    sim.advance(DAY)
    assert [each.title for each in sim.sent("EMAIL")] == ["Failed: Plants", "Plants"]
    assert "done" in sim.sent("EMAIL")[1].body
    assert "Works again" in sim.sent("EMAIL")[1].body
    assert last(sim, task).is_delivered


def test_the_systems_own_tasks_about_a_person_tell_them_nothing(sim: Simulation) -> None:
    """Else the failed attempt to delete somebody's data would leave a message in their inbox."""
    jobs = PeopleWiring.of(app.container).person_jobs
    for task in (jobs.erase("ada", by=OWN_CODE), jobs.export("ada", by=OWN_CODE)):
        assert isinstance(task, Task)
        assert task.tell_failures == "NEVER"
    sim.advance(HOUR)
    assert read_inbox(sim) == []
