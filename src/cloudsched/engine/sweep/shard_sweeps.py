"""Sweep the shards of a store in parallel: a job runs every minute and sends a dispatch for each of them.

An executor that gets one sweeps a part of that shard, and sends a dispatch for the next part, until nothing
is overdue. The same part may be swept twice, at the same time or again, and nothing is lost if its process
dies: the queue delivers it again, and if the queue has lost it, the job begins anew. While a sweep of several
parts is under way, as a note of its shard says, the job's next ones leave the shard alone. Another note,
written at most once a minute, says when the sweep ran last, so that people see whether it runs.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.document import Instant, WireModel
from cloudsched.domain.documents.policy import Priority
from cloudsched.domain.documents.record import Record
from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.transitions.claim import DeliveryAction, DeliveryResult
from cloudsched.engine.ports.records import record_of, version_of
from cloudsched.engine.ports.sweep import choose_shard
from cloudsched.engine.sweep.due_work import ExecutorState
from cloudsched.engine.sweep.sweeper import Sweep, Sweeper, map_in_threads
from cloudsched.errors import CloudschedError, InvalidInput, QueueUnavailable, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.domain.transitions.commit import Version
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.signed_dispatches import SigningKeys

log: Final = own_logger(__name__)

PART_SIZE: Final = 2_000
"""The number of overdue tasks that make about one part."""
FAN_OUT_THREADS: Final = 16
"""The number of shards' dispatches that are created at a time: 512 take less than a second."""
MAX_REFUSED: Final = 16
"""The number of dispatches that the queue did not accept after which a call sends no more: each may take
seconds."""
MAX_PAUSE: Final = timedelta(minutes=10)
"""The time after which a sweep that says that it continues is taken for lost: longer than any part takes."""


@dataclass(frozen=True, slots=True)
class SweepPart:
    """A part of the sweep of one shard."""

    shard: int
    started_at: datetime
    """The minute in which the sweep began: the same for all of that minute's sweeps, and so are their
    dispatches."""
    number: int = 0
    after: str | None = None
    """The page token after which it begins."""

    @property
    def body(self) -> bytes:
        """The dispatch's body."""
        fields = {"shard": self.shard, "startedAt": self.started_at.isoformat(), "number": self.number}
        return json.dumps({"sweep": {**fields, "after": self.after}}, separators=(",", ":")).encode()

    @property
    def name(self) -> str:
        """The dispatch's name, which is the same for the same part."""
        identity = f"{self.shard} {self.started_at.isoformat()} {self.number}"
        return f"{hashlib.sha256(identity.encode()).hexdigest()[:32]}-sweep-{self.shard}"

    @classmethod
    def from_body(cls, body: bytes) -> Self:
        """Read a dispatch's body. Raises InvalidInput."""
        try:
            data: dict[str, Any] = json.loads(body)["sweep"]
            return cls(
                data["shard"],
                datetime.fromisoformat(data["startedAt"]),
                data["number"],
                data["after"],
            )
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise InvalidInput("(body)", f"is not a part of a sweep: {error}") from error


class ShardSweeps:
    """Sweeps a store: at once if it has one shard, else each shard by dispatches of its own."""

    def __init__(
        self,
        engine: EngineContext,
        keys: SigningKeys,
        make_sweeper: Callable[[int | None], Sweeper],
        *,
        threads: int = 1,
    ) -> None:
        self._engine = engine
        self._keys = keys
        self._make_sweeper = make_sweeper
        self._threads = threads
        self._sweepers: dict[int | None, Sweeper] = {}

    def sweep(self) -> Sweep:
        """Sweep everything, or have every shard swept. Those that the queue does not accept are swept here.

        A call that dies half way has begun some shards' sweeps. The same minute's next call sends the others,
        and the next minute's sends all. Each call begins with another shard, so that no shard is always among
        those left out. Raises StoreUnavailable.
        """
        count = self._engine.store.sweep.count_shards()
        if count == 1:
            return self._get_sweeper(None).sweep()
        result = Sweep()
        started_at = self._engine.clock.now().replace(second=0, microsecond=0)
        first = choose_shard(started_at.isoformat(), count)
        parts = [SweepPart((first + number) % count, started_at) for number in range(count)]
        refused: list[SweepPart] = []
        for _ in map_in_threads(lambda part: self._try_send(part, refused), parts, self._threads):
            pass
        for part in refused:
            result.add(self._get_sweeper(part.shard).sweep())
        return result

    def deliver(self, body: bytes, token: str) -> DeliveryResult:
        """Sweep the part of a shard that was dispatched, and dispatch the next one.

        After InvalidInput, do not deliver it again. After StoreUnavailable and QueueUnavailable, do.
        """
        self._keys.verify(body, token)
        part = SweepPart.from_body(body)
        if part.number == 0 and self._is_under_way(part):
            return DeliveryResult(DeliveryAction.DROPPED, f"another sweep of shard {part.shard} is under way")
        found, after = self._get_sweeper(part.shard).sweep_part(part.after, PART_SIZE)
        if after is not None:
            self._note(part, found, is_continuing=True)
            self._send(SweepPart(part.shard, part.started_at, part.number + 1, after))
        elif part.number:
            self._note(part, found, is_continuing=False)
        return DeliveryResult(DeliveryAction.SWEPT, f"shard {part.shard}: {found.examined} were overdue")

    def _get_sweeper(self, shard: int | None) -> Sweeper:
        return self._sweepers.setdefault(shard, self._make_sweeper(shard))

    def _send(self, part: SweepPart) -> None:
        self._engine.sender.send_body(part.name, part.body, self._engine.clock.now(), Priority.CRITICAL)

    def _try_send(self, part: SweepPart, refused: list[SweepPart]) -> None:
        try:
            if len(refused) < MAX_REFUSED:
                self._send(part)
                return
        except QueueUnavailable as error:
            log.warning("unsent: %s", error, extra={"action": "unsent", "shard": part.shard})
        refused.append(part)

    def _is_under_way(self, part: SweepPart) -> bool:
        stored = self._engine.store.records.load(SweepNote, f"shard-{part.shard}")
        if stored is None or not stored.record.is_continuing or stored.record.started_at == part.started_at:
            return False
        return abs(self._engine.clock.now() - stored.record.updated_at) < MAX_PAUSE

    def _note(self, part: SweepPart, found: Sweep, *, is_continuing: bool) -> None:
        records = self._engine.store.records
        note_id = f"shard-{part.shard}"
        stored = records.load(SweepNote, note_id)
        note = SweepNote.of(
            note_id,
            part.started_at,
            self._engine.clock.now(),
            found,
            is_continuing=is_continuing,
        )
        try:
            records.write(note, version_of(stored))
        except VersionConflict:  # of two sweeps at a time, either one's note does
            log.debug("sweep not noted", extra={"action": "sweep_not_noted"})


SWEEP_NOTE_ID: Final = "last"


_NOTHING: Final = ExecutorState()


class SweptVersion(WireModel):
    """A version that has swept."""

    version: str
    at: Instant
    """The first time."""


MAX_VERSIONS: Final = 20
"""The number of versions that are kept, the latest."""


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
    """True if another part of it follows, in a sweep of one shard (``sweeps/shard-3``)."""
    hanging: str = ""
    """How many handlers of the process that swept hang, which, and since when. Empty if none does."""
    is_busy: bool = False
    """True if all threads of that process were busy with handlers that had time left."""
    overdue_seconds: float = 0.0
    """The time in seconds that the oldest found work had been due. See `Sweep`."""
    clock_was: Instant | None = None
    """The latest instant that a clock has shown which swept."""
    deployments: tuple[SweptVersion, ...] = ()
    """The versions that have swept, the latest last. One of each name is kept: its first time."""

    @property
    def clock_fault(self) -> str:
        """What follows if a clock that swept was ahead and has come back, to stand behind its name. Else empty."""
        if self.clock_was is None or self.clock_was - self.updated_at <= FRESH:
            return ""
        return f"was ahead, at {self.clock_was:%Y-%m-%d %H:%M} UTC, and came back: what was due by then runs no more"

    @classmethod
    def of(
        cls,
        note_id: str,
        started_at: datetime,
        now: datetime,
        sweep: Sweep,
        state: ExecutorState = _NOTHING,
        *,
        is_continuing: bool = False,
    ) -> SweepNote:
        """Return the note of a sweep, or of its last part, that ends now."""
        return cls(
            id=note_id,
            owner=SYSTEM_OWNER,
            created_at=now,
            updated_at=now,
            started_at=started_at,
            examined=sweep.examined,
            dispatched=sweep.dispatched,
            unsent=sweep.unsent,
            failed=sweep.failed,
            is_continuing=is_continuing,
            hanging=state.hanging,
            is_busy=state.is_busy,
            overdue_seconds=sweep.overdue_seconds,
        )


INTERVAL: Final = timedelta(seconds=50)
"""The shortest interval between two notes: a sweep comes every minute, and not to the second."""


FRESH: Final = timedelta(minutes=2)
"""The time for which a note tells the state of the process that wrote it. There is one each minute."""


class SweepNotes:
    """Notes sweeps: one write a minute, and one read for a process's first one."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        own_state: Callable[[], ExecutorState] = ExecutorState,
        own_version: str = "",
    ) -> None:
        self._store = store
        self._own_version = own_version
        self._deployments: tuple[SweptVersion, ...] = ()
        self._clock = clock
        self._own_state = own_state
        self._version: Version | None = None
        self._noted_at: datetime | None = None
        self._clock_was: datetime | None = None

    def run(self, sweep: Callable[[], Sweep]) -> Sweep:
        """Sweep, and store a note of it. Return what the sweep found."""
        started_at = self._clock.now()
        found = sweep()
        self.note(started_at, found)
        return found

    def note(self, started_at: datetime, sweep: Sweep) -> None:
        """Note a sweep that has ended. A failure is logged, and never makes a sweep fail."""
        now = self._clock.now()
        if self._noted_at is not None and self._noted_at <= now < self._noted_at + INTERVAL:
            return
        records = self._store.records
        shown = {now, self._clock_was or now}
        try:
            if self._version is None:
                stored = records.load(SweepNote, SWEEP_NOTE_ID)
                if stored is not None:
                    shown |= {stored.record.updated_at, stored.record.clock_was or now}
                self._version = version_of(stored)
                self._deployments = self._add_own(() if stored is None else stored.record.deployments, started_at)
            note = SweepNote.of(SWEEP_NOTE_ID, started_at, now, sweep, self._own_state())
            self._clock_was = max(shown)
            note = note.model_copy(update={"deployments": self._deployments, "clock_was": self._clock_was})
            if note.clock_fault and (self._noted_at is None or self._noted_at > now):
                log.warning("the clock %s", note.clock_fault, extra={"action": "clock_came_back"})
            self._version = records.write(note, self._version)
        except CloudschedError as error:  # of several sweeps at a time, one is noted
            self._version = None
            log.debug("sweep not noted: %s", error, extra={"action": "sweep_not_noted"})
        self._noted_at = now

    def _add_own(self, known: tuple[SweptVersion, ...], at: datetime) -> tuple[SweptVersion, ...]:
        """Return the versions that have swept, this process's among them."""
        if not self._own_version or any(each.version == self._own_version for each in known):
            return known
        return (*known, SweptVersion(version=self._own_version, at=at))[-MAX_VERSIONS:]

    def find_state(self) -> ExecutorState:
        """Return the state of the process that sweeps, as it noted it last.

        Nothing is known from an old note.
        """
        note = self.load()
        if note is None or self._clock.now() - note.updated_at > FRESH:
            return ExecutorState()
        return ExecutorState(note.hanging, note.is_busy)

    def load(self) -> SweepNote | None:
        """Return the last note, if there is one. Reads one document."""
        stored = self._store.records.load(SweepNote, SWEEP_NOTE_ID)
        return record_of(stored)
