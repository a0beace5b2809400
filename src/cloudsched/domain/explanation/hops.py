"""Say which dispatches get to their instants in hops.

A hop writes nothing, since that would cost as much as an occurrence. So those that were are not known, and of those to
come only how many there may be: the last one was sent at most one horizon ago.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.explanation.findings import Finding, Reason
from cloudsched.domain.explanation.open_runs import say_instant
from cloudsched.domain.transitions.planning import HORIZON, executor_wakeups

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from cloudsched.domain.explanation.findings import Evidence


def explain_hops(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each wake-up that lies further ahead than the queue takes."""
    task = evidence.task
    for wake in executor_wakeups(task):
        if wake.due_at - evidence.now > HORIZON:
            fewest = count_hops(evidence.now, wake.due_at)
            sentence = (
                f"The queue takes nothing more than 30 days ahead, so {fewest:,} or {fewest + 1:,} hops carry the "
                f"dispatch that is due {say_instant(task, wake.due_at)}. A hop runs nothing and leaves no record."
            )
            execution_id = wake.execution_id if task.find_run(wake.execution_id) else None
            yield Finding(reason=Reason.BEYOND_HORIZON, sentence=sentence, at=wake.due_at, execution_id=execution_id)


def count_hops(sent_at: datetime, due_at: datetime) -> int:
    """Return how many hops a dispatch takes that is sent at an instant for a later one."""
    return max(0, -((sent_at - due_at) // HORIZON) - 1)
