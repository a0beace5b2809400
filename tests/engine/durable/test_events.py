"""Events sent to a durable handler: which execution one belongs to, which are refused, and when they are removed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel
from tests.engine.harness import DAY, HOUR, MINUTE, SECOND, Create, elsewhere, only_run, run_to_end

from cloudsched import App, Context, EventTimedOut, Overlap, Schedule, Task
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.transitions.suspend import MAX_EVENTS
from cloudsched.engine.authority import OWN_CODE
from cloudsched.errors import InvalidInput, InvalidPayload, Misconfigured, NotAllowed, NotAwaited, StoreUnavailable
from cloudsched.testing import START, Simulation

MONTHLY = Schedule.every(30 * DAY, start=START)
"""One execution after the other."""
TWO_AT_ONCE: dict[str, Any] = {
    "schedule": Schedule.every(DAY, start=START),
    "overlap": Overlap.ALLOW,
    "maxRuns": 2,
}


class Decision(BaseModel):
    """What an approval says."""

    approved: bool
    note: str = ""


@pytest.fixture
def app(app: App) -> App:
    """Return an app whose handlers wait a week for an approval, and then rest for a day."""

    def wait(ctx: Context) -> object:
        try:
            return ctx.wait_for("approved", timeout=7 * DAY)
        except EventTimedOut:
            return "nobody approved"
        finally:
            ctx.sleep(DAY)

    @app.handler("work")
    def work(ctx: Context) -> object:
        return wait(ctx)

    @app.handler("patient", early_events=("approved",))
    def work_after_a_day(ctx: Context) -> object:
        ctx.sleep(DAY)
        return wait(ctx)

    @app.handler("typed", events={"decision": Decision}, retry=2)
    def decide(ctx: Context) -> str:
        decision = ctx.wait_for("decision", Decision)
        assert isinstance(decision, Decision)
        return f"{decision.approved} {decision.note}".strip()

    @app.handler("optional", events={"decision": Decision | None})
    def decide_or_not(ctx: Context) -> str:
        return repr(ctx.wait_for("decision", Decision | None))  # type: ignore[arg-type]  # a union is no class

    @app.handler("undeclared", events={"decisions": Decision}, retry=2)
    def decide_undeclared(ctx: Context) -> object:
        return ctx.wait_for("decision", Decision)

    return app


def contents(sim: Simulation, task: Task) -> list[object]:
    return [each.content for each in sim.executions(task.id)]


def contents_in_the_end(sim: Simulation, task: Task) -> list[object]:
    sim.run_until_idle(366 * DAY)
    return contents(sim, task)


def test_each_waiting_execution_can_receive_its_event_when_the_task_is_full(
    app: App, sim: Simulation, create: Create
) -> None:
    """There is room for one event for each of them, and for no more."""
    task = create(**TWO_AT_ONCE)
    sim.advance(DAY + MINUTE)
    first, second = (run.execution_id for run in app.get(task.id).runs)
    with pytest.raises(InvalidInput, match="bytes"):
        app.send_event(task.id, "large", "x" * 10_000, execution_id=first, early=True)
    for number in range(MAX_EVENTS):
        app.send_event(task.id, "aproved", number, execution_id=first, early=True)
    for only in (second, first):
        app.send_event(task.id, "approved", only, execution_id=only)
        with pytest.raises(NotAllowed, match="full of 20 events"):
            app.send_event(task.id, "approved", "twice", execution_id=only, early=True)
    sim.run_until_idle(366 * DAY)
    assert {each.id: each.content for each in sim.executions(task.id)} == {first: first, second: second}


def test_an_event_may_be_a_union(app: App, sim: Simulation, create: Create) -> None:
    """It is another object wherever it is written."""
    task = create(handler="optional")
    sim.advance(MINUTE)
    app.send_event(task.id, "decision", None)
    sim.advance(MINUTE)
    assert contents(sim, task) == ["None"]


@pytest.mark.parametrize("again_after", [timedelta(0), HOUR, 2 * DAY])
def test_a_second_click_is_the_same_answer(app: App, sim: Simulation, create: Create, again_after: timedelta) -> None:
    """Before the answer is taken, after that, and when its execution has ended: January's never approves February."""
    task = create(schedule=MONTHLY, maxRuns=2)
    sim.advance(MINUTE)
    app.send_event(task.id, "approved", "yes")
    sim.advance(again_after)
    app.send_event(task.id, "approved", "yes")
    assert contents_in_the_end(sim, task) == ["yes", "nobody approved"]


def test_another_answer_to_what_was_answered_is_refused(app: App, sim: Simulation, create: Create) -> None:
    """The first one counts, whether it has been taken yet or not."""
    task = create()
    sim.advance(MINUTE)
    app.send_event(task.id, "approved", "yes")
    for wait in (timedelta(0), MINUTE):
        with pytest.raises(NotAwaited):
            app.send_event(task.id, "approved", "no")
        sim.advance(wait)
    assert contents_in_the_end(sim, task) == ["yes"]


def test_an_answer_two_days_late_approves_nothing(app: App, sim: Simulation, create: Create) -> None:
    """It is refused with what is awaited; next month's question has an answer of its own."""
    task = create(schedule=MONTHLY, maxRuns=2)
    sim.advance(9 * DAY)
    with pytest.raises(NotAwaited, match="It waits for no event now") as refused:
        app.send_event(task.id, "approved", "late")
    assert refused.value.awaited == ()
    sim.advance(21 * DAY + MINUTE)
    with pytest.raises(
        NotAwaited, match=r"Awaited: 'approved' by execution 20270131T000000Z until 2027-02-07T"
    ) as wrong:
        app.send_event(task.id, "aproved", "yes")
    (awaited,) = wrong.value.awaited
    assert (awaited.name, awaited.execution_id) == ("approved", "20270131T000000Z")
    with pytest.raises(NotAwaited, match="more than one execution: name the one"):
        app.send_event(task.id, "approved", "perhaps the first month's")
    app.send_event(task.id, "approved", "in time", execution_id=awaited.execution_id)
    assert contents_in_the_end(sim, task) == ["nobody approved", "in time"]


@pytest.mark.parametrize("handler", ["work", "patient"])
def test_an_answer_that_names_no_run_is_taken_as_long_as_there_was_one(
    app: App, sim: Simulation, create: Create, handler: str
) -> None:
    """Skipped occurrences have asked nobody, and a retried run is the same one."""
    task = create(handler=handler, schedule=Schedule.every(DAY, start=START), maxRuns=2)
    sim.advance(5 * DAY + MINUTE)
    app.send_event(task.id, "approved", "the first's")
    sim.advance(4 * DAY)
    assert "SKIPPED" in {run.status for run in sim.executions(task.id)}
    with pytest.raises(NotAwaited, match="more than one execution: name the one"):
        app.send_event(task.id, "approved", "whose?")
    if handler == "patient":
        app.send_event(task.id, "approved", "whichever is next", early=True)


def test_of_several_that_wait_one_is_to_be_named(app: App, sim: Simulation, create: Create) -> None:
    """Without a name, nobody can say whose answer it is, also once one has its answer."""
    task = create(**TWO_AT_ONCE)
    sim.advance(DAY + MINUTE)
    first, second = (run.execution_id for run in app.get(task.id).runs)
    with pytest.raises(NotAwaited, match="2 executions may be meant: name one"):
        app.send_event(task.id, "approved", "whose?")
    app.send_event(task.id, "approved", "the second's", execution_id=second)
    with pytest.raises(NotAwaited, match="more than one execution: name the one"):
        app.send_event(task.id, "approved", "whose?")
    app.send_event(task.id, "approved", "the first's", execution_id=first)
    sim.run_until_idle(366 * DAY)
    assert {each.id: each.content for each in sim.executions(task.id)} == {first: "the first's", second: "the second's"}


@pytest.mark.parametrize("when", ["before it begins", "when it has ended", "of another one"])
def test_an_event_for_an_execution_that_is_not_open_is_refused(
    app: App, sim: Simulation, create: Create, when: str
) -> None:
    """Even one that may come early."""
    task = create(schedule=Schedule.every(30 * DAY, start=START + DAY))
    sim.advance(timedelta(0) if when == "before it begins" else 20 * DAY)
    only = "20261224T180000Z" if when == "of another one" else "20270102T000000Z"
    for early in (False, True):
        with pytest.raises(NotAwaited, match=f"There is no open execution '{only}'"):
            app.send_event(task.id, "approved", execution_id=only, early=early)
    assert app.get(task.id).events == ()


@pytest.mark.parametrize("handler", ["work", "patient"])
def test_an_early_answer_is_kept_if_somebody_asks_for_it(
    app: App, sim: Simulation, create: Create, handler: str
) -> None:
    """The sender, or the handler: for the next execution if none is open, or for the open one, with which it ends."""
    early = handler == "work"
    task = create(handler=handler, schedule=Schedule.every(30 * DAY, start=START + DAY), maxRuns=2)
    if early:
        with pytest.raises(NotAwaited):
            app.send_event(task.id, "approved", "before it begins")
    app.send_event(task.id, "approved", "before it begins", early=early)
    sim.advance(DAY + MINUTE)
    (run,) = app.get(task.id).runs
    app.send_event(task.id, "other", "while it is open", early=True)
    assert [each.execution_id for each in app.get(task.id).events if each.name == "other"] == [run.execution_id]
    sim.advance(5 * DAY)
    assert app.get(task.id).events == ()
    assert contents_in_the_end(sim, task) == ["before it begins", "nobody approved"]


@pytest.mark.parametrize("between", ["a replay", "a pause"])
def test_an_answer_that_comes_while_it_looks_is_not_refused(
    app: App, sim: Simulation, create: Create, between: str
) -> None:
    """A handler that is replayed to its wait, or that has been stopped on its way there, still waits for its event."""
    task = create()
    sim.advance(MINUTE)
    if between == "a pause":
        app.pause(task.id)
        sim.advance(3 * MINUTE)
    else:
        (run,) = app.get(task.id).runs
        stored = app.container.store.load(task.id)
        assert stored is not None
        assert run.suspension is not None
        looking = run.model_copy(update={"suspension": None, "resumed_from": run.suspension})
        app.container.engine.committer.try_to_change(stored, sim.now, runs=(looking,))
    app.send_event(task.id, "approved", "yes")
    if between == "a pause":
        app.resume(task.id)
    assert contents_in_the_end(sim, task) == ["yes"]


@pytest.mark.parametrize("when", ["during a replay", "during an outage"])
def test_an_answer_that_comes_while_the_handler_runs_again_is_taken(
    app: App, sim: Simulation, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """It polls after a minute, and has not come to its wait again when the answer is there."""
    looks = list[object]()

    @app.handler("looking", retry=False)
    def look(ctx: Context) -> object:
        looks.append(None)
        if len(looks) == 2 and when == "during a replay":
            elsewhere(app.send_event, ctx.task.id, "approved", "yes")
        return ctx.wait_for("approved")

    task = app.create(handler="looking")
    sim.advance(30 * SECOND)
    (run,) = app.get(task.id).runs
    with monkeypatch.context() as patch:
        if when == "during an outage":
            patch.setattr(SqliteStore, "load_journal", fail_as_unavailable)
        sim.advance(run.due_at - sim.now)
    if when == "during an outage":
        (run,) = app.get(task.id).runs
        assert run.suspension is not None
        assert run.suspension.events == ()
        app.send_event(task.id, "approved", "yes")
    assert contents_in_the_end(sim, task) == ["yes"]
    assert len(looks) > 1


def fail_as_unavailable(*_: object, **__: object) -> None:
    raise StoreUnavailable("The store", "down")


def test_an_answer_like_last_month_s_is_refused_when_it_is_late(app: App, sim: Simulation, create: Create) -> None:
    """The latest execution was not answered: that an earlier one was sent the same makes this no second click."""
    task = create(schedule=MONTHLY, maxRuns=3)
    sim.advance(MINUTE)
    app.send_event(task.id, "approved", "yes")
    sim.advance(39 * DAY)
    assert contents(sim, task) == ["yes", "nobody approved"]
    with pytest.raises(NotAwaited):
        app.send_event(task.id, "approved", "yes")


@pytest.mark.parametrize("again_after", [timedelta(0), 2 * DAY])
def test_a_second_early_click_does_not_answer_the_next_execution(
    app: App, sim: Simulation, create: Create, again_after: timedelta
) -> None:
    """It is the same answer, before the execution begins and when it has been taken."""
    task = create(schedule=Schedule.every(30 * DAY, start=START + DAY), maxRuns=2)
    for wait in (again_after, timedelta(0)):
        app.send_event(task.id, "approved", "yes", early=True)
        sim.advance(wait)
    assert contents_in_the_end(sim, task) == ["yes", "nobody approved"]


def test_the_same_answer_to_a_question_that_is_asked_again_is_not_lost(app: App, sim: Simulation) -> None:
    """After a retry from the wait it is refused until the handler asks, or kept; it does not succeed in vain."""

    @app.handler("failing", retry=False)
    def fail(ctx: Context) -> object:
        answer = ctx.wait_for("approved")
        if len(answers) == 0:
            answers.append(answer)
            raise ValueError(answer)
        return answer

    answers = list[object]()
    task = app.create(handler="failing")
    sim.advance(MINUTE)
    (run,) = app.get(task.id).runs
    app.send_event(task.id, "approved", "yes")
    sim.advance(MINUTE)
    app.retry(task.id, run.execution_id, from_step=1)
    try:
        app.send_event(task.id, "approved", "yes")
    except NotAwaited:
        sim.advance(MINUTE)
        app.send_event(task.id, "approved", "yes")
    assert contents_in_the_end(sim, task) == ["yes"]


def test_a_wait_ends_at_the_very_instant_of_its_timeout(sim: Simulation, create: Create) -> None:
    """The wake-up at that instant ends it: it is not put off to a later one again and again."""
    task = create(schedule=START + MINUTE)
    execution = run_to_end(sim, task, 366 * DAY)
    assert (execution.content, execution.finished_at) == ("nobody approved", START + MINUTE + 8 * DAY)


@pytest.mark.parametrize("end", ["cancel", "delete"])
def test_the_events_of_an_execution_are_removed_when_its_task_ends(
    app: App, sim: Simulation, create: Create, end: str
) -> None:
    task = create()
    sim.advance(7 * DAY - MINUTE)
    app.send_event(task.id, "approved", "too late")
    app.send_event(task.id, "later", "for nobody", early=True)
    getattr(app, end)(task.id)
    assert end == "delete" or app.get(task.id).events == ()


def test_what_comes_with_an_event_is_checked_when_it_is_sent(app: App, sim: Simulation) -> None:
    """Against the type that the handler has declared, which it then gets; what does not fit is in no journal."""
    task = app.create(handler="typed")
    sim.advance(MINUTE)
    wrongs = {"payload.approved": {"approved": "perhaps"}, "payload.aproved": {"aproved": True}, "payload": "yes"}
    for field, wrong in wrongs.items():
        with pytest.raises(InvalidPayload) as refused:
            app.send_event(task.id, "decision", wrong)
        assert refused.value.field == field
    assert app.get(task.id).events == ()
    app.send_event(task.id, "decision", Decision(approved=True, note="fine"))
    assert contents_in_the_end(sim, task) == ["True fine"]


def test_the_type_of_an_event_has_to_be_declared(app: App, sim: Simulation) -> None:
    """Else nobody could check it at the door: the handler fails at once, and says what to write."""
    task = app.create(handler="undeclared")
    sim.advance(MINUTE)
    execution = only_run(sim, task)
    assert (execution.status, execution.attempt_count) == ("FAILED", 1)
    assert execution.error is not None
    assert "@app.handler('undeclared', events={\"decision\": Decision})" in execution.error.message
    assert "Did you mean 'decisions'?" in execution.error.message
    with pytest.raises(Misconfigured, match="its events"):
        app.handler("wrong", events={"no name!": Decision})
    with pytest.raises(Misconfigured, match="give its events as in"):
        app.handler("wrong", early_events="decision")


def test_an_answer_that_cannot_be_read_any_more_is_asked_for_again(app: App, sim: Simulation) -> None:
    """The handler's model has changed since it was sent: a retry from before the answer repairs the execution."""
    task = app.create(handler="typed")
    sim.advance(MINUTE)
    app.container.scheduler.send_event(task.id, "decision", {"approved": True}, by=OWN_CODE)
    (run,) = app.get(task.id).runs
    stored = app.container.store.load(task.id)
    assert stored is not None
    old = [each.model_copy(update={"payload": {"old": "form"}}) for each in stored.task.events]
    app.container.engine.committer.try_to_change(stored, sim.now, events=tuple(old))
    sim.run_until_idle(366 * DAY)
    failed = app.execution(task.id, run.execution_id)
    assert (failed.status, failed.attempt_count) == ("FAILED", 1)
    assert failed.error is not None
    assert "cannot be read any more" in failed.error.message
    app.retry(task.id, run.execution_id, from_step=1)
    sim.advance(MINUTE)
    app.send_event(task.id, "decision", {"approved": False})
    assert contents_in_the_end(sim, task) == ["False"]
