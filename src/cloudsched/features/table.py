"""The table of features and satellites: what each adds to the kernel, and where that is.

The kernel imports none of them. It looks here for what it is asked for, and imports that by its place,
``module:name``, when it is first used. To take one out is to delete its folder and its row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class HandlerRow:
    """A built-in handler."""

    name: str
    run: str
    """The function that runs its tasks.

    It gets the container, the context if it takes one, and the payload.
    """
    check: str = ""
    """The function that checks a task before it is stored.

    It gets the container, the draft and its requesters.
    """
    instead: str = ""
    """What users are told to use instead of such a task. They may not name the handler then."""
    takes_context: bool = True


@dataclass(frozen=True, slots=True)
class CommandRow:
    """A command of ``cloudsched``."""

    name: str
    place: str
    summary: str
    section: str
    """The heading in ``--help``, or the command whose subcommand it is."""
    extra: str = "server"
    """The extra that brings what it imports."""


@dataclass(frozen=True, slots=True)
class DetailRow:
    """A field of a task that says something about another one, and means nothing without it."""

    name: str
    about: str
    instead: str
    """What to write instead."""
    is_reset: bool = False
    """True if it has another default as soon as the other field changes."""


@dataclass(frozen=True, slots=True)
class DraftCheckRow:
    """A check of new and edited tasks."""

    concerns: tuple[str, ...]
    """The fields of a task, one of which it has if it is to be checked."""
    check: str
    """The function that gets the draft and its requesters, and returns the draft as it is to be stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A feature or a satellite. Each of its fields has the places of one kind of thing that it adds."""

    name: str
    about: str
    folders: tuple[str, ...]
    """Its folders, below ``cloudsched``."""
    wiring: str = ""
    """The class that makes its parts from a container. See `Container.feature`."""
    settings: str = ""
    """The function of the container that makes what its settings name, so that mistakes in them are found at once."""
    handlers: tuple[HandlerRow, ...] = ()
    optional_handlers: tuple[str, ...] = ()
    """Functions of the container and the registry that return a registry with a handler which settings turn on."""
    options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Options of tasks, in their order. See `engine.state.options`."""
    schedule_part: str = ""
    """The class of what records add to a schedule. See `engine.tasks.schedule_parts.SchedulePart`."""
    details: tuple[DetailRow, ...] = ()
    other_names: Mapping[str, str] = field(default_factory=dict)
    """What other schedulers call its fields: by the field's name in JSON, names in small letters without separators."""
    draft_checks: tuple[DraftCheckRow, ...] = ()
    user_checks: tuple[str, ...] = ()
    """Functions of a handler, a task or child of a user's, and its place.

    They refuse what users may not ask for.
    """
    edit_checks: tuple[str, ...] = ()
    """Functions of a task that raise InvalidInput if a user may not edit it."""
    start_checks: tuple[str, ...] = ()
    """Functions of a task that return why its owner may not start it, or None."""
    code_checks: tuple[str, ...] = ()
    """Classes that compare stored tasks with the code. See `engine.code_check.replays`."""
    usage_limit: str = ""
    """The class that says whether owners may use more, made of the container.

    See `engine.usage.usage_limit`.
    """
    turns: str = ""
    """The function that explains what the runs of a task take turns at.

    See `domain.explanation.findings.Turns`.
    """
    workers: str = ""
    """The function that says which worker the runs of a task wait for.

    See `domain.explanation.findings.Workers`.
    """
    conditions: str = ""
    """The function that yields what stands in the way of a task's next run, or of what it delivers.

    It gets the container, the task, its owner if they are stored, and the time. See `engine.queries.conditions`.
    """
    causes: str = ""
    """The function that yields what keeps many tasks from running at once.

    It gets the container, and an owner, or None for all. See `engine.queries.causes`.
    """
    undelivered: str = ""
    """The function that finds what did not reach anybody. See `domain.explanation.findings.Undelivered`."""
    stores: Mapping[str, str] = field(default_factory=dict)
    """By kind of store, the class that stores the documents which commits link to a task."""
    tables: str = ""
    """Their tables in SQLite, as statements."""
    records: tuple[str, ...] = ()
    """The kinds of records that belong to an owner."""
    operations: tuple[str, ...] = ()
    """Modules with operations of the API."""
    commands: tuple[CommandRow, ...] = ()
    pages: str = ""
    """Views of the dashboard, by name. Their templates stand beside their module. See `dashboard.view`."""
    doctor: str = ""
    """The function of a deployment and its services that yields what `cloudsched doctor` finds."""


_LOCK_HINT: Final = 'Give a lockKey, which names what the runs share: "printer".'
_PERSON_OPERATIONS: Final = "Use DELETE or POST …/export of /v1/people/{owner}."
FEATURES: Final = (
    Feature(
        name="budgets",
        about="how many queries and tokens a task, and all tasks of an owner, may use in a month",
        folders=("features/budgets",),
        options={
            # Asked before a turn at a lock is taken.
            "cloudsched.features.budgets.option:UseLimits": {
                "before_claim": "task.is_limited",
                "before_commit": "task.has_limit",
            },
        },
        usage_limit="cloudsched.features.budgets.budgets:Budgets",
        conditions="cloudsched.features.budgets.budgets:find_conditions",
        causes="cloudsched.features.budgets.budgets:find_causes",
        records=("cloudsched.features.budgets.budget:Budget",),
        operations=("cloudsched.features.budgets.operations",),
    ),
    Feature(
        name="follow-ups",
        about="tasks that a success creates",
        folders=("features/follow_ups",),
        options={"cloudsched.features.follow_ups.option:FollowUps": {"on_outcome": "drafts"}},
    ),
    Feature(
        name="deliveries",
        about="what the end of a run sends: messages, callbacks and pings",
        folders=("features/deliveries",),
        wiring="cloudsched.features.deliveries.wiring:DeliveriesWiring",
        options={
            "cloudsched.features.deliveries.option:Deliveries": {"on_outcome": "base.task.has_deliveries"},
            "cloudsched.features.deliveries.questions:Questions": {"on_outcome": "messages"},
            "cloudsched.features.deliveries.failure_notices:FailureNotices": {"before_failure": "task.id"},
            "cloudsched.features.deliveries.callbacks:Callbacks": {"before_record": "task.on_completion"},
            "cloudsched.features.deliveries.pings:Pings": {"before_commit": "task.ping"},
        },
        undelivered="cloudsched.features.deliveries.report:find_undelivered",
        operations=("cloudsched.features.deliveries.operations",),
    ),
    Feature(
        name="locks",
        about="runs that take turns at what their tasks name",
        folders=("features/locks",),
        options={
            "cloudsched.features.locks.option:HeldLock": {  # read last, as near to the commit as can be
                "before_claim": "base.task.has_lock",
                "on_lease_change": "base.task.has_lock",
                "on_outcome": "base.task.has_lock",
                "on_dispatch": "commit.effects.sends",
                "on_lost": "id",  # always: the task may have been edited, and its run be over
                "on_drop": "task_id",  # the same
                "on_leave": "id",  # the same
            },
        },
        details=(
            DetailRow("lock_limit", "lock_key", _LOCK_HINT),
            DetailRow("lock_scope", "lock_key", _LOCK_HINT, is_reset=True),
        ),
        other_names={"lockkey": "concurrencykey documentid lock mutex singleton"},
        draft_checks=(
            DraftCheckRow(
                ("lock_key", "lock_scope", "children"),
                "cloudsched.features.locks.checks:assign_scopes",
            ),
        ),
        edit_checks=("cloudsched.features.locks.checks:require_own_scopes",),
        start_checks=("cloudsched.features.locks.checks:explain_refusal",),
        code_checks=("cloudsched.features.locks.checks:LimitCheck",),
        turns="cloudsched.features.locks.queries:explain_turns",
        stores={
            "sqlite": "cloudsched.features.locks.sqlite:SqliteLocks",
            "firestore": "cloudsched.features.locks.firestore:FirestoreLocks",
        },
        tables="cloudsched.features.locks.sqlite:TABLES",
        operations=("cloudsched.features.locks.operations",),
    ),
    Feature(
        name="pull",
        about="work that waits in queues until workers claim it",
        folders=("features/pull", "worker"),
        wiring="cloudsched.features.pull.wiring:PullWiring",
        other_names={"pull": "deployment queue queuename taskqueue worker"},
        draft_checks=(DraftCheckRow(("pull",), "cloudsched.features.pull.checks:refuse_groups"),),
        user_checks=("cloudsched.features.pull.checks:require_open_queue",),
        code_checks=("cloudsched.features.pull.code_check:QueueCheck",),
        workers="cloudsched.features.pull.queries:explain_workers",
        conditions="cloudsched.features.pull.queries:find_conditions",
        causes="cloudsched.features.pull.queries:find_causes",
        records=("cloudsched.features.pull.presence:WorkerPresence",),
        operations=("cloudsched.features.pull.operations", "cloudsched.features.pull.queue_operations"),
        commands=(
            CommandRow(
                "worker",
                "cloudsched.worker.command:worker",
                "Run the tasks of a queue on this machine.",
                "Tasks",
                "worker",
            ),
        ),
    ),
    Feature(
        name="calendars",
        about="days without runs, from files, holidays and lists",
        folders=("features/calendars",),
        wiring="cloudsched.features.calendars.wiring:CalendarsWiring",
        schedule_part="cloudsched.features.calendars.schedule_days:ScheduleDays",
        handlers=(
            HandlerRow(
                "cloudsched.calendar.refresh",
                "cloudsched.features.calendars.handlers:refresh",
                "cloudsched.features.calendars.handlers:check_refresh",
                instead="Use PUT /v1/calendars/{calendarId}; the system then makes its tasks itself.",
                takes_context=False,
            ),
        ),
        records=("cloudsched.features.calendars.documents:Calendar",),
        operations=("cloudsched.features.calendars.operations",),
        commands=(
            CommandRow(
                "calendars",
                "cloudsched.features.calendars.command:calendars",
                "Show and change holidays and other days without runs.",
                "admin",
            ),
        ),
    ),
    Feature(
        name="words",
        about="plain words to schedules, drafts and tasks",
        folders=("language", "drafts"),
        wiring="cloudsched.drafts.wiring:DraftsWiring",
        settings="cloudsched.drafts.wiring:check_settings",
        conditions="cloudsched.drafts.wiring:find_conditions",
        optional_handlers=("cloudsched.drafts.wiring:with_assistant",),
        operations=("cloudsched.drafts.operations",),
        commands=(
            CommandRow(
                "draft",
                "cloudsched.drafts.command:draft",
                "Draft a task, or a change of one.",
                "tasks",
            ),
        ),
    ),
    Feature(
        name="scripts",
        about="JavaScript of users, in a sandbox",
        folders=("scripts",),
        wiring="cloudsched.scripts.wiring:ScriptsWiring",
        handlers=(
            HandlerRow(
                "cloudsched.script",
                "cloudsched.scripts.handlers:run",
                "cloudsched.scripts.handlers:check",
            ),
        ),
        records=("cloudsched.scripts.documents:StoredScript", "cloudsched.scripts.documents:ScriptTree"),
        operations=("cloudsched.scripts.operations",),
    ),
    Feature(
        name="people",
        about="contacts, and what reaches people",
        folders=("people",),
        wiring="cloudsched.people.wiring:PeopleWiring",
        settings="cloudsched.people.wiring:check_settings",
        handlers=(
            HandlerRow(
                "cloudsched.delivery",
                "cloudsched.people.handlers:deliver",
                "cloudsched.people.handlers:refuse_deliveries",
            ),
            HandlerRow(
                "cloudsched.erase-person",
                "cloudsched.people.handlers:erase",
                instead=_PERSON_OPERATIONS,
            ),
            HandlerRow(
                "cloudsched.export-person",
                "cloudsched.people.handlers:export",
                instead=_PERSON_OPERATIONS,
            ),
        ),
        records=(
            "cloudsched.people.documents:ExportPart",
            "cloudsched.people.documents:ContactSecrets",
            "cloudsched.people.documents:Feed",
        ),
        operations=(
            "cloudsched.people.operations",
            "cloudsched.people.answer_operations",
            "cloudsched.people.chat_operations",
            "cloudsched.people.feed_operations",
        ),
        commands=(
            CommandRow(
                "people",
                "cloudsched.people.command:people",
                "Show people, and change how they are reached.",
                "Tasks",
            ),
        ),
        conditions="cloudsched.people.wiring:find_conditions",
        causes="cloudsched.people.unreached:find_causes",
        pages="cloudsched.people.pages:VIEWS",
        doctor="cloudsched.people.doctor:check",
    ),
    Feature(
        name="agents",
        about="tools for language models",
        folders=("agents",),
        commands=(
            CommandRow(
                "mcp",
                "cloudsched.agents.command:mcp",
                "Give agents tools to schedule (Model Context Protocol).",
                "Tasks",
                "mcp",
            ),
        ),
    ),
    Feature(
        name="outbox",
        about="tasks of the caller's own transactions",
        folders=("outbox",),
        commands=(
            CommandRow(
                "outbox",
                "cloudsched.outbox.command:outbox",
                "Hand over the tasks that your own transactions have written.",
                "Data",
                "worker",
            ),
        ),
    ),
    Feature(name="dashboard", about="pages over the HTTP API", folders=("dashboard",)),
    Feature(
        name="emulator",
        about="a local Cloud Tasks, usable alone",
        folders=("emulator",),
        commands=(
            CommandRow(
                "emulator",
                "cloudsched.emulator.cli:emulator",
                "Run a local Cloud Tasks alone.",
                "Local",
                "dev",
            ),
        ),
    ),
)
"""All of them. Their options are called in this order."""


@cache
def find_place(place: str) -> Any:  # noqa: ANN401 - whatever is there
    """Import what a row names, once."""
    return resolve_name(place)


def has_feature(name: str) -> bool:
    """Return whether a feature is in the table."""
    return any(feature.name == name for feature in FEATURES)


def open_linked_store(kind: str, *arguments: Any) -> Any:  # noqa: ANN401 - of a feature
    """Return the store of the documents that commits link to tasks. None if no feature has any."""
    for feature in FEATURES:
        if kind in feature.stores:
            return find_place(feature.stores[kind])(*arguments)
    return None
