"""Where tasks go: an app in this process, or an API through its client; and what each can check before."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from cloudsched.adapters.clocks import SystemClock
from cloudsched.config.settings import Settings
from cloudsched.domain.transitions.drafts import TaskDraft, explain_fields, to_draft_content
from cloudsched.domain.transitions.edits import NO_LEAD, anchor_schedule, new_task
from cloudsched.domain.transitions.request_marks import RequestMark
from cloudsched.errors import InvalidInput
from cloudsched.language.task_fields import with_schedule

if TYPE_CHECKING:
    from cloudsched.app import App
    from cloudsched.client import Client
    from cloudsched.domain.schedules.schedule import Schedule


@dataclass(frozen=True, slots=True)
class PreparedTask:
    """A task that was checked as far as possible, with its times counted from now."""

    draft: TaskDraft
    """It has an id, by which it can be handed over again."""
    now: datetime


class Target(Protocol):
    """Takes tasks.

    * `prepare` stores nothing, and sends nothing.
    * `create` and `cancel` are safe to repeat: the same row's task is created once.
    * They raise Unavailable if it did not answer, and another CloudschedError if it refuses.
    """

    def now(self) -> datetime:
        """Return the present instant."""
        ...

    def prepare(self, draft: TaskDraft | None, fields: dict[str, Any]) -> PreparedTask:
        """Check a task, from a draft or from its fields by their Python names. Raises InvalidInput."""
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

    def prepare(self, draft: TaskDraft | None, fields: dict[str, Any]) -> PreparedTask:
        """Check a task with its handler. The store is read only for words in the zone of their owner."""
        now = self.now()
        draft = self._app.to_draft(fields) if draft is None else draft
        checked = self._app.check(draft)
        lead = self._app.container.settings.minimum_lead
        return _complete(draft, checked, now, lead)

    def create(self, row_id: str, draft: TaskDraft, written_at: datetime) -> None:
        """Create the task as of when it was written; the task remembers the row."""
        self._app.put(draft, mark=RequestMark.of_name(["outbox", row_id]), as_of=written_at)

    def cancel(self, task_id: str) -> None:
        """Cancel a task."""
        self._app.cancel(task_id)


class ClientTarget:
    """An API, with its client's credential. What it does not check before, the API refuses later.

    Args:
        client: The API's client.
        app: Has the clock; the system's if None.
    """

    def __init__(self, client: Client, app: App | None) -> None:
        self._client = client
        self._app = app

    def now(self) -> datetime:
        """Return the present instant."""
        return (SystemClock() if self._app is None else self._app.container.clock).now()

    def prepare(self, draft: TaskDraft | None, fields: dict[str, Any]) -> PreparedTask:
        """Check a task's form. Words are read as by an API with default settings."""
        now = self.now()
        if draft is None:

            def read(fields: dict[str, Any]) -> TaskDraft:
                content = with_schedule(to_draft_content(fields), now=now, default_time=Settings().default_time)
                return TaskDraft.from_wire(content)

            try:
                draft = read(fields)
            except InvalidInput as error:
                raise explain_fields(error, fields, read) from None
        return _complete(draft, draft, now, NO_LEAD)

    def create(self, row_id: str, draft: TaskDraft, written_at: datetime) -> None:  # noqa: ARG002 - known by its id
        """Create the task; the API knows a repetition by the task's id and content."""
        self._client.create(**to_content(draft))

    def cancel(self, task_id: str) -> None:
        """Cancel a task."""
        self._client.cancel(task_id)


def to_content(draft: TaskDraft) -> dict[str, Any]:
    """Return a draft as JSON, as the API takes it: with the fields that were given."""
    return draft.model_dump(mode="json", by_alias=True, exclude_unset=True)


def start_now(draft: TaskDraft, now: datetime) -> TaskDraft | None:
    """Return a draft whose single instant has come as one that runs at once; None if it is not such a one."""
    schedule = draft.schedule
    if schedule is None or not schedule.is_one_time or not schedule.is_anchored:
        return None
    at = schedule.first()
    if at is None or at > now + _NEAR:
        return None
    at_once = type(schedule).after(timedelta(0), schedule.timezone)
    return draft.model_copy(update={"schedule": at_once})


_NEAR = timedelta(minutes=1)
"""How far ahead an instant may lie that an API with a minimum lead refuses: it was that far when it was written."""


def _complete(draft: TaskDraft, checked: TaskDraft, now: datetime, lead: timedelta) -> PreparedTask:
    """Return a draft with an id and with its times counted from now. Raises InvalidInput if it would never run."""
    schedule, update = draft.schedule, {"id": checked.id or str(uuid.uuid4())}
    anchored = None if schedule is None else _anchor(schedule, now, lead)
    complete = draft.model_copy(update=update if anchored is None else {**update, "schedule": anchored})
    if anchored is None or not (anchored.calendars or anchored.follows_owner):
        new_task(checked.model_copy(update={"schedule": anchored}), now, lead)
    return PreparedTask(complete, now)


def _anchor(schedule: Schedule, now: datetime, lead: timedelta) -> Schedule:
    """Return a schedule with its start; what runs at once, or where its owner is then, keeps what it says."""
    return schedule if schedule.is_now or schedule.follows_owner else anchor_schedule(schedule, now, lead)
