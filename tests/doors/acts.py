"""The acts that a person may try, each as a request to the API: every operation, and what it may be asked for.

A new operation fails `test_completeness.py` until it is here. Bodies say schedules in words, which every door has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, urlencode

from tests.doors.world import ACTORS, OWNED, Target
from tests.verb_requests import REQUESTS

from cloudsched.domain.documents.verbs import Verb
from cloudsched.web.api.operations import OPERATIONS

BY_NAME: Final = {each.name: each for each in OPERATIONS}
WHEN: Final = {"schedule": "every day at 9:00", "timezone": "UTC"}
NEW: Final = {"title": "Stretch", "handler": "open", **WHEN}
FROM_SERVERS_ALONE: Final[dict[str, dict[str, Any]]] = {
    "a handler for servers": {"handler": "closed"},
    "the system's refreshing of calendars": {"handler": "cloudsched.calendar.refresh", "payload": {"calendar": "cal"}},
    "the system's planning again": {"handler": "cloudsched.follow", "payload": {"calendar": "cal"}},
    "a batch change as a task": {"handler": "cloudsched.change-tasks", "payload": {"action": "delete", "filter": {}}},
    "an erasure as a task": {"handler": "cloudsched.erase-person"},
    "an export as a task": {"handler": "cloudsched.export-person"},
    "a delivery as a task": {"handler": "cloudsched.delivery"},
    "the operator's priority": {"priority": "CRITICAL"},
    "an operator's queue": {"pull": "theirs"},
    "a handler that only workers know": {"handler": "unknown", "pull": "theirs"},
    "an operator's lock": {"lockKey": "press", "lockScope": "global"},
    "the operator's channel": {"deliveryChannels": ["OPERATOR"]},
    "a child for servers": {"handler": None, "children": [{"handler": "open"}, {"handler": "closed"}]},
    "a child with the operator's priority": {
        "handler": None,
        "children": [{"handler": "open", "priority": "CRITICAL"}],
    },
    "a child with an operator's lock": {
        "handler": None,
        "children": [{"handler": "open", "lockKey": "press", "lockScope": "global"}],
    },
    "a script with a tool for servers": {"handler": None, "script": {"source": "return 1", "tools": ["closed"]}},
    "a ping to anybody": {"ping": {"url": "https://elsewhere.example/ping"}},
    "a callback to anybody": {"onCompletion": {"webhook": "https://elsewhere.example/hook"}},
}
"""What the fields of a task may ask for, and users may not, or only as their own."""

_WORK: Final = ("send_event", "heartbeat", "complete", "fail", "release")
STARTS_AND_WORK: Final = {*_WORK, *(each.method for each in Verb if each.traits.starts)}
"""The operations for which it matters whether the owner could have written a task that a server wrote."""


@dataclass(frozen=True, slots=True)
class Act:
    """One act.

    Attributes:
        name: What somebody tries.
        operation: The operation's name.
        body: The request's JSON.
        query: Its parameters.
        state: In which state what it is about is; see `World.prepare`.
        names_owner: Whether the body names the owner of what it is about.
        path: The parts of the path that are not the target's.
    """

    name: str
    operation: str
    body: dict[str, Any] | None = None
    query: dict[str, str] = field(default_factory=dict)
    state: str = "active"
    names_owner: bool = False
    path: dict[str, str] = field(default_factory=dict)

    @property
    def is_creation(self) -> bool:
        """Whether it creates one task."""
        return self.operation == "create_task"

    @property
    def is_reading(self) -> bool:
        """Whether it changes nothing."""
        return BY_NAME[self.operation].right == "read"

    @property
    def is_about_a_task(self) -> bool:
        """Whether its path names a task."""
        return "{taskId}" in BY_NAME[self.operation].path

    def __str__(self) -> str:
        return self.name

    @property
    def asks_for(self) -> str:
        """What its fields ask for, as `FROM_SERVERS_ALONE` names it."""
        return self.name.partition(" ")[2]

    @property
    def actors(self) -> tuple[str, ...]:
        """Who tries it: what is refused for its fields is tried by those whose role allows it at all."""
        return ("ada", "admin") if self.asks_for in FROM_SERVERS_ALONE else ACTORS

    @property
    def origins(self) -> tuple[str, ...]:
        if self.is_about_a_task and self.asks_for in FROM_SERVERS_ALONE:
            return ("own", "served")
        if self.is_about_a_task and self.operation not in STARTS_AND_WORK:
            return ("own", "served", "other", "system")
        if self.is_about_a_task:
            return tuple(OWNED)
        names_nobody = not self.names_owner and "{owner}" not in BY_NAME[self.operation].path
        return ("own",) if names_nobody and self.state != "records" else ("own", "other", "system")

    def request(self, target: Target) -> tuple[str, str, dict[str, Any] | None]:
        """Return the method, the path and the body for what it is about."""
        operation = BY_NAME[self.operation]
        names = {
            "taskId": target.task_id,
            "executionId": target.execution_id,
            "owner": target.owner,
            "messageId": target.message_id,
            "feedId": target.feed_id,
            "queue": "q",
            **self.path,
        }
        path = operation.path
        for name, text in names.items():
            path = path.replace(f"{{{name}}}", quote(text, safe=""))
        body = self.body_for(target)
        query = {**self.query, **({"owner": target.owner} if self.names_owner and self._owner_is_a_parameter else {})}
        return operation.method, path + (f"?{urlencode(query)}" if query else ""), body

    def body_for(self, target: Target) -> dict[str, Any] | None:
        """Return the request's JSON for what it is about."""
        body = self.body
        if self.names_owner and not self._owner_is_a_parameter:
            body = {**(body or {}), "owner": target.owner}
        if body is not None and self.operation == "cancel_run":
            body = {"executionId": target.execution_id}
        if body is not None and "leaseToken" in body:
            body = {**body, "leaseToken": target.lease_token}
        return body

    @property
    def _owner_is_a_parameter(self) -> bool:
        return BY_NAME[self.operation].method in {"GET", "DELETE"}


def _create(name: str, state: str = "none", *, names_owner: bool = False, **fields: Any) -> Act:
    body = {**NEW, **fields}
    return Act(
        f"create {name}",
        "create_task",
        {key: value for key, value in body.items() if value is not None},
        state=state,
        names_owner=names_owner,
    )


def _edit(name: str, state: str = "active", **fields: Any) -> Act:
    return Act(f"edit {name}", "update_task", dict(fields), state=state)


def _verb(
    operation: str, state: str = "active", body: dict[str, Any] | None = None, name: str = "", **path: str
) -> Act:
    return Act(name or operation, operation, body, state=state, path=path)


CREATIONS: Final = (
    _create("a handler for users"),
    _create("somebody's task", names_owner=True),
    _create("a handler that nobody knows", handler="nobody-knows"),
    _create("in the past", schedule="2020-01-01T09:00:00Z"),
    _create("beyond the quota", "full"),
    _create("beyond the budget", "spent"),
    _create("what follows its owner", "records", timezone="owner"),
    _create("what follows somebody", "records", names_owner=True, timezone="owner"),
    *(_create(name, **fields) for name, fields in FROM_SERVERS_ALONE.items()),
)
EDITS: Final = (
    _edit("the title", title="Other"),
    _edit("the payload", payload={"text": "other"}),
    _edit("the schedule", schedule="every day at 10:00", timezone="UTC"),
    _edit("the schedule of one that has failed", "failed", schedule="every day at 10:00", timezone="UTC"),
    _edit("the schedule of one that is paused", "paused", schedule="every day at 10:00", timezone="UTC"),
    _edit("the labels", labels=["a=b"]),
    _edit("the owner", owner="bob"),
    _edit("the status", status="ACTIVE"),
    _edit("who wrote it", definedBy=None),
    _edit("the handler", handler="open-fails"),
    *(_edit(name, **fields) for name, fields in FROM_SERVERS_ALONE.items()),
)
DONE_IN: Final = {Verb.RESUME: "paused", Verb.SNOOZE: "ran", Verb.RETRY: "failed", Verb.CANCEL_RUN: "waiting"}
"""The states in which a task has to be for a verb, unless that is active."""
VERBS: Final = (
    *(
        _verb(each.method, DONE_IN.get(each, "active"), body)
        for each, (_, body) in REQUESTS.items()
        if each is not Verb.SEND_EVENT
    ),
    _verb("delete_task"),
    _verb("trigger", body={"payload": {"text": "mine"}}, name="trigger with a payload"),
    _verb("trigger", "paused", name="trigger one that is paused"),
    _verb("snooze", "ran", {"duration": "2 hours"}, "snooze for two hours"),
    _verb("snooze", "failed", name="snooze one that has failed"),
    _verb("snooze", "paused", name="snooze one that is paused"),
    _verb("retry", "ran", name="retry one that succeeded"),
    _verb("cancel_run", "ran", {"executionId": ""}, "cancel a run that succeeded"),
    _verb("cancel_run", "claimed", {"executionId": ""}, "cancel a run of a worker"),
    _verb("send_event", "waiting", {"payload": 1}, "send an event of one's own", event="own"),
    _verb("send_event", "waiting", {"payload": 1}, "send an admin's event", event="approved"),
    _verb("send_event", "waiting", {"payload": 1}, "send an event that nobody awaits", event="x"),
    _verb("mark_message_read", "ran"),
)
WORK: Final = (
    Act("claim", "claim", {"limit": 9}, state="offered"),
    Act("claim of one owner", "claim", {"limit": 9}, state="offered", names_owner=True),
    _verb("heartbeat", "claimed", {"leaseToken": ""}),
    _verb("complete", "claimed", {"leaseToken": "", "content": "mine"}),
    _verb("fail", "claimed", {"leaseToken": "", "error": {"type": "E", "message": "m"}}),
    _verb("release", "claimed", {"leaseToken": ""}),
)
READS_OF_A_TASK: Final = tuple(
    Act(name, name, state="ran")
    for name in (
        *("get_task", "tree", "get_history", "explain_task", "upcoming", "list_executions", "get_execution"),
        *("get_execution_logs", "list_deliveries", "get_task_calendar", "list_messages", "count_unread_messages"),
    )
)
READS_OF_A_DAY: Final = (
    Act("explain_task of a day", "explain_task", query={"at": "2027-01-01T12:00:00Z"}, state="ran"),
)
READS_OF_LISTS: Final = (
    *(
        Act(f"{name}{' of one owner' if owned else ''}", name, query=query, state="ran", names_owner=owned)
        for name, query in (
            ("list_tasks", {}),
            ("find_executions", {}),
            ("count_executions", {"from": "2027-01-01T00:00:00Z", "until": "2027-01-05T00:00:00Z"}),
            ("count_occurrences", {"from": "2027-01-01T00:00:00Z", "until": "2027-01-05T00:00:00Z"}),
            ("list_occurrences", {"until": "2027-01-05T00:00:00Z"}),
            ("list_queues", {}),
            ("list_queued_tasks", {}),
            ("list_workers", {}),
            ("list_locks", {}),
            ("list_owner_deliveries", {}),
            ("get_overview", {}),
            ("get_change_cursor", {}),
            ("search_names", {"q": "t"}),
            ("list_audit_entries", {}),
        )
        for owned in (False, True)
    ),
    Act("list_handlers", "list_handlers"),
    *(
        Act(f"{word}_dispatch_queue", "update_dispatch_queue", body)
        for word, body in (
            ("pause", {"state": "PAUSED"}),
            ("resume", {"state": "RUNNING"}),
            ("rate", {"maxDispatchesPerSecond": 5.0}),
        )
    ),
    Act("purge_dispatch_queue", "purge_dispatch_queue"),
    Act("list_dispatch_queues", "list_dispatch_queues"),
    Act("show_caller", "show_caller"),
    Act("preview_schedule", "preview_schedule", dict(WHEN)),
    Act(
        "preview what follows somebody",
        "preview_schedule",
        {**WHEN, "timezone": "owner"},
        state="records",
        names_owner=True,
    ),
    Act("list_queued_tasks that wait", "list_queued_tasks", state="offered"),
)
RECORDS: Final = (
    *(
        Act(name, name, state="records")
        for name in (
            *("get_person", "delete_person", "export_person", "verify_webhook", "verify_chat", "delete_feed"),
            *("rotate_webhook_secret", "get_budget", "delete_budget"),
        )
    ),
    Act("resend_delivery", "resend_delivery", {}, state="records", path={"deliveryId": "none"}),
    Act("erase a person", "delete_person", query={"everything": "true"}, state="records"),
    Act("put_person", "put_person", {"name": "Eve", "email": {"address": "eve@example.com"}}, state="records"),
    Act(
        "put a verified address",
        "put_person",
        {"name": "Eve", "email": {"address": "eve@example.com", "verified": True}},
        state="records",
    ),
    Act(
        "put another time zone",
        "put_person",
        {"name": "Eve", "email": {"address": "eve@example.com"}, "timezone": "Asia/Tokyo"},
        state="records",
    ),
    Act("update_person", "update_person", {"email": {"address": "eve@example.com"}}, state="records"),
    Act(
        "verify an address in part",
        "update_person",
        {"email": {"address": "eve@example.com", "verified": True}},
        state="records",
    ),
    Act("move in part", "update_person", {"timezone": "Asia/Tokyo"}, state="records"),
    Act("put_budget", "put_budget", {"maxQueriesPerMonth": 5}, state="records"),
    Act("create_feed", "create_feed", {}, state="records", names_owner=True),
    Act(
        "put_calendar",
        "put_calendar",
        {"weekdays": ["TU"]},
        state="records",
        names_owner=True,
        path={"calendarId": "cal"},
    ),
    Act(
        "put_script",
        "put_script",
        {"source": "return 2"},
        state="records",
        names_owner=True,
        path={"scriptName": "scr"},
    ),
    Act(
        "put a script with a tool for servers",
        "put_script",
        {"source": "return 2", "tools": ["closed"]},
        state="records",
        names_owner=True,
        path={"scriptName": "scr"},
    ),
    *(
        Act(name, name, state="records", names_owner=True, path={"calendarId": "cal", "scriptName": "scr"})
        for name in (
            *("get_calendar", "delete_calendar", "get_script", "delete_script", "list_feeds", "list_calendars"),
            *("list_scripts", "get_usage", "list_budgets"),
        )
    ),
)
MANY: Final = (
    Act("batch_create_tasks", "batch_create_tasks", {"tasks": [NEW, {**NEW, "handler": "closed"}]}, state="none"),
    Act("batch_change_tasks", "batch_change_tasks", {"action": "pause", "filter": {"status": "ACTIVE"}}),
    Act("batch_retry_executions", "batch_retry_executions", {"filter": {"status": "FAILED"}}, state="ran"),
    Act("draft_task", "draft_task", {"text": "stretch every day at 9:00", "timezone": "UTC"}, state="none"),
    Act(
        "draft somebody's task",
        "draft_task",
        {"text": "stretch every day at 9:00", "timezone": "UTC"},
        state="none",
        names_owner=True,
    ),
)
ACTS: Final = (*CREATIONS, *EDITS, *VERBS, *WORK, *READS_OF_A_TASK, *READS_OF_A_DAY, *READS_OF_LISTS, *RECORDS, *MANY)
PUBLIC: Final = frozenset(each.name for each in OPERATIONS if each.right is None)
"""The operations that take no credential, and so act for nobody; links are tried in `people/api`."""
