"""Plan the tasks again that depend on a record which has changed, such as a person whose time zone they follow.

A task of the system does it, a batch of tasks in each run, so any number of tasks may follow. If its process
dies, the sweep runs it again. It is created before the record is written, and ends only when one of two
things is certain: every task has what the record has now, or the writer can no longer write (`_fence`). So no
change is left behind, however long its writer stands still and wherever it dies. Planning a task again is one
compare-and-set of the task, and does nothing if the task has been planned again already.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.execution import ProgressNote
from cloudsched.domain.documents.policy import RetryPolicy
from cloudsched.domain.documents.record import Record, secret_hash
from cloudsched.domain.documents.system_tasks import FOLLOW_HANDLER, ChangeToFollow, Reached
from cloudsched.domain.documents.task_link import TaskLink
from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.transitions.commit import Commit
from cloudsched.domain.transitions.edits import NO_LEAD
from cloudsched.domain.transitions.outcome import Outcome, go_on
from cloudsched.domain.transitions.task_draft import TaskDraft
from cloudsched.engine.authority import OWN_CODE
from cloudsched.engine.state.record_changes import count_recent
from cloudsched.engine.tasks.schedule_parts import OPEN_FOR, list_parts
from cloudsched.errors import CloudschedError, InvalidPayload, NotFound, StoreUnavailable, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.handlers.context import Context
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore, VersionedRecord
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.tasks.schedule_parts import FollowedRecord
    from cloudsched.engine.tasks.scheduler import Scheduler

log: Final = own_logger(__name__)

PAGE_SIZE: Final = 100
MAX_PAGES: Final = 10
"""The number of pages of a record's tasks that one run plans again. The next one continues."""
MAX_REPLANS: Final = 60
"""The most changes of such records, in all, that a user may make in an hour: each replans their tasks."""


def count_replan(records: RecordStore, clock: Clock, owner: str) -> None:
    """Count a user's change of a record, which replans all that depends on it. Raises QuotaExceeded."""
    count_recent(
        records,
        clock,
        secret_hash("replans", owner),
        limit=MAX_REPLANS,
        span=timedelta(hours=1),
        quota="changes of a time zone or calendar in an hour",
        hint="Each has all tasks planned again that depend on it.",
    )


class FollowChange:
    """Replans the tasks that depend on one changed record, some at a time."""

    def __init__(self, store: Store, scheduler: Scheduler, clock: Clock, followed: FollowedRecord) -> None:
        self._store = store
        self._scheduler = scheduler
        self._clock = clock
        self._followed = followed

    def run(self, change: ChangeToFollow, reached: Reached) -> Reached | None:
        """Continue with a change. Return how far it got, or None once it is complete."""
        try:
            stored = self._followed.load()
            since = self._clock.now() - change.since
            if stored is None:  # deleted: its tasks keep what they have
                if self._followed.is_missing_over(since):
                    return None
                return reached
            if self._followed.revision_of(stored.record) >= change.revision:
                return self._follow_all(stored.record, reached)
            if since < OPEN_FOR:  # guard: open change
                return reached  # its writer has not come that far yet
            self._fence(stored)  # guard: calendar fence
        except VersionConflict:  # another writer came first; look again
            return reached
        return None

    def _fence(self, stored: VersionedRecord[Any]) -> None:
        """Give up on a writer that has died. If it lives after all, its write conflicts and starts over.

        Raises VersionConflict.
        """
        self._store.records.write(stored.record, stored.version)

    def _follow_all(self, record: Record, reached: Reached) -> Reached | None:
        """Plan the next tasks again. Return how far it got, or None once all have what the record has now."""
        records = self._store.records
        revision = self._followed.revision_of(record)
        is_same = reached.revision == revision
        after, is_open = (reached.after, reached.has_open_links) if is_same else ("", False)
        for _ in range(MAX_PAGES):
            links = records.list(TaskLink, self._followed.key, limit=PAGE_SIZE, after=after)
            for link in links:
                is_open = self._try_to_follow(link) or is_open
                after = link.id
            if len(links) < PAGE_SIZE:
                if not is_open and self._is_current(revision):
                    return None
                after, is_open = "", False  # from the beginning again, until all links are old
                break
        return Reached(revision, after, is_open)

    def _is_current(self, revision: int) -> bool:
        """Return whether the record is still the one by which the tasks were planned here.

        A change back to what a task still had writes nothing to it, and this run may then have written older
        content.
        """
        stored = self._followed.load()
        return stored is None or self._followed.revision_of(stored.record) == revision

    def _try_to_follow(self, link: TaskLink) -> bool:
        """Plan one task again, and return whether it has to be looked at once more."""
        try:
            return self._follow(link)
        except StoreUnavailable:
            raise
        except CloudschedError as error:  # the others must be planned all the same; this one is tried again
            log.warning("unplanned: %s", error, extra={"action": "unplanned", "taskId": link.task_id})
            return True

    def _replan(self, task: Task, _read_at: datetime) -> Commit:
        """Return a task planned by the record as it is now, read after the task.

        The decision is of the time after that read: an occurrence may have come due during it, and needs its
        record. If the record changes before this is committed, whoever follows that writes the task later, or
        the commit conflicts. An attempt without its lease may have read an older record, and nobody would
        look at the task again.
        """
        stored = self._followed.load()
        if stored:
            return self._followed.replan(task, stored.record, self._clock.now())
        return Commit(task)

    def _follow(self, link: TaskLink) -> bool:
        try:
            task = self._scheduler.change(link.task_id, self._replan, OWN_CODE)
        except NotFound:
            task = None
        if task is not None and self._followed.depends(task):
            return False
        now = self._clock.now()
        if now - link.updated_at < OPEN_FOR:
            return True
        stored = self._store.records.load(TaskLink, link.id)
        if stored is not None and stored.record.updated_at == link.updated_at:
            with suppress(VersionConflict):
                self._store.records.delete(TaskLink, link.id, stored.version)
                return self._restore(link)  # a late task may have been stored meanwhile
        return False

    def _restore(self, link: TaskLink) -> bool:
        """Write a deleted link again if its task depends on the record after all. Return whether it does."""
        found = self._store.load(link.task_id)
        if found is None or not self._followed.depends(found.task):
            return False
        with suppress(VersionConflict):
            self._store.records.write(link.model_copy(update={"updated_at": self._clock.now()}), None)
        return True


class Followers:
    """Replans the tasks that depend on a changed record."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        scheduler: Callable[[], Scheduler],
        chance: Random,
    ) -> None:
        self._store = store
        self._clock = clock
        self._scheduler = scheduler
        self._chance = chance

    def begin(self, key: str, revision: int, what: str, owner: str | None) -> None:
        """Create the task that follows a record, before this revision of it is written.

        `what` completes a sentence about the tasks that are planned again. `owner` is the person whose zone
        changes.
        """
        change = ChangeToFollow(key, revision, self._clock.now(), owner)
        draft = TaskDraft(
            id=f"follow-{key.replace(':', '-')}-{self._chance.getrandbits(64):016x}",
            title=f"Plan the tasks that {what} again"[:200],
            handler=FOLLOW_HANDLER,
            payload=change.payload,
            expected_duration=timedelta(minutes=15),
            retry=RetryPolicy(max_retries=20, cap=timedelta(minutes=15)),
            retention=timedelta(hours=1),
        )
        self._scheduler().create(draft, by=OWN_CODE, lead=NO_LEAD)

    def follow(self, change: ChangeToFollow, reached: Reached) -> Reached | None:
        """Replan some of the tasks. Return how far it got, or None once all are done."""
        records = self._store.records
        found = (part.find_followed(records, change) for part in list_parts())
        followed = next((each for each in found if each is not None), None)
        if followed is None:  # of a feature that is gone
            return None
        return FollowChange(self._store, self._scheduler(), self._clock, followed).run(change, reached)


_AGAIN_AFTER: Final = timedelta(minutes=1)


def run_follow(container: Any, ctx: Context, payload: dict[str, Any]) -> Outcome | None:  # noqa: ANN401 - of any app
    """Plan again the tasks that depend on a record, as far as there is time: the built-in handler of such tasks."""
    notes = ctx.progress_notes
    if notes:
        known = Reached.from_text(notes[-1].text)
    else:
        known = Reached()
    followers: Followers = container.followers
    reached = followers.follow(ChangeToFollow.from_payload(payload), known)
    if reached is None:
        return None

    ctx.replace_progress([ProgressNote(at=ctx.now(), text=reached.to_text())])
    return go_on("There are more tasks to plan again, or some that are just being stored.", _AGAIN_AFTER)


def check_follow(_container: object, draft: TaskDraft, _requesters: object) -> None:
    """Check that a task names a change. Raises InvalidPayload."""
    try:
        ChangeToFollow.from_payload(draft.payload)
    except (KeyError, ValueError):
        hint = "Leave it out: the system makes such tasks, with what they need."
        raise InvalidPayload("payload", f"is not one of {draft.handler!r}", hint) from None
