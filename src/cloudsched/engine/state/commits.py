"""How a decision becomes a commit: in one piece, and with the journal of every execution that ends in it.

A journal is folded where its execution ends, whoever ends it (its handler, a lapsed lease, its owner's cancel): its
entries become the record's `steps`, and are removed by the commit that writes the record. So none is left over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.engine.ports.store import ArchivedJournal, VersionedTask
from cloudsched.engine.state.event_log import log_changes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.domain.transitions.lifecycle import Transition
    from cloudsched.engine.durable.archive import JournalArchive
    from cloudsched.engine.ports.store import Store, VersionedLock


class TransitionCommitter:
    """Commits steps on the version of the task that was read."""

    def __init__(self, store: Store, archive: JournalArchive) -> None:
        self._store = store
        self._archive = archive

    def commit(
        self,
        transition: Transition,
        stored: VersionedTask,
        lock: VersionedLock | None = None,
        known_journals: dict[str, Sequence[JournalEntry]] | None = None,
        before_commit: Callable[[], None] = lambda: None,
    ) -> VersionedTask:
        """Commit a step on what was read, and return the task as it is then.

        Args:
            transition: What to commit.
            stored: The task as it was read.
            lock: The lock that changes with it.
            known_journals: The journals that the caller knows already, by execution.
            before_commit: What is done right before the commit, once everything else that it needs is in its place.

        Raises:
            VersionConflict: Somebody else was quicker.
            BlobsUnavailable: A journal is too large for its record, and its place cannot be reached.
        """
        executions, folded = transition.executions, list[ArchivedJournal]()
        ended = tuple(_finished_runs(stored, transition))
        for run in ended:
            entries = (known_journals or {}).get(run.execution_id)
            if entries is None:
                entries = self._archive.load(stored.task.id, run) if run.steps else ()
            if entries:
                executions = tuple(
                    self._archive.archive(each, entries) if each.id == run.execution_id else each for each in executions
                )
            if run.steps:
                folded.append(ArchivedJournal(run.execution_id, max(run.steps, len(entries))))
        gone = {run.execution_id for run in ended}
        before_commit()
        version = self._store.commit(
            transition.task,
            stored.version,
            executions,
            transition.messages,
            lock,
            entries=[entry for entry in transition.entries if entry.execution_id not in gone],
            archived=folded,
        )
        log_changes(stored.task, transition)
        return VersionedTask(transition.task, version)


def _finished_runs(stored: VersionedTask, transition: Transition) -> Iterator[Run]:
    recorded = {each.id for each in transition.executions if each.status.is_final}
    for run in stored.task.runs:
        if run.execution_id in recorded and transition.task.find_run(run.execution_id) is None:
            yield run
