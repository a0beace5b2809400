"""Tell the owner of a task that a run has failed, or that nothing runs, in the commit that makes it so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.documents.policy import TellFailures
from cloudsched.domain.transitions.notices import (
    InboxMessage,
    describe_failure,
    find_untold,
    has_inbox,
    make_messages,
)
from cloudsched.engine.state.options import Option
from cloudsched.engine.state.quotas import RUN_CREATIONS
from cloudsched.features.deliveries.option import make_deliveries, write_new

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.commit import Commit
    from cloudsched.engine.engine_context import EngineContext


class FailureNotices(Option):
    """Adds the messages about the failures of a commit: to the inbox, and by each channel of the task."""

    _engine: EngineContext

    def __init__(self, engine: EngineContext) -> None:
        super().__init__(engine)
        self._runaways: dict[str, tuple[str, str]] = {}
        """By owner, the hour and the execution that told them of tasks that create tasks without end."""

    def before_failure(self, commit: Commit, before: Task) -> Commit:
        """Return the commit with the messages. Only a failure that is told costs reads, one for each channel.

        An execution that is run again, and fails again, is not sent twice.
        """
        task = commit.task
        now = self._engine.clock.now()
        untold = find_untold(before, task, commit.executions)
        if not untold:
            return commit
        error = untold[0].error
        if error is not None and RUN_CREATIONS in error.message:
            return self._tell_of_runaway(commit, untold[0].id, now)

        maker = make_deliveries(self._engine)
        deliveries = [delivery for each in untold for delivery in maker.make_failures(task, each, now)]
        tells_error = maker.tells_error(task)
        messages = [
            message
            for each in untold
            if has_inbox(task)
            for message in make_messages(
                task, each.id, [describe_failure(task, each, tells_error=tells_error)], now, first=0
            )
        ]
        return commit.having(
            task=task.model_copy(update={"failure_told_at": task.failure_told_at or now}),
            messages=(*commit.messages, *messages),
            others=(*commit.others, *write_new(self._engine.store, deliveries)),
        )

    def _tell_of_runaway(self, commit: Commit, execution_id: str, now: datetime) -> Commit:
        """Tell an owner once an hour that tasks create too many. Hundreds of these may fail."""
        task = commit.task
        hour = f"{now:%Y%m%dT%H}"
        told = self._runaways.get(task.owner, ("", ""))
        if told[0] == hour and told[1] != execution_id:
            return commit
        self._runaways[task.owner] = hour, execution_id
        title = task.delivery_title or task.title
        body = f"{title!r}, and perhaps others, create too many tasks. They are stopped, and fail."
        body = f"{body}\n\nYou are told of this once an hour."
        notice = InboxMessage("Too many tasks", body)
        return add_notice(self._engine, commit, f"runaway-{hour}", notice, [task], now)


def add_notice(
    engine: EngineContext, commit: Commit, about: str, notice: InboxMessage, tasks: Iterable[Task], now: datetime
) -> Commit:
    """Return the commit with a message: to the inbox, and by the channels by which these tasks tell failures.

    `about` is what an owner is told of once, whichever task tells it: there is no second delivery about the
    same, and the inbox has one message.
    """
    task = commit.task
    telling = [each for each in tasks if each.tell_failures is not TellFailures.NEVER]
    senders = {channel: each for each in reversed(telling) for channel in each.delivery_channels}
    make = make_deliveries(engine).make_notice
    sent = [(channel, each) for channel, each in senders.items() if channel.traits.is_sent]
    planned = [make(each, about, channel, notice, now) for channel, each in sent]
    messages = make_messages(task, task.last_execution_id or about, [notice], now) if has_inbox(task) else ()
    return commit.having(
        messages=(*commit.messages, *(each.model_copy(update={"id": about}) for each in messages)),
        others=(*commit.others, *write_new(engine.store, planned)),
    )
