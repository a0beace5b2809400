"""The verbs: what callers do with one task. Each is a row of one table.

The HTTP API, its OpenAPI document, the command line, the dashboard and the TypeScript client are made from
the table. `App` and `Client` have a typed method for each verb. What it changes, and when it is allowed, is
in `domain.transitions.manual_verbs`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import Field, StringConstraints
from pydantic.alias_generators import to_snake

from cloudsched.domain.documents.document import InputInstant, Integer, StoredEnum, WireModel, complete_table


class Verb(StrEnum):
    """An action of a caller on a task or an execution, by its name in the API's paths."""

    EDIT = "edit"
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    DELETE = "delete"
    TRIGGER = "trigger"
    SNOOZE = "snooze"
    SKIP = "skip"
    MOVE = "move"
    BACKFILL = "backfill"
    SEND_EVENT = "sendEvent"
    RETRY = "retry"
    CANCEL_RUN = "cancelRun"

    @property
    def traits(self) -> VerbTraits:
        """Return its row of the table."""
        return _TRAITS[self]

    @property
    def path(self) -> str:
        """Return the end of its path, below the task's. Edits and deletions have none."""
        if self in {Verb.EDIT, Verb.DELETE}:
            return ""
        if self is Verb.SEND_EVENT:
            return "/events/{event}"
        return f"/{self.value}"

    @property
    def method(self) -> str:
        """Return the name of its method of `App` and `Client`."""
        return to_snake(self.value)

    @property
    def word(self) -> str:
        """Return its name on the command line, and in the addresses of pages."""
        return {Verb.SEND_EVENT: "send", Verb.CANCEL_RUN: "cancel-run"}.get(self, self.value)


NEXT: Final = "next"
"""The name of the next occurrence."""


class Action(StoredEnum):
    """An action in the audit trail: on a task, or on a budget, a queue or a contact."""

    CREATED = "CREATED"
    EDITED = "EDITED"
    PAUSED = "PAUSED"
    RESUMED = "RESUMED"
    CANCELLED = "CANCELLED"
    RUN_CANCELLED = "RUN_CANCELLED"
    """Somebody cancelled one run. The task itself goes on."""
    TRIGGERED = "TRIGGERED"
    SNOOZED = "SNOOZED"
    RETRIED = "RETRIED"
    BACKFILLED = "BACKFILLED"
    ENDED = "ENDED"
    """An admin ended an attempt that another caller had claimed."""
    MOVED = "MOVED"
    """Somebody moved one occurrence, or new time zone data, or another zone of its owner, moved the next ones."""
    SKIPPED = "SKIPPED"
    """Somebody left out one occurrence."""
    APPROVED = "APPROVED"
    """Somebody said yes to a run that asked, perhaps with a note."""
    REJECTED = "REJECTED"
    """Somebody said no to it."""
    DELETED = "DELETED"
    BUDGET_SET = "BUDGET_SET"
    BUDGET_DELETED = "BUDGET_DELETED"
    QUEUE_PAUSED = "QUEUE_PAUSED"
    """An admin paused a queue in Cloud Tasks."""
    QUEUE_RESUMED = "QUEUE_RESUMED"
    QUEUE_CHANGED = "QUEUE_CHANGED"
    """An admin changed how fast it delivers."""
    QUEUE_PURGED = "QUEUE_PURGED"
    CONTACT_VERIFIED = "CONTACT_VERIFIED"
    """A server, or an admin, said of a person's contact that it is theirs."""


EDITS: Final = frozenset({Action.EDITED, Action.MOVED, Action.SKIPPED})
"""The actions that change what the owner has set. An entry of one that somebody did has the fields."""


class PauseRequest(WireModel):
    """The end of a pause."""

    until: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    """The time at which the task goes on: an instant, or words such as ``Monday`` or ``15 December at 9:00`` in its
    time zone. A day begins at midnight. If omitted, somebody has to resume it."""


class SkipRequest(WireModel):
    """The occurrence to leave out."""

    occurrence: Annotated[str, StringConstraints(min_length=1, max_length=60)] = NEXT
    """The occurrence's instant with an offset, or ``next``."""


class MoveRequest(SkipRequest):
    """An occurrence, and its new time."""

    to: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    """An instant, or words in the task's time zone: ``17:00`` on the same day, ``Friday`` at the same time,
    ``tomorrow at 10``, ``an hour later``."""


class TriggerRequest(WireModel):
    """The payload of a run."""

    payload: dict[str, Any] | None = None
    """The payload for this run and its retries, in place of the task's. The task's own does not change."""


class SnoozeRequest(WireModel):
    """The duration of a snooze."""

    duration: Annotated[str, StringConstraints(min_length=1, max_length=200)] = "PT10M"
    """An ISO 8601 duration, or words such as ``10 minutes`` or ``tomorrow at 9:00`` in the task's time zone.
    At most 30 days."""


class RetryRequest(WireModel):
    """The execution to retry, and the step from which to do so."""

    execution_id: str | None = None
    """The execution to retry. The last one if omitted."""
    from_step: Integer | None = Field(default=None, ge=1)
    """The number of a durable handler's step. This step and all later ones are forgotten, and done again."""


class CancelRunRequest(WireModel):
    """The execution to cancel."""

    execution_id: str


class SendEventRequest(WireModel):
    """An event for a durable handler."""

    payload: Any = None
    """Any JSON. The fields of an object become attributes of the handler's event."""
    execution_id: str | None = None
    """The execution that gets the event. Needed only if several wait for it."""
    early: bool = False
    """True to keep the event if no execution waits for it yet: for the open execution, or else for the next
    one."""


class BackfillRequest(WireModel):
    """The range of past occurrences to run again. Both ends are included."""

    start: InputInstant
    end: InputInstant


@dataclass(frozen=True)
class Command:
    """A command below ``cloudsched tasks``, which sends what is typed as the body."""

    help: str
    arguments: tuple[str, ...] = ()
    """The fields that are arguments, in their order. One that ends with ``...`` takes several words."""
    numbers: dict[str, str] = field(default_factory=dict)
    """The fields that are options with a number, which is at least 1, each with its help."""
    examples: tuple[str, ...] = ("ID",)
    """What is typed behind its name."""


@dataclass(frozen=True)
class Button:
    """A button on a task's page. What it sends is for the shown state of the task, unless it starts a run."""

    label: str
    body: dict[str, Any] = field(default_factory=dict)
    """The request that it sends."""
    key: str = ""
    """The key that presses it."""
    field: str = ""
    """The field of the request that a person writes, in words in the task's time zone."""
    with_field: str = ""
    """Its label with that field, if there is a button without it."""
    hint: str = ""
    """What may stand in the field."""
    is_last: bool = False
    """True if it stands apart, because it ends the task."""


@dataclass(frozen=True, kw_only=True)
class VerbTraits:
    """The traits of a verb, from which interfaces build it.

    One without a part here has code for it, or no such verb.
    """

    action: Action | None = None
    """What the task's history says, if a decision is all that the verb takes: see `Scheduler.act`."""
    group: str = "Tasks"
    """The group of operations that it is listed in."""
    about: str = ""
    """The operation's summary and description in OpenAPI, in CommonMark."""
    body: type[WireModel] | None = None
    """The request. Its fields, and the names in the path, are the arguments of the method."""
    example: dict[str, Any] | None = None
    """An example of the body in OpenAPI. The tests of all interfaces send its value, too."""
    starts: bool = False
    """True if it makes the task run. A user may do that only with a task that the user could write."""
    edits: bool = False
    """True if it changes what the owner has set. Who may not edit the task may not do that."""
    revives: bool = False
    """True if it may start an ended task again. Quotas limit that as they limit creations."""
    question: str = ""
    """What is asked before, on the command line and on pages."""
    command: Command | None = None
    done: str = ""
    """What a page says afterwards."""
    button: Button | None = None

    @property
    def needs_body(self) -> bool:
        """Return whether the request has to have a body."""
        return self.body is not None and any(each.is_required() for each in self.body.model_fields.values())


_TRAITS: Final = complete_table(
    Verb,
    {
        Verb.EDIT: VerbTraits(edits=True, done="Saved."),
        Verb.PAUSE: VerbTraits(
            about="Pause a task.\n\nNone of its runs starts until it is resumed, or until the time that you give. "
            "Occurrences in between do not run.",
            body=PauseRequest,
            example={"summary": "Until a day", "value": {"until": "15 January"}},
            command=Command(
                "Pause a task until it is resumed, or until a time (Monday, 15 December at 9:00).",
                arguments=("until...",),
                examples=("ID", "ID 15 January"),
            ),
            done="Paused.",
            button=Button(
                "Pause the task",
                key="p",
                field="until",
                with_field="Pause until",
                hint="Monday, or 15 December at 9:00",
            ),
        ),
        Verb.RESUME: VerbTraits(
            about="Resume a paused task.\n\nIt continues with its first occurrence from now.",
            starts=True,
            command=Command("Resume a paused task from now on.", examples=("ID --quiet",)),
            done="Resumed.",
            button=Button("Resume the task", key="p"),
        ),
        Verb.CANCEL: VerbTraits(
            about="Cancel a task.\n\nNone of its runs starts any more. Its record is kept.",
            command=Command("Cancel a task. Its record stays.", examples=("ID --json",)),
            done="Cancelled.",
            button=Button("Cancel the task for good", is_last=True),
        ),
        Verb.DELETE: VerbTraits(
            question="Delete task {id} and its executions?",
            command=Command("Remove a task and its executions. `cancel` keeps them.", examples=("ID --yes",)),
            done="Deleted.",
            button=Button("Delete the task and its runs", is_last=True),
        ),
        Verb.TRIGGER: VerbTraits(
            group="Executions",
            body=TriggerRequest,
            example={"summary": "Once, about something else", "value": {"payload": {"about": "returns"}}},
            starts=True,
            done="A run was requested.",
            button=Button("Run now", key="t"),
        ),
        Verb.SNOOZE: VerbTraits(
            action=Action.SNOOZED,
            group="Executions",
            about="""Run a task's last run again, later.

The schedule does not change, and its occurrences run meanwhile, too. A task has at most one pending snooze, which
`snoozedUntil` shows. Another request moves it, and one for the same minute changes nothing, so a second click does no
harm. A task that has ended is active until that run is over. A paused or cancelled one is not snoozed.""",
            body=SnoozeRequest,
            example={"summary": "Run it again in two hours", "value": {"duration": "2 hours"}},
            starts=True,
            revives=True,
            command=Command(
                "Run the last execution again later: in ten minutes, or after DURATION (10 minutes, PT2H, tomorrow at "
                "9:00).",
                arguments=("duration...",),
                examples=("ID 2 hours",),
            ),
            done="Snoozed for ten minutes.",
            button=Button("Again in ten minutes"),
        ),
        Verb.SKIP: VerbTraits(
            action=Action.SKIPPED,
            edits=True,
            about="""Leave out one occurrence of a task.

All others stay, and so does its count of runs. A task that runs once is cancelled or moved instead.""",
            body=SkipRequest,
            example={"summary": "The next one", "value": {"occurrence": "next"}},
            command=Command(
                "Leave out the next occurrence, or the one at an instant.",
                arguments=("occurrence",),
                examples=("ID", "ID 2027-01-04T09:00:00Z"),
            ),
            done="The next run will be skipped. You can take that back in the history below.",
            button=Button("Skip the next"),
        ),
        Verb.MOVE: VerbTraits(
            action=Action.MOVED,
            edits=True,
            about="""Run one occurrence of a task at another time.

All others stay. Words are read in the task's time zone, beside the occurrence: `17:00` is on its day, and
`Friday` at its time.""",
            body=MoveRequest,
            example={"summary": "The next one, later that day", "value": {"occurrence": "next", "to": "17:20"}},
            command=Command(
                "Run one occurrence (next, or its instant) at another time: 17:00, Friday at 10:00, an hour later.",
                arguments=("occurrence", "to..."),
                examples=("ID next tomorrow at 10:00", "ID 2027-01-04T09:00:00Z 17:00"),
            ),
            done="The run has been moved. The history below has both times, and you can take it back there.",
            button=Button("Move the next run", field="to", hint="17:00, Friday at 10:00, or an hour later"),
        ),
        Verb.BACKFILL: VerbTraits(
            action=Action.BACKFILLED,
            group="Executions",
            about="Run the occurrences of a past range again.\n\n"
            "They run one after the other. Both ends of the range are included.",
            body=BackfillRequest,
            example={
                "summary": "Christmas",
                "value": {"start": "2026-12-25T00:00:00Z", "end": "2026-12-27T00:00:00Z"},
            },
            starts=True,
            command=Command(
                "Run the past occurrences from START to END (both included), one after the other.\n\n"
                "Both are instants, such as 2027-01-01T09:00:00Z.",
                arguments=("start", "end"),
                examples=("ID 2027-01-01T00:00:00Z 2027-01-31T23:59:59Z",),
            ),
        ),
        Verb.SEND_EVENT: VerbTraits(
            group="Events",
            about="""Send an event to the execution of a task that waits for it.

The event belongs to that execution, and ends with it. The same event again, as by a second click, changes nothing. If
no execution waits for it, or several do and none is named, it is refused (`not-awaited`). `awaited` lists all.""",
            body=SendEventRequest,
            example={"summary": "Approve", "value": {"payload": {"by": "grace"}}},
            done="Sent.",
        ),
        Verb.RETRY: VerbTraits(
            group="Executions",
            about="""Give an execution one more attempt.

Without an `executionId`, the last execution is retried. A durable handler continues from its failure, or from
`fromStep`. Earlier steps keep their results, and the calls of later ones that are under way are cancelled.""",
            body=RetryRequest,
            example={"summary": "Retry one execution", "value": {"executionId": "20270104T080000Z"}},
            starts=True,
            revives=True,
            command=Command(
                "Retry an execution once more, the latest one if none is named.",
                arguments=("execution_id",),
                numbers={"from_step": "Forget this step of a durable handler and all after it."},
                examples=("ID 20270104T080000Z", "ID --from-step 3"),
            ),
            done="A retry was requested.",
        ),
        Verb.CANCEL_RUN: VerbTraits(
            group="Executions",
            about="""Cancel one run of a task.

It ends as `CANCELLED`, and so do its calls. The task and its schedule go on. A handler that is running is not
interrupted, but can report nothing more, and keeps its lock until its lease ends or it does. The same again changes
nothing. A run that has ended otherwise is refused.""",
            body=CancelRunRequest,
            example={"summary": "Cancel one run", "value": {"executionId": "20270104T080000Z"}},
            command=Command(
                "Cancel one run that has not ended. The task and its schedule go on.",
                arguments=("execution_id",),
                examples=("ID 20270104T080000Z",),
            ),
            done="The run was cancelled.",
        ),
    },
)
