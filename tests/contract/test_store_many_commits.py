"""What every store promises of several commits at a time: each is all or nothing, whatever becomes of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from cloudsched.domain.documents.json_limits import MAX_DOCUMENT_BYTES
from cloudsched.engine.ports.store import Commit, TaskWrite, VersionedTask
from cloudsched.errors import InvalidInput, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import MakeTask
    from tests.contract.conftest import OpenStore

    from cloudsched.domain.documents.execution import Execution
    from cloudsched.engine.ports.store import Store

KINDS = ("changed", "created", "stale", "taken", "with a stale one", "too large")


def make_commit(
    kind: str, number: int, store: Store, make_task: MakeTask, make_execution: Callable[..., Execution]
) -> Commit:
    """Store what a commit of that kind needs, and return it."""
    task = make_task(id=f"many-{number}", title="before")
    edited = task.model_copy(update={"title": "after"})
    if kind == "created":
        return Commit(edited, executions=[make_execution(edited)])
    base = store.commit(Commit(task))
    if kind == "taken":
        return Commit(edited, executions=[make_execution(edited)])
    if kind == "stale":
        store.commit(Commit(task, base))
    others = list[TaskWrite]()
    if kind == "with a stale one":
        beside = make_task(id=f"beside-{number}")
        read = store.commit(Commit(beside))
        store.commit(Commit(beside, read))
        others = [TaskWrite(beside, read)]
    if kind == "too large":
        edited = edited.model_copy(update={"payload": {"text": "x" * MAX_DOCUMENT_BYTES}})
    return Commit(edited, base, [make_execution(edited)], others=others)


@given(kinds=st.lists(st.sampled_from(KINDS), max_size=6))
@settings(max_examples=15)
def test_each_of_several_commits_is_made_as_if_it_was_alone(
    kinds: list[str], open_store: OpenStore, make_task: MakeTask, make_execution: Callable[..., Execution]
) -> None:
    """Each is answered by its task or its own error, stored with its records or not at all, and then readable."""
    with open_store() as store:
        commits = [make_commit(kind, number, store, make_task, make_execution) for number, kind in enumerate(kinds)]
        before = [store.load(each.task.id) for each in commits]
        results = store.commit_many(commits)
        assert len(results) == len(commits)
        for kind, commit, stored, result in zip(kinds, commits, before, results, strict=True):
            record = store.load_execution(commit.task.id, "20270101T090000Z")
            if kind in {"changed", "created"}:
                assert isinstance(result, VersionedTask)
                assert store.load(commit.task.id) == result
                assert record == make_execution(commit.task)
                assert store.commit(Commit(commit.task, result)) != result
            else:
                assert type(result) is (InvalidInput if kind == "too large" else VersionConflict)
                assert store.load(commit.task.id) == stored
                assert record is None


def test_two_commits_of_one_version_are_one(store: Store, make_task: MakeTask) -> None:
    """Of two that expect the same version of a task, exactly one takes effect."""
    task = make_task(id="many")
    base = store.commit(Commit(task))
    titles = ["first", "second", "third"]
    results = store.commit_many([Commit(task.model_copy(update={"title": each}), base) for each in titles])
    (made,) = [each for each in results if isinstance(each, VersionedTask)]
    assert [type(each) for each in results].count(VersionConflict) == 2
    assert store.load("many") == made
