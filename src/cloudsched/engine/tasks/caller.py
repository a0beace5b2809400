"""Who asks the scheduler for something: named in each task's history, and asked about each task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.authority import TRUSTED_CODE

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.domain.documents.authority import EventSender
    from cloudsched.domain.documents.task import Task


@dataclass(frozen=True, slots=True)
class Caller:
    """One request's caller; the same scheduler serves all of them."""

    authorize: Callable[[Task], None] = lambda _: None
    """Called with each task before it is returned or changed. If it raises, the task is not changed. It sees exactly
    the state that a change replaces, even if others change the task at the same time."""
    sender: EventSender = TRUSTED_CODE
    """Whom the history of a changed task names."""


TRUSTED_CALLER: Final = Caller()
"""The app's own code: it may do everything."""
