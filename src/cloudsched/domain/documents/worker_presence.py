"""Which workers listen: each leaves a note now and then, and the note goes when it leaves no other."""

from __future__ import annotations

from typing import ClassVar

from cloudsched.domain.documents.document import Instant  # noqa: TC001 - a field of the model
from cloudsched.domain.documents.pull import MAX_SKILLS, QueueName, Skill  # noqa: F401, TC001 - fields of the model
from cloudsched.domain.documents.record import Record


class WorkerPresence(Record):
    """One worker at one queue. ``workers/{id}``; its owner is the only one whose tasks it runs, or else ``system``."""

    collection: ClassVar[str] = "workers"

    worker: str
    """Its name."""
    queue: QueueName
    skills: tuple[Skill, ...] = ()
    serves: str | None = None
    """The only owner whose tasks it runs; None if it runs those of all."""
    claimed_by: str | None = None
    """The API caller that claims for it; None for a worker at the store."""
    is_user: bool | None = None
    """Whether that is a user, who gets only what a user asked for."""
    seen_at: Instant
    """When it last asked for work, to the minute."""
