"""Callbacks of executions that end without a report of their attempt.

By an expired lease, because it is too late, because another run was in the way, or because its task was
cancelled: such an execution has no result, and only its callback is created. `Deliveries` creates the one
that carries a result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.documents.delivery_channels import COMPLETION
from cloudsched.engine.state.options import Option
from cloudsched.features.deliveries.option import make_deliveries, write_new

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.commit import Commit
    from cloudsched.engine.engine_context import EngineContext


class Callbacks(Option):
    """Creates the callbacks of the executions that a commit ends, besides those that it creates already."""

    _engine: EngineContext

    def before_record(self, commit: Commit, _before: Task) -> Commit:
        """Return the commit with the callbacks.

        Those that exist are left alone. Nothing is read, unless a task with a callback has an execution
        that ends without a report: then one document for each.
        """
        if commit.task.deleted_at is not None:
            return commit
        deliveries = [each.task.delivery for each in commit.others]
        told = {each.execution_id for each in deliveries if each is not None and each.channel == COMPLETION}
        final = [each for each in commit.executions if each.status.is_final and not each.is_left_out]
        now = self._engine.clock.now()
        make = make_deliveries(self._engine).make_callback
        planned = [make(commit.task, each, now) for each in final if each.id not in told]
        return commit.having(others=(*commit.others, *write_new(self._engine.store, planned)))
