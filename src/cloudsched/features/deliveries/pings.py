"""Pings: a URL of the task's owner is called when an execution begins, and when it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.engine.state.options import Option
from cloudsched.features.deliveries.fields import PingEvent
from cloudsched.features.deliveries.maker import find_ping_event
from cloudsched.features.deliveries.option import make_deliveries, write_new

if TYPE_CHECKING:
    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.commit import Commit
    from cloudsched.engine.engine_context import EngineContext


class Pings(Option):
    """Creates the pings of the executions that begin and end with a commit, each once."""

    _engine: EngineContext

    def before_commit(self, commit: Commit, before: Task) -> Commit:
        """Return the commit with the pings. Only a task with a ping costs reads, one for each."""
        after = commit.task
        if after.deleted_at is not None:
            return commit
        final = [each for each in commit.executions if each.status.is_final]
        ended = [(each.id, find_ping_event(each.status), each.defined_by) for each in final]
        begun = [each for each in after.runs if _begins(before, each)]
        events = [*ended, *((each.execution_id, PingEvent.START, after.find_author(each)) for each in begun)]
        make = make_deliveries(self._engine).make_ping
        now = self._engine.clock.now()
        pings = [make(after, key, event, now, author) for key, event, author in events if event is not None]
        planned = [each for each in pings if each is not None]
        return commit.having(others=(*commit.others, *write_new(self._engine.store, planned)))


def _begins(before: Task, run: Run) -> bool:
    if run.lease is None or run.attempt > 1 or run.suspension_count:
        return False
    known = before.find_run(run.execution_id)
    return known is None or known.lease is None
