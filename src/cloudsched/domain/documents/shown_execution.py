"""An execution as the API shows it: the stored record, and what may be done with it."""

from __future__ import annotations

from cloudsched.domain.documents import execution


class Execution(execution.Execution):
    """The record of one occurrence's run."""

    allowed_verbs: tuple[str, ...] | None = None
    """What the caller may do with it now: of ``retry`` and ``sendEvent``. Lists across tasks leave it out where only
    the task would tell: of what is over, has not succeeded, and whose task the caller might change. No list looks for
    steps that are stored apart, so it names ``retry`` though these may be gone; a retry is refused then."""
