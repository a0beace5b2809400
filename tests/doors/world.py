"""A small world: tasks of five origins, six people with a key each, and an API within this process."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from typing import Any, Final
from urllib.parse import urlencode

import pytest
from tests.authorities import A_USER, with_authority
from tests.web.callers import DAY, make_keys
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request, Response

from cloudsched import App, Context, Fail, Schedule, Settings, Task
from cloudsched.client import AsyncClient, Client
from cloudsched.client import client as client_module
from cloudsched.client.connection import Endpoint
from cloudsched.client.flow import ApiRequest, HttpResponse, JsonResponse, parse_response
from cloudsched.config.access import Access
from cloudsched.config.settings import AssistantSettings
from cloudsched.domain.documents.authority import EventSender, SenderRole
from cloudsched.domain.documents.authority import Requesters as Author
from cloudsched.domain.documents.person import PersonSpec
from cloudsched.domain.documents.recent_count import RecentCount
from cloudsched.domain.documents.record import Record
from cloudsched.domain.documents.system_tasks import BATCH_CHANGE_HANDLER
from cloudsched.domain.documents.task import owner_id_prefix
from cloudsched.domain.transitions.task_draft import TaskDraft
from cloudsched.engine.authority import OWN_CODE
from cloudsched.engine.ports.interpreter import Interpreter, RunningScript, ScriptInput
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.features.budgets.budgets import Budgets
from cloudsched.features.calendars.wiring import CalendarsWiring
from cloudsched.people.documents import ContactSecrets
from cloudsched.people.person_data import list_exported_records
from cloudsched.people.wiring import PeopleWiring
from cloudsched.scripts.stored_scripts import Scripts
from cloudsched.scripts.wiring import ScriptsWiring
from cloudsched.testing import Simulation
from cloudsched.web.auth.roles import Role
from cloudsched.web.functions import serve_api

SECOND: Final = timedelta(seconds=1)
URL: Final = "http://localhost"
PEOPLE: Final[dict[str, tuple[Role, str | None]]] = {
    "ada": (Role.USER, "ada"),
    "bob": (Role.USER, "bob"),
    "carol": (Role.USER, "carol"),
    "reader": (Role.READER, "ada"),
    "viewer": (Role.VIEWER, None),
    "admin": (Role.ADMIN, None),
    "worker": (Role.WORKER, None),
    "delegate": (Role.DELEGATE, None),
}
ACTORS: Final = ("ada", "bob", "reader", "viewer", "admin", "worker")
"""Who tries each act: the owner of what is Ada's, a stranger, and the other roles."""
OWNED: Final = {"own": "ada", "served": "ada", "lent": "ada", "other": "carol", "system": "system"}
"""The origins, with the owner of each. A server wrote for Ada what is ``served``, and what is ``lent``: that runs what
users may name, so Ada could have written it."""
MOST_TASKS: Final = 3
SECRETS: Final = ("handler's log line", "server's payload")
log = logging.getLogger("tests.doors")
log.setLevel(logging.INFO)


def make_app() -> App:
    """Return an app with handlers for users and for servers; all are tools, so that only `access` tells them apart."""
    app = App(Settings())
    for name, access in (("open", "users"), ("closed", "servers")):
        app.handler(name, access=access, tool=True, draft=f"Does what is {name}")(_run)
        app.handler(f"{name}-fails", access=access, tool=True, retry=False)(_fail)
        app.handler(f"{name}-waits", access=access)(_wait)
        app.handler(f"{name}-work", access=access, pull="q")(_run)
    return app


def _run(ctx: Context, payload: dict[str, Any]) -> str:
    del payload
    log.info("the handler's log line")
    return f"result of {ctx.task.title}"


def _fail(payload: dict[str, Any]) -> Fail:
    del payload
    return Fail("it always does")


def _wait(ctx: Context) -> list[Any]:
    return [ctx.wait_for("own"), ctx.wait_for("approved", by=("admin",))]


@cache
def _keys() -> tuple[dict[str, str], Access]:
    return make_keys(PEOPLE, max_active_tasks=MOST_TASKS)


@dataclass(frozen=True, slots=True)
class Target:
    origin: str
    owner: str
    task_id: str = "none"
    execution_id: str = "none"
    lease_token: str = ""
    message_id: str = "none"
    feed_id: str = "0" * 64


class Model:
    """A language model that asks for a tool once, and then answers."""

    def __init__(self) -> None:
        self.tool = ""

    def complete(self, instructions: str, data: Any, schema: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401 - as the port
        """Ask for the tool, or answer."""
        del instructions, schema
        if data.get("done") or not self.tool:
            return {"decision": "answer", "content": "Done."}
        return {"decision": "call", "tool": self.tool, "arguments": {}}


class RememberedChecks:
    """An interpreter that compiles each source once for all worlds, which takes a process of its own."""

    def __init__(self, inner: Interpreter) -> None:
        self._inner = inner

    def check(self, source: str) -> None:
        """Compile a script, unless that was done."""
        if source not in _COMPILED:
            self._inner.check(source)
            _COMPILED.add(source)

    def run(self, script_input: ScriptInput) -> AbstractContextManager[RunningScript]:
        return self._inner.run(script_input)


_COMPILED: Final = set[str]()


class World:
    """One simulation, which is given up after one act.

    Args:
        sim: The simulation, opened.
        model: What the assistant asks.
    """

    def __init__(self, sim: Simulation, model: Model) -> None:
        self.sim = sim
        self.app = sim.app
        self.model = model
        self.has_records = False

    # ── Asking the API ───────────────────────────────────────────────────────────────────────────────────────────

    def ask(self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None) -> Response:
        """Send a request to the API, as a connection would."""
        path, _, query = path.partition("?")
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        builder = EnvironBuilder(path, URL, query, method, headers=list((headers or {}).items()), data=data)
        if data is not None:
            builder.content_type = "application/json"
        environ = {**builder.get_environ(), "REMOTE_ADDR": "127.0.0.1"}
        response = serve_api(self.app, Request(environ))
        response.direct_passthrough = False
        return response

    def client(self, who: str) -> Client:
        return Client(URL, key=key_of(who))

    def async_client(self, who: str) -> AsyncClient:
        """Return a client for an event loop with somebody's key."""
        return AsyncClient(URL, key=key_of(who))

    # ── What there is before an act ──────────────────────────────────────────────────────────────────────────────

    def put(self, owner: str, author: Author, **fields: Any) -> Task:
        """Store a task as a user or a server would have."""
        if author is Author.USERS:
            sender = EventSender(role=SenderRole.OWNER, subject=f"key:{owner}")
            app = self.app.acting_with(replace(A_USER, sender=sender))
            return app.put(TaskDraft.of(owner=owner, **fields))[0]
        return self.app.create(owner=owner, **fields)

    def prepare(self, origin: str, state: str) -> Target:
        owner = OWNED[origin]
        author = Author.USERS if origin in {"own", "other"} else Author.SERVERS
        kind = "open" if author is Author.USERS or origin == "lent" else "closed"
        target = Target(origin, owner)
        if state == "none":
            return target
        if state == "records":
            return self._prepare_records(target, author)
        if state in {"full", "spent"}:
            self._use_up(state)
            return target
        suffix = {"failed": "-fails", "waiting": "-waits", "offered": "-work", "claimed": "-work"}.get(state, "")
        due = self.sim.now + SECOND
        runs_once = state in {"failed", "waiting", "offered", "claimed", "ran"}
        daily = Schedule.every(DAY, start=due - 9 * DAY)
        task = self.put(
            owner,
            author,
            id=f"{owner_id_prefix(owner)}mine",
            title=f"title of {origin}",
            handler=f"{kind}{suffix}",
            payload={"text": f"{origin}'s payload"} if suffix != "-waits" else {},
            schedule=due if runs_once else daily,
            delivery_channels=["WEB"],
        )
        if state == "paused":
            self.app.acting_with(with_authority(author)).pause(task.id)
        if runs_once:
            self.sim.advance(2 * SECOND)
        run = next(iter(self.app.get(task.id).runs), None)
        done = next(iter(self.app.executions(task.id).items), None)
        execution = run.execution_id if run else done.id if done else "none"
        lease = ""
        if state == "claimed":
            claims = json.loads(self.ask("POST", "/v1/queues/q/claim", {}, headers_of("admin")).get_data())["claims"]
            lease = claims[0]["leaseToken"]
        message = next((each.id for each in self.app.inbox(owner).items), "none")
        return Target(origin, owner, task.id, execution, lease, message)

    def _use_up(self, state: str) -> None:
        """Let users have as many tasks as they may, or a budget of nothing."""
        for user in ("ada", "bob"):
            if state == "spent":
                Budgets.of(self.app.container).put(user, 0, by=OWN_CODE)
                continue
            for number in range(MOST_TASKS):
                self.put(user, Author.USERS, title=f"{number}", handler="open", schedule=Schedule.every(DAY))

    def _prepare_records(self, target: Target, author: Author) -> Target:
        owner, parts, self.has_records = target.owner, self.app.container, True
        CalendarsWiring.of(parts).calendars.put(
            "cal", owner, title=f"title of {target.origin}", weekdays=["MO"], by=OWN_CODE
        )
        Scripts(parts.engine).put("scr", owner, source="return 1", by=with_authority(author))
        feed = target.feed_id
        if owner != "system":
            feed = PeopleWiring.of(parts).feeds.create(owner, (), (), by=OWN_CODE)[0].id
            contact = {"name": f"title of {target.origin}", "email": {"address": f"{owner}@example.com"}}
            PeopleWiring.of(parts).people.put(owner, PersonSpec.model_validate(contact), by=A_USER)
            Budgets.of(parts).put(owner, 100, by=OWN_CODE)
        return Target(target.origin, owner, feed_id=feed)

    # ── What an act has changed ──────────────────────────────────────────────────────────────────────────────────

    def look(self) -> tuple[Any, ...]:
        """Return all that is stored once nothing is due, without ids and instants, which differ in each world."""
        self.sim.advance(timedelta(0))
        tasks = self.app.tasks(TaskQuery(), limit=100).items
        shown = [self._show(each) for each in tasks if each.handler != BATCH_CHANGE_HANDLER]
        told = sorted(_DRAWN.sub("", json.dumps(each, sort_keys=True, default=str)) for each in shown)
        return (*told, *self._look_at_records())

    def read(self) -> tuple[Any, ...]:
        """Return all that is stored, as it is, once nothing is due."""
        self.sim.advance(timedelta(0))
        return (self.app.tasks(TaskQuery(), limit=100).items, self._look_at_records())

    def _show(self, task: Task) -> dict[str, Any]:
        wire = task.to_wire()
        runs = [(each.trigger, each.payload, each.lease is not None, each.steps) for each in task.runs]
        events = [(each.name, each.payload, each.sender.role) for each in task.events]
        executions = self.app.executions(task.id, limit=100).items
        ran = [(each.status, each.trigger, each.payload, each.content) for each in executions]
        more = {"schedule": task.schedule.describe(), "runs": runs, "events": events, "ran": ran}
        return {**{name: wire[name] for name in _SHOWN if name in wire}, **more}

    def _look_at_records(self) -> tuple[Any, ...]:
        records, found = self.app.container.store.records, list[tuple[str, str, str]]()
        if not self.has_records:
            return ()
        kinds: tuple[type[Record], ...] = (*list_exported_records(), ContactSecrets, RecentCount)
        for kind in kinds:
            for owner in sorted({*OWNED.values(), "bob"}):
                for each in records.list(kind, owner, limit=20):
                    names = sorted(each.to_wire().keys() - _VOLATILE)
                    found.append((kind.__name__, owner, json.dumps({name: each.to_wire()[name] for name in names})))
        return tuple(sorted(found))


_DRAWN = re.compile(r'-[0-9a-f]{16}(?=")|(?<="since": ")[^"]+')
"""What a change of a calendar is called by, which is drawn, and since when another time zone counts."""
_VOLATILE: Final = frozenset(
    {"id", "createdAt", "updatedAt", "fetchedAt", "expireAt", "webhookSecrets", "sentAt", "summedUntil"}
)
_SHOWN: Final = (
    *("owner", "title", "handler", "payload", "status", "priority", "pull", "lockKey", "lockScope", "children"),
    *("script", "labels", "deliveryChannels", "onCompletion", "ping", "definedBy", "pausedBy", "category"),
)


class Worlds:
    """Worlds with what there is before an act. One in which nothing has changed is used again."""

    def __init__(self) -> None:
        self._unused: dict[tuple[str, str], list[tuple[World, Target, tuple[Any, ...]]]] = {}
        self._parts: dict[World, ExitStack] = {}
        self._apps: list[App] = []

    @contextmanager
    def enter(self, state: str = "none", origin: str = "own") -> Iterator[tuple[World, Target]]:
        """Give a world that has what is of an origin, in a state; clients reach its API without a socket."""
        unused = self._unused.setdefault((origin, state), [])
        world, target, before = unused.pop() if unused else self._make(origin, state)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(client_module, "Connection", lambda *arguments: _Connection(world, *arguments))
            patch.setattr(client_module, "AsyncConnection", lambda *arguments: _AsyncConnection(world, *arguments))
            yield world, target
        if world.read() == before:
            unused.append((world, target, before))
        else:
            self._parts.pop(world).close()
            self._apps.append(world.app)

    def close(self) -> None:
        while self._parts:
            self._parts.popitem()[1].close()
        self._unused.clear()

    def _make(self, origin: str, state: str) -> tuple[World, Target, tuple[Any, ...]]:
        model = Model()
        made = Simulation(
            self._apps.pop() if self._apps else make_app(),
            access=_keys()[1],
            public_url="https://api.example",
            language_model=model,
            assistant=AssistantSettings(is_on=True),
        )
        with ExitStack() as parts:
            sim = parts.enter_context(made)
            ScriptsWiring.of(sim.app.container).replace(
                interpreter=RememberedChecks(ScriptsWiring.of(sim.app.container).interpreter)
            )
            world = World(sim, model)
            target = world.prepare(origin, state)
            before = world.read()
            self._parts[world] = parts.pop_all()
        return world, target, before


WORLDS: Final = Worlds()


class _Connection:
    """What a client sends requests with: it calls the API's function, and parses its answers as ever."""

    def __init__(self, world: World, endpoint: Endpoint, *_: object) -> None:
        self._world = world
        self._endpoint = endpoint

    def send(self, request: ApiRequest) -> JsonResponse:
        written = self._endpoint.write(request, {})
        path = written["url"].removeprefix(URL) + (f"?{urlencode(written['params'])}" if written["params"] else "")
        answer = self._world.ask(written["method"], path, written["content"], written["headers"])
        response = HttpResponse(answer.status_code, answer.status, dict(answer.headers), answer.get_data())
        return parse_response(response, self._endpoint.server)

    def close(self) -> None:
        """Do nothing: nothing is open."""


class _AsyncConnection(_Connection):
    async def send(self, request: ApiRequest) -> JsonResponse:  # type: ignore[override]
        return super().send(request)

    async def close(self) -> None:  # type: ignore[override]
        pass


def key_of(who: str) -> str:
    return _keys()[0][who]


def headers_of(who: str) -> dict[str, str]:
    return {"X-Api-Key": key_of(who)}
