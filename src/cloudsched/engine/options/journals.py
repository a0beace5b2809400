"""Journals: a journal is archived when its execution finishes, by whatever means.

Its entries become the record's `steps`, and the commit that writes the record removes them. So no journal
outlives its execution: neither when its handler ends, nor when its lease expires or its owner cancels it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.transitions.commit import ArchivedJournal, Commit
from cloudsched.engine.state.options import Option

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.engine_context import EngineContext


class Journals(Option):
    """Moves the journals of the runs that end into their records. Large ones are stored as blobs."""

    _engine: EngineContext

    def before_record(self, commit: Commit, before: Task) -> Commit:
        """Return the commit with the journals of the runs that end as a part of their records."""
        known = commit.effects.journals
        final = {each.id for each in commit.executions if each.status.is_final}
        if not final or not (commit.entries or any(run.steps or known.get(run.execution_id) for run in before.runs)):
            return commit

        records = {each.id: each for each in commit.executions}
        ids = final.difference(run.execution_id for run in commit.task.runs)
        ended = [run for run in before.runs if run.execution_id in ids]
        archived = list[ArchivedJournal]()
        for run in ended:
            journal = known.get(run.execution_id)
            if journal is None:
                journal = self._engine.archive().load(commit.task.id, run) if run.steps else ()
            if journal:
                records[run.execution_id] = self._engine.archive().archive(records[run.execution_id], journal)
            if run.steps:
                archived.append(ArchivedJournal(run.execution_id, max(run.steps, len(journal))))
        ended_ids = {run.execution_id for run in ended}
        entries = [each for each in commit.entries if each.execution_id not in ended_ids]
        return commit.having(executions=tuple(records.values()), entries=entries, archived=archived)
