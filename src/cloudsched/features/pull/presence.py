"""The workers that listen, each noted at most once a minute, and which of them would claim work."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, ClassVar, Final

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.document import Instant  # noqa: TC001 - a field of the model
from cloudsched.domain.documents.record import Record
from cloudsched.domain.own_logger import own_logger
from cloudsched.errors import CloudschedError
from cloudsched.features.pull.fields import MAX_SKILLS, QueueName, Skill  # noqa: F401, TC001 - fields of the model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store
    from cloudsched.features.pull.work_queue import ClaimCaller, WorkerFilter


class WorkerPresence(Record):
    """One worker at one queue, ``workers/{id}``.

    Its owner is the only one whose tasks it runs, or else ``system``.
    """

    collection: ClassVar[str] = "workers"

    worker: str
    """Its name."""
    queue: QueueName
    skills: tuple[Skill, ...] = ()
    serves: str | None = None
    """The only owner whose tasks it runs. None if it runs those of all."""
    claimed_by: str | None = None
    """The API caller that claims for it. None for a worker at the store."""
    is_user: bool | None = None
    """True if that is a user, who gets only what a user asked for."""
    seen_at: Instant
    """The time at which it last asked for work, to the minute."""


log: Final = own_logger(__name__)

INTERVAL = timedelta(minutes=1)
"""The shortest time between two notes of a worker."""
LISTENING = 3 * INTERVAL
"""A worker that has not asked for so long does not listen any more."""
KEPT = timedelta(days=1)
"""The time that a note is kept."""
MAX_NAMES_OF_USER = 16
"""The number of workers of one user that are told apart at a queue: each is a document that anybody could make."""
_MAX_REMEMBERED = 10_000
MAX_WORKERS = 500


class PresenceNotes:
    """Notes which workers ask for work."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._seen: dict[str, datetime] = {}

    def note(self, worker_filter: WorkerFilter, by: ClaimCaller) -> None:
        """Note that a worker asks for work, unless it was noted in the last minute, by whichever process.

        Costs one read and one write a minute. A failure is logged, and never keeps a worker from work.
        """
        key = _make_key(worker_filter, by)
        now = self._clock.now()
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
    """Return the id of a worker's note. The names that users give are sorted into few ids.

    Notes of servers' workers come first by id: however many queues a user asks, a list that is cut has them.
    """
    name = worker_filter.worker
    if by.is_user:
        name = str(
            int(hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest(), 16) % MAX_NAMES_OF_USER,
        )
    parts = (by.subject or "", worker_filter.owner or "", worker_filter.queue, name)
    digest = hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{'user' if by.is_user else 'server'}-{digest}"


def list_workers(store: Store, owner: str | None) -> Sequence[WorkerPresence]:
    """Return the workers that were there in the last day: of all, or those of an owner. One read each."""
    if owner is None:
        return store.records.list_all(WorkerPresence, limit=MAX_WORKERS)
    return store.records.list(WorkerPresence, owner, limit=MAX_WORKERS)


def is_listening(presence: WorkerPresence, now: datetime) -> bool:
    """Return whether a worker has asked for work in the last minutes."""
    return presence.seen_at > now - LISTENING


def may_serve(presence: WorkerPresence, queue: str, skill: str, owner: str | None) -> bool:
    """Return whether a worker would claim work of a queue: of an owner, or of anybody if that is None."""
    if presence.queue != queue or (skill and skill not in presence.skills):
        return False
    return owner is None or presence.serves in {None, owner}
