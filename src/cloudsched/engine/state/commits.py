"""How a decision becomes a commit: in one piece, and with the journal of every execution that ends in it.

A journal is folded where its execution ends, whoever ends it (its handler, a lapsed lease, its owner's cancel): its
entries become the record's `steps`, and are removed by the commit that writes the record. So none is left over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.engine.ports.store import Folded, Stored
from cloudsched.engine.state.event_log import tell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.domain.transitions.lifecycle import Step
    from cloudsched.engine.durable.archive import Journals
    from cloudsched.engine.ports.store import Store, StoredLock


class Committer:
    """Commits steps on the version of the task that was read."""

    def __init__(self, store: Store, journals: Journals) -> None:
        self._store = store
        self._journals = journals

    def commit(
        self,
        step: Step,
        stored: Stored,
        lock: StoredLock | None = None,
        journals: dict[str, Sequence[JournalEntry]] | None = None,
        before: Callable[[], None] = lambda: None,
    ) -> Stored:
        """Commit a step on what was read, and return the task as it is then.

        Args:
            step: What to commit.
            stored: The task as it was read.
            lock: The lock that changes with it.
            journals: The journals that the caller knows already, by execution.
            before: What is done right before the commit, once everything else that it needs is in its place.

        Raises:
            VersionConflict: Somebody else was quicker.
            BlobsUnavailable: A journal is too large for its record, and its place cannot be reached.
        """
        executions, folded = step.executions, list[Folded]()
        ended = tuple(_ended(stored, step))
        for run in ended:
            entries = (journals or {}).get(run.execution_id)
            if entries is None:
                entries = self._journals.of(stored.task.id, run) if run.steps else ()
            if entries:
                executions = tuple(
                    self._journals.folded(each, entries) if each.id == run.execution_id else each for each in executions
                )
            if run.steps:
                folded.append(Folded(run.execution_id, max(run.steps, len(entries))))
        gone = {run.execution_id for run in ended}
        before()
        version = self._store.commit(
            step.task,
            stored.version,
            executions,
            step.messages,
            lock,
            entries=[entry for entry in step.entries if entry.execution_id not in gone],
            folded=folded,
        )
        tell(stored.task, step)
        return Stored(step.task, version)


def _ended(stored: Stored, step: Step) -> Iterator[Run]:
    recorded = {each.id for each in step.executions if each.status.is_final}
    for run in stored.task.runs:
        if run.execution_id in recorded and step.task.run(run.execution_id) is None:
            yield run
