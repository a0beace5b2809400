"""A handler's `on_failure` is called exactly once, by the worker or by the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.engine.harness import SECOND
from tests.worker.harness import WorkerHarness
from tests.worker.test_leases import FailingCommits

from cloudsched import App, Execution, RetryPolicy, Settings, Task
from cloudsched.client import Client
from cloudsched.features.pull.work_queue import WorkerFilter
from cloudsched.worker.api_source import ApiSource

if TYPE_CHECKING:
    from cloudsched.engine.handlers.registry import OnFailure

ONCE_MORE = RetryPolicy(max_retries=1, first_delay=SECOND, jitter=0)
Told = list[tuple[str, "Task", "Execution"]]


def fail() -> None:
    raise ValueError("no")


def make_hook(told: Told, where: str) -> OnFailure:
    return lambda task, execution: told.append((where, task, execution))


def test_the_hook_is_called_once(harness: WorkerHarness, app: App) -> None:
    """After the last attempt, also where its hook wants to end more than itself."""
    told: Told = []

    def note_and_exit(task: Task, execution: Execution) -> None:
        told.append(("app", task, execution))
        raise SystemExit

    app.handler("act", on_failure=note_and_exit, retry=ONCE_MORE)(fail)
    task = harness.offer("act")
    harness.work()
    assert told == []
    harness.sim.advance(2 * SECOND)
    harness.work()
    assert [(each.status, execution) for _, each, execution in told] == [("FAILED", harness.record(task))]
    assert harness.statuses() == ["retrying", "failed"]


@pytest.mark.parametrize("when", ["", "before", "after"])
@pytest.mark.parametrize("known", ["with a hook", "without", "not at all"])
@pytest.mark.parametrize("harness", ["api"], indirect=True)
def test_the_worker_calls_the_hook_if_the_api_did_not(
    harness: WorkerHarness, app: App, known: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hook is called once, with the record, on the side that has it; also if the response to `fail` is lost."""
    told: Told = []
    breaking = FailingCommits(harness, monkeypatch)
    mine = App(Settings())
    if known != "not at all":
        app.handler("act", on_failure=make_hook(told, "api") if known == "with a hook" else None)(fail)

    @mine.handler("act", on_failure=make_hook(told, "worker"))
    def act() -> None:
        if when:
            setattr(breaking, when, 1)
        raise ValueError("no")

    task = harness.offer("act", retry=RetryPolicy(max_retries=0), payload={})
    wanted = WorkerFilter("gpu", (), {"act"}, None, "box-1")
    harness.work(desk=ApiSource(lambda: Client(harness.url, timeout=60), mine.container.registry, wanted, "there"))
    expected = (
        ["api", "api"] if (known, when) == ("with a hook", "before") else ["api" if "hook" in known else "worker"]
    )
    assert [where for where, _, _ in told] == expected
    _, its_task, execution = told[-1]
    assert (its_task.id, its_task.status, its_task.handler) == (task.id, "FAILED", "act")
    assert execution == harness.record(task)
