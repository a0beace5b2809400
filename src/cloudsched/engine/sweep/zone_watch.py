"""Notice that the time zone data have changed, and plan the tasks of a deployment again.

Each process has the release that it was built with, and during a deployment old and new ones run side by
side. One record has the newest that any of them has had. Every sweep compares it, at most once in
`LOOK_EVERY`:

* A process with a newer release writes it there, and walks over all active tasks, page by page. Each is
  planned again by one compare-and-set, which does nothing for a zone whose clock is the same. The position of
  the walk is stored: after a crash any process with that release goes on.
* A process with an older release learns that its data are outdated, here or from a task that was planned with
  newer ones. It leaves such tasks alone, and marks as stale what it plans itself in zones that differ. The
  sweep finds those within a minute, and a process with newer data plans them again.
* A process may plan with outdated data until it knows of that. So there are more walks, at `WALKS_AT`.

If no process with the newest release has been seen for `ALIVE_FOR`, it was rolled back. The newest of the
others then takes its place, and plans everything again with what it has.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.document import Instant  # noqa: TC001 - a field of the model
from cloudsched.domain.documents.record import Record
from cloudsched.domain.documents.task import Task, TaskStatus
from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.transitions.planning import can_replan
from cloudsched.engine.ports.records import VersionedRecord, record_of, version_of
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.state.commits import compare_and_set
from cloudsched.errors import CloudschedError, StoreUnavailable

if TYPE_CHECKING:
    from cloudsched.domain.transitions.commit import VersionedTask
    from cloudsched.engine.engine_context import EngineContext

ZONE_RELEASE_ID: Final = "last"


class ZoneRelease(Record):
    """The newest release that any process of the deployment has had (``zones/last``).

    Its `updated_at` is when a process that has it was seen last.
    """

    collection: ClassVar[str] = "zones"
    is_listed_by_owner: ClassVar[bool] = False

    release: str
    """The IANA release, such as ``2026a``. A later one is greater."""
    fingerprints: str = ""
    """Of each zone: its name and its fingerprint, one a line. Empty for the first release: nothing came
    before it."""
    rolled_back: str = ""
    """A later release that was in use before, and no longer is."""
    since: Instant
    """The instant at which a process first had it."""
    walks: int = 0
    """The number of walks over all active tasks that are done."""
    after: str | None = None
    """The page token after which the walk continues."""
    moved: int = 0
    """The number of tasks that were planned again."""


log: Final = own_logger(__name__)

LOOK_EVERY: Final = timedelta(minutes=5)
"""The interval at which a process reads which release is the newest."""
WALKS_AT: Final = (
    timedelta(0),
    timedelta(minutes=15),
    timedelta(hours=1),
    timedelta(hours=6),
    timedelta(days=1),
)
"""The times from a new release to each walk: older processes may have made tasks without knowing of it."""
ALIVE_FOR: Final = timedelta(days=1)
"""The time after a sweep by a process with the newest release for which there may be others."""
SEEN_EVERY: Final = timedelta(hours=1)
"""The interval at which a process with the newest release says that it is there."""
PAGE_SIZE: Final = 200
MAX_PAGES: Final = 50
"""The number of pages of tasks that one sweep walks over. The next one continues."""


class ZoneWatch:
    """Compares this process's time zone data with those of the deployment."""

    def __init__(self, engine: EngineContext) -> None:
        self._engine = engine
        self._looked_at: datetime | None = None

    def run(self) -> None:
        """Compare the data, and replan more tasks if a walk is under way. A failure is only logged."""
        now = self._engine.clock.now()
        if self._looked_at is not None and timedelta(0) <= now - self._looked_at < LOOK_EVERY:
            return
        if self._looked_at is None:
            log.info("time zone data %s", time_zones.in_use.release, extra={"action": "zone_data"})
        self._looked_at = now
        try:
            if self._look(now):
                self._looked_at = now - LOOK_EVERY  # the next sweep goes on
        except CloudschedError as error:  # a conflict: another process is at it
            self._looked_at = now - LOOK_EVERY
            log.warning("time zones are not compared: %s", error, extra={"action": "zones_not_compared"})

    def _look(self, now: datetime) -> bool:
        """Compare this process's release with the newest, and follow it.

        Return whether there is more to do now.
        """
        data = time_zones.in_use
        stored = self._engine.store.records.load(ZoneRelease, ZONE_RELEASE_ID)
        record = record_of(stored)
        rolled_back = ""
        if record is not None and record.release > data.release:
            if now - record.updated_at < ALIVE_FOR:
                data.note_others(_parse(record.fingerprints))
                return False
            rolled_back = record.release
        elif record is not None:
            rolled_back = record.rolled_back
        data.note_others(None, rolled_back)

        if stored is None or stored.record.release != data.release:
            stored = self._take_over(stored, now)
        if stored.record.walks < len(WALKS_AT) and now - stored.record.since >= WALKS_AT[stored.record.walks]:
            return self._walk(stored, now)
        if now - stored.record.updated_at > SEEN_EVERY:
            self._engine.store.records.write(
                stored.record.model_copy(update={"updated_at": now}),
                stored.version,
            )
        return False

    def _take_over(
        self,
        stored: VersionedRecord[ZoneRelease] | None,
        now: datetime,
    ) -> VersionedRecord[ZoneRelease]:
        """Write this process's release as that of the deployment. If no clock differs, no walk is needed.

        The first release of a deployment has no fingerprints: nothing was planned with another one before.
        """
        data = time_zones.in_use
        before = record_of(stored)
        found = ZoneRelease(
            id=ZONE_RELEASE_ID,
            owner=SYSTEM_OWNER,
            created_at=now,
            updated_at=now,
            since=now,
            release=data.release,
            rolled_back=data.rolled_back,
            walks=len(WALKS_AT),
        )
        if before is not None:
            fingerprints = _format(data)
            changes = {"created_at": before.created_at, "fingerprints": fingerprints}
            if fingerprints != before.fingerprints:
                changes["walks"] = 0
            found = found.model_copy(update=changes)
        version = self._engine.store.records.write(found, version_of(stored))
        if before is not None:
            extra = {"action": "zone_release", "before": before.release}
            log.info("time zone data are %s now, and were %s", data.release, before.release, extra=extra)
        return VersionedRecord(found, version)

    def _walk(self, stored: VersionedRecord[ZoneRelease], now: datetime) -> bool:
        record = stored.record
        after = record.after
        moved = record.moved
        for _ in range(MAX_PAGES):
            query = TaskQuery(owner=None, status=TaskStatus.ACTIVE)
            page = self._engine.store.list_tasks(query, limit=PAGE_SIZE, page_token=after)
            moved += sum(self.replan(task) for task in page.items if task.zone_plan is not None and can_replan(task))
            after = page.next_page_token
            if after is None:
                break
        walks = record.walks + (after is None)
        changes = {"walks": walks, "after": after, "moved": moved, "updated_at": now}
        self._engine.store.records.write(record.model_copy(update=changes), stored.version)
        if after is None:
            counts = {"action": "zones_walked", "moved": moved, "walks": walks}
            log.info("tasks planned again with time zone data %s: %d", record.release, moved, extra=counts)
        return after is not None

    def replan(self, task: Task) -> bool:
        """Replan a task with this process's data. Return whether its plan changed.

        A failure is logged and left to the next walk, and to the task's own dispatches.
        """
        try:
            return replan_task(self._engine, task.id)
        except StoreUnavailable:
            raise
        except CloudschedError as error:
            log.warning("unplanned: %s", error, extra={"action": "unplanned", "taskId": task.id})
            return False


def replan_task(engine: EngineContext, task_id: str) -> bool:
    """Replan a task with this process's data, which may be newer. Return whether its plan changed."""

    def change(stored: VersionedTask | None) -> bool:
        return stored is not None and can_replan(stored.task) and engine.replan(stored) is not stored

    return compare_and_set(f"task {task_id}", partial(engine.store.load, task_id), change)


def _format(data: time_zones.ZoneData) -> str:
    return "\n".join(f"{name} {data.fingerprint(name)}" for name in data.names)


def _parse(text: str) -> dict[str, str]:
    return {name: mark for name, _, mark in (line.partition(" ") for line in text.splitlines())}
