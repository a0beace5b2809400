"""Stores a durable execution's journal: as entries while it is open, then as `steps` of its record.

The steps of a finished execution are stored as a blob if they exceed the limit of a document or commit. So
are the entries that a manual retry continues from. Callers of this module see no difference.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from pydantic import ConfigDict, TypeAdapter

from cloudsched.domain.documents.document import STORED_CONTEXT
from cloudsched.domain.documents.journal import (
    MAX_COMMIT_ENTRIES,
    MAX_INLINE_STEPS_BYTES,
    MAX_RECORD_BYTES,
    JournalEntry,
    StepRecord,
)
from cloudsched.domain.documents.json_limits import stored_size
from cloudsched.engine.durable.results import put_blob_with_retry, with_call_outcomes
from cloudsched.errors import NotFound, Unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.documents.execution import Execution, Run
    from cloudsched.domain.transitions.commit import Commit
    from cloudsched.engine.ports.blobs import Blobs
    from cloudsched.engine.ports.store import Store

E = TypeVar("E")

_STEPS = TypeAdapter(tuple[StepRecord, ...], config=ConfigDict(defer_build=True))
_ENTRIES = TypeAdapter(tuple[JournalEntry, ...], config=ConfigDict(defer_build=True))


class JournalArchive:
    """Loads journals, and moves them to the record or to the blob store."""

    def __init__(self, store: Store, blobs: Blobs) -> None:
        self._store = store
        self._blobs = blobs

    def load(self, task_id: str, run: Run) -> Sequence[JournalEntry]:
        """Return the stored journal of an open run, ordered by entry number. Entries may be missing."""
        entries = self._store.load_journal(task_id, run.execution_id)
        if run.restored_reference is None:
            return entries
        merged = {entry.number: entry for entry in (*self._read(_ENTRIES, run.restored_reference), *entries)}
        return [merged[number] for number in sorted(merged)]

    def archive(self, execution: Execution, entries: Sequence[JournalEntry]) -> Execution:
        """Return the record of a finished execution with its journal as `steps`, or a reference to their blob.

        It includes the outcomes of calls that the handler did not wait for, as far as they can be read and stored now.
        Raises Unavailable.
        """
        completed = with_call_outcomes(self._store, self._blobs, execution, entries)
        try:
            return self._archive(execution, completed)
        except Unavailable:
            if completed == list(entries):
                raise
            return self._archive(execution, entries)

    def _archive(self, execution: Execution, entries: Sequence[JournalEntry]) -> Execution:
        steps = tuple(entry.to_record() for entry in entries)
        with_steps = execution.model_copy(update={"steps": steps})
        stored = with_steps.to_stored()
        if stored_size(stored["steps"]) <= MAX_INLINE_STEPS_BYTES and stored_size(stored) <= MAX_RECORD_BYTES:
            return with_steps
        reference = f"{execution.task_id}/{execution.id}/steps-{execution.attempt_count}-{secrets.token_hex(4)}"
        put_blob_with_retry(self._blobs, reference, _STEPS.dump_json(steps, by_alias=True, exclude_none=True))
        return execution.model_copy(update={"steps_reference": reference})

    def load_execution(self, execution: Execution) -> Execution:
        """Return a record with its steps, read from the blob store if need be.

        Without the blob return it unchanged.
        """
        if execution.steps_reference is None:
            return execution
        steps = self._read(_STEPS, execution.steps_reference)
        if steps:
            return execution.model_copy(update={"steps": steps, "steps_reference": None})
        return execution

    def restore_for_retry(self, transition: Commit, execution_id: str) -> Commit:
        """Return a manual retry's transition in a form that fits into one commit, with many entries in a blob.

        The blob is written before the commit. If the commit fails, nothing refers to the blob.
        """
        run = transition.task.find_run(execution_id)
        size = sum(stored_size(entry.to_stored()) for entry in transition.entries)
        is_small = size <= MAX_INLINE_STEPS_BYTES and len(transition.entries) <= MAX_COMMIT_ENTRIES
        if run is None or is_small:
            return transition
        reference = f"{transition.task.id}/{execution_id}/restored-{run.attempt}-{secrets.token_hex(4)}"
        content = _ENTRIES.dump_json(tuple(transition.entries), by_alias=True, exclude_none=True)
        put_blob_with_retry(self._blobs, reference, content)
        runs = transition.task.runs_with(run.model_copy(update={"restored_reference": reference}))
        return replace(transition, task=transition.task.model_copy(update={"runs": runs}), entries=())

    def _read(self, kind: TypeAdapter[tuple[E, ...]], reference: str) -> tuple[E, ...]:
        try:
            return kind.validate_json(self._blobs.get(reference), context=STORED_CONTEXT)
        except NotFound:
            return ()
