"""Note when the sweep ran last, at most once a minute, so that people see whether it runs."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar, Final

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.document import Instant  # noqa: TC001 - a field of the model
from cloudsched.domain.documents.record import Record
from cloudsched.errors import CloudschedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import Version
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.tasks.sweeper import Sweep


SWEEP_NOTE_ID: Final = "last"


class SweepNote(Record):
    """The last sweep (``sweeps/last``), or that of a shard which takes several parts (``sweeps/shard-3``).

    Its `updated_at` is when it, or its last part, ended.
    """

    collection: ClassVar[str] = "sweeps"
    is_listed_by_owner: ClassVar[bool] = False

    started_at: Instant
    examined: int = 0
    """Tasks that were overdue."""
    dispatched: int = 0
    """Dispatches that it sent again."""
    unsent: int = 0
    """Tasks whose dispatches the queue did not accept."""
    failed: int = 0
    """Tasks that could not be repaired."""
    is_continuing: bool = False
    """Whether another part of it follows, in a sweep of one shard (``sweeps/shard-3``)."""


log = logging.getLogger(__name__)

INTERVAL: Final = timedelta(seconds=50)
"""How often a note is written at most: a sweep comes every minute, and not to the second."""


class SweepNotes:
    """Notes sweeps: one write a minute, and one read for a process's first one."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._version: Version | None = None
        self._noted_at: datetime | None = None

    def run(self, sweep: Callable[[], Sweep]) -> Sweep:
        """Sweep, and note that; return what the sweep found."""
        started_at = self._clock.now()
        found = sweep()
        self.note(started_at, found)
        return found

    def note(self, started_at: datetime, sweep: Sweep) -> None:
        """Note a sweep that has ended. A failure is logged, and never makes a sweep fail."""
        now = self._clock.now()
        if self._noted_at is not None and self._noted_at <= now < self._noted_at + INTERVAL:
            return
        try:
            self._version = self._write(started_at, now, sweep)
        except CloudschedError as error:  # of several sweeps at a time, one is noted
            self._version = None
            log.debug("sweep not noted: %s", error, extra={"action": "sweep_not_noted"})
        self._noted_at = now

    def load(self) -> SweepNote | None:
        """Return the last note, if there is one. Reads one document."""
        stored = self._store.records.load(SweepNote, SWEEP_NOTE_ID)
        return None if stored is None else stored.record

    def _write(self, started_at: datetime, now: datetime, sweep: Sweep) -> Version:
        if self._version is None:
            stored = self._store.records.load(SweepNote, SWEEP_NOTE_ID)
            self._version = None if stored is None else stored.version
        note = SweepNote(
            id=SWEEP_NOTE_ID,
            owner=SYSTEM_OWNER,
            created_at=now,
            updated_at=now,
            started_at=started_at,
            examined=sweep.examined,
            dispatched=sweep.dispatched,
            unsent=sweep.unsent,
            failed=sweep.failed,
        )
        return self._store.records.write(note, self._version)
