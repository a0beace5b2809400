"""What is kept for a limited time, and what every store counts of an owner."""

from __future__ import annotations

from datetime import timedelta

from tests.conftest import NOW, MakeExecution, MakeMessage, MakeTask
from tests.engine.harness import DAY, SECOND

from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.ports.store import Store


def test_only_expired_documents_are_removed(
    store: Store, make_task: MakeTask, make_execution: MakeExecution, make_message: MakeMessage
) -> None:
    """The SQLite store removes expired documents itself; Firestore leaves it to a TTL policy."""
    task = make_task()
    early, late, forever = (
        make_execution(task, f"e{number}", expire_at=at) for number, at in enumerate((NOW, NOW + DAY, None))
    )
    message = make_message(task, "m").model_copy(update={"expire_at": NOW})
    store.commit(Commit(task, None, [early, late, forever], [message]))
    expected = 2 if isinstance(store, SqliteStore) else 0
    assert (store.sweep.expire(NOW - SECOND), store.sweep.expire(NOW), store.sweep.expire(NOW)) == (
        0,
        expected,
        0,
    )
    left = {execution.id for execution in store.search.list_executions(task.id, limit=9).items}
    assert left == ({"e1", "e2"} if expected else {"e0", "e1", "e2"})
    assert len(store.inbox.list(task.owner, limit=9).items) == (0 if expected else 1)


def test_a_reopened_record_does_not_expire(store: Store, make_task: MakeTask, make_execution: MakeExecution) -> None:
    """After a manual retry it has no expiry time until it ends again."""
    task = make_task()
    written = store.commit(Commit(task, None, [make_execution(task, "e", expire_at=NOW)]))
    store.commit(Commit(task, written, [make_execution(task, "e")]))
    store.sweep.expire(NOW)
    assert store.load_execution(task.id, "e") is not None


def test_unfinished_tasks_are_counted(store: Store, make_task: MakeTask) -> None:
    """Active and paused tasks of that owner count, others do not; counting stops at the limit."""
    for status in TaskStatus:
        store.commit(Commit(make_task(owner="ada", status=status)))
    store.commit(Commit(make_task(owner="ada")))
    store.commit(Commit(make_task(owner="bob")))
    assert [store.search.count_unfinished("ada", bound) for bound in (1, 2, 3, 10)] == [1, 2, 3, 3]
    assert (store.search.count_unfinished("bob", 10), store.search.count_unfinished("nobody", 10)) == (1, 0)


def test_new_tasks_are_counted(store: Store, make_task: MakeTask) -> None:
    """Tasks created after the instant count, whatever their status; one created exactly at it does not."""
    for seconds in (0, 1, 2, 3):
        store.commit(Commit(make_task(owner="ada", created_at=NOW + timedelta(seconds=seconds))))
    store.commit(Commit(make_task(owner="bob", created_at=NOW + 9 * SECOND)))
    assert [store.search.count_created_since("ada", NOW + timedelta(seconds=after), 10) for after in (-1, 0, 2, 3)] == [
        4,
        3,
        1,
        0,
    ]
    assert store.search.count_created_since("ada", NOW, 2) == 2
