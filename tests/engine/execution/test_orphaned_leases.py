"""A process that takes the place of one that has ended goes on at once with what that ran."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from tests.engine.harness import HOUR, MINUTE, SECOND

from cloudsched import App, Context, Execution, RetryPolicy, Schedule, Settings, Task, TaskStatus
from cloudsched.adapters.clocks import ManualClock
from cloudsched.domain.control_flow import ControlFlow
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.engine.ports.sender import OutgoingMessage, Recipient
from cloudsched.features.pull.wiring import PullWiring
from cloudsched.features.pull.work_queue import THIS_PROCESS, WorkerFilter
from cloudsched.people.wiring import PeopleWiring
from cloudsched.testing import Simulation


class Crash(ControlFlow):
    """The process has ended: nothing after it is committed."""


class Server:
    """An app that runs in one process after the other, over one store."""

    def __init__(self) -> None:
        self.app = App(Settings())
        self.runs: list[str] = []
        self.crashes = 1
        """How many more attempts end their process."""
        self.seconds = 0.0
        """What the clock shows that nobody sets."""
        self.app.handler("work", expected_duration=HOUR, retry=RetryPolicy.build(jitter=0.0))(self.work)
        self.app.handler("steps", expected_duration=HOUR)(self.take_steps)
        self.app.handler("remind")(lambda: "plants")
        self.sent: list[str] = []
        self.sim = Simulation(self.app).__enter__()
        self.start("first")

    def start(self, name: str | None) -> None:
        """Start the next process of that name: the queue has lost its content."""
        self.sim.queue.purge()
        before = self.app.container
        self.app.container = type(before)(
            before.registry, before.settings, store=before.store, dispatcher=before.dispatcher, clock=before.clock,
            holder=name, monotonic=lambda: self.seconds,
        )  # fmt: skip
        recipients = PeopleWiring.of(before).recipients
        PeopleWiring.of(self.app.container).replace(senders={"EMAIL": self}, recipients=recipients)
        self.app.container.sweeper.resend(self.sim.now + 10 * MINUTE)

    def send(self, message: OutgoingMessage, recipient: Recipient) -> str:
        self.end()
        self.sent.append(message.title)
        return recipient.address

    def go_on(self, name: str = "second") -> None:
        """Start the next process, and deliver what is due."""
        self.start(name)
        self.sim.advance(timedelta(0))

    def run(self) -> None:
        """Deliver what is due, until an attempt ends the process."""
        with pytest.raises(Crash):
            self.sim.advance(timedelta(0))

    def work(self, ctx: Context) -> str:
        self.runs.append(f"{ctx.task.id} {ctx.attempt}")
        return self.end()

    def end(self) -> str:
        if self.crashes:
            self.crashes -= 1
            raise Crash
        return "done"

    def take_steps(self, ctx: Context) -> str:
        ctx.step("one", lambda: self.runs.append("one"))
        return ctx.step("two", self.end)

    def create(self, task_id: str = "t", handler: str = "work", **fields: Any) -> None:
        self.app.create(id=task_id, handler=handler, schedule=Schedule.once(self.sim.now), **fields)

    def statuses(self, task_id: str = "t") -> list[ExecutionStatus]:
        return [each.status for each in self.app.executions(task_id).items]


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.sim.__exit__(None, None, None)


def test_the_next_process_goes_on_at_once(server: Server) -> None:
    """However long the lease is, no time passes; the lost attempt is recorded, and uses up no retry."""
    server.create(retry=False)
    server.run()
    server.go_on()
    (record,) = server.app.executions("t").items
    assert server.runs == ["t 1", "t 2"]
    assert record.status is ExecutionStatus.SUCCEEDED
    assert [(each.status, each.error and each.error.type) for each in record.attempts] == [
        (ExecutionStatus.TIMED_OUT, "ProcessEnded"),
        (ExecutionStatus.SUCCEEDED, None),
    ]


def test_durable_work_continues_where_it_was(server: Server) -> None:
    """The steps that it took are not taken again."""
    server.create(handler="steps")
    server.run()
    server.go_on()
    assert server.runs == ["one"]
    assert server.statuses() == [ExecutionStatus.SUCCEEDED]


@pytest.mark.parametrize("retry", [False, 3])
def test_a_handler_that_ends_its_process_three_times_in_a_row_has_failed(server: Server, retry: int) -> None:
    """However many retries it has, and not at full speed. The error names the handler, and says what to do."""
    server.crashes, waits = 4, []
    server.create(retry=retry)
    server.run()
    for number in range(2):
        server.start(f"again-{number}")
        begin = server.sim.now
        with pytest.raises(Crash):
            server.sim.advance(5 * MINUTE)
        waits.append((server.sim.now - begin).total_seconds())
    assert waits == [0, 5]
    server.start("last")
    server.sim.advance(5 * MINUTE)
    assert len(server.runs) == 3
    (record,) = server.app.executions("t").items
    assert (record.status, server.app.get("t").status) == (ExecutionStatus.FAILED, TaskStatus.FAILED)
    assert record.error is not None
    assert record.error.type == "ProcessEnded"
    assert "3 times in a row" in record.error.message
    assert "'work'" in record.error.message


def test_a_failure_hook_that_ends_its_process_does_so_no_more_once_its_run_has_failed(server: Server) -> None:
    """Else every start of the process would end with it."""
    hooks: list[str] = []

    def tell(task: Task, _: Execution) -> None:
        hooks.append(task.id)
        raise Crash

    @server.app.handler("fails", retry=False, on_failure=tell)
    def fail() -> None:
        raise ValueError("no")

    server.create(handler="fails")
    for number in range(4):
        with pytest.raises(Crash):
            server.sim.advance(5 * MINUTE)
        server.start(f"again-{number}")
    server.sim.advance(5 * HOUR)
    assert hooks == ["t"] * 4
    assert server.statuses() == [ExecutionStatus.FAILED]


def test_its_own_failures_alone_use_up_its_retries(server: Server) -> None:
    """One that is lost twice, fails once, and is lost twice more, still has the second of two retries."""
    ends = iter(["lost", "lost", "fails", "lost", "lost", "fails", "done"])

    def end() -> str:
        match next(ends):
            case "lost":
                raise Crash
            case "fails":
                raise ValueError("its own failure")
            case _:
                return "done"

    server.end = end  # type: ignore[method-assign]
    server.create(retry=2)
    for number in range(5):
        with suppress(Crash):
            server.sim.advance(HOUR)
        server.start(f"again-{number}")
    server.sim.advance(HOUR)
    assert server.statuses() == [ExecutionStatus.SUCCEEDED]
    assert server.runs[-1] == "t 7"


def test_a_step_that_was_taken_is_progress(server: Server) -> None:
    """A durable handler whose process ends again and again, each time after another step, is not to blame."""
    taken = list[str]()

    @server.app.handler("many", expected_duration=HOUR)
    def take_many(ctx: Context) -> int:
        for number in range(5):
            before = len(taken)
            ctx.step(f"step {number}", lambda: taken.append("taken"))
            if len(taken) > before:
                raise Crash
        return len(taken)

    server.create(handler="many", retry=False)
    for number in range(6):
        with suppress(Crash):
            server.sim.advance(MINUTE)
        server.start(f"again-{number}")
    assert server.statuses() == [ExecutionStatus.SUCCEEDED]


def test_what_a_process_ran_that_was_told_to_stop_is_not_lost(server: Server) -> None:
    """However often it is stopped, and killed before its handlers have ended: no attempt is recorded."""
    server.crashes = 6
    server.create(retry=False)
    for number in range(6):
        server.run()
        clock = server.app.container.clock
        assert isinstance(clock, ManualClock)
        clock.move_to(clock.now() + SECOND)
        server.start(f"again-{number}")
        server.app.container.executor.stopped_before(f"again-{number - 1}" if number else "first")
    server.sim.advance(timedelta(0))
    (record,) = server.app.executions("t").items
    assert server.runs == ["t 1"] * 7
    assert (record.status, len(record.attempts)) == (ExecutionStatus.SUCCEEDED, 1)


def test_runs_that_were_lost_together_take_turns(server: Server) -> None:
    """While one of them runs, another waits, and what was not lost does not. It begins once the first has ended."""
    server.crashes = 2
    for name in ("first", "second"):
        server.create(name)
        server.run()
    during = list[list[str]]()

    def end() -> str:
        if not during and server.runs[-1].endswith(" 2"):
            during.append([])
            for message in server.sim.queue.pending():
                server.app.deliver(message.body, message.token)
            during[0] = server.runs[2:]
        return "done"

    server.end = end  # type: ignore[method-assign]
    server.start("next")
    server.create("new")
    server.sim.advance(MINUTE)
    assert len(during[0]) == 2
    assert "new 1" in during[0]
    assert sorted(server.runs) == ["first 1", "first 2", "new 1", "second 1", "second 2"]


def test_its_lock_goes_on_to_whoever_is_next(server: Server) -> None:
    """An attempt's hold on its lock ends with its process, and is not waited for by itself or by others."""
    server.create("first", lock_key="door")
    server.run()
    server.create("second", lock_key="door")
    server.sim.advance(timedelta(0))
    assert server.runs == ["first 1"]
    server.go_on("next")
    assert sorted(server.runs) == ["first 1", "first 2", "second 1"]
    assert server.statuses("first") == server.statuses("second") == [ExecutionStatus.SUCCEEDED]


def test_a_delivery_goes_on_too(server: Server) -> None:
    """Deliveries are in no list of what runs, and are found by when they are due."""
    server.sim.add_person("system")
    server.create("mail", "remind", delivery_channels=("EMAIL",))
    server.run()
    assert server.sent == []
    server.go_on()
    assert server.sent == ["remind"]


@pytest.mark.parametrize("holder", ["second", None])
def test_other_leases_are_left_alone(server: Server, holder: str | None) -> None:
    """A worker's lease, and one of an executor that did not have the store for itself, last to their ends."""
    server.start(None)
    server.create("executors")
    server.run()
    server.create("workers", pull="queue")
    server.sim.advance(timedelta(0))
    assert PullWiring.of(server.app.container).work_queue.claim(WorkerFilter("queue"), THIS_PROCESS)
    server.start(holder)
    server.sim.advance(30 * MINUTE)
    assert server.runs == ["executors 1"]
    assert server.statuses("executors") == server.statuses("workers") == [ExecutionStatus.RUNNING]


def test_a_paused_or_ended_tasks_attempt_is_closed_and_not_repeated(server: Server) -> None:
    """What the process ran is recorded, whatever happened to its task before the crash; nothing runs again."""
    server.crashes = 2
    for name in ("paused", "cancelled"):
        server.create(name)
        server.run()
    server.app.pause("paused")
    server.app.cancel("cancelled")
    server.go_on()
    assert server.runs == ["paused 1", "cancelled 1"]
    assert server.app.get("paused").runs[0].lease is None
    assert server.statuses("cancelled") == [ExecutionStatus.CANCELLED]
    server.app.resume("paused")
    server.sim.advance(timedelta(0))
    assert server.statuses("paused") == [ExecutionStatus.SUCCEEDED]


@pytest.mark.parametrize(("passed", "runs"), [(timedelta(0), ["t 1"]), (HOUR * 3, ["t 1", "t 2"])])
def test_a_handlers_time_is_not_over_because_the_clock_was_set_forward(
    server: Server, passed: timedelta, runs: list[str]
) -> None:
    """A dispatch that finds its lease lapsed asks the clock that nobody sets; a handler that hangs is given up."""
    server.crashes = 0
    server.create()
    [message] = server.sim.queue.pending()
    clock = server.app.container.clock

    def end() -> str:
        if server.runs == ["t 1"]:
            assert isinstance(clock, ManualClock)
            clock.move_to(clock.now() + 3 * HOUR)
            server.seconds += passed.total_seconds()
            server.app.deliver(message.body, message.token)
        return "done"

    server.end = end  # type: ignore[method-assign]
    server.sim.advance(timedelta(0))
    server.sim.advance(2 * MINUTE)
    assert server.runs == runs
    assert server.statuses() == [ExecutionStatus.SUCCEEDED]
    (record,) = server.app.executions("t").items
    assert len(record.attempts) == len(runs)
