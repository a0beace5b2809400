"""A verb is offered exactly if the change itself is not refused, whatever the task's state and size."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import MakeTask

from cloudsched.domain.documents.authority import TRUSTED_CODE
from cloudsched.domain.documents.execution import Execution, ExecutionStatus, OccurrenceRange, Run
from cloudsched.domain.documents.task import MAX_OPEN_RUNS, Task, TaskStatus
from cloudsched.domain.documents.verbs import Verb
from cloudsched.domain.transitions import retry_execution
from cloudsched.domain.transitions.commit import Commit
from cloudsched.domain.transitions.manual_verbs import find_execution_verbs
from cloudsched.domain.transitions.run_records import MAX_SPEC_BYTES
from cloudsched.errors import InvalidInput, NotAllowed

NOW = datetime(2027, 1, 1, 9, tzinfo=UTC)
_SIZES = st.sampled_from([None, 0, 10, 120_000, 250_000]) | st.integers(0, MAX_SPEC_BYTES)
_STATES = st.fixed_dictionaries(
    {
        "status": st.sampled_from(TaskStatus),
        "payload": st.sampled_from([0, 120_000]).map(lambda size: {"text": "x" * size}),
        "runs": st.lists(_SIZES, max_size=3) | st.just([None] * MAX_OPEN_RUNS),
    }
)


def make_payload(size: int | None) -> dict[str, Any] | None:
    return None if size is None else {"text": "x" * size}


def changes(task: Task, change: Callable[[Task], Commit]) -> bool:
    """Return whether a change is accepted, and changes anything."""
    try:
        return change(task).task != task
    except (NotAllowed, InvalidInput):
        return False


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(state=_STATES, status=st.sampled_from(ExecutionStatus), own=_SIZES, count=st.sampled_from([1, 1, 1, 9]))
def test_a_retry_is_offered_exactly_if_it_is_accepted(
    make_task: MakeTask, state: dict[str, Any], status: ExecutionStatus, own: int | None, count: int
) -> None:
    """With payloads of any size, of the execution and of the open runs beside it."""
    runs = tuple(
        Run(execution_id=f"r{number}", scheduled_for=NOW, due_at=NOW, payload=make_payload(size))
        for number, size in enumerate(state["runs"])
    )
    task = make_task(**{**state, "runs": runs})
    execution = Execution(
        id="e",
        task_id=task.id,
        owner=task.owner,
        scheduled_for=NOW,
        status=status,
        payload=make_payload(own),
        covers=None if count == 1 else OccurrenceRange(until=NOW, count=count),
    )
    offered = find_execution_verbs(task, execution, lambda: NOW, TRUSTED_CODE)
    assert (Verb.RETRY in offered) == changes(task, lambda each: retry_execution.retry(each, execution, NOW))
