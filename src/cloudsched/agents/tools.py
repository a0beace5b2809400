"""The tools of one person, by which an agent keeps the person's schedules.

Each calls the HTTP API with the rights of its client. Times are said and meant in the person's time zone, which is
stored once. Every change is answered with the task's receipt: when it runs, and what stands in the way of that.
"""

from __future__ import annotations

import hashlib
import json
import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final, Self
from urllib.parse import quote
from zoneinfo import ZoneInfo

from pydantic import AwareDatetime, Field

from cloudsched.agents.advice import advise, strip
from cloudsched.agents.arguments import AgentTool, ToolRefused, offer
from cloudsched.client.flow import ApiRequest, Listing, fetch, given, parse_task
from cloudsched.client.task_operations import task_path
from cloudsched.client.views import TaskView, reader
from cloudsched.domain.documents.delivery_channels import DeliveryChannel
from cloudsched.domain.documents.execution import Message
from cloudsched.domain.documents.receipt import Reason, Receipt
from cloudsched.domain.documents.task import FINAL_STATUSES, TaskStatus
from cloudsched.domain.recurrence.time_zones import load_tzinfo, require_zone
from cloudsched.domain.responses.api_responses import CallerInfo
from cloudsched.domain.schedules.planned_words import describe_planned
from cloudsched.errors import CloudschedError, Forbidden, InvalidSchedule, NotAwaited, NotFound, UnknownHandler

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from cloudsched.client import AsyncClient
    from cloudsched.client.flow import Flow
    from cloudsched.client.local_client import AsyncLocalClient
    from cloudsched.domain.documents.execution import Execution

PAGE: Final = 20
"""The most tasks, and the most questions, of one answer."""
MOST_PAGES: Final = 10
"""The most pages that are read for one answer: a search may find nothing on the first ones."""
SHOWN: Final = 5
"""The number of instants, and of runs, in an answer."""
SHOWN_LINES: Final = 100
MAX_CONTENT: Final = 4_000
"""The most characters of a run's result that are shown."""
UNKNOWN_ZONE: Final = "UTC"
"""The zone that is stored of people who have told none."""
IN_UTC: Final = "Etc/UTC"
"""The zone that is stored of people who are in UTC."""
_SHOWN_FIELDS: Final = ("title", "payload", "schedule", "delivery_channels")
_JUST_NOW: Final = timedelta(seconds=5)
"""The age at which a task was there before the call, whichever clock has measured it."""
_KEPT: Final = "Tasks that exist keep their times, except those that follow the person."
_ENDS_BY_ITSELF: Final = frozenset({Reason.ENDED, Reason.PAUSED})
_WITHOUT_ZONE: Final = re.compile(
    r"\d{4}-\d\d-\d\dT\S*(Z|[+-]\d\d:?\d\d)|P\S*\d\S*|[^:]*\b(second|sec|minute|min|hour)s?\b[^:]*", re.IGNORECASE
)
"""What means the same in every zone: an instant with its offset, a duration."""

_IN_PATH: Final = r"^[^/]*[^/.][^/]*$"
"""What can stand in a path: it has no slash, and not only dots."""

Id = Annotated[str, Field(description="The task's id, from find_tasks.", pattern=_IN_PATH)]
Run = Annotated[
    str | None,
    Field(description="The id of a run, from read_task. The last one if you leave it out.", pattern=_IN_PATH),
]
Words = Annotated[
    str,
    Field(
        description="Plain English, cron or RRULE: 'every weekday at 9:00', 'tomorrow at 17:00', 'in 10 minutes', "
        "'now'. Times of day are those of the person's time zone."
    ),
]
Title = Annotated[str, Field(description="What it is, in a few words.", min_length=1, max_length=500)]
Channels = Annotated[
    list[DeliveryChannel] | None,
    Field(
        description="How the person gets the results: WEB (the inbox), EMAIL, MOBILE and so on. Without any, they "
        "stay in read_task, unless the handler sends a message of its own."
    ),
]
RunAt = Annotated[
    AwareDatetime | None,
    Field(
        description="The time of the run that is meant, as in the task's `next`, if it is a later one than the next."
    ),
]
ZoneName = Annotated[str, Field(description="An IANA time zone, such as Europe/Paris.")]


class AgentTools:
    """The tools of one person, with exactly the rights of a client."""

    def __init__(self, client: AsyncClient | AsyncLocalClient, caller: CallerInfo, key: str | None = None) -> None:
        self._client = client
        self._caller = caller
        self._key = key
        self._zone: str | None = None

    @classmethod
    async def of(cls, client: AsyncClient | AsyncLocalClient, key: str | None = None) -> Self:
        """Return the tools of whom the client acts for. Raises Unauthenticated, or Unavailable.

        With a key, they are those of one call, and its repetition changes nothing more.
        """
        return cls(client, await client.run_flow_async(fetch("a caller", CallerInfo, "GET", "/v1/caller")), key)

    @property
    def offered(self) -> dict[str, AgentTool]:
        """Return the tools that the caller may use, by their names. Who may only read gets those that only read."""
        return {name: each for name, each in TOOLS.items() if each.effects.reads or self._caller.may_change}

    async def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer of a tool. Raises ToolRefused."""
        tool = self.offered.get(name)
        if tool is None and name in TOOLS:
            raise ToolRefused(f"This connection may only read, and {name} changes something. Do not repeat the call.")
        if tool is None:
            raise ToolRefused(f"There is no tool '{name}'. There are: {', '.join(self.offered)}.")

        read = tool.read(dict(arguments))
        try:
            answer: dict[str, Any] = await tool.method(self, **read)
        except CloudschedError as error:
            raise ToolRefused(advise(error, tool.arguments.model_fields)) from error
        return answer

    # ------------------------------------------------------------------ reading

    @offer(reads=True)
    async def find_tasks(
        self,
        words: Annotated[
            str, Field(description="Words in its title, id, handler, labels or payload. All tasks if empty.")
        ] = "",
        status: Annotated[TaskStatus | None, Field(description="Only tasks of this status.")] = None,
        cursor: Annotated[
            str | None, Field(description="The `cursor` of the previous answer, for what follows.")
        ] = None,
    ) -> dict[str, Any]:
        """Find the person's tasks by words, the newest first, also those that have ended. Use it to get ids.

        Answers at most 20 tasks, each with its next time. If there is a `cursor` in the answer, there are more: call
        again with it and the same words. `questions` are what tasks ask this person and wait for: use
        `answer` for them.
        """
        zone = await self._find_zone()
        is_continued = cursor is not None
        query = {"search": words.strip() or None, "status": status, "pageSize": PAGE, "calls": "false"}
        listing = Listing("/v1/tasks", "tasks", query, TaskView.from_response)
        found: list[TaskView] = []
        for _ in range(MOST_PAGES):
            found, cursor = await self._client.run_flow_async(listing.fetch(cursor))
            if found or cursor is None:
                break
        now = _local(self._caller.now, zone, "minutes")
        known = "unknown: call i_am_in" if zone.key == UNKNOWN_ZONE else zone.key
        answer = {
            "zone": known,
            "now": now,
            "tasks": [self._show_row(each, zone) for each in found],
            "cursor": cursor,
        }
        return {**answer, "questions": [] if is_continued else await self._list_questions(zone)}

    @offer(reads=True)
    async def read_task(self, id: Id) -> dict[str, Any]:
        """Show all of a task: its payload, when it runs next and why or why not, what it waits for, its last runs.

        `why` explains the present state. `awaits` are the events that a run waits for: send one with `answer`.
        """
        zone = await self._find_zone()
        task = await self._client.run_flow_async(_fetch_with_receipt(id))
        why = await self._client.explain(id)
        runs = await _take(self._client.executions(id), SHOWN)
        waiting = [each for each in why.findings if each.reason == Reason.WAITING_FOR_EVENT]
        return {
            **self._show(task, zone),
            "created": _local(task.created_at, zone, "minutes"),
            "payload": task.payload,
            "channels": list(task.delivery_channels),
            "why": [strip(each.sentence) for each in why.findings],
            "awaits": [{"run": each.execution_id, "told": each.sentence} for each in waiting],
            "runs": [_show_run(each, zone) for each in runs],
        }

    @offer(reads=True)
    async def preview(self, when: Words) -> dict[str, Any]:
        """Show what words mean as a schedule, and the next five times. Nothing is stored.

        Use it before create_task or change_task. Words with several meanings are refused, with all of them.
        """
        zone = await self._require_zone()
        meant = await self._client.describe_schedule(when, timezone=zone.key, count=SHOWN)
        return {
            "zone": zone.key,
            "now": _local(self._caller.now, zone, "minutes"),
            "schedule": meant.description,
            "next": [_local(each.utc, zone) for each in meant.occurrences],
            "assumed": list(meant.assumptions or ()),
        }

    @offer(reads=True)
    async def list_handlers(self) -> dict[str, Any]:
        """List what tasks can do: the handlers that create_task may name, each with the JSON schema of its payload."""
        handlers = await self._client.handlers()
        return {
            "handlers": [
                {
                    "handler": each.name,
                    "does": each.description or "",
                    "payload": each.payload_schema or {"type": "object"},
                    "events": each.event_schemas or {},
                }
                for each in handlers
            ]
        }

    @offer(reads=True)
    async def read_log(self, id: Id, run: Run = None) -> dict[str, Any]:
        """Show the last lines that a run has logged, at most 100. What a run has returned is in read_task."""
        zone = await self._find_zone()
        if run is None:
            runs = await _take(self._client.executions(id), 1)
            if not runs:
                raise ToolRefused("This task has not run yet, so there is no log.")
            run = runs[0].id
        log = await self._client.logs(id, run)
        lines = log.lines[-SHOWN_LINES:]
        return {
            "run": run,
            "lines": [f"{_local(each.at, zone)} {each.level} {each.text}" for each in lines],
            "omitted": log.omitted_lines + len(log.lines) - len(lines),
        }

    # ------------------------------------------------------------------ changing

    @offer(adds=True, repeats=True, starts=True)
    async def create_task(
        self,
        title: Title,
        handler: Annotated[str, Field(description="What runs: a name from list_handlers.")],
        when: Words,
        payload: Annotated[
            dict[str, Any] | None, Field(description="What the handler is given, as its schema in list_handlers says.")
        ] = None,
        channels: Channels = None,
        key: Annotated[
            str | None, Field(description="Any text of your own: the same key never creates a second task.")
        ] = None,
    ) -> dict[str, Any]:
        """Create a task that runs once or again and again. A time in the past is refused.

        Read `told` to the person: it says when it runs, or "Created, but" and what stands in the way. The same call
        again creates nothing, however much later: for another task that is just like it, give a `key`.
        """
        zone = await self._require_zone()
        fields: dict[str, Any] = {
            "title": title,
            "handler": handler,
            "schedule": when,
            "timezone": zone.key,
            **given(payload=payload, delivery_channels=channels),
        }
        try:
            task = await self._client.create(idempotency_key=_derive_key("create", key or fields, self._key), **fields)
        except UnknownHandler as error:
            known = ", ".join(each.name for each in await self._client.handlers()) or "none"
            raise ToolRefused(
                f"Nothing was created. 'handler': there is no handler '{handler}' for this person. There are: {known}. "
                "list_handlers shows what each takes."
            ) from error
        if task.created_at < self._caller.now - _JUST_NOW:
            again = await self._client.run_flow_async(_fetch_with_receipt(task.id))
            made = f"this call made the task on {_say(task.created_at, zone)}, and it is {again.status}"
            told = f"Not created again: {made}. For another one that is the same, give a new `key`."
            return {**self._show(again, zone), "told": told}
        return self._receipt("Created", task, zone)

    @offer(starts=True)
    async def change_task(
        self,
        id: Id,
        when: Annotated[
            str | None, Field(description="A new schedule for all its runs, or 'make it 10:00', 'an hour later'.")
        ] = None,
        title: Title | None = None,
        channels: Channels = None,
        payload_merge: Annotated[
            dict[str, Any] | None,
            Field(description="The fields of the payload to change. All others stay, and null removes one."),
        ] = None,
        move_to_zone: Annotated[
            str | None,
            Field(
                description="Another IANA time zone for the task: its times of day stay the same, in that zone. "
                "Not for the person's own zone: that is i_am_in."
            ),
        ] = None,
        *,
        turn_into_single_run: Annotated[
            bool, Field(description="True only if a repeating task is to run once more, and then never again.")
        ] = False,
    ) -> dict[str, Any]:
        """Change a task's schedule, title, channels, payload or zone. What you do not name stays as it is.

        It changes all runs to come. Use move_next or skip_next for one run only, and pause_task to stop for a while.
        The same call again may change it again: "an hour later" twice is two hours. A cancelled task is refused.
        """
        task = await self._find_changeable(id)
        zone = await (self._find_zone() if when is None else self._require_zone())
        merged = payload_merge or None
        changes: dict[str, Any] = given(title=title, delivery_channels=channels, payload_merge=merged, schedule=when)
        if move_to_zone is not None:
            changes |= _move(task, when, _read_zone(move_to_zone, "move_to_zone"))
        elif when is not None and not task.schedule.follows_owner:
            changes["timezone"] = self._require_one_zone(task, zone)
        if not changes:
            raise ToolRefused("Nothing to change: give when, title, channels, payload_merge or move_to_zone.")

        if when is not None and not task.is_one_time and not turn_into_single_run:
            planned = await self._client.validate_task(id, **changes)
            if planned.is_one_time:
                raise ToolRefused(
                    f"Nothing was changed: '{when}' is one time, and this task repeats ({_describe(task)}). To move "
                    "only its next run, use move_next. To end the series with one more run, repeat the call with "
                    "turn_into_single_run=true."
                )
        changed = await self._client.update(id, etag=task.etag or None, idempotency_key=self._mark("change"), **changes)
        is_same = all(getattr(task, each) == getattr(changed, each) for each in _SHOWN_FIELDS)
        done = "Nothing is different: it was so already" if is_same else "Changed"
        if task.status in FINAL_STATUSES and changed.status not in FINAL_STATUSES:
            done = "Changed: it had ended, and runs again"
        return self._receipt(done, changed, zone)

    @offer(starts=True)
    async def move_next(
        self,
        id: Id,
        to: Annotated[
            str,
            Field(description="Its new time: '17:00' on the same day, 'Friday', 'tomorrow at 10', 'an hour later'."),
        ],
        run_at: RunAt = None,
    ) -> dict[str, Any]:
        """Run one run of a task at another time: the next, which may be today's, or the one of `run_at`.

        All other runs stay as they are. The same call again moves the run that is next then.
        """
        zone = await self._prepare(id, "to", to)
        moved = await self._client.move(id, run_at or "next", to, idempotency_key=self._mark("move"))
        return self._receipt("Moved", moved, zone)

    @offer()
    async def skip_next(self, id: Id, run_at: RunAt = None) -> dict[str, Any]:
        """Leave out one run of a repeating task: the next, which may be today's, or the one of `run_at`.

        All other runs stay. The same call again skips the run that is next then.
        """
        zone = await self._prepare(id)
        skipped = await self._client.skip(id, run_at or "next", idempotency_key=self._mark("skip"))
        return self._receipt("Skipped", skipped, zone)

    @offer()
    async def pause_task(
        self,
        id: Id,
        until: Annotated[
            str | None,
            Field(description="When it goes on by itself: 'Monday', '15 December at 9:00'. A day begins at midnight."),
        ] = None,
    ) -> dict[str, Any]:
        """Stop a task for a while: what falls into that time does not run.

        Without `until`, only resume_task ends it.
        """
        zone = await self._prepare(id, "until", until)
        task = await self._client.pause(id, until=until, idempotency_key=self._mark("pause"))
        end = "resume_task is called" if task.paused_until is None else _say(task.paused_until, zone)
        return self._receipt(f"Paused until {end}", task, zone, _ENDS_BY_ITSELF)

    @offer(repeats=True, starts=True)
    async def resume_task(self, id: Id) -> dict[str, Any]:
        """End a pause now. The task goes on with its first time from now; what was left out is not made up for."""
        zone = await self._prepare(id)
        return self._receipt("Resumed", await self._client.resume(id), zone)

    @offer(repeats=True)
    async def cancel_task(self, id: Id) -> dict[str, Any]:
        """Cancel a task for good: it does not run again. Its record stays, and no tool here can revive it.

        Ask the person first, if they have not said so. To stop for a while, use pause_task. To leave out one run, use
        skip_next.
        """
        zone = await self._find_zone()
        task = await self._client.cancel(id)
        if task.status is not TaskStatus.CANCELLED:
            return {**self._show(task, zone), "told": f"Not cancelled: it had ended before, and is {task.status}."}
        return self._receipt("Cancelled: it does not run again", task, zone, _ENDS_BY_ITSELF)

    @offer(adds=True, starts=True)
    async def run_task(self, id: Id) -> dict[str, Any]:
        """Run a task once now, beside its schedule, which stays as it is. Each call is one more run."""
        zone = await self._prepare(id)
        task = await self._client.trigger(id, idempotency_key=self._mark("run"))
        run = None if task.triggered is None else task.triggered.execution_id
        return {**self._receipt("A run begins now", task, zone), "run": run}

    @offer(starts=True)
    async def snooze_task(
        self,
        id: Id,
        duration: Annotated[
            str, Field(description="How long: '10 minutes', '2 hours', 'tomorrow at 9:00'. At most 30 days.")
        ] = "10 minutes",
    ) -> dict[str, Any]:
        """Repeat the last run of a task later, such as a reminder that came at a bad moment.

        Its schedule stays as it is. A task that has never run is refused: use move_next. Another call moves the
        snooze.
        """
        zone = await self._prepare(id, "duration", duration)
        task = await self._client.snooze(id, duration, idempotency_key=self._mark("snooze"))
        until = "" if task.snoozed_until is None else f": its last run is repeated on {_say(task.snoozed_until, zone)}"
        return self._receipt(f"Snoozed{until}", task, zone)

    @offer(starts=True)
    async def retry_run(self, id: Id, run: Run = None) -> dict[str, Any]:
        """Try a run that has failed once more. Its schedule stays as it is. A run that succeeded is refused."""
        zone = await self._prepare(id)
        return self._receipt(
            "It is tried again", await self._client.retry(id, run, idempotency_key=self._mark("retry")), zone
        )

    @offer(starts=True)
    async def answer(
        self,
        id: Id,
        event: Annotated[
            str,
            Field(description="The event's name, from read_task or from find_tasks' `questions`.", pattern=_IN_PATH),
        ],
        payload: Annotated[dict[str, Any] | None, Field(description="The answer, such as {'approved': true}.")] = None,
        run: Annotated[str | None, Field(description="The run that it is for, if several wait.")] = None,
    ) -> dict[str, Any]:
        """Answer a run that waits for something, such as an approval. Let the person decide what to answer.

        An answer that has been taken cannot be taken back. If nothing waits for it, it is refused.
        """
        zone = await self._find_zone()
        try:
            task = await self._client.send_event(
                id, event, payload, execution_id=run, idempotency_key=self._mark("answer")
            )
        except NotAwaited as error:
            awaited = "; ".join(f"'{each.name}' by run {each.execution_id}" for each in error.awaited)
            told = f"These are awaited: {awaited}." if awaited else "The task waits for nothing now."
            raise ToolRefused(f"Nothing was sent: '{event}' is not awaited. {told}") from error
        if task is None:  # another person's, whose task the caller may not see
            return {"id": id, "told": "Sent."}
        return self._receipt("Sent", task, zone)

    @offer(repeats=True)
    async def i_am_in(self, zone: ZoneName) -> dict[str, Any]:
        """Store the person's time zone, once. All times are read and shown in it from then on.

        Tasks that exist keep their times, except those that follow the person. Ask the person; do not guess.
        """
        name = _read_zone(zone, "zone")
        owner = self._caller.owner
        if owner is None:
            raise ToolRefused("This connection acts for no person, so its times are those of UTC. Nothing was stored.")

        stored = IN_UTC if name == UNKNOWN_ZONE else name
        try:
            await self._client.update_person(owner, timezone=stored)
        except NotFound:
            await self._client.put_person(owner, timezone=stored)
        now = _local(self._caller.now, load_tzinfo(stored))
        return {"zone": stored, "now": now, "told": f"Noted: the person is in {name}. {_KEPT}"}

    # ------------------------------------------------------------------ what they share

    async def be_in(self, zone: str) -> None:
        """Store the person's zone, if it is another one."""
        if (await self._find_zone()).key not in {zone, IN_UTC if zone == UNKNOWN_ZONE else zone}:
            if self._caller.may_change:
                await self.i_am_in(zone)
            self._zone = zone

    def _mark(self, tool: str) -> str | None:
        """Return the key of the present call, if it has one."""
        return None if self._key is None else _derive_key(tool, self._key)

    async def _find_zone(self) -> ZoneInfo:
        """Return the person's zone, or UTC if it is not known."""
        if self._zone is None:
            self._zone = UNKNOWN_ZONE
            if self._caller.owner is not None:
                try:
                    self._zone = (await self._client.person(self._caller.owner)).timezone
                except (NotFound, Forbidden):
                    self._zone = UNKNOWN_ZONE
        return load_tzinfo(self._zone)

    async def _require_zone(self) -> ZoneInfo:
        """Return the person's zone, in which words are read. Raises ToolRefused if it has to be told first."""
        zone = await self._find_zone()
        if zone.key == UNKNOWN_ZONE and self._caller.owner is not None and self._caller.may_change:
            raise ToolRefused(
                "Nothing was done: the person's time zone is not known yet. Ask the person, call i_am_in with it once, "
                "and then repeat this call."
            )
        return zone

    async def _find_changeable(self, id: str) -> TaskView:
        task = await self._client.get(id)
        if task.status is TaskStatus.CANCELLED:
            raise ToolRefused("Nothing was done: this task is CANCELLED for good. Create a new one with create_task.")
        return task

    async def _prepare(self, id: str, argument: str = "", words: str | None = None) -> ZoneInfo:
        """Return the person's zone for a change. Refuse words that the API would read in another one."""
        task = await self._find_changeable(id)
        if words is None:
            return await self._find_zone()
        zone = await self._require_zone()
        if not _is_in(task, zone) and not _WITHOUT_ZONE.fullmatch(words.strip()):
            example = _local(self._caller.now + timedelta(days=1), zone, "minutes")
            raise ToolRefused(
                f"Nothing was done: the person is in {zone.key}, and this task's times are those of {task.timezone}. "
                f"Give '{argument}' as an instant with its offset, such as {example}."
            )
        return zone

    @staticmethod
    def _require_one_zone(task: TaskView, zone: ZoneInfo) -> str:
        """Return the zone in which a new schedule of a task is read. Raises ToolRefused if two may be meant."""
        if not (task.is_one_time or _is_in(task, zone)):
            raise ToolRefused(
                f"Nothing was changed: the person is in {zone.key}, and this task's times are those of "
                f"{task.timezone}. Say which is meant: move_to_zone='{task.timezone}' or move_to_zone='{zone.key}'."
            )
        return zone.key

    async def _list_questions(self, zone: ZoneInfo) -> list[dict[str, Any]]:
        """Return what tasks have asked the person by name and still wait for, the newest first."""
        if self._caller.owner is None:
            return []
        path = f"/v1/inboxes/{quote(self._caller.owner, safe='')}/messages"
        listing = Listing(path, "messages", {"awaited": "true"}, reader(Message))
        asked: list[Message] = []
        token = None
        for _ in range(MOST_PAGES):
            page, token = await self._client.run_flow_async(listing.fetch(token))
            asked += page
            if token is None or len(asked) >= PAGE:
                break
        return [
            {
                "id": each.task_id,
                "run": each.execution_id,
                "event": each.event,
                "question": each.body or each.title,
                "until": None if each.until is None else _local(each.until, zone),
            }
            for each in asked[:PAGE]
        ]

    def _show_row(self, task: TaskView, zone: ZoneInfo) -> dict[str, Any]:
        """Return a task as a row of a list."""
        at = task.next_execution_time
        return {
            "id": task.id,
            "title": task.title,
            "status": task.status,
            "handler": task.handler,
            "schedule": _describe(task),
            "next": None if at is None or at <= self._caller.now else _local(at, zone),
        }

    def _show(self, task: TaskView, zone: ZoneInfo) -> dict[str, Any]:
        """Return a task with its receipt."""
        receipt = task.receipt or Receipt(scheduled=False)
        return {
            **self._show_row(task, zone),
            "zone": zone.key,
            "scheduled": receipt.scheduled,
            "next": [_local(each, zone) for each in receipt.next],
            "due_by": None if receipt.due_by is None else _local(receipt.due_by, zone),
            "doubts": [strip(each.sentence) for each in receipt.doubts],
            "assumed": [] if task.read_back is None else list(task.read_back.assumed),
        }

    def _receipt(
        self, done: str, task: TaskView, zone: ZoneInfo, expected: frozenset[Reason] = frozenset()
    ) -> dict[str, Any]:
        """Return a task after a change, told in a sentence that promises no more than its receipt."""
        receipt = task.receipt or Receipt(scheduled=False)
        doubts = [strip(each.sentence) for each in receipt.doubts if each.reason not in expected]
        told = f"{done}."
        if doubts:
            first, *others = doubts
            told = " ".join([f"{done}, but {first[:1].lower()}{first[1:]}", *others])
        if receipt.next and receipt.due_by is not None and self._caller.now < receipt.due_by < receipt.next[0]:
            told += f" What is due already begins or goes on by {_say(receipt.due_by, zone)}."
            told += f" After that, it runs on {_say(receipt.next[0], zone)}."
        elif receipt.next:
            told += f" It runs next on {_say(receipt.next[0], zone)}."
        elif receipt.scheduled and receipt.due_by is not None:
            told += f" It begins or goes on by {_say(receipt.due_by, zone)}."
        return {**self._show(task, zone), "told": told}


def _fetch_with_receipt(task_id: str) -> Flow[TaskView]:
    return parse_task((yield ApiRequest("GET", task_path(task_id), query={"receipt": "true"})))


async def _take(items: AsyncIterator[Any], count: int) -> list[Any]:
    found: list[Any] = []
    async for each in items:
        found.append(each)
        if len(found) == count:
            break
    return found


def _derive_key(tool: str, what: object, call: str | None = None) -> str:
    """Return the key of a call, in the characters that the API takes: the same for the same call."""
    named = [tool, what] if call is None else [tool, what, call]
    text = json.dumps(named, sort_keys=True, ensure_ascii=True, default=str)
    return f"agent-{hashlib.sha256(text.encode()).hexdigest()}"


def _read_zone(name: str, argument: str) -> str:
    try:
        require_zone(name)
    except InvalidSchedule as error:
        raise ToolRefused(f"Nothing was done. '{argument}': {strip(error.problem)} {strip(error.hint)}") from None
    return name


def _move(task: TaskView, when: str | None, zone: str) -> dict[str, Any]:
    """Return the change that gives a task another zone, and with new words, that these are read in it."""
    if when is None and task.is_one_time:
        raise ToolRefused("Nothing was changed: this task runs once, at one instant. Give `when` as well.")
    if when is not None:
        return {"timezone": zone}
    return {"schedule": task.schedule.model_copy(update={"timezone": zone, "follows_owner": False})}


def _is_in(task: TaskView, zone: ZoneInfo) -> bool:
    """Return whether a task's times are those of a zone."""
    return task.schedule.follows_owner or task.timezone == zone.key or {task.timezone, zone.key} == {"UTC", IN_UTC}


def _local(at: datetime, zone: ZoneInfo, precision: str = "auto") -> str:
    return at.astimezone(zone).isoformat(timespec=precision)


def _say(at: datetime, zone: ZoneInfo) -> str:
    local = at.astimezone(zone)
    return f"{local:%A} {local.day} {local:%B %Y} at {local:%H:%M} ({zone.key})"


def _describe(task: TaskView) -> str:
    """Return a task's schedule in words."""
    if task.read_back is not None:
        return task.read_back.description
    return describe_planned(task.schedule, task.next_execution_time).text


def _show_run(run: Execution, zone: ZoneInfo) -> dict[str, Any]:
    is_text = isinstance(run.content, str)
    result = run.content if is_text else "" if run.content is None else json.dumps(run.content, ensure_ascii=False)
    error = "" if run.error is None else f"{run.error.type}: {run.error.message}"[:MAX_CONTENT]
    return {
        "run": run.id,
        "scheduled_for": _local(run.scheduled_for, zone),
        "status": run.status,
        "result": result[:MAX_CONTENT],
        "error": error or run.message or "",
    }


TOOLS: Final = {name: AgentTool(each) for name, each in vars(AgentTools).items() if hasattr(each, "effects")}
"""All tools, by their names."""
