"""Try a creation or an edit without storing it: every check runs, on what is stored, and the commit is left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, cast

from cloudsched.engine.ports.store import Commit, Store, Version
from cloudsched.engine.state.commits import Committer
from cloudsched.engine.tasks.scheduler import Scheduler
from cloudsched.errors import VersionConflict

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.engine_context import EngineContext


class WouldCommit(Exception):
    """Everything was checked, and this task would be stored now."""

    def __init__(self, task: Task) -> None:
        super().__init__(task.id)
        self.task = task


def make_dry_scheduler(engine: EngineContext) -> Scheduler:
    """Return a scheduler that reads and checks like another one, but raises `WouldCommit` instead of storing.

    It sends no dispatch, tells no parent, and writes no record.
    """
    store = cast("Any", _DryStore(engine.store))
    dry = replace(
        engine,
        store=store,
        committer=_DryCommitter(store, engine.archive),
        sender=cast("Any", _Silent()),
        locks=cast("Any", _Silent()),
    )
    return Scheduler(dry, cast("Any", _Silent()))


class _DryStore:
    """A store that only reads. What it does not name is the other store's."""

    def __init__(self, store: Store) -> None:
        self.load = store.load
        self.load_lock = store.load_lock
        self.records = _DryRecords(store.records)


class _DryRecords:
    """Records that are only read: a link from a calendar to a task that is not stored would lead nowhere."""

    def __init__(self, records: Any) -> None:  # noqa: ANN401 - a RecordStore
        self.load = records.load
        self.list = records.list

    def write(self, *_: object) -> Version:
        return Version(0)


class _DryCommitter(Committer):
    """Finds one conflict: a task that is there already, which makes a creation an edit, or a repetition."""

    def commit(self, commit: Commit) -> NoReturn:
        stored = None if commit.base is not None else self._store.load(commit.task.id)
        if stored is not None and stored.task.deleted_at is None:
            raise VersionConflict(f"task {commit.task.id}")
        raise WouldCommit(commit.task)


class _Silent:
    """Accepts every call, and does nothing."""

    def __getattr__(self, _name: str) -> Callable[..., None]:
        return lambda *_, **__: None
