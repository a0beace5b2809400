"""The operations of the API that make and confirm drafts, as flows that both clients run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from cloudsched.client.flow import ApiRequest, Flow, operation
from cloudsched.client.responses import parse_task
from cloudsched.domain.documents.responses import DraftResult, SchedulePreview

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from cloudsched.client.views import TaskView


class DraftOperations:
    """The methods of `Client` and `AsyncClient` for drafts."""

    @operation
    def draft(
        self,
        text: str,
        *,
        timezone: str,
        conversation: Iterable[Mapping[str, str]] = (),
        context: Mapping[str, Any] | None = None,
        now: datetime | None = None,
        owner: str | None = None,
        locale: str | None = None,
    ) -> Flow[DraftResult]:
        """Return what somebody asks for, in their words: a task, a change of one, or why not. Nothing is stored.

        Args:
            text: What they said.
            timezone: Their IANA time zone.
            conversation: What was said before, each with `role` and `content`.
            context: What your app knows; see ``docs/how-to/drafts.md``.
            now: The instant from which "tomorrow" counts; now if None.
            owner: Whose task it is; the caller's if None.
            locale: Their language, such as ``de``; if None, the words tell it.
        """
        body = {
            "text": text,
            "timezone": timezone,
            "conversation": [dict(turn) for turn in conversation],
            "context": dict(context or {}),
            "now": None if now is None else now.isoformat(),
            "owner": owner,
            "locale": locale,
        }
        content = {name: value for name, value in body.items() if value is not None}
        response = yield ApiRequest("POST", "/v1/tasks/draft", content, is_idempotent=True)
        return response.read("a draft", DraftResult.model_validate)

    @operation
    def describe_schedule(
        self,
        schedule: str,
        *,
        timezone: str,
        count: int = 10,
        owner: str | None = None,
        locale: str | None = None,
    ) -> Flow[SchedulePreview]:
        """Return what a schedule in words, or in a notation, means: its description and next occurrences.

        Args:
            schedule: The words, or the notation.
            timezone: The zone of its times; ``owner`` for wherever the owner is.
            count: How many occurrences.
            owner: Whose calendars are meant, and whose zone if it follows its owner; the caller's if None.
            locale: The language of the words, such as ``de``; if None, the words tell it.

        Raises:
            InvalidInput: It is no schedule, or the words have several meanings.
        """
        content: dict[str, Any] = {"schedule": schedule, "timezone": timezone, "count": count}
        content |= {} if owner is None else {"owner": owner}
        content |= {} if locale is None else {"locale": locale}
        response = yield ApiRequest("POST", "/v1/schedules/preview", content, is_idempotent=True)
        return response.read("a preview", SchedulePreview.model_validate)

    @operation
    def confirm(self, draft: DraftResult) -> Flow[TaskView]:
        """Store what a draft shows: create its task, or change the one that it is about. It is safe to repeat.

        Raises:
            InvalidInput: The draft has no token, because something is missing, or it is older than 15 minutes.
            PreconditionFailed: The task has changed since.
        """
        content = draft.require_complete()
        if draft.task_id is None:
            return parse_task((yield ApiRequest("POST", "/v1/tasks", content, is_idempotent=True)))
        path = f"/v1/tasks/{quote(draft.task_id, safe='')}"
        return parse_task((yield ApiRequest("PATCH", path, content, is_idempotent=True)))
