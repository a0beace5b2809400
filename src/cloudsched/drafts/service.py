"""The pipeline of a draft: understand it, build the schedule, check it as a task would be, and sign it.

It stores nothing. The check is that of ``validateOnly``, which runs up to the commit.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.delivery_channels import DeliveryChannel
from cloudsched.domain.documents.verbs import Verb
from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.domain.responses.api_responses import (
    Decision,
    DraftResult,
    DraftStep,
    MissingField,
    NamedTask,
    Occurrence,
)
from cloudsched.domain.schedules.planned_words import describe_planned
from cloudsched.domain.transitions.edits import anchor_schedule
from cloudsched.domain.transitions.task_draft import TaskDraft
from cloudsched.drafts.assistant.brief import list_open_tools
from cloudsched.drafts.draft_tokens import OPERATION
from cloudsched.drafts.grammar_reader import read_text
from cloudsched.drafts.phrases import to_missing
from cloudsched.drafts.situation import MAX_PAST_TASKS, Situation, open_handlers, say_length
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.tasks.read_back import WouldCommit, make_dry_scheduler, read_back_schedule
from cloudsched.engine.tasks.schedule_parts import resolve_schedule
from cloudsched.engine.tasks.scheduler import with_preferred_channels
from cloudsched.errors import Forbidden, InvalidInput, NotAllowed, NotFound, QuotaExceeded
from cloudsched.language.messages import tell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from cloudsched.config.settings import Settings
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.schedules.schedule import Schedule
    from cloudsched.drafts.draft_tokens import DraftTokens, Requester
    from cloudsched.drafts.request import DraftRequest, Proposal
    from cloudsched.engine.authority import Authority
    from cloudsched.engine.engine_context import EngineContext

    Steps = Iterator[DraftStep | DraftResult]

SHOWN: Final = 5
"""The number of occurrences that a draft shows."""
_CHECKED: Final = 50
"""The number of occurrences that are checked. Those of a rule repeat themselves."""
_RESERVED: Final = frozenset({"chatId", "messageId", "modelSettings", "taskId", "handler"})
"""The fields of the context that are not the app's own."""


def check_times(schedule: Schedule, now: datetime, situation: Situation) -> MissingField | None:
    """Return the reason why a schedule is refused. None if it is not.

    A recurring schedule that begins too soon only loses its first occurrences: it begins with the first
    one that is late enough to be confirmed. A single instant is refused.
    """

    def refuse(code: str, template: str, **said: object) -> MissingField:
        return MissingField(field="schedule", code=code, reason=tell(situation.language, template, **said))

    times = schedule.upcoming(now, _CHECKED)
    if not times:
        return refuse("past", "It is in the past. Choose a time that is still to come.")

    if schedule.is_one_time:
        to_the_second = now.replace(microsecond=0)  # as words are read: "in 30 seconds" is thirty
        if times[0] >= to_the_second + situation.least_lead:
            return None
        lead, least = say_length(times[0] - now), say_length(situation.least_lead)
        return refuse("too-soon", "It would run in {lead}. Leave at least {least}.", lead=lead, least=least)

    interval = schedule.find_shortest_interval(now)
    least_interval = situation.settings.access.least_interval
    if interval is None or interval >= least_interval:
        return None
    template = "There would be {shortest} between two runs. Leave at least {least}."
    return refuse("too-often", template, shortest=say_length(interval), least=say_length(least_interval))


class Drafts:
    """Makes drafts of people's words. `understand` reads them, by the grammar alone or with a model, too."""

    def __init__(
        self,
        engine: EngineContext,
        settings: Settings,
        tokens: DraftTokens,
        understand: Callable[[Situation], Proposal] = read_text,
    ) -> None:
        self._engine = engine
        self._scheduler = make_dry_scheduler(engine)
        self._settings = settings
        self._tokens = tokens
        self._understand = understand

    def make(self, request: DraftRequest, requester: Requester, authority: Authority) -> DraftResult:
        """Return the draft of the words. Raises InvalidInput."""
        steps = self.steps(request, requester, authority)
        return next(each for each in steps if isinstance(each, DraftResult))

    def steps(self, request: DraftRequest, requester: Requester, authority: Authority) -> Steps:
        """Yield each step as it begins, and at last the draft, which has all of them. Raises InvalidInput."""
        steps: list[DraftStep] = []

        def note(text: str) -> DraftStep:
            steps.append(DraftStep(at=self._engine.clock.now(), text=text))
            return steps[-1]

        yield note("Understanding your task")
        situation = self._situation(request, requester, authority)
        proposal = self._understand(situation)
        yield note("Building the schedule")
        checked = self._check_times(proposal, situation)
        yield note("Checking it")
        yield self._finish(checked, situation).model_copy(update={"steps": tuple(steps)})

    def _situation(self, request: DraftRequest, requester: Requester, authority: Authority) -> Situation:
        find_tasks = cache(lambda: self._find_tasks(request, requester.owner, authority))
        if request.context.get("taskId") is not None:
            find_tasks()  # a wrong id is an error, whatever the words say
        registry = self._engine.registry
        return Situation(
            request,
            requester,
            authority,
            self._settings,
            request.now or self._engine.clock.now(),
            open_handlers(registry, authority.requesters),
            list_open_tools(registry),
            find_tasks,
        )

    def _find_tasks(self, request: DraftRequest, owner: str, authority: Authority) -> list[Task]:
        """Return the owner's tasks that the words may mean, the newest first."""
        named = request.context.get("taskId")
        if named is None:
            page = self._engine.store.list_tasks(TaskQuery(owner=owner), limit=MAX_PAST_TASKS)
            return [task for task in page.items if task.parent is None and not task.handler.startswith("cloudsched.")]
        if isinstance(named, str):
            with suppress(NotFound):
                task = self._scheduler.get(named, authority)
                if task.owner == owner:
                    return [task]
        raise InvalidInput("context.taskId", "names no task of this owner", "Leave it out, or name another.")

    def _check_times(self, proposal: Proposal, situation: Situation) -> Proposal:
        """Resolve the schedule's calendars, and refuse a schedule that is too soon, too often or past."""
        if proposal.schedule is None:
            return proposal
        # A time is too soon as of the instant at which the words were read, however long reading them took.
        now = situation.now
        if situation.request.now is not None:
            now = max(now, self._engine.clock.now())
        refused: MissingField | None = None
        try:
            schedule = self._resolve(proposal.schedule, now, situation)
        except InvalidInput as error:
            refused = to_missing(error)
        else:
            if not proposal.schedule.is_now:  # which runs as soon as it is confirmed
                refused = check_times(schedule, now, situation)
        if refused is None:
            return proposal
        return replace(proposal, decision=Decision.REFUSAL, missing=(refused, *proposal.missing))

    def _resolve(self, schedule: Schedule, now: datetime, situation: Situation) -> Schedule:
        owner = situation.requester.owner
        return anchor_schedule(resolve_schedule(self._engine.store.records, schedule, owner), now)

    def _finish(self, proposal: Proposal, situation: Situation) -> DraftResult:
        """Return the draft, with a token if nothing is open and it would be stored as it is."""
        content: dict[str, Any] = {}
        if proposal.task is not None:
            content = _to_changes(proposal)
        elif proposal.decision is Decision.CREATION:
            content = self._to_task(proposal, situation)
        stored: Task | None = None
        if proposal.decision not in {Decision.REFUSAL, Decision.LIST} and not (proposal.questions or proposal.missing):
            reason = tell(situation.language, "It asks for no change.")
            missing = MissingField(field="changes", code="nothing", reason=reason)
            try:
                stored = self._try(proposal, content, situation)
            except InvalidInput as error:
                missing = to_missing(error)
            except (QuotaExceeded, Forbidden, NotAllowed) as error:
                missing = MissingField(field="(task)", code="not-allowed", reason=str(error))
                proposal = replace(proposal, decision=Decision.REFUSAL)
            if stored is None:
                proposal = replace(proposal, missing=(missing,))

        token: str | None = None
        if stored is not None:
            if "schedule" in content and stored.schedule.dtstart is not None:
                # Its beginning is that which it would get now, whenever it is confirmed.
                content["schedule"].setdefault("dtstart", stored.schedule.dtstart)
            if proposal.handler is not None and proposal.handler.estimate is not None:
                content["queryPerExecution"] = stored.query_per_execution
                content["tokensPerExecution"] = stored.tokens_per_execution
            token = self._tokens.make(situation.requester, content, proposal.task, situation.language)
        result = self._to_result(proposal, content, stored, situation)
        return result.model_copy(update={"draft_token": token})

    def _to_task(self, proposal: Proposal, situation: Situation) -> dict[str, Any]:
        """Return the fields of a new task, as ``POST /v1/tasks`` takes them."""
        request, owner = situation.request, situation.requester.owner
        channels = proposal.channels
        if not channels and self._engine.reads_preferences:
            unsaid = TaskDraft(handler="any", owner=owner, category=proposal.category)
            channels = with_preferred_channels(unsaid, self._engine).delivery_channels
        fields: dict[str, Any] = {
            "title": proposal.title,
            "description": request.text,
            "purpose": proposal.purpose,
            "category": proposal.category.value,
            "handler": None if proposal.handler is None else proposal.handler.name,
            "payload": proposal.payload,
            "deliveryChannels": [channel.value for channel in channels or (DeliveryChannel.WEB,)],
            "schedule": None if proposal.schedule is None else _dump(proposal.schedule),
            "source": _to_source(request) or None,
            "owner": request.owner,
        }
        return {name: value for name, value in fields.items() if value is not None}

    def _try(self, proposal: Proposal, content: dict[str, Any], situation: Situation) -> Task | None:
        """Return the task that would be stored. None if nothing would change."""
        task, authority = proposal.task, situation.authority
        try:
            if task is None:
                draft = TaskDraft.from_wire({**content, "owner": situation.requester.owner})
                return self._scheduler.create(draft, by=authority)[0]
            if proposal.decision is Decision.OPERATION:
                verb = Verb(content[OPERATION])
                scheduler = self._scheduler.manual_runs if verb is Verb.TRIGGER else self._scheduler
                getattr(scheduler, verb.method)(task.id, by=authority)
                return None  # as it is already
            return self._scheduler.update(task.id, content, authority) if content else None
        except WouldCommit as stopped:
            return stopped.task

    def _to_result(
        self, proposal: Proposal, content: dict[str, Any], stored: Task | None, situation: Situation
    ) -> DraftResult:
        listed, language = proposal.listed, situation.language
        shown: dict[str, Any] = {}
        if proposal.task is not None:
            listed = ((proposal.task, proposal.task.next_execution_time),)
            shown["task_id"] = proposal.task.id
            if proposal.decision is not Decision.REFUSAL:
                shown["changes"] = content
        elif proposal.decision is Decision.CREATION:
            shown["task"] = content

        schedule = proposal.schedule
        is_now = schedule is not None and schedule.is_now
        if stored is not None and proposal.decision is not Decision.OPERATION and not is_now:
            schedule = stored.schedule
        if schedule is not None:
            times = self._find_times(schedule, situation)
            told = read_back_schedule(schedule, iter(times), proposal.assumptions, language)
            shown |= {"schedule": schedule, "read_back": told}
            if told is not None:
                shown["description"] = told.description
            shown["next"] = tuple(_to_occurrence(at, schedule.timezone) for at in times)
        return DraftResult(
            decision=proposal.decision,
            tasks=tuple(_name(task, at, language) for task, at in listed),
            assumptions=proposal.assumptions,
            questions=proposal.questions,
            missing=proposal.missing,
            **shown,
        )

    def _find_times(self, schedule: Schedule, situation: Situation) -> list[datetime]:
        """Return the occurrences to show. There are none of a schedule whose calendars cannot be resolved."""
        now = self._engine.clock.now()
        if schedule.is_now:
            return [now]
        with suppress(InvalidInput):
            return self._resolve(schedule, now, situation).upcoming(now, SHOWN)
        return []


def _name(task: Task, at: datetime | None, language: str) -> NamedTask:
    return NamedTask(
        id=task.id,
        title=task.title,
        status=task.status,
        description=describe_planned(task.schedule, task.next_execution_time, language).text,
        next=None if at is None else _to_occurrence(at, task.timezone),
    )


def _to_occurrence(at: datetime, timezone: str) -> Occurrence:
    return Occurrence(utc=at, local=at.astimezone(load_tzinfo(timezone)))


def _to_changes(proposal: Proposal) -> dict[str, Any]:
    """Return the changes of a task, as ``PATCH /v1/tasks/{taskId}`` takes them."""
    schedule = proposal.schedule
    if schedule is None:
        return {**proposal.changes}
    return {**proposal.changes, "schedule": {**_dump(schedule), "timezone": schedule.timezone}}


def _to_source(request: DraftRequest) -> dict[str, Any]:
    own = {name: value for name, value in request.context.items() if name not in _RESERVED}
    messages = [turn.to_wire() for turn in request.conversation]
    if messages:
        messages.append({"role": "user", "content": request.text})
    source = {
        "chatId": request.context.get("chatId"),
        "messageId": request.context.get("messageId"),
        "context": own or None,
        "messages": messages or None,
        "model": request.context.get("modelSettings"),
    }
    return {name: value for name, value in source.items() if value is not None}


def _dump(schedule: Schedule) -> dict[str, Any]:
    dumped: dict[str, Any] = schedule.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return dumped
