"""The form of an explanation, and the evidence that it is made from."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.authority import say_subject
from cloudsched.domain.documents.document import Instant, WireModel
from cloudsched.domain.documents.policy import Priority
from cloudsched.domain.documents.receipt import Reason as Reason  # noqa: PLC0414 - those who find something give one
from cloudsched.domain.documents.run_counts import is_late
from cloudsched.domain.documents.task import Task, TaskStatus
from cloudsched.domain.in_words import say_clock

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from cloudsched.domain.documents.execution import Execution


class Finding(WireModel):
    """One reason, with its evidence."""

    reason: Reason
    sentence: str
    at: Instant | None = None
    """The instant that it is about: of the next attempt, of a lease's end, of a status."""
    execution_id: str | None = None
    """The execution that it is about, or None if it is about the task."""


class Explanation(WireModel):
    """The reasons why a task runs when it does, or does not run."""

    task_id: str
    status: TaskStatus
    summary: str
    """The sentence of the first finding."""
    findings: tuple[Finding, ...]
    """The reasons, the most important one first."""
    at: Instant | None = None
    """The instant that was asked about, or None for the present."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undelivered:
    """A delivery that has not arrived."""

    execution_id: str
    """The execution that it delivers."""
    scheduled_for: datetime
    """The instant of that execution."""
    channel: str
    status: str
    since: datetime
    """The time at which the execution ended."""
    reason: str | None
    next_attempt_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """What the runs of a task take turns at, such as a lock."""

    sentence: str
    """Says of a run that waits for its turn what it waits for."""
    waiting: frozenset[str]
    """The executions that are known to wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """The workers for which a run of a task waits."""

    needed: str
    """The worker that it needs, to stand in a sentence: "worker with the skill 'cuda' on the queue 'gpu'"."""
    listeners: int
    """The number of such workers that have asked for work in the last minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The content of the store about a task."""

    task: Task
    now: datetime
    turns: Turns | None = None
    """What its runs take turns at, or None if they take none."""
    last: Execution | None = None
    """Its last record."""
    undelivered: Sequence[Undelivered] = ()
    """The deliveries of the records that are told which have not arrived."""
    delays: Mapping[str, str] = field(default_factory=dict)
    """What was found about the time in which runs that are told waited to start, by their ids."""
    swept_at: datetime | None = None
    """The end of the last sweep, if the task is late and a sweep was noted."""
    hanging: str = ""
    """How many handlers of the process that swept hang, as far as the reader may know. Empty if none does."""
    workers: Workers | None = None
    """The workers for which a run of it waits, or None if none does."""
    conditions: Sequence[Finding] = ()
    """What stands in the way of its next run beside its own documents, as far as that was looked at."""

    @property
    def is_queue_paused(self) -> bool:
        """Return whether the queue that carries its dispatches is paused. Then the sweep is not to blame."""
        return any(each.reason is Reason.QUEUE_PAUSED for each in self.conditions)

    @property
    def sweep_is_late(self) -> bool:
        """Return whether no sweep was noted in the last minutes, of those that come once a minute."""
        return self.swept_at is None or is_late(self.swept_at, self.now)


SEEMS_DEAD: Final = "it seems not to run, or not to keep up"
"""What is said of a sweep that is late."""
DEFERRED: Final = Finding(
    reason=Reason.DEFERRED,
    sentence="The queue could not be reached after the last change. The sweep sends what is missing.",
)
DELETED: Final = Finding(reason=Reason.ENDED, sentence="It was deleted.")
OVERDUE: Final = Finding(
    reason=Reason.OVERDUE, sentence="Other work that was due minutes ago had not started when the sweep last looked."
)
"""That of some task, whosever it is."""
NO_OCCURRENCE: Final = Finding(reason=Reason.ENDED, sentence="Its schedule has no further occurrence.")


_POLICY: Final = re.compile(r" \(catchUp: \w+\)")


def drop_policy(message: str) -> str:
    """Return a message without the name of the policy that decided, which is for readers of the API."""
    return _POLICY.sub("", message)


def say_no_worker(workers: Workers) -> Finding:
    """Return that nobody serves the queue of a task."""
    sentence = f"No {workers.needed} has asked for work in the last few minutes (a busy one does not ask)."
    return Finding(reason=Reason.NO_WORKER_LISTENS, sentence=sentence)


def say_sweep(swept_at: datetime | None) -> Finding:
    """Return that the sweep is late, or has never run: nobody repairs what is lost, and perhaps nobody runs tasks."""
    if swept_at is None:
        sentence = "The sweep has not run yet: no process that runs tasks is known."
    else:
        sentence = f"The last sweep ended on {say_clock(swept_at)} (UTC): {SEEMS_DEAD}."
    return Finding(reason=Reason.SWEEP_IS_LATE, sentence=sentence, at=swept_at)


_ENDS: Final = {
    "SUCCEEDED": "succeeded",
    "COMPLETED": "completed",
    "FAILED": "failed",
    "TIMED_OUT": "timed out",
    "CANCELLED": "was cancelled",
    "EXPIRED": "expired",
    "SKIPPED": "was skipped",
}
"""How a run or a task has ended, as a verb."""


def say_status(status: str) -> str:
    """Return the status of a run or a task as a verb: that it ``failed``, or ``is suspended``."""
    return _ENDS.get(status) or f"is {status.lower()}"


def say_queue_paused(
    priorities: Collection[Priority], queue: str = "", by: str = "", at: datetime | None = None
) -> Finding:
    """Return that the dispatches of priorities wait. The queue, and who paused it and when, are for operators."""
    sentence = "A queue that carries dispatches is paused"
    if queue:
        sentence = f"The queue {queue} is paused"
    if by and at is not None:
        sentence += f", by {say_subject(by)} on {say_clock(at)} (UTC)"
    held = "nothing"
    if set(priorities) < set(Priority):
        *others, last = priorities
        held = f"no task of priority {', '.join(others)}{' or ' if others else ''}{last} that it carries"
    return Finding(reason=Reason.QUEUE_PAUSED, sentence=f"{sentence}: {held} is dispatched until it is resumed.", at=at)


def say_unknown_handler(handler: str, waiting: str = "") -> Finding:
    """Return that the code that runs here does not know a handler, and how many tasks wait for it."""
    tasks = f" ({waiting})" if waiting else ""
    sentence = f"Not registered: {handler}{tasks}. Deploy code that has this handler."
    return Finding(reason=Reason.UNKNOWN_HANDLER, sentence=sentence)


def say_budget_used_up(owner: str, used: str, month: str | None, waiting: str = "it waits") -> str:
    """Return that an owner has used up the budget of a month, such as 2027-03, and what waits for the next one."""
    if month is None:
        return f"{owner} has used up its budget: {waiting} until an admin raises it."
    first = date.fromisoformat(f"{month}-01")
    following = (first + timedelta(days=32)).replace(day=1)
    until = f"{following.day} {following:%B}"
    return f"{owner} has used up its budget ({used} of {month}): {waiting} until {until}, or until an admin raises it."


def say_not_checked(what: str) -> Finding:
    """Return that something could not be looked at. The cause, which may name others' parts, is logged."""
    return Finding(reason=Reason.NOT_CHECKED, sentence=f"{what} could not be checked.")
