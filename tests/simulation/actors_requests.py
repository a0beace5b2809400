"""Programs that call the API over a bad network: answers are lost, and each request is sent again until it gets one.

Between two sendings a minute may pass or an hour, so words such as "in 2 minutes" mean something else, or nothing. What
holds, whatever fails and dies on the way:

R1  each task that was asked for is there once, and runs once;
R2  a repetition of what was made is answered by 200, and never by an error, though its words have passed;
R3  an edit of a state that its caller has seen is made once if it is answered by 200, and not at all if it is refused;
R4  a trigger with a key starts one run, and so does a snooze.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request

from cloudsched import App, Context, Done, Task
from cloudsched.domain.documents.execution import Trigger
from cloudsched.domain.documents.verbs import Action
from cloudsched.errors import InvalidInput, StoreUnavailable
from cloudsched.web.functions import serve_api

if TYPE_CHECKING:
    from tests.simulation.world import World


_WORDS = ("in 2 minutes", "PT90S", "in 20 minutes", "at 0:30", "in 3 hours", "today at 22:30", "today at 21:00")
_LATER = ("one hour later", "in 30 minutes", "PT45M")
_PAUSES = (0.0, 1.0, 90.0, 4000.0)
_TASKS = 8
_LOST = 0.5
_OK, _CREATED, _REFUSED, _FAILED, _UNAVAILABLE = 200, 201, 400, 500, 503


@dataclass(eq=False)
class Intent:
    """One thing that a program wants, and sends until it is answered."""

    at: datetime
    send: Callable[[Intent, App], int]
    """Sends it once; returns the status of the answer."""
    statuses: list[int] = field(default_factory=list)
    """The statuses of all answers that were made, those that were lost included."""
    task_id: str = ""
    """The task that it made or changed, once it is answered."""
    etag: str = ""
    """The state that it edits, once that is read."""
    is_answered: bool = False


class Requests:
    def __init__(self, world: World) -> None:
        self._world = world
        self._creations: list[Intent] = []
        self._edits: list[Intent] = []
        self._runs: dict[Trigger, list[Intent]] = {Trigger.MANUAL: [], Trigger.SNOOZE: []}
        self._open: list[Intent] = []
        if world.fault_profile.loses_answers:
            for number in range(_TASKS):
                self._add(self._creations, self._draw_creation(number))

    def next_at(self) -> datetime | None:
        return min((each.at for each in self._open), default=None)

    def act(self) -> None:
        intent = min(self._open, key=lambda each: each.at)
        self._open.remove(intent)
        self._world.start_process("client", self._world.apps[3], partial(self._send, intent))

    def _add(self, kind: list[Intent], send: Callable[[Intent, App], int]) -> None:
        moment = self._world.now + self._world.fault_profile.length / 2 * self._world.random.random()
        intent = Intent(moment, send)
        kind.append(intent)
        self._open.append(intent)

    def _send(self, intent: Intent) -> None:
        world = self._world
        assert world.current
        status = _FAILED
        try:
            world.rules.on_client_request("create")
            status = intent.send(intent, world.current.app)
        finally:
            intent.statuses.append(status)
            is_lost = world.faults_enabled and world.random.random() < _LOST
            world.log(f"answers {status}{', which is lost' if is_lost else ''}")
            if is_lost or status >= _FAILED:
                intent.at = world.now + timedelta(seconds=world.random.choice(_PAUSES))
                self._open.append(intent)
            else:
                intent.is_answered = True
                self._follow(intent)

    def _follow(self, intent: Intent) -> None:
        """Let what was created be edited, or triggered, by the next intent."""
        random = self._world.random
        if intent in self._creations and intent.task_id and random.random() < 0.5:
            patch = {"schedule": random.choice(_LATER)}
            self._add(self._edits, partial(self._edit, intent.task_id, patch))
        elif intent in self._creations and intent.task_id:
            trigger = random.choice([Trigger.MANUAL, Trigger.SNOOZE])
            self._add(self._runs[trigger], partial(self._start, intent.task_id, trigger))

    # ── The ways to create a task ────────────────────────────────────────────────────────────────────────────────

    def _draw_creation(self, number: int) -> Callable[[Intent, App], int]:
        random = self._world.random
        task = {"title": f"R{number}", "owner": "ada", "handler": "asked", "schedule": random.choice(_WORDS)}
        own, key = {"id": f"r-{number}"}, {"Idempotency-Key": f"key-{number}"}
        derived = {"handler": "asked-about", "payload": {"n": number}}
        return random.choice(
            [
                partial(self._post, "/v1/tasks", {**task, **own}, {}),
                partial(self._post, "/v1/tasks", task, key),
                partial(self._post, "/v1/tasks", {**task, **derived}, key),
                partial(self._post, "/v1/tasks/batchCreate", {"tasks": [{**task, **own}]}, key),
                partial(self._post, "/v1/tasks/batchCreate", {"tasks": [task]}, key),
                partial(self._call, {**task, **own}),
            ]
        )

    def _post(self, path: str, body: dict[str, Any], headers: dict[str, str], intent: Intent, app: App) -> int:
        status, content, _ = self._ask(app, "POST", path, body, headers)
        if "results" in content:
            (result,) = content["results"]
            status, content = result["status"], result.get("task", {})
        intent.task_id = content.get("id", "") or intent.task_id
        return status

    @staticmethod
    def _call(fields: dict[str, Any], intent: Intent, app: App) -> int:
        try:
            intent.task_id = app.create(**fields).id
        except StoreUnavailable:
            return _UNAVAILABLE
        except InvalidInput:
            return _REFUSED
        return _OK

    def _edit(self, task_id: str, patch: dict[str, Any], intent: Intent, app: App) -> int:
        path = f"/v1/tasks/{task_id}"
        if not intent.etag:
            status, _, intent.etag = self._ask(app, "GET", path)
            if status != _OK:
                return _FAILED
        intent.task_id = task_id
        return self._ask(app, "PATCH", path, patch, {"If-Match": intent.etag})[0]

    def _start(self, task_id: str, trigger: Trigger, intent: Intent, app: App) -> int:
        intent.task_id = task_id
        verb, body = ("snooze", {"duration": "3 minutes"}) if trigger is Trigger.SNOOZE else ("trigger", None)
        return self._ask(app, "POST", f"/v1/tasks/{task_id}/{verb}", body, {"Idempotency-Key": f"start {task_id}"})[0]

    @staticmethod
    def _ask(
        app: App, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, Any], str]:
        data = None if body is None else json.dumps(body).encode()
        builder = EnvironBuilder(path, "http://localhost", method=method, headers=[*(headers or {}).items()], data=data)
        response = serve_api(app, Request({**builder.get_environ(), "REMOTE_ADDR": "127.0.0.1"}))
        response.direct_passthrough = False
        return response.status_code, json.loads(response.get_data()), response.headers.get("ETag", "")

    # ── What holds ───────────────────────────────────────────────────────────────────────────────────────────────

    def check_end_state(self) -> None:
        assert not self._open, "a request is still to be sent"
        for intent in self._creations:
            answers = [each for each in intent.statuses if each < _FAILED]
            made_at = next((number for number, each in enumerate(answers) if each != _REFUSED), len(answers))
            repeated = {*answers[made_at:]}  # words that had passed before are refused until they mean another day
            assert repeated <= {_OK, _CREATED}, f"R2: a creation was answered by {intent.statuses}"
        made = [each.task_id for each in self._creations if each.task_id]
        assert len({*made}) == len(made), f"R1: one task was made of two requests: {made}"
        tasks = {task.id: task for task in self._world.tasks() if task.title.startswith("R")}
        assert tasks.keys() == {*made}, f"R1: {sorted(tasks)} are stored, and {made} were asked for"
        for task in tasks.values():
            self._check_task(task)

    def _check_task(self, task: Task) -> None:
        edits = [each for each in self._edits if each.task_id == task.id]
        for edit in edits:
            answers = {each for each in edit.statuses if each < _FAILED}
            assert answers == {_OK} or _OK not in answers, f"R3: {task.id} was answered by {edit.statuses}"
        edited = sum(_OK in each.statuses for each in edits)
        entries = sum(entry.action is Action.EDITED for entry in task.history)
        assert entries == edited, f"R3: {task.id} was edited {entries} times, and {edited} edits were made"
        found = self._world.real_store.search.list_executions(task.id, limit=100).items
        for trigger, intents in self._runs.items():
            made = [each for each in found if each.trigger is trigger]
            asked = sum(_OK in each.statuses for each in intents if each.task_id == task.id)
            assert len(made) == asked, f"R4: {task.id} has {len(made)} {trigger} runs, and {asked} were asked for"
        scheduled = [each for each in found if each.trigger is Trigger.SCHEDULE]
        due = task.schedule.at is not None and task.schedule.at <= self._world.now
        if not edited:
            assert len(scheduled) == due, f"R1: {task.id} has {len(scheduled)} runs, and is due {task.schedule.at}"


def register_asked_handlers(app: App, world: World) -> None:
    """Register the handlers of what is asked for; the second one makes the ids of its tasks."""

    @app.handler("asked", access="users")
    def asked(ctx: Context) -> Done:
        return run(ctx)

    @app.handler("asked-about", access="users", task_id=lambda payload: f"about-{payload['n']}")
    def asked_about(ctx: Context, payload: dict[str, int]) -> Done:
        del payload
        return run(ctx)

    def run(ctx: Context) -> Done:
        world.rules.on_handler_start(ctx)
        try:
            world.yield_control()
        finally:
            world.rules.on_handler_end(world.current)
        return Done({"attempt": ctx.attempt})
