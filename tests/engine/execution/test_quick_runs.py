"""A quick handler may be called twice, and nothing that it did before its one commit counts: races, crashes, edits."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from cloudsched import App, Context, Done, ExecutionStatus, RetryPolicy, Schedule, Settings, TaskDraft, TaskStatus
from cloudsched.adapters.operation_counts import Counts
from cloudsched.domain.documents.policy import Overlap
from cloudsched.engine.tasks.explanations import explain_task
from cloudsched.errors import StoreUnavailable
from cloudsched.testing import START, Simulation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)


class Died(BaseException):
    """The process has died: no handler catches it."""


class Stage:
    """A simulation with one hourly task, whose handler does what the test says while nothing is committed."""

    def __init__(self) -> None:
        self.app = App(Settings())
        self.calls: list[Context] = []
        self.during: list[Callable[[Context], Any]] = []
        """What the next calls do, each once; later ones do nothing."""
        self.failures: list[str] = []

        def hook(task: object, execution: Any) -> None:  # noqa: ARG001, ANN401 - the hook's signature
            self.failures.append(execution.id)

        @self.app.handler("work", quick=True, on_failure=hook)
        def work(ctx: Context) -> object:
            self.calls.append(ctx)
            return self.during.pop(0)(ctx) if self.during else "done"

        self.sim = Simulation(self.app)

    def create(self, **more: Any) -> str:
        hourly = Schedule(rrule="FREQ=HOURLY", dtstart="2027-01-01T00:30:00")
        fields = {"id": "t", "owner": "ada", "title": "T", "handler": "work", "schedule": hourly, **more}
        return self.app.create(TaskDraft.of(**fields)).id

    def repeat(self, ctx: Context) -> str:
        """Deliver the dispatch that is being processed once more, meanwhile."""
        body = next(each.body for each in self.sim.pending() if ctx.execution_id in each.body.decode())
        self.app.deliver(body, self.sim.sign(body))
        return "late"

    @property
    def records(self) -> list[tuple[str, str, Any]]:
        return [(each.id, each.status, each.content) for each in self.sim.executions("t")]


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    with made.sim:
        yield made


def test_of_two_deliveries_at_once_one_result_is_recorded_and_one_occurrence_follows(stage: Stage) -> None:
    """Both call the handler; the first commit counts, with its message, and the other is dropped."""
    stage.create(delivery_channels=("WEB",))
    stage.during = [stage.repeat]
    stage.sim.advance(HOUR)
    assert [each.attempt for each in stage.calls] == [1, 1]
    assert stage.records == [("20270101T003000Z", "SUCCEEDED", "done")]
    assert [each.body for each in stage.sim.inbox("ada")] == ["done"]
    assert [each.result.action for each in stage.sim.queue.deliveries if each.result] == ["superseded"]
    task = stage.app.get("t")
    assert (task.run_count, task.runs, task.next_execution_time) == (1, (), START + timedelta(minutes=90))
    assert len(stage.sim.pending()) == 1
    stage.sim.advance(HOUR)
    assert len(stage.calls) == 3


def test_a_failure_that_comes_second_does_not_undo_a_success(stage: Stage) -> None:
    """Nor is it retried, and its failure hook is not called."""
    stage.create()

    def fail(ctx: Context) -> None:
        stage.repeat(ctx)
        raise ValueError("late")

    stage.during = [fail]
    stage.sim.advance(HOUR)
    assert stage.records == [("20270101T003000Z", "SUCCEEDED", "done")]
    assert stage.failures == []


def test_a_success_that_comes_second_does_not_undo_a_retry(stage: Stage) -> None:
    """The first commit said that attempt 1 failed: attempt 2 decides."""
    stage.create(retry=RetryPolicy(max_retries=1, base=SECOND))

    def fail(_: Context) -> None:
        raise ValueError("first")

    stage.during = [stage.repeat, fail]
    stage.sim.advance(HOUR)
    ((_, status, content),) = stage.records
    assert (status, content, [each.attempt for each in stage.calls]) == ("SUCCEEDED", "done", [1, 1, 2])
    assert [each.status for each in stage.sim.executions("t")[0].attempts] == ["FAILED", "SUCCEEDED"]


@pytest.mark.parametrize(("verb", "status"), [("pause", TaskStatus.PAUSED), ("cancel", TaskStatus.CANCELLED)])
def test_a_task_that_is_stopped_while_it_runs_keeps_no_result(stage: Stage, verb: str, status: TaskStatus) -> None:
    """Its owner was told that it has stopped, and nothing said that it was running: the result is dropped."""
    stage.create()
    stage.during = [lambda _: getattr(stage.app, verb)("t") and None]
    stage.sim.advance(HOUR)
    assert stage.app.get("t").status is status
    assert "SUCCEEDED" not in [each[1] for each in stage.records]
    if verb == "pause":
        stage.app.resume("t")
        stage.sim.advance(SECOND)
        assert stage.records[0][:2] == ("20270101T003000Z", "SUCCEEDED")  # what was due before the pause runs again
        assert [each.execution_id for each in stage.calls] == ["20270101T003000Z"] * 2
    else:
        assert stage.records == [("20270101T003000Z", "CANCELLED", None)]


def test_a_task_that_is_deleted_while_it_runs_leaves_nothing(stage: Stage) -> None:
    """Neither a document nor a dispatch that does anything."""
    stage.create()
    stage.during = [lambda _: stage.app.delete("t")]
    stage.sim.advance(5 * HOUR)
    assert stage.sim.app.tasks().items == []
    assert len(stage.calls) == 1


def test_a_task_that_is_edited_while_it_runs_runs_again_as_it_is_now(stage: Stage) -> None:
    """Its owner was told that the edit holds for the occurrence, which had not started as far as the store knew."""
    stage.create()
    stage.during = [lambda _: (stage.app.update("t", title="New"), "of the old one")]
    stage.sim.advance(HOUR)
    assert [each.task.title for each in stage.calls] == ["T", "New"]
    assert stage.records == [("20270101T003000Z", "SUCCEEDED", "done")]


def test_what_does_not_concern_the_run_does_not_cost_it_its_result(stage: Stage) -> None:
    """A trigger changes the document: the claim is decided again, and the result is kept."""
    stage.create()
    stage.during = [lambda _: (stage.app.trigger("t"), "kept")[1]]
    stage.sim.advance(HOUR)
    assert sorted(each[1:] for each in stage.records) == [("SUCCEEDED", "done"), ("SUCCEEDED", "kept")]
    assert [each.attempt for each in stage.calls] == [1, 1]


def test_a_process_that_dies_in_the_handler_leaves_the_occurrence_to_the_queue(stage: Stage) -> None:
    """Nothing was written; the queue delivers again, and nothing but the record of the success remains."""
    stage.create()

    def die(_: Context) -> None:
        raise Died

    stage.during = [die]
    with pytest.raises(Died):
        stage.sim.advance(HOUR)
    assert stage.records == []
    assert stage.app.get("t").runs == ()
    stage.sim.queue.purge()  # the queue has lost it: the sweep finds it
    stage.sim.advance(timedelta(minutes=2))
    assert stage.records == [("20270101T003000Z", "SUCCEEDED", "done")]
    assert stage.sim.executions("t")[0].attempt_count == 1


def test_a_handler_that_kills_its_process_every_time_fails_in_the_end(stage: Stage) -> None:
    """An occurrence that is late is claimed first, so its attempts are counted, and it ends as TIMED_OUT."""
    stage.create(retry=RetryPolicy(max_retries=1), max_runs=1)

    def die(_: Context) -> None:
        raise Died

    stage.during = [die] * 100
    for _ in range(200):
        try:
            stage.sim.advance(timedelta(minutes=1))
        except Died:
            stage.sim.clock.move_to(stage.sim.now + timedelta(seconds=30))
    ((_, status, _),) = stage.records
    assert status == "TIMED_OUT"
    assert len(stage.calls) < 10


def test_a_lost_answer_to_the_commit_does_not_run_it_again(stage: Stage) -> None:
    """The commit took effect and its answer was lost: the redelivery sees it, and sends what follows."""
    stage.create()
    commit = stage.sim._store.commit  # noqa: SLF001 - a fault of the store
    lost = [True]

    def lose(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the store's
        version = commit(*args, **kwargs)
        if stage.calls and lost.pop():
            lost.append(False)
            raise StoreUnavailable("The store", "its answer was lost")
        return version

    stage.sim._store.commit = lose  # type: ignore[method-assign]  # noqa: SLF001 - the same
    stage.sim.advance(HOUR)
    assert len(stage.calls) == 1
    assert stage.records == [("20270101T003000Z", "SUCCEEDED", "done")]
    assert len(stage.sim.pending()) == 1


def test_a_heartbeat_claims_the_run_which_is_an_ordinary_one_from_then_on(stage: Stage) -> None:
    """It is shown as RUNNING, a duplicate does not call it, the next occurrence is sent, and its progress is kept."""
    stage.create()

    def beat(ctx: Context) -> str:
        ctx.progress("half way")
        (run,) = stage.app.get("t").runs
        assert run.lease is not None
        assert [each.status for each in stage.sim.executions("t")] == [ExecutionStatus.RUNNING]
        stage.repeat(ctx)
        assert ctx.heartbeat()
        return "beat"

    stage.during = [beat]
    stage.sim.advance(HOUR)
    assert len(stage.calls) == 1
    assert stage.records == [("20270101T003000Z", "SUCCEEDED", "beat")]
    assert [each.text for each in stage.sim.executions("t")[0].progress] == ["half way"]


def test_a_heartbeat_says_when_the_run_is_lost(stage: Stage) -> None:
    """Another delivery has recorded it, or its task was paused."""
    stage.create()
    said = []

    def check(ctx: Context) -> None:
        stage.app.pause("t")
        said.append(ctx.heartbeat())

    stage.during = [check]
    stage.sim.advance(HOUR)
    assert said == [False]
    assert stage.records == []


def test_a_run_that_is_late_or_followed_at_once_is_claimed_first(stage: Stage) -> None:
    """It costs two commits then: as late, since it may have killed others; as followed, so that the next is sent."""
    stage.create()
    stage.sim.queue.purge()
    before = stage.sim.counts.copy()
    stage.sim.clock.move_to(START + timedelta(minutes=33))
    stage.sim.advance(SECOND)
    assert stage.sim.counts.since(before).commits == 2
    often = Schedule(rrule="FREQ=SECONDLY;INTERVAL=5", dtstart="2027-01-01T01:00:00")
    stage.app.pause("t")
    stage.create(id="often", schedule=often)
    stage.sim.advance_to(START + HOUR)
    before = stage.sim.counts.copy()
    stage.sim.advance(timedelta(seconds=50))
    assert stage.sim.counts.since(before) == Counts(reads=10, commits=20, writes=30, dispatches=10)


@pytest.mark.parametrize(
    "fields",
    [{"lock_key": "door"}, {"overlap": Overlap.SKIP}, {"expected_duration": timedelta(minutes=5)}, {"pull": "gpu"}],
    ids=str,
)
def test_a_task_from_before_its_handler_was_quick_runs_as_then(stage: Stage, fields: dict[str, Any]) -> None:
    """It is claimed first, and its rules hold; edits of its other fields are not refused."""
    handlers = stage.app.container.registry.registrations.handlers
    quick = handlers["work"]
    handlers["work"] = replace(quick, is_quick=False)
    stage.create(**fields)
    handlers["work"] = quick
    if "pull" in fields:
        stage.sim.add_worker("gpu")
    stage.app.update("t", title="Still")
    before = stage.sim.counts.copy()
    stage.sim.advance(HOUR)
    assert stage.sim.counts.since(before).commits >= 2
    assert stage.records == [("20270101T003000Z", "SUCCEEDED", "done")]


def test_follow_ups_and_children_come_with_the_one_commit(stage: Stage) -> None:
    """A follow-up of a quick success runs; a quick call tells its caller, and costs one commit less."""
    app = stage.app

    @app.handler("add", quick=True)
    def add(payload: dict[str, int]) -> int:
        return payload["n"] + 1

    @app.handler("parent")
    def parent(ctx: Context) -> list[int]:
        return ctx.gather(*(ctx.call("add", {"n": n}) for n in range(3)))

    after = TaskDraft.of(id="after", owner="ada", title="After", handler="work")
    stage.create(max_runs=1)
    stage.during = [lambda _: Done("first", then=(after,))]
    app.create(id="p", owner="ada", handler="parent", schedule=Schedule.once(START + timedelta(minutes=10)))
    app.create(id="c", owner="ada", children=[{"handler": "add", "payload": {"n": 7}}], title="C")
    stage.sim.advance(HOUR)
    assert [each.content for each in stage.sim.executions("p")] == [[1, 2, 3]]
    assert stage.sim.executions("c")[0].content["results"] == [8]
    assert [each.status for each in stage.sim.executions("after")] == ["SUCCEEDED"]


def test_it_is_never_shown_as_running_and_explained_as_due(stage: Stage) -> None:
    """While it runs, lists have no execution of it, and the explanation says why."""
    stage.create()
    seen: list[Any] = []

    def look(_: Context) -> None:
        seen.append(stage.sim.executions("t"))
        container, task = stage.app.container, stage.app.get("t")
        found = explain_task(container.store, container.clock, task, shows_holders=True, is_quick=True)
        seen.append([each.sentence for each in found.findings])

    stage.during = [look]
    stage.sim.advance(HOUR)
    assert seen[0] == []
    assert "quick" in seen[1][0]
