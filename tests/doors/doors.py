"""The doors: each tries an act for a person, and says which acts it has no words for."""

from __future__ import annotations

import asyncio
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from typing import Any, Final
from zoneinfo import ZoneInfo

import click
from pydantic.alias_generators import to_snake
from tests.dashboard.conftest import read_form
from tests.doors.acts import BY_NAME, NEW, Act
from tests.doors.world import ACTORS, PEOPLE, SECOND, URL, Target, World, headers_of, key_of
from werkzeug.test import Client as Browser

from cloudsched.agents.arguments import ToolRefused
from cloudsched.agents.tools import TOOLS, AgentTools
from cloudsched.cli.main import cloudsched as command_line
from cloudsched.client import AsyncClient
from cloudsched.dashboard.application import Dashboard
from cloudsched.domain.documents.verbs import Command, Verb
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.errors import CloudschedError
from cloudsched.features.pull.work_queue import WorkerFilter
from cloudsched.web.api.problems import render_problem
from cloudsched.web.auth.roles import Role
from cloudsched.worker.api_source import ApiSource

USERS: Final = tuple(each for each in ACTORS if PEOPLE[each][0] is Role.USER)
DONE: Final = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person gets from a door.

    Attributes:
        status: As the API would say it; `DONE` for any success.
        text: All that they are shown.
    """

    status: int
    text: str = ""


class Door(ABC):
    """One way to the tasks.

    Attributes:
        name: What it is called.
        actors: Who can stand before it.
        is_exact: Whether it says why as the API does, rather than only that it refuses.
        looks_first: Whether it reads a task before it changes it, so that who sees only their own is told 404 for 403.
        chooses: The fields of a new task for which it has defaults of its own.
        leaves_more: Whether it needs a task of its own, so that what is stored is not the same.
    """

    name: str
    actors: tuple[str, ...] = ACTORS
    is_exact: bool = True
    looks_first: bool = False
    chooses: frozenset[str] = frozenset()
    leaves_more: bool = False

    @abstractmethod
    def why_not(self, act: Act) -> str | None:
        """Return why this door has no words for an act; None if it has."""

    @abstractmethod
    def attempt(self, world: World, who: str, act: Act, target: Target) -> Answer:
        """Try an act for a person."""


def to_answer(status: int, text: str) -> Answer:
    return Answer(DONE if status < HTTPStatus.BAD_REQUEST else status, text)


def refuse(error: CloudschedError) -> Answer:
    return Answer(render_problem(error).status_code, str(error))


class FrontDoor(Door):
    """The API with the person's own key: what the others are compared with."""

    name = "the API"

    def why_not(self, act: Act) -> None: ...

    def attempt(self, world: World, who: str, act: Act, target: Target) -> Answer:
        method, path, body = act.request(target)
        response = world.ask(method, path, body, self.headers(who))
        return to_answer(response.status_code, response.get_data(as_text=True))

    def headers(self, who: str) -> dict[str, str]:
        return headers_of(who)


class Delegate(FrontDoor):
    """A server that acts for users whom it has authenticated.

    Args:
        server: Whose key it has.
    """

    actors = USERS

    def __init__(self, server: str) -> None:
        self.name = f"the API through {server}"
        self._server = server

    def headers(self, who: str) -> dict[str, str]:
        return {**headers_of(self._server), "X-On-Behalf-Of": who}


class ManyNew(Door):
    name = "batchCreate"

    def why_not(self, act: Act) -> str | None:
        return None if act.is_creation else "it creates tasks"

    def attempt(self, world: World, who: str, act: Act, target: Target) -> Answer:
        body = {"tasks": [act.body_for(target)]}
        response = world.ask("POST", "/v1/tasks/batchCreate", body, headers_of(who))
        content = response.get_json()
        if response.status_code != HTTPStatus.OK:
            return to_answer(response.status_code, str(content))
        (result,) = content["results"]
        return to_answer(result["status"], json.dumps(result))


BATCH_ACTIONS: Final = {
    "pause": "PAUSE",
    "resume": "RESUME",
    "cancel": "CANCEL",
    "delete_task": "DELETE",
    "retry": "RETRY_FAILED",
}


class ManyChanged(Door):
    """``batchChange`` of one task by its id, or of those of a handler."""

    is_exact = False

    def __init__(self, chosen_by: str) -> None:
        self.name = f"batchChange by {chosen_by}"
        self._chosen_by = chosen_by

    def why_not(self, act: Act) -> str | None:
        has_words = act.operation in BATCH_ACTIONS and act.state != "ran"
        return None if has_words else "it pauses, resumes, cancels, deletes and retries what has failed"

    def attempt(self, world: World, who: str, act: Act, target: Target) -> Answer:
        which = {"ids": [target.task_id]} if self._chosen_by == "ids" else {"owner": target.owner}
        body = {"action": BATCH_ACTIONS[act.operation], "filter": which}
        return _change_many(world, who, "/v1/tasks/batchChange", body)


class ManyRetried(Door):
    """``batchRetry`` of one execution by its name."""

    name = "batchRetry by ids"
    is_exact = False
    leaves_more = True

    def why_not(self, act: Act) -> str | None:
        has_words = act.operation == "retry" and act.state == "failed"
        return None if has_words else "it retries what has failed"

    def attempt(self, world: World, who: str, act: Act, target: Target) -> Answer:
        assert act.operation == "retry"
        which = {"ids": [{"taskId": target.task_id, "executionId": target.execution_id}]}
        return _change_many(world, who, "/v1/executions/batchRetry", {"filter": which})


def _change_many(world: World, who: str, path: str, body: dict[str, Any]) -> Answer:
    """Ask for a change of many, let it run, and return whether it changed anything."""
    response = world.ask("POST", path, body, headers_of(who))
    if response.status_code != HTTPStatus.ACCEPTED:
        return to_answer(response.status_code, response.get_data(as_text=True))
    world.sim.advance(timedelta(0))
    (execution,) = world.app.executions(response.get_json()["id"]).items
    counts: Any = execution.content
    return Answer(DONE if counts["changed"] else HTTPStatus.FORBIDDEN, json.dumps(counts))


class Repeated(Door):
    """``POST /v1/tasks`` with the id of a task, as a program does that creates it again. Others' ids are not theirs."""

    name = "the API, by the id"
    actors = ("ada",)
    is_exact = False

    def why_not(self, act: Act) -> str | None:
        is_edit = act.operation == "update_task" and act.state == "active" and "definedBy" not in (act.body or {})
        is_other = act.name == "edit the handler"  # which is refused
        return None if is_edit and not is_other else "it edits what a caller may set"

    def attempt(self, world: World, who: str, act: Act, target: Target) -> Answer:
        response = world.ask("GET", f"/v1/tasks/{target.task_id}", None, headers_of(who))
        if response.status_code != HTTPStatus.OK:
            return to_answer(response.status_code, "")
        found = response.get_json()
        names = ("id", "title", "handler", "payload", "schedule", "deliveryChannels", "labels")
        changed = {**{name: found[name] for name in names}, **(act.body_for(target) or {})}
        body = {name: value for name, value in changed.items() if value is not None}
        response = world.ask("POST", "/v1/tasks", body, headers_of(who))
        return to_answer(response.status_code, response.get_data(as_text=True))


class Checked(Door):
    """``validateOnly``: the same answer, and nothing is stored."""

    name = "validateOnly"

    def why_not(self, act: Act) -> str | None:
        has_words = act.operation in {"create_task", "update_task", "trigger"}
        return None if has_words else "creations, edits and triggers can be checked"

    def attempt(self, world: World, who: str, act: Act, target: Target) -> Answer:
        method, path, body = act.request(target)
        response = world.ask(method, f"{path}?validateOnly=true", body, headers_of(who))
        return to_answer(response.status_code, response.get_data(as_text=True))


SAID: Final = {
    "create a handler for users": "stretch every day at 9:00",
    "create somebody's task": "stretch every day at 9:00",
    "create a handler that nobody knows": "stretch every day at 9:00",
    "create a handler for servers": "stretch every day at 9:00",
    "create beyond the quota": "stretch every day at 9:00",
    "create beyond the budget": "stretch every day at 9:00",
    "create in the past": "stretch on 2020-01-01 at 9:00",
    "edit the title": "rename it to Other",
    "edit the schedule": "make it every day at 10:00",
    "edit the schedule of one that has failed": "make it every day at 10:00",
    "edit the schedule of one that is paused": "make it every day at 10:00",
    "pause": "pause it",
    "resume": "resume it",
    "cancel": "cancel it",
    "delete_task": "delete it",
    "trigger one that is paused": "run it",
}
"""What somebody says for an act."""


class Drafted(Door):
    """A draft of what somebody says, which they confirm."""

    name = "a draft"
    is_exact = False
    chooses = frozenset({"deliveryChannels"})

    def why_not(self, act: Act) -> str | None:
        return None if act.name in SAID else "no words are read as it"

    def attempt(self, world: World, who: str, act: Act, target: Target) -> Answer:
        body = act.body_for(target) or {}
        known = {"handler": body["handler"]} if act.is_creation else {"taskId": target.task_id}
        owner = body.get("owner") if act.is_creation else target.owner
        with world.client(who) as client:
            try:
                drafted = client.draft(SAID[act.name], timezone="UTC", context=known, owner=owner)
                if drafted.draft_token is None:
                    return Answer(HTTPStatus.BAD_REQUEST, str(drafted.missing))
                return Answer(DONE, str(client.confirm(drafted)))
            except CloudschedError as error:
                return refuse(error)


class Agents(Door):
    """The tools of the MCP server, for the user whom a token names, or with a key of the person's own.

    Args:
        server: Whose key it has, if it acts for a user.
    """

    looks_first = True

    def __init__(self, server: str | None = None) -> None:
        self.name = "MCP tools" + (f" of {server}" if server else "")
        self.actors = USERS if server else ACTORS
        self._server = server

    def why_not(self, act: Act) -> str | None:
        body = act.body or {}
        if body.get("timezone") == "owner" or act.operation == "update_person":
            return "it is about the caller's own zone alone"
        if act.operation not in MCP_TOOLS.values() or act.names_owner or act.query:
            return "there is no tool for it"
        known = TOOLS[_find_tool(act)].arguments.model_fields.keys() | {"payload"}
        taken = {field for field, argument in _ARGUMENTS.items() if argument in known}
        if act.operation == "trigger":
            taken = set()
        return None if body.keys() - {"timezone", "occurrence"} <= taken else "no argument says it"

    def attempt(self, world: World, who: str, act: Act, target: Target) -> Answer:
        client = world.async_client(self._server or who)
        client = client.acting_for(who) if self._server else client
        try:
            return Answer(DONE, str(asyncio.run(self._call(client, act, target))))
        except CloudschedError as error:
            return refuse(error)
        except ToolRefused as refusal:
            cause = refusal.__cause__
            if isinstance(cause, CloudschedError):
                return refuse(cause)
            status = HTTPStatus.FORBIDDEN if "may only read" in str(refusal) else HTTPStatus.CONFLICT
            return Answer(status, str(refusal))

    @staticmethod
    async def _call(client: AsyncClient, act: Act, target: Target) -> dict[str, Any]:
        name = _find_tool(act)
        tools = await _ToolsInUtc.of(client)
        given = {_ARGUMENTS[field]: value for field, value in (act.body or {}).items() if field in _ARGUMENTS}
        if name == "change_task" and "payload" in given:
            given["payload_merge"] = given.pop("payload")
        if name == "answer" and not isinstance(given.get("payload"), dict):
            given = {"payload": {"said": given.get("payload")}}
        zone = (act.body or {}).get("timezone", "UTC")
        if name == "change_task" and zone != "UTC":
            given["move_to_zone"] = zone
        elif zone != "UTC":
            await tools.call("i_am_in", {"zone": zone})
        if "when" in given and name == "change_task":
            given["turn_into_single_run"] = True
        if act.is_about_a_task:
            given["id"] = target.task_id
        if name == "read_log":
            given["run"] = target.execution_id
        return await tools.call(name, {**given, **act.path})


def _find_tool(act: Act) -> str:
    return next(tool for tool, operation in MCP_TOOLS.items() if operation == act.operation)


class _ToolsInUtc(AgentTools):
    """The tools of somebody who is in UTC, without a record that says so."""

    async def _find_zone(self) -> ZoneInfo:
        return ZoneInfo("UTC")

    _require_zone = _find_zone


_ARGUMENTS: Final = {
    "title": "title",
    "handler": "handler",
    "payload": "payload",
    "schedule": "when",
    "to": "to",
    "until": "until",
    "duration": "duration",
    "executionId": "run",
}
"""The argument of tools for each field of a request."""
MCP_TOOLS: Final = {
    "find_tasks": "list_tasks",
    "read_task": "get_task",
    "preview": "preview_schedule",
    "list_handlers": "list_handlers",
    "read_log": "get_execution_logs",
    "create_task": "create_task",
    "change_task": "update_task",
    "move_next": "move",
    "skip_next": "skip",
    "pause_task": "pause",
    "resume_task": "resume",
    "cancel_task": "cancel",
    "run_task": "trigger",
    "snooze_task": "snooze",
    "retry_run": "retry",
    "answer": "send_event",
    "i_am_in": "update_person",
}
"""The operation that each tool stands for."""


def _set(body: dict[str, Any]) -> list[str]:
    return [word for name, value in body.items() for word in ("--set", f"{name}={json.dumps(value)}")]


def _type_new(act: Act, target: Target) -> list[str]:
    body = dict(act.body_for(target) or {})
    words = ["tasks", "create", body.pop("title"), "--schedule", body.pop("schedule"), "--tz", body.pop("timezone")]
    return [*words, *_set(body), "--json"]


def _type_edit(act: Act, target: Target) -> list[str]:
    body = dict(act.body_for(target) or {})
    options = {"schedule": "--schedule", "timezone": "--tz"}
    typed = [word for name, option in options.items() if name in body for word in (option, body.pop(name))]
    return ["tasks", "edit", target.task_id, *typed, *_set(body), "--json"]


def _owner(act: Act, target: Target) -> list[str]:
    return ["--owner", target.owner] if act.names_owner else []


def _type_verb(verb: Verb, about: Command, act: Act, target: Target) -> list[str]:
    body = {to_snake(name): value for name, value in (act.body_for(target) or {}).items()}
    typed = [body[name] for each in about.arguments if (name := each.removesuffix("...")) in body]
    return ["tasks", verb.word, target.task_id, *typed, *(["--yes"] if verb.traits.question else []), "--json"]


COMMANDS: Final[dict[str, Callable[[Act, Any], list[str]]]] = {
    "create_task": _type_new,
    "update_task": _type_edit,
    "batch_change_tasks": lambda *_: ["tasks", "pause-all", "--yes", "--json"],
    **{each.method: partial(_type_verb, each, about) for each in Verb if (about := each.traits.command)},
    "delete_task": partial(_type_verb, Verb.DELETE, Command("")),
    "trigger": lambda a, t: [
        *("tasks", "trigger", t.task_id, "--json"),
        *(["--payload", json.dumps(a.body["payload"])] if a.body else []),
    ],
    "send_event": lambda a, t: ["tasks", "send", t.task_id, a.path["event"], "--payload", "1"],
    "get_task": lambda _, t: ["tasks", "get", t.task_id, "--json"],
    "tree": lambda _, t: ["tasks", "tree", t.task_id, "--json"],
    "get_history": lambda _, t: ["tasks", "history", t.task_id, "--json"],
    "explain_task": lambda a, t: [
        *("tasks", "why", t.task_id, "--json"),
        *(["--at", a.query["at"]] if a.query else []),
    ],
    "search_names": lambda a, t: ["search", a.query["q"], "--json", *_owner(a, t)],
    "list_audit_entries": lambda a, t: ["audit", "--json", *_owner(a, t)],
    "upcoming": lambda _, t: ["tasks", "upcoming", t.task_id, "--json"],
    "list_executions": lambda _, t: ["tasks", "logs", t.task_id, "--json"],
    "list_tasks": lambda a, t: ["tasks", "list", "--json", *_owner(a, t)],
    "get_person": lambda _, t: ["people", "get", t.owner, "--json"],
    "update_person": lambda a, t: [
        *("people", "update", t.owner, "--json"),
        *(f"--set={name}={json.dumps(value)}" for name, value in (a.body or {}).items()),
    ],
    "put_calendar": lambda a, t: ["admin", "calendars", "set", "cal", "--weekdays", "TU", *_owner(a, t)],
    "get_calendar": lambda a, t: ["admin", "calendars", "show", "cal", "--json", *_owner(a, t)],
    "list_calendars": lambda a, t: ["admin", "calendars", "list", "--json", *_owner(a, t)],
    "delete_calendar": lambda a, t: ["admin", "calendars", "delete", "cal", "--yes", *_owner(a, t)],
    "get_usage": lambda a, t: ["admin", "usage", "--json", *_owner(a, t)],
    "list_handlers": lambda *_: ["schema"],
    "list_dispatch_queues": lambda *_: ["admin", "queues", "list", "--json"],
    "purge_dispatch_queue": lambda *_: ["admin", "queues", "purge", "q", "--yes"],
    "update_dispatch_queue": lambda a, _: [
        *("admin", "queues", a.name.split("_")[0], "q"),
        *(("--per-second", "5") if "state" not in (a.body or {}) else ()),
    ],
    "draft_task": lambda a, t: ["tasks", "draft", a.body["text"], "--json", *_owner(a, t)],  # type: ignore[index]
}
"""What is typed for an operation."""


class CommandLine(Door):
    """``cloudsched``, with the person's key."""

    name = "the command line"
    looks_first = True

    def why_not(self, act: Act) -> str | None:
        if act.operation == "batch_change_tasks" and (act.body or {})["action"].upper() != "PAUSE":
            return "there is no command for it"
        return None if act.operation in COMMANDS else "there is no command for it"

    def attempt(self, world: World, who: str, act: Act, target: Target) -> Answer:
        del world  # the commands' clients reach it
        words = COMMANDS[act.operation](act, target)
        place = len(words) if {"audit", "schema", "search", "usage"} & {*words} else 2 if words[0] == "admin" else 1
        typed = [*words[:place], "--url", URL, "--key", key_of(who), *words[place:]]
        out = io.StringIO()
        try:
            with redirect_stdout(out), redirect_stderr(out):
                command_line(typed, prog_name="cloudsched", standalone_mode=False)
        except CloudschedError as error:
            return refuse(error)
        except click.exceptions.Exit as ended:
            assert act.operation == "draft_task", out.getvalue()
            return Answer(DONE, f"{ended.exit_code} {out.getvalue()}")
        return Answer(DONE, out.getvalue())


Form = tuple[str, dict[str, str]]


def _fill_new(act: Act, target: Target) -> Form:
    return "/new", {**_fill(act.body_for(target) or {}), "verb": "create"}


def _fill_edit(act: Act, target: Target) -> Form:
    return f"/tasks/{target.task_id}/edit", {**_fill(act.body or {}), "verb": "save"}


def _fill(body: dict[str, Any]) -> dict[str, str]:
    texts = {name: value for name, value in body.items() if isinstance(value, str)}
    lines = {name: "\n".join(value) for name, value in body.items() if isinstance(value, list)}
    payload = {"payload": json.dumps(body["payload"])} if "payload" in body else {}
    return {**texts, **lines, **payload}


def _fill_verb(verb: str) -> Callable[[Act, Target], Form]:
    return lambda _, target: (f"/tasks/{target.task_id}/verbs/{verb}", {})


def _fill_trigger(act: Act, target: Target) -> Form:
    if act.body is None:
        return _fill_verb("trigger")(act, target)
    return f"/tasks/{target.task_id}/run", {**_fill(act.body), "verb": "run"}


def _fill_event(act: Act, target: Target) -> Form:
    return f"/tasks/{target.task_id}/verbs/send", {"event": act.path["event"], "payload": "1"}


BUTTONS: Final = {
    each: button for each in {*Verb} - {Verb.TRIGGER} if (button := each.traits.button) and not button.field
}
"""The buttons that ask for nothing more."""
FORMS: Final[dict[str, Callable[[Act, Any], Form]]] = {
    "create_task": _fill_new,
    "update_task": _fill_edit,
    "trigger": _fill_trigger,
    "send_event": _fill_event,
    **{each.method: _fill_verb(each.word) for each in (Verb.PAUSE, Verb.RETRY, *BUTTONS)},
    "delete_task": _fill_verb("delete"),
    "cancel_run": lambda _, target: (
        f"/tasks/{target.task_id}/verbs/cancel-run",
        {"executionId": target.execution_id},
    ),
    "update_dispatch_queue": lambda a, _: ("/queues", {"queue": "q", "verb": a.name.split("_")[0]}),
    "mark_message_read": lambda _, target: ("/deliveries", {"owner": target.owner, "message": target.message_id}),
    "batch_retry_executions": lambda a, _: ("/retry", (a.body or {})["filter"]),
    "move": lambda a, target: (f"/tasks/{target.task_id}/verbs/move", {"to": str((a.body or {})["to"])}),
    "put_budget": lambda a, target: (
        "/usage",
        {"owner": target.owner, "queries": str((a.body or {})["maxQueriesPerMonth"]), "tokens": ""},
    ),
    "verify_webhook": lambda _, target: (f"/people/{target.owner}", {"way": "webhook"}),
    "batch_change_tasks": lambda a, _: ("/bulk", {"action": (a.body or {})["action"], "status": "active"}),
}
"""The form of an operation, filled in."""
FIELDS: Final = frozenset(
    {"title", "schedule", "timezone", "payload", "labels", "deliveryChannels", "priority", "lockKey"}
)
"""What the form of a task has; that of a new one has its handler and its owner as well."""
PAGES: Final[dict[str, str]] = {
    "get_task": "/tasks/{task}",
    "list_executions": "/tasks/{task}",
    "get_execution": "/tasks/{task}/executions/{execution}",
    "list_tasks": "/tasks",
    "find_executions": "/runs",
    "list_occurrences": "/due",
    "count_executions": "/calendar",
    "count_occurrences": "/calendar",
    "list_queues": "/queues",
    "list_messages": "/deliveries?owner={owner}",
    "list_owner_deliveries": "/deliveries",
    "get_person": "/people/{owner}",
    "get_usage": "/usage",
    "get_overview": "/",
    "search_names": "/search?q=t",
    "list_audit_entries": "/audit",
}
"""The page that shows what an operation answers; it asks several."""


class Pages(Door):
    """The dashboard, whoever has signed in with their key."""

    name = "the dashboard"
    looks_first = True

    def why_not(self, act: Act) -> str | None:
        if act.operation in PAGES:
            return "a page has no such filter" if act.names_owner else None
        if act.operation not in FORMS:
            return "there is no button for it"
        for verb, button in BUTTONS.items():
            if act.operation == verb.method and (act.body or {}) != button.body:
                return "its button asks for something else"
        if not act.is_creation and act.operation != "update_task":
            return None
        fields = FIELDS | {"handler", "owner"} if act.is_creation else FIELDS
        return None if (act.body or {}).keys() <= fields else "no field of the form says it"

    def attempt(self, world: World, who: str, act: Act, target: Target) -> Answer:
        browser = Browser(Dashboard(world.client(who), place="a test", hosts=None))
        if act.operation in PAGES:
            names = {"task": target.task_id, "execution": target.execution_id, "owner": target.owner}
            page = browser.get(PAGES[act.operation].format(**names), base_url=URL)
        else:
            path, form = FORMS[act.operation](act, target)
            if path.endswith("/edit"):
                opened = browser.get(path, base_url=URL)
                filled = read_form(opened.text) if opened.status_code == HTTPStatus.OK else {}
                form = {**filled, "deliveryChannels": "WEB", **form}
            if path in {"/bulk", "/retry"}:
                asked = BY_NAME[act.operation].path
                counted = world.ask("POST", asked, {**(act.body or {}), "dryRun": True}, headers_of(who))
                count = (counted.get_json() or {}).get("count", {})
                form = {**form, "count": str(count.get("value"))}
            page = browser.post(path, data=form, base_url=URL, headers={"Origin": URL})
        return to_answer(page.status_code, page.text)


class Workers(Door):
    """A worker with the person's key, that claims all that its queue offers, and ends it."""

    name = "a worker"

    def why_not(self, act: Act) -> str | None:
        return None if act.name == "claim" else "it claims, and ends what it has claimed"

    def attempt(self, world: World, who: str, act: Act, target: Target) -> Answer:
        del act, target
        wanted = WorkerFilter("q", worker="box-1")
        source = ApiSource(lambda: world.client(who), world.app.container.registry, wanted, "here")
        try:
            works = source.claim(9)
        except CloudschedError as error:
            return refuse(error)
        return Answer(DONE, " ".join(each.task.title for each in works))


class Tools(Door):
    actors = ("ada",)
    is_exact = False
    leaves_more = True

    def why_not(self, act: Act) -> str | None:
        return None if act.name in TOOL_ACTS else f"{self.name} calls tools with a payload"


class Scripts(Tools):
    """A user's script, which calls a tool: what it starts is somebody's act, too."""

    name = "a script"

    def attempt(self, world: World, who: str, act: Act, target: Target) -> Answer:
        del target
        body = act.body or {}
        source = f"return await tools[{json.dumps(body['handler'])}]({{}})"
        fields = {"title": "Script", "handler": None, "script": {"source": source}}
        return _run_new(world, who, fields, body["handler"])


class Assistants(Tools):
    """The assistant of a user, whose model asks for a tool."""

    name = "the assistant"

    def attempt(self, world: World, who: str, act: Act, target: Target) -> Answer:
        del target
        handler = (act.body or {})["handler"]
        world.model.tool = handler
        for tools in ([handler], ["open"]):  # what the task names is checked, and what the model asks for
            fields = {"title": "Assistant", "handler": "assistant", "purpose": "do it", "payload": {"tools": tools}}
            answer = _run_new(world, who, fields, handler)
            if answer.status == DONE:
                break
        return answer


TOOL_ACTS: Final = (
    *("create a handler for users", "create a handler for servers", "create a handler that nobody knows"),
    *("create the system's refreshing of calendars", "create a batch change as a task"),
)
"""The acts that start a handler by its name alone."""


def _run_new(world: World, who: str, fields: dict[str, Any], handler: str) -> Answer:
    """Create a task that calls a handler, let it run, and return whether the handler was called."""
    body = {**NEW, **fields, "schedule": {"at": (world.sim.now + SECOND).isoformat()}, "timezone": None}
    sent = {name: value for name, value in body.items() if value is not None}
    response = world.ask("POST", "/v1/tasks", sent, headers_of(who))
    if response.status_code != HTTPStatus.CREATED:
        return to_answer(response.status_code, response.get_data(as_text=True))
    world.sim.advance(2 * SECOND)
    called = [each for each in world.app.tasks(TaskQuery(handler=handler)).items if each.parent is not None]
    return Answer(DONE if called else HTTPStatus.FORBIDDEN)


FRONT: Final = FrontDoor()
DOORS: Final[tuple[Door, ...]] = (
    Delegate("delegate"),
    Delegate("admin"),
    ManyNew(),
    ManyChanged("ids"),
    ManyChanged("owner"),
    ManyRetried(),
    Repeated(),
    Checked(),
    Drafted(),
    Agents(),
    Agents("delegate"),
    CommandLine(),
    Pages(),
    Workers(),
    Scripts(),
    Assistants(),
)
