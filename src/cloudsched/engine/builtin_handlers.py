"""The handlers of tasks that the system itself makes, or that users describe without a function: one table.

A runner is imported and made when the first such task is checked or runs. The handler of children is in the registry,
and the assistant's is there only where the settings turn it on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.authority import Requesters
from cloudsched.domain.documents.delivery_channels import DELIVERY_HANDLER
from cloudsched.domain.documents.execution import ProgressNote
from cloudsched.domain.documents.script import SCRIPT_HANDLER
from cloudsched.domain.documents.system_tasks import (
    BATCH_CHANGE_HANDLER,
    ERASE_HANDLER,
    EXPORT_HANDLER,
    FOLLOW_HANDLER,
    REFRESH_HANDLER,
    ChangeToFollow,
    Reached,
)
from cloudsched.domain.transitions.outcome import Snooze
from cloudsched.engine.handlers.registry import builtin_handler
from cloudsched.errors import InvalidInput, InvalidPayload

if TYPE_CHECKING:
    from cloudsched.domain.transitions.task_draft import TaskDraft
    from cloudsched.engine.delivery.delivery_handler import DeliveryHandler
    from cloudsched.engine.handlers.context import Context
    from cloudsched.engine.handlers.registry import Registry
    from cloudsched.engine.handlers.run_script import ScriptHandler
    from cloudsched.engine.owners.calendars import Calendars
    from cloudsched.engine.owners.follow_changes import Followers
    from cloudsched.engine.owners.person_data import PersonData
    from cloudsched.engine.tasks.batch_changes import BatchChangeRun

    Check = Callable[[TaskDraft, Requesters], None]

_REPLAN_AGAIN_AFTER: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class BuiltInRunners:
    """The functions that make the runner of each kind of built-in handler."""

    scripts: Callable[[], ScriptHandler]
    deliveries: Callable[[], DeliveryHandler]
    person_data: Callable[[], PersonData]
    batch_changes: Callable[[], BatchChangeRun]
    calendars: Callable[[], Calendars]
    followers: Callable[[], Followers]


def with_builtin_handlers(registry: Registry, runners: BuiltInRunners) -> Registry:
    """Return a registry that has all built-in handlers."""
    people = _refuse_users("Use DELETE or GET …/export of /v1/people/{owner}.")

    def follow(ctx: Context, payload: dict[str, Any]) -> Snooze | None:
        notes = ctx.progress_notes
        change, known = ChangeToFollow.from_payload(payload), Reached.from_text(notes[-1].text) if notes else Reached()
        reached = runners.followers().follow(change, known)
        if reached is None:
            return None
        ctx.replace_progress([ProgressNote(at=ctx.now(), text=reached.to_text())])
        reason = "There are more tasks to plan again, or some that are just being stored."
        return Snooze(_REPLAN_AGAIN_AFTER, reason)

    return registry.with_builtin(
        builtin_handler(
            SCRIPT_HANDLER,
            lambda ctx, payload: runners.scripts().run(ctx, payload),
            check=lambda draft, requesters: runners.scripts().check(draft, requesters),
        ),
        builtin_handler(
            DELIVERY_HANDLER, lambda ctx, payload: runners.deliveries().run(ctx, payload), check=_refuse_deliveries
        ),
        builtin_handler(ERASE_HANDLER, lambda ctx, _: runners.person_data().erase(ctx), check=people),
        builtin_handler(EXPORT_HANDLER, lambda ctx, _: runners.person_data().export(ctx), check=people),
        builtin_handler(
            BATCH_CHANGE_HANDLER,
            lambda ctx, _: runners.batch_changes().run(ctx),
            check=_refuse_users("Use POST /v1/tasks/batchChange."),
        ),
        builtin_handler(
            REFRESH_HANDLER,
            lambda payload: runners.calendars().refresh(_read_calendar(payload)),
            takes_context=False,
            check=_refuse_users(
                "Use PUT /v1/calendars/{calendarId}; the system then makes its tasks itself.", _read_calendar
            ),
        ),
        builtin_handler(
            FOLLOW_HANDLER,
            follow,
            check=_refuse_users(
                "Use PUT of a calendar or a person; the system then makes its tasks itself.",
                ChangeToFollow.from_payload,
            ),
        ),
    )


def _read_calendar(payload: Mapping[str, Any]) -> str:
    return str(payload["calendar"])


def _refuse_users(hint: str, read: Callable[[Mapping[str, Any]], object] = lambda _: None) -> Check:
    """Return a check for a handler whose tasks users get from an operation of the API only."""

    def check(draft: TaskDraft, requesters: Requesters) -> None:
        if requesters is Requesters.USERS:
            raise InvalidInput("handler", f"is {draft.handler!r}", hint)
        try:
            read(draft.payload)
        except (KeyError, ValueError):
            own = "Leave it out: the system makes such tasks, with what they need."
            raise InvalidPayload("payload", f"is not one of {draft.handler!r}", own) from None

    return check


def _refuse_deliveries(*_: object) -> None:
    hint = "Name the channels in a task's deliveryChannels; a success then creates its deliveries."
    raise InvalidInput("handler", f"is {DELIVERY_HANDLER!r}, whose tasks only the system makes", hint)
