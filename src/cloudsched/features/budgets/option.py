"""The budget of a task's owner: nothing starts while it is used up."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from cloudsched.domain.transitions.claim import DeliveryResult, Hop
from cloudsched.domain.transitions.commit import Commit, Effects
from cloudsched.engine.state.options import Option
from cloudsched.errors import NotAllowed

if TYPE_CHECKING:
    from cloudsched.domain.transitions.wakeups import Dispatch
    from cloudsched.engine.engine_context import EngineContext

RETRY_DELAY = timedelta(minutes=5)
"""The wait of a start whose owner's budget is used up, if its task cannot be paused now."""


class OwnerBudget(Option):
    """Pauses a task in place of a start. What is due is kept, and runs when its owner has a budget again."""

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
        from cloudsched.features.budgets.holds import hold  # noqa: PLC0415 - few starts need it

        try:
            paused = hold(task, now, refusal)
        except NotAllowed as error:  # the sweep has to make room first
            return Hop(now + RETRY_DELAY, str(error))
        why = "its owner's budget is used up"
        spent = Effects(reason=why, reads=effects.dispatches or effects.reads, dispatches=effects.dispatches)
        return paused.having(base=claim.base, effects=spent)
