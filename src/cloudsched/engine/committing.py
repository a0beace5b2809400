"""How a decision becomes a commit: in one piece, and with the journal of every execution that ends in it.

A journal is folded where its execution ends, whoever ends it (its handler, a lapsed lease, its owner's cancel): its
entries become the record's `steps`, and are removed by the commit that writes the record. So none is left over.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cloudsched.domain.journal import MAX_FOLDED
from cloudsched.engine.news import tell
from cloudsched.engine.ports import Folded, Stored

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cloudsched.domain.execution import Execution, Run
    from cloudsched.domain.journal import JournalEntry, StepRecord
    from cloudsched.domain.lifecycle import Step
    from cloudsched.engine.ports import Blobs, Store, StoredLock


class Committer:
    """Commits steps on the version of the task that was read."""

    def __init__(self, store: Store, blobs: Blobs) -> None:
        self._store = store
        self._blobs = blobs

    def commit(
        self,
        step: Step,
        stored: Stored,
        lock: StoredLock | None = None,
        journals: dict[str, Sequence[JournalEntry]] | None = None,
    ) -> Stored:
        """Commit a step on what was read, and return the task as it is then.

        Args:
            step: What to commit.
            stored: The task as it was read.
            lock: The lock that changes with it.
            journals: The journals that the caller knows already, by execution.

        Raises:
            VersionConflict: Somebody else was quicker.
        """
        executions, folded = step.executions, list[Folded]()
        for run in _ended(stored, step):
            entries = (journals or {}).get(run.execution_id)
            if entries is None:
                entries = self._store.journal(stored.task.id, run.execution_id) if run.steps else ()
            if entries:
                executions = tuple(
                    self._with_steps(each, entries) if each.id == run.execution_id else each for each in executions
                )
            if run.steps:
                folded.append(Folded(run.execution_id, max(run.steps, len(entries))))
        gone = {each.execution_id for each in folded}
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

    def steps_of(self, execution: Execution) -> tuple[StepRecord, ...]:
        """Return the steps of a record with their results, also those that are kept elsewhere together."""
        if execution.steps_reference is None:
            return execution.steps
        results = json.loads(self._blobs.get(execution.steps_reference))
        return tuple(
            step.model_copy(update={"result": results.get(str(step.number), step.result)}) for step in execution.steps
        )

    def _with_steps(self, execution: Execution, entries: Sequence[JournalEntry]) -> Execution:
        steps = tuple(entry.folded() for entry in entries)
        results = {str(step.number): step.result for step in steps if step.result is not None}
        content = json.dumps(results, separators=(",", ":")).encode()
        if len(content) <= MAX_FOLDED:
            return execution.model_copy(update={"steps": steps})
        attempt = len(execution.attempts)
        reference = f"{execution.task_id}/{execution.id}/steps-{attempt}"
        self._blobs.put(reference, content)
        bare = tuple(step.model_copy(update={"result": None}) for step in steps)
        return execution.model_copy(update={"steps": bare, "steps_reference": reference})


def _ended(stored: Stored, step: Step) -> Iterator[Run]:
    recorded = {each.id for each in step.executions if each.status.is_final}
    for run in stored.task.runs:
        if run.execution_id in recorded and step.task.run(run.execution_id) is None:
            yield run
