"""What limits the use of owners: a feature derives it, and names it in its row of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.documents.usage import Amounts

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.domain.documents.authority import Requesters
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.store import Store


NOTHING = Amounts()


class Looks:
    """Says when a simulation has to enforce a limit, so that it need not look every few minutes of a year."""

    def find_next(self, now: datetime) -> datetime | None:  # noqa: ARG002 - for those that derive it
        """Return the instant of the next look. None if it could find nothing."""
        return None

    def look(self, now: datetime) -> None:
        """Enforce the limit. Failures are left to the next look."""


class UsageLimit:
    """Says whether owners may use more. This one limits nothing."""

    def prepare(self, task: Task, now: datetime, after: Task | None = None) -> Task:  # noqa: ARG002 - the same
        """Return a new or revived task that asks before it starts, if its owner's use is limited.

        `after` is the task that calls it, or that it follows.
        """
        return task

    def settle(self, before: Task, task: Task, author: Requesters | None) -> Task:  # noqa: ARG002 - the same
        """Return an edited task with the limits that its author may set. Raises InvalidInput."""
        return task

    def find_refusal(self, owner: str) -> str | None:  # noqa: ARG002 - the same
        """Return why an owner may use no more now, None if they may."""
        return None

    def find_refusal_of(self, task: Task) -> str | None:  # noqa: ARG002 - the same
        """Return why a task may use no more now, None if it may."""
        return None

    def find_excess(self, task: Task, running: Amounts) -> str | None:  # noqa: ARG002 - the same
        """Return why a run may use no more, of what was read when it was claimed, or None. Reads nothing.

        `running` is what the run has used since.
        """
        return None

    def note_use(self, owner: str) -> None:
        """Note what an owner has used, before and after the sheets with it are deleted."""

    def enforce(self, now: datetime) -> None:
        """Pause and resume what the limit says.

        It is called after each sweep, and does that every few minutes.
        """

    def make_looks(self, store: Store) -> Looks:  # noqa: ARG002 - the same
        """Return when a simulation on a store has to enforce it."""
        return Looks()
