"""What is claimed and finished together is what each would be alone, whatever becomes of the others."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from cloudsched import App, Cancel, Context, Done, Execution, Retry, RetryPolicy, Schedule, Settings, Task, TaskDraft
from cloudsched.adapters.clocks import ManualClock
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.engine.execution.executor import Executor
from cloudsched.engine.execution.group_executor import EndedRun, GroupExecutor
from cloudsched.engine.ports.queue import QueueMessage
from cloudsched.errors import QueueUnavailable, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cloudsched.engine.ports.store import Commit, VersionedTask

NOW = datetime(2027, 1, 1, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)
SECRET = "the-secret-of-these-tests"  # noqa: S105 - it guards nothing but these
HOURLY = Schedule(rrule=("FREQ=HOURLY",), dtstart="2027-01-01T10:00:00", timezone="UTC")


class Machine:
    """One machine whose queue is delivered by hand: in groups, or one dispatch at a time."""

    def __init__(self, *, in_groups: bool = True) -> None:
        self.in_groups = in_groups
        self.clock = ManualClock(NOW)
        self.store = SqliteStore()
        self.queued = list[QueueMessage]()
        self.app = App(Settings(secret=SECRET), store=self.store, dispatcher=self, clock=self.clock)
        self.called = list[str]()
        self.during: Callable[[Context], object] = lambda _: None
        """What the handler does, and returns."""
        self.transactions = 0
        self.failures = list[str]()
        commit_many = self.store.commit_many

        def count(commits: Sequence[Commit]) -> Sequence[VersionedTask | Exception]:
            self.transactions += bool(commits)
            return commit_many(commits)

        self.store.commit_many = count  # type: ignore[method-assign]  # counted

        @self.app.handler("work", access="users")
        def work(ctx: Context) -> object:
            self.called.append(ctx.task.id)
            return self.during(ctx)

        @self.app.handler("blink", quick=True)
        def blink(ctx: Context) -> object:
            self.called.append(ctx.task.id)
            return self.during(ctx)

        @self.app.on_failure
        def note(task: Task, _: Execution) -> None:
            self.failures.append(task.id)

    def create(self, message: QueueMessage) -> None:
        self.queued.append(message)

    def close(self) -> None: ...

    def add(self, task_id: str, **fields: object) -> None:
        """Create a task that is due in an hour, and every hour from then on if it says so."""
        content: dict[str, Any] = {"handler": "work", "schedule": Schedule.once(NOW + HOUR), "owner": "ada", **fields}
        self.app.create(id=task_id, title=task_id, **content)

    def take_due(self) -> list[QueueMessage]:
        due = [each for each in self.queued if each.at <= self.clock.now()]
        self.queued = [each for each in self.queued if each not in due]
        return due

    @property
    def executor(self) -> GroupExecutor:
        parts = self.app.container
        return GroupExecutor(parts.engine, parts.executor, parts.attempt_runner, parts.tracer, self.app.deliver)

    def run_due(self, between: Callable[[], object] = lambda: None) -> list[BaseException]:
        """Deliver what is due now; `between` is called when all have ended and none is stored. Return what failed."""
        due, failed = self.take_due(), list[BaseException]()
        if not self.in_groups:
            for each in due:
                self.app.deliver(each.body, each.token)
            return failed

        def call(each: Callable[[], EndedRun | None] | None) -> EndedRun | None:
            try:
                return None if each is None else each()
            except Exception as error:  # noqa: BLE001 - returned
                failed.append(error)
                return None

        calls, _ = self.executor.commit(due, [])
        ends = [end for end in map(call, calls) if end is not None]
        between()
        _, left = self.executor.commit([], ends)
        for rest in left:
            call(rest)
        return failed

    def records(self, task_id: str) -> list[str]:
        return [each.status.value for each in self.app.executions(task_id).items]


@pytest.fixture
def machine() -> Iterator[Machine]:
    """A machine that has given up or finished, at the end of the test, all that it has begun."""
    made = Machine()
    yield made
    assert not made.app.container.executor.in_progress._counts  # noqa: SLF001 - from inside
    made.store.close()


def test_many_runs_take_two_transactions(machine: Machine) -> None:
    """One for all their claims and one for all their ends; each handler is called after the first."""
    for number in range(20):
        machine.add(f"t{number}")
    seen = list[int]()
    machine.during = lambda _: seen.append(machine.transactions)
    machine.clock.move_to(NOW + HOUR)
    assert machine.run_due() == []
    assert machine.transactions == 2
    assert seen == [1] * 20
    assert sorted(machine.called) == sorted(f"t{number}" for number in range(20))
    assert all(machine.records(each)[0] == "SUCCEEDED" for each in machine.called)


KINDS: dict[str, dict[str, Any]] = {
    "once": {},
    "recurring": {"schedule": HOURLY},
    "quick": {"handler": "blink"},
    "locked": {"lock_key": "press"},
    "locked-too": {"lock_key": "press"},
    "told": {"delivery_channels": ("WEB",)},
    "retried": {"retry": RetryPolicy(max_retries=2, base=timedelta(seconds=30))},
    "labelled": {"labels": ("team=red",), "schedule": HOURLY},
    "unknown": {"handler": "gone"},
}


def _answer(ctx: Context) -> object:
    ctx.progress("half")
    match ctx.task.id:
        case "once":
            return Done("made", then=(TaskDraft.of(id="next", owner="ada", title="next", handler="work"),))
        case "retried" if ctx.attempt == 1:
            return Retry("again")
        case "labelled":
            return Cancel("enough") if ctx.now() > NOW + 2 * HOUR else {"n": 1}
        case _:
            return {"attempt": ctx.attempt}


def _live(machine: Machine) -> dict[str, object]:
    """Run the same day on a machine; return all that is stored of it in the end."""
    machine.during = _answer
    machine.app.handler("gone")(lambda: None)
    for name, fields in KINDS.items():
        machine.add(name, **fields)
    del machine.app.container.registry.registrations.handlers["gone"]  # as after a rollback
    for _ in range(100):
        machine.run_due()
        machine.clock.move_to(machine.clock.now() + timedelta(minutes=2))
    found = dict[str, object]()
    for name in (*KINDS, "next"):
        task = machine.app.get(name)
        records = [each.model_dump(exclude={"attempts"}) for each in machine.app.executions(name).items]
        found[name] = task.status, task.next_execution_time, task.runs, records
    found["failures"] = machine.failures
    found["inbox"] = [each.body for each in machine.store.list_messages("ada", limit=100).items]
    return found


def test_a_day_in_groups_is_a_day_alone() -> None:
    """Runs of every kind leave the same tasks and records behind, in groups and one at a time."""
    days = [_live(Machine(in_groups=each)) for each in (True, False)]
    assert days[0] == days[1]
    assert len(days[0]["recurring"][3]) == 3  # type: ignore[index]  # its records


def test_a_task_that_is_paused_meanwhile_is_not_called(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its claim meets a conflict and is decided again, alone; the others' claims take effect."""
    for each in ("a", "b", "c"):
        machine.add(each)
    decide = Executor.decide_claims

    def pause_then(executor: Executor, messages: Any, changing: Any) -> object:  # noqa: ANN401 - handed on
        found = decide(executor, messages, changing)
        machine.app.pause("b")
        return found

    monkeypatch.setattr(Executor, "decide_claims", pause_then)
    machine.clock.move_to(NOW + HOUR)
    due = machine.take_due()
    calls, _ = machine.executor.commit(due, [])
    monkeypatch.undo()
    _, left = machine.executor.commit([], [end for end in [each() for each in calls] if end is not None])
    assert left == [None, None]
    assert machine.called == ["a", "c"]
    assert machine.records("b") == []
    assert [machine.records(each)[0] for each in ("a", "c")] == ["SUCCEEDED"] * 2


def test_an_end_that_meets_a_change_is_stored_all_the_same(machine: Machine) -> None:
    """Its task was edited while its handler ran: its record is written, and the new plan is dispatched."""
    for each in ("a", "b"):
        machine.add(each, schedule=HOURLY)
    machine.clock.move_to(NOW + HOUR)
    assert machine.run_due(between=lambda: machine.app.patch("a", {"title": "new"})) == []
    for each in ("a", "b"):
        assert machine.records(each) == ["SUCCEEDED"]
    machine.clock.move_to(NOW + 2 * HOUR)
    assert machine.run_due() == []
    assert sorted(machine.called) == ["a", "a", "b", "b"]


@pytest.mark.parametrize("handler", ["work", "blink"])
def test_another_dispatch_of_a_run_leaves_it_alone(machine: Machine, handler: str) -> None:
    """Claimed, called, or ended and not stored yet: the process works on it, so its lease is not one that was lost."""
    executor = machine.app.container.executor
    executor._holder = "this life"  # noqa: SLF001 - as serve's
    machine.add("a", handler=handler, retry=RetryPolicy(max_retries=3))
    machine.clock.move_to(NOW + HOUR)
    (due,) = machine.take_due()

    def deliver_again(_: object = None) -> None:
        machine.app.deliver(due.body, due.token)

    machine.during = deliver_again if handler == "work" else lambda _: None  # a quick one is claimed with its result
    (call,), _ = machine.executor.commit([due], [])
    if handler == "work":
        deliver_again()
    end = call()
    assert end is not None
    if handler == "work":
        deliver_again()
    assert machine.executor.commit([], [end])[1] == [None]
    deliver_again()
    assert machine.called == ["a"]
    assert machine.records("a") == ["SUCCEEDED"]
    assert not executor.in_progress._counts  # noqa: SLF001 - from inside


@pytest.mark.parametrize("error", [StoreUnavailable("The store", "it is down"), MemoryError()], ids=["down", "memory"])
def test_work_that_was_given_up_is_no_longer_in_progress(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Whichever commit fails: its dispatches are delivered again, and what they claimed is not taken to be running."""
    machine.add("a")
    machine.clock.move_to(NOW + HOUR)
    due = machine.take_due()
    executor = machine.app.container.executor

    def fail(_: object) -> None:
        raise error

    with monkeypatch.context() as broken:
        broken.setattr(machine.store, "commit_many", fail)
        with pytest.raises(type(error)):
            machine.executor.commit(due, [])
    assert not executor.in_progress._counts  # noqa: SLF001 - from inside
    (call,), _ = machine.executor.commit(due, [])
    end = call()
    assert end is not None
    assert executor.in_progress._counts  # noqa: SLF001 - from inside
    with monkeypatch.context() as broken:
        broken.setattr(machine.store, "commit_many", fail)
        with pytest.raises(type(error)):
            machine.executor.commit([], [end])
    assert not executor.in_progress._counts  # noqa: SLF001 - from inside


def test_what_the_store_does_not_take_is_delivered_again(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler is not called before its claim is stored; the others do not notice."""
    for each in ("a", "b"):
        machine.add(each)
    commit_many = machine.store.commit_many

    def lose(commits: Sequence[Commit]) -> list[VersionedTask | Exception]:
        kept = iter(commit_many([each for each in commits if each.task.id != "a"]))
        return [StoreUnavailable("it", "lost") if each.task.id == "a" else next(kept) for each in commits]

    monkeypatch.setattr(machine.store, "commit_many", lose)
    machine.clock.move_to(NOW + HOUR)
    (failed,) = machine.run_due()
    assert isinstance(failed, StoreUnavailable)
    assert machine.called == ["b"]


def test_what_cannot_be_decided_keeps_nobody_from_running(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does a dispatch that nobody signed, or one of a task that is gone: each is delivered alone."""
    for each in ("a", "b", "c", "d"):
        machine.add(each)
    decide = Executor._decide  # noqa: SLF001 - what is broken

    def break_on_b(executor: Executor, dispatch: Any, *more: Any) -> object:  # noqa: ANN401 - handed on
        if dispatch.task_id == "b":
            raise ZeroDivisionError
        return decide(executor, dispatch, *more)

    monkeypatch.setattr(Executor, "_decide", break_on_b)
    machine.app.delete("c")
    machine.store.purge("c")
    machine.clock.move_to(NOW + HOUR)
    machine.queued = [
        replace(each, token="v1=0") if b'"d"' in each.body else each  # noqa: S106 - nobody's
        for each in machine.queued
    ]
    failed = machine.run_due()
    assert sorted(type(each).__name__ for each in failed) == ["Unauthenticated", "ZeroDivisionError"]
    assert machine.called == ["a"]


def test_a_queue_that_refuses_what_follows_one_end_stops_no_other(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its dispatch is delivered again, and the record of each run is there."""
    for each in ("a", "b"):
        machine.add(each, schedule=HOURLY)
    machine.clock.move_to(NOW + HOUR)
    create, is_ending = machine.create, False

    def refuse(message: QueueMessage) -> None:
        if is_ending and b'"a"' in message.body:
            raise QueueUnavailable("the queue", "full")
        create(message)

    def begin_to_end() -> None:
        nonlocal is_ending
        is_ending = True

    monkeypatch.setattr(machine, "create", refuse)
    machine.app.container.engine.sender._dispatcher = machine  # noqa: SLF001 - the patched one
    failed = machine.run_due(between=begin_to_end)
    assert all(isinstance(each, QueueUnavailable) for each in failed)
    assert [machine.records(each)[0] for each in ("a", "b")] == ["SUCCEEDED"] * 2


def test_each_line_names_its_own_run(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    """What is logged of a run, before and after its handler, belongs to its trace, although others are committed."""
    from cloudsched.engine.ports.tracing import current_trace  # noqa: PLC0415 - used here only

    traces = dict[str, set[str]]()

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            trace, execution = current_trace(), getattr(record, "executionId", None)
            if execution is not None and record.levelno >= logging.INFO:
                traces.setdefault(record.taskId, set()).add("" if trace is None else trace.trace_id)  # type: ignore[attr-defined]  # ours have it

    events = logging.getLogger("cloudsched.events")
    collector = Collector()
    caplog.set_level(logging.INFO, "cloudsched")
    events.addHandler(collector)
    try:
        for each in ("a", "b", "c"):
            machine.add(each)
        machine.clock.move_to(NOW + HOUR)
        machine.run_due()
    finally:
        events.removeHandler(collector)
    assert {each: len(found) for each, found in traces.items()} == {"a": 1, "b": 1, "c": 1}
    assert len(set.union(*traces.values())) == 3
    assert "" not in set.union(*traces.values())
