"""Cost accounting: each commit counts in its task what it reads, writes and dispatches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.documents.usage import add_usage
from cloudsched.engine.state.options import Option

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.commit import Commit


class Usage(Option):
    """Counts the costs of a commit in its task. New tasks count for themselves.

    A claim by a dispatch is counted by the commit that ends its lease, so that a claim alone need not
    write the sums. It counts as one read, also if the process knew the task and needed none.
    """

    def before_commit(self, commit: Commit, before: Task) -> Commit:
        """Return the commit with its costs."""
        task = commit.task
        writes, deletes = commit.count_writes(new_tasks=False)
        claims = ended = 0
        for run in before.runs:
            claims += run.lease is not None and run.lease.worker is None
        for run in task.runs:
            claims -= run.lease is not None and run.lease.worker is None
        for journal in commit.archived:
            deletes += journal.size
        for record in commit.executions:
            ended += record.status.is_final and record.started_at is not None
        used: dict[str, float] = {
            "reads": commit.effects.reads + (commit.linked is not None) + claims,
            "writes": writes + claims,
            "deletes": deletes,
            "dispatches": commit.effects.dispatches + claims,
        }
        if ended:
            used["executions"] = ended
            used["estimated_queries"] = ended * before.query_per_execution
            used["estimated_tokens"] = ended * before.tokens_per_execution
        if not any(used.values()):
            return commit
        counted = add_usage(task.usage, task.handler, task.updated_at, used)
        return commit.having(task=task.model_copy(update={"usage": counted}))
