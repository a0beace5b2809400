"""Note which workers listen, at most once a minute for each, so that people see whether anybody does."""

from __future__ import annotations

import hashlib
import logging
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.document import Instant  # noqa: TC001 - a field of the model
from cloudsched.domain.documents.pull import MAX_SKILLS, QueueName, Skill  # noqa: F401, TC001 - fields of the model
from cloudsched.domain.documents.record import Record
from cloudsched.errors import CloudschedError

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.pull.claim_caller import ClaimCaller
    from cloudsched.engine.pull.offers import WorkerFilter


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


log = logging.getLogger(__name__)

INTERVAL = timedelta(minutes=1)
"""How often a worker is noted at most."""
LISTENING = 3 * INTERVAL
"""A worker that has not asked for so long does not listen any more."""
KEPT = timedelta(days=1)
"""How long a note is kept."""
MAX_NAMES_OF_USER = 16
"""How many workers of one user are told apart at a queue: each is a document that anybody could make."""
_MAX_REMEMBERED = 10_000


class PresenceNotes:
    """Notes which workers ask for work."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._seen: dict[str, datetime] = {}

    def note(self, worker_filter: WorkerFilter, by: ClaimCaller) -> None:
        """Note that a worker asks for work, unless it was noted in the last minute, by whichever process.

        One read and one write a minute; between them nothing. A failure is logged, and never keeps a worker from work.
        """
        key, now = _make_key(worker_filter, by), self._clock.now()
        if (seen := self._seen.get(key)) is not None and now - INTERVAL < seen <= now:
            return
        if len(self._seen) >= _MAX_REMEMBERED:
            self._seen.clear()
        self._seen[key] = now
        try:
            self._write(key, worker_filter, by, now)
        except CloudschedError as error:
            log.debug("worker not noted: %s", error, extra={"action": "presence_failed"})

    def _write(self, key: str, worker_filter: WorkerFilter, by: ClaimCaller, now: datetime) -> None:
        stored = self._store.records.load(WorkerPresence, key)
        if stored is not None and now - INTERVAL < stored.record.seen_at <= now:
            self._seen[key] = stored.record.seen_at
            return
        presence = WorkerPresence(
            id=key,
            owner=worker_filter.owner or SYSTEM_OWNER,
            created_at=now if stored is None else stored.record.created_at,
            updated_at=now,
            expire_at=now + KEPT,
            worker=worker_filter.worker,
            queue=worker_filter.queue,
            skills=tuple(sorted(set(worker_filter.skills))),
            serves=worker_filter.owner,
            claimed_by=by.subject,
            is_user=by.is_user or None,
            seen_at=now,
        )
        self._store.records.write(presence, None if stored is None else stored.version)


def _make_key(worker_filter: WorkerFilter, by: ClaimCaller) -> str:
    """Return the id of a worker's note. The names that users give are sorted into few ids."""
    name = worker_filter.worker
    if by.is_user:
        name = str(int(hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest(), 16) % MAX_NAMES_OF_USER)
    parts = (by.subject or "", worker_filter.owner or "", worker_filter.queue, name)
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
