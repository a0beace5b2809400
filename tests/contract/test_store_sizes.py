"""No store takes a document that Firestore would refuse, and every store takes one that it accepts."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conftest import NOW, MakeExecution, MakeMessage, MakeTask
from tests.contract.conftest import load
from tests.domain.transitions.test_growth import largest_task

from cloudsched.domain.documents.journal import JournalEntry, StepKind
from cloudsched.domain.documents.json_limits import MAX_DOCUMENT_BYTES, STORE_BYTES, document_size
from cloudsched.domain.documents.task import Task
from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.ports.procedure import run_procedure
from cloudsched.engine.ports.store import Store
from cloudsched.engine.state.commits import Committer
from cloudsched.errors import InvalidInput


def fill(task: Task, size: int) -> Task:
    """Return the task with a payload that makes its document this large."""
    empty = task.model_copy(update={"payload": {"text": ""}})
    room = size - document_size(("tasks", task.id), empty.to_stored())
    return task.model_copy(update={"payload": {"text": "x" * room}})


def test_a_task_has_at_most_one_mebibyte(store: Store, make_task: MakeTask) -> None:
    """The largest is stored, one that is a byte larger is refused with its largest field, and nothing is written."""
    largest = MAX_DOCUMENT_BYTES - STORE_BYTES
    task = fill(make_task(), largest)
    store.commit(Commit(task))
    stored = load(store, task.id)
    assert stored.task == task
    other = fill(make_task(), largest + 1)
    with pytest.raises(
        InvalidInput, match=f"of the {MAX_DOCUMENT_BYTES + 1} bytes that tasks/{other.id} would"
    ) as error:
        store.commit(Commit(other))
    assert error.value.field == "payload.text"
    assert store.load(other.id) is None


MANY = [{"the name of a field of a record": True}] * (MAX_DOCUMENT_BYTES // 32)


@pytest.mark.parametrize("value", [[7] * 140_000, ["中" * 400_000], MANY], ids=["7", "中", "names"])
def test_a_record_of_any_kind_is_counted_as_firestore_does(
    store: Store,
    make_task: MakeTask,
    make_execution: MakeExecution,
    make_message: MakeMessage,
    value: Any,  # noqa: ANN401 - any JSON
) -> None:
    """Numbers have eight bytes and characters up to four, however short they are otherwise; the task is not written."""
    task = make_task()
    entry = JournalEntry(number=1, kind=StepKind.STEP, execution_id="e", started_at=NOW, result=value)
    commits: list[tuple[str, dict[str, Any]]] = [
        ("content", {"executions": [make_execution(task, content=value)]}),
        ("body", {"messages": [make_message(task, "m", body=str(value))]}),
        ("result", {"entries": [entry]}),
    ]
    for field, parts in commits:
        if field == "body" and len(str(value).encode()) < MAX_DOCUMENT_BYTES:
            continue
        with pytest.raises(InvalidInput) as error:
            store.commit(Commit(task, **parts))
        assert error.value.field.partition(".")[0] == field
    assert store.load(task.id) is None


def test_a_task_whose_runs_have_grown_can_still_be_committed(store: Store, make_task: MakeTask) -> None:
    """Every commit of a transition shortens open runs that would not fit; without that, no store takes the task."""
    small = make_task()
    written = store.commit(Commit(small))
    grown = largest_task(make_task, "中").model_copy(update={"id": small.id})
    with pytest.raises(InvalidInput, match="bytes that tasks/"):
        store.commit(Commit(grown, written))
    committer = Committer(store)
    committed = run_procedure(committer.commit(Commit(grown, written)))
    stored = load(store, small.id)
    assert stored.task == committed.task
    assert len(stored.task.runs) == len(grown.runs)
