"""The budget of a task's owner, and its own limit: nothing starts while one of them is used up."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from cloudsched.domain.transitions.claim import DeliveryResult, Hop
from cloudsched.domain.transitions.commit import Commit, Effects
from cloudsched.engine.state.options import Option
from cloudsched.engine.state.quotas import is_revival
from cloudsched.errors import NotAllowed
from cloudsched.features.budgets.holds import HAS_LIMIT, find_excess, hold, hold_by_limit, is_held_by_limit, release

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.wakeups import Dispatch
    from cloudsched.engine.engine_context import EngineContext

RETRY_DELAY = timedelta(minutes=5)
"""The wait of a start for which nothing is left, if its task cannot be paused now."""


class UseLimits(Option):
    """Pauses a task in place of a start. What is due is kept, and runs when something is left again.

    A task whose own limit is reached is paused by the commit that counts what it has used, and goes on by
    the one that raises the limit.
    """

    _engine: EngineContext

    def before_claim(
        self,
        claim: Commit,
        _dispatch: Dispatch | None,
        now: datetime,
    ) -> Commit | DeliveryResult | Hop:
        """Return the pause if the run may not start."""
        assert claim.base is not None  # noqa: S101 - a claim is of a task that was read
        task = claim.base.task
        effects = claim.effects
        if effects.run is None or not (refusal := self._engine.usage_limit().find_refusal_of(task)):
            return claim

        is_own = find_excess(task, now) is not None
        try:
            paused = hold_by_limit(task, now) if is_own else hold(task, now, refusal)
        except NotAllowed as error:  # the sweep has to make room first
            return Hop(now + RETRY_DELAY, str(error))
        why = "its limit is used up" if is_own else "its owner's budget is used up"
        spent = Effects(reason=why, reads=effects.dispatches or effects.reads, dispatches=effects.dispatches)
        return paused.having(base=claim.base, effects=spent)

    def before_commit(self, commit: Commit, before: Task) -> Commit:
        """Return the commit that pauses or resumes its task, as the task's own limit says, and tells its owner.

        What a pause would have to record is left to the next start, and so is a task that starts again.
        """
        task = commit.task
        if task.deleted_at is not None:
            return commit

        now = self._engine.clock.now()
        settled = Commit(task)
        if is_held_by_limit(task) and find_excess(task, now) is None:
            settled = release(task, now, HAS_LIMIT)
        elif commit.effects.run is None and not is_revival(before, task):
            with suppress(NotAllowed):  # the sweep has to make room first
                settled = hold_by_limit(task, now)
        if not settled.executions:
            commit = commit.having(task=settled.task)
        if is_held_by_limit(commit.task) and not is_held_by_limit(before):
            from cloudsched.features.budgets.used_up_notices import tell_of_limit  # noqa: PLC0415 - once a month

            commit = tell_of_limit(self._engine, commit, now)
        return commit
