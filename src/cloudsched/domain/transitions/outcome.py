"""The outcomes of an attempt: a closed set.

A handler that returns anything else has succeeded with that as its result. One that raises has failed,
and is retried as its task's retry policy says.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final

from cloudsched.domain.documents.authority import DEFAULT_SENDERS
from cloudsched.domain.handler_code import running_handler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.documents.delivery_channels import DeliveryChannel
    from cloudsched.domain.transitions.task_draft import TaskDraft


_OWN: Final = f"{__name__.partition('.')[0]}."


class _Noted:
    """An outcome that a handler returns. One that it only makes has no effect, which is told."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Tell the running handler that its own code has made this outcome, and at which line."""
        code = running_handler.get()
        if code is None:
            return
        frame = sys._getframe(1)  # noqa: SLF001 - the caller, whose line is told
        while frame.f_globals.get("__name__") == __name__ and frame.f_back is not None:
            frame = frame.f_back
        if not str(frame.f_globals.get("__name__")).startswith(_OWN):
            code.note_outcome(self, f"{frame.f_code.co_filename}:{frame.f_lineno}")


@dataclass(frozen=True, slots=True)
class Done(_Noted):
    """The occurrence has succeeded, with `content` (any JSON value, or a pydantic model) as its result.

    `then` are follow-ups: tasks that are created in the commit that records the success, or not at all. A
    result that is `silent` is recorded and not delivered, which leaves what `Context.notify` has said.
    """

    content: Any = None
    then: Sequence[TaskDraft] = ()
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Retry(_Noted):
    """The attempt has failed and is retried: after `after`, or by default when the retry policy says."""

    reason: str
    after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Snooze(_Noted):
    """It is too early. Call the handler again at `until` (an aware datetime), or after it (a timedelta).

    A snooze costs no attempt, and lasts at least a second. An instant before the attempt began fails the run.
    """

    ended_as: ClassVar[str] = "snoozed"
    """What a worker says of such an attempt."""
    until: datetime | timedelta
    reason: str = "Snoozed by its handler."


@dataclass(frozen=True, slots=True)
class Fail(_Noted):
    """The occurrence has failed for good. No attempt follows."""

    reason: str


@dataclass(frozen=True, slots=True)
class Cancel(_Noted):
    """There is nothing left to do: the occurrence is recorded as CANCELLED."""

    ended_as: ClassVar[str] = "cancelled"
    reason: str


@dataclass(frozen=True, slots=True)
class Unreached(Cancel):
    """Nothing was sent to a person, who would have wanted it."""


@dataclass(frozen=True, slots=True)
class Suspend:
    """A durable handler waits, and its function ends. The context returns it, not the handler."""

    ended_as: ClassVar[str] = "suspended"
    reason: str
    until: datetime
    """The time at which to resume or to poll, if nothing wakes it earlier."""
    calls: tuple[int, ...] = ()
    """The calls that it waits for, all of them unless `any_call`, by their numbers in the journal."""
    events: tuple[str, ...] = ()
    """The events that it waits for, any of them."""
    senders: tuple[str, ...] = DEFAULT_SENDERS
    """The roles whose events count, and the users, as ``user:…``."""
    question: str | None = None
    """The question that the event answers, for the users whom it names."""
    asked_at: datetime | None = None
    """The start of its wait for an event."""
    channels: tuple[DeliveryChannel, ...] = ()
    """The channels by which the question goes to these users, besides their inboxes."""
    quota_refusal: str | None = None
    """Why its owner's quota has no room for calls that it is to make, or None if none of them waits."""
    any_call: bool = False
    """True if it is enough that one of the calls ends."""
    deadline: datetime | None = None
    """The time at which it stops waiting for an event, or None if it never does."""
    is_interrupted: bool = False
    """True if it has not come as far as before. Then it still waits for the same calls or events."""


WithoutResult = Retry | Snooze | Fail | Cancel
"""The outcomes of an attempt that has no result."""
Returned = Done | WithoutResult
"""The outcomes that a handler returns."""
Outcome = Returned | Suspend
_SOON: Final = timedelta(seconds=1)


def go_on(reason: str, after: timedelta = _SOON) -> Snooze:
    """Return the outcome of a piece of work, after which the handler is called again for the next one."""
    return Snooze(after, reason)
