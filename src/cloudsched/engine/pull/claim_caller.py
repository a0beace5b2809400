"""On whose authority runs are claimed, and claims renewed, released and ended: made once, where a worker asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.domain.documents.task import Task


@dataclass(frozen=True, slots=True)
class ClaimCaller:
    """Who claims runs, and renews, releases and ends claims; it has no default: trusted code says `THIS_PROCESS`."""

    subject: str | None
    """Who calls through the API; None for code in this process."""
    is_user: bool
    """Whether a user claims, who gets only what a user asked for: they could forge the results of the rest."""
    authorize: Callable[[Task, str | None], None]
    """Called with each task before it is claimed or its claim is changed, and with the queue that it is claimed from;
    if there is no such claim, with the task's own queue. What it raises is raised."""
    may_report: Callable[[Task], bool]
    """Whether it may report on a run that it holds, by its task as the run began it."""
    can_end_others: bool
    """Whether it may end claims that other API callers made, if it has their tokens."""


THIS_PROCESS: Final = ClaimCaller(
    None, is_user=False, authorize=lambda *_: None, may_report=lambda _: True, can_end_others=False
)
"""A worker at the store, in this process: it may claim everything, and do everything with what it has claimed."""
