"""One pass through the outbox: claim rows, hand each over, and record the outcome.

A crash between the handover of a row and its record repeats the handover, which changes nothing: the
target knows the row. A row that the target refuses fails, and has the reason. A row without an answer is
tried again, later each time. After a few such rows in succession the pass ends: the target is taken to be
down, and nothing is held back for it.

Tasks go to an app in this process, or to an API through its client. Each can check something before.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol, assert_never

from cloudsched.adapters.clocks import SystemClock
from cloudsched.app import App
from cloudsched.config.settings import Settings
from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.transitions.edits import NO_LEAD, anchor_schedule, new_task
from cloudsched.domain.transitions.idempotency import RequestMark
from cloudsched.domain.transitions.task_draft import TaskDraft, to_draft_content
from cloudsched.domain.transitions.validation_errors import say_in_python
from cloudsched.errors import (
    CloudschedError,
    InvalidInput,
    InvalidSchedule,
    Misconfigured,
    NotAllowed,
    QuotaExceeded,
    Unauthenticated,
    Unavailable,
    VersionConflict,
)
from cloudsched.outbox.rows import CLAIM, OutboxEntry, RowAction, Rows, State

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.client import Client

    Result = tuple[OutboxEntry, State, datetime, str]

log: Final = own_logger(__name__)

FIRST_DELAY = timedelta(seconds=1)
LONGEST_DELAY = timedelta(seconds=30)
"""The first and the longest wait after an attempt without an answer. Each is twice the one before."""
SILENCE = 3
"""The number of rows in succession without an answer after which a pass ends."""
_MAX_ERROR = 2000
"""The number of characters of an error that a row keeps."""
_LATER = (Unavailable, Unauthenticated, Misconfigured, VersionConflict)
"""The errors that say nothing of the row itself."""


@dataclass(slots=True)
class Pass:
    """The counts of one pass."""

    handed_over: int = 0
    failed: int = 0
    is_down: bool = False
    """True if it ended early, because the target did not answer."""


class Handover:
    """Hands rows over to a target.

    Args:
        rows: The rows.
        target: Takes them.
        keep: The time that rows are kept after they were handed over.
    """

    def __init__(self, rows: Rows, target: Target, keep: timedelta) -> None:
        self._rows = rows
        self._target = target
        self._keep = keep

    def run(self, is_stopped: Callable[[], bool] = lambda: False) -> Pass:
        """Hand over all rows that are due, until `is_stopped`. Raises what the database raises."""
        done = Pass()
        while not is_stopped() and not done.is_down:
            claim, entries = self._rows.claim(self._target.now())
            if not entries:
                return done
            results: list[Result] = []
            try:
                self._hand_over_all(entries, results, done, is_stopped)
            finally:
                self._rows.settle(claim, results, self._target.now())
        return done

    def purge(self) -> None:
        """Delete rows that were handed over long enough ago."""
        self._rows.purge(self._target.now())

    def _hand_over_all(
        self,
        entries: list[OutboxEntry],
        results: list[Result],
        done: Pass,
        is_stopped: Callable[[], bool],
    ) -> None:
        silent = 0
        claim_ends = self._target.now() + CLAIM / 2

        for entry in entries:
            if is_stopped() or silent == SILENCE or self._target.now() >= claim_ends:
                break  # the rest of the claim is released
            result = self._hand_over(entry)
            results.append(result)
            match result[1]:
                case State.DONE:
                    done.handed_over += 1
                    silent = 0
                case State.FAILED:
                    done.failed += 1
                    silent = 0
                case State.PENDING:
                    silent += 1
                case unknown:
                    assert_never(unknown)
        done.is_down = silent == SILENCE

    def _hand_over(self, entry: OutboxEntry) -> Result:
        try:
            self._do(entry)
        except _LATER as error:
            return self._retry_later(entry, error, None)
        except QuotaExceeded as error:
            if error.retry_after is not None:
                return self._retry_later(entry, error, timedelta(seconds=error.retry_after))
            return self._fail(entry, error)
        except CloudschedError as error:
            return self._fail(entry, error)
        except Exception as error:
            log.exception("A row of the outbox could not be handed over", extra=_fields(entry))
            return self._retry_later(entry, error, None)
        return entry, State.DONE, self._target.now() + self._keep, ""

    def _do(self, entry: OutboxEntry) -> None:
        match entry.action:
            case RowAction.CREATE:
                self._create(entry)
            case RowAction.CANCEL:
                try:
                    self._target.cancel(entry.task_id)
                except NotAllowed as error:  # it has ended meanwhile
                    log.info("Not cancelled: %s", error, extra=_fields(entry))
            case unknown:
                assert_never(unknown)

    def _create(self, entry: OutboxEntry) -> None:
        draft = TaskDraft.from_wire(json.loads(entry.content))
        try:
            self._target.create(entry.id, draft, entry.written_at)
        except InvalidSchedule as error:
            if error.field != "schedule.at":
                raise
            late = start_now(draft, self._target.now())
            if late is None:
                raise
            self._target.create(entry.id, late, entry.written_at)

    def _retry_later(self, entry: OutboxEntry, error: Exception, delay: timedelta | None) -> Result:
        log.warning("A row of the outbox waits: %s", error, extra=_fields(entry))
        if delay is None:
            delay = min(FIRST_DELAY * 2 ** min(entry.attempts - 1, 10), LONGEST_DELAY)
        return entry, State.PENDING, self._target.now() + delay, _describe(error)

    def _fail(self, entry: OutboxEntry, error: CloudschedError) -> Result:
        log.error("A row of the outbox was refused: %s", error, extra=_fields(entry))
        return entry, State.FAILED, self._target.now(), _describe(error)


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:_MAX_ERROR]


def _fields(entry: OutboxEntry) -> dict[str, str]:
    return {"action": "outbox", "taskId": entry.task_id, "row": entry.id}


class Target(Protocol):
    """Takes tasks.

    * `prepare` stores nothing, and sends nothing.
    * `create` and `cancel` are safe to repeat: the same row's task is created once.
    * They raise Unavailable if it did not answer, and another CloudschedError if it refuses.
    """

    def now(self) -> datetime:
        """Return the present instant."""
        ...

    def prepare(self, draft: TaskDraft | None, fields: dict[str, Any], now: datetime) -> TaskDraft:
        """Check a task, from a draft or from its fields by their Python names. Raises InvalidInput.

        Returns:
            The task with its times counted from `now`, and with an id, by which it can be handed over again.
        """
        ...

    def create(self, row_id: str, draft: TaskDraft, written_at: datetime) -> None:
        """Create the task, or edit the one of the same id."""
        ...

    def cancel(self, task_id: str) -> None:
        """Cancel a task."""
        ...


class AppTarget:
    """An app, on the authority with which it acts: its own code's, unless `App.acting_with` says otherwise."""

    def __init__(self, app: App) -> None:
        self._app = app

    def now(self) -> datetime:
        """Return the present instant of the app's clock."""
        return self._app.container.clock.now()

    def prepare(self, draft: TaskDraft | None, fields: dict[str, Any], now: datetime) -> TaskDraft:
        """Check a task with its handler. The store is read only for words in the zone of their owner."""
        if draft is None:
            draft = self._app.to_draft(fields)
        return _complete(draft, self._app.check(draft), now, self._app.container.settings.minimum_lead)

    def create(self, row_id: str, draft: TaskDraft, written_at: datetime) -> None:
        """Create the task as of when it was written. The task remembers the row."""
        self._app.put(draft, mark=RequestMark.of_name(["outbox", row_id]), as_of=written_at)

    def cancel(self, task_id: str) -> None:
        """Cancel a task."""
        self._app.cancel(task_id)


class ClientTarget:
    """An API, with its client's credential. The API refuses later what it does not check before.

    Args:
        client: The API's client.
        app: Has the clock, the system's if None.
    """

    def __init__(self, client: Client, app: App | None) -> None:
        self._client = client
        self._app = app

    def now(self) -> datetime:
        """Return the present instant."""
        clock = SystemClock() if self._app is None else self._app.container.clock
        return clock.now()

    def prepare(self, draft: TaskDraft | None, fields: dict[str, Any], now: datetime) -> TaskDraft:
        """Check a task's form. Words are read as by an API with default settings."""
        if draft is None:
            try:
                words = App(Settings()).container.feature("words")
                content, _ = words.read_schedule(to_draft_content(fields), now)
                draft = TaskDraft.from_wire(content)
            except InvalidInput as error:
                say_in_python(error, fields, TaskDraft)
                raise
        return _complete(draft, draft, now, NO_LEAD)

    def create(self, row_id: str, draft: TaskDraft, written_at: datetime) -> None:  # noqa: ARG002 - known by its id
        """Create the task. The API knows a repetition by the task's id and content."""
        content = to_content(draft)
        if "retention" in content:  # as a number, whose unit would be asked for
            content["retention"] = draft.retention
        self._client.create(**content)

    def cancel(self, task_id: str) -> None:
        """Cancel a task."""
        self._client.cancel(task_id)


def to_content(draft: TaskDraft) -> dict[str, Any]:
    """Return a draft as JSON, as the API takes it: with the fields that were given."""
    return draft.model_dump(mode="json", by_alias=True, exclude_unset=True)


def start_now(draft: TaskDraft, now: datetime) -> TaskDraft | None:
    """Return a draft that runs at once, in place of one whose only instant has come. None for any other."""
    schedule = draft.schedule
    if schedule is None or not schedule.is_one_time or not schedule.is_anchored:
        return None
    at = schedule.first()
    if at is None or at > now + _NEAR:
        return None
    return draft.model_copy(update={"schedule": type(schedule).after(timedelta(0), schedule.timezone)})


_NEAR = timedelta(minutes=1)
"""A task starts at once this long before its instant: an API with a minimum lead would refuse it."""


def _complete(draft: TaskDraft, checked: TaskDraft, now: datetime, lead: timedelta) -> TaskDraft:
    """Return a draft with an id and its times counted from now. Raises InvalidInput if it would never run."""
    update: dict[str, Any] = {"id": checked.id or str(uuid.uuid4())}
    schedule = draft.schedule
    if schedule is not None:
        if not (schedule.is_now or schedule.follows_owner):
            schedule = anchor_schedule(schedule, now, lead)
        update["schedule"] = schedule

    # Only the target knows calendars and the owner's zone.
    if schedule is None or not schedule.depends_on_records:
        new_task(checked.model_copy(update={"schedule": schedule}), now, lead)
    return draft.model_copy(update=update)
