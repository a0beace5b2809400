"""The pipeline of a draft: understand it, build the schedule, check it as a task would be, and sign it.

It stores nothing. The check is that of ``validateOnly``, which runs up to the commit.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.delivery_channels import DeliveryChannel
from cloudsched.domain.documents.usage import UsageCounts
from cloudsched.domain.documents.verbs import Verb
from cloudsched.domain.recurrence.time_zones import load_tzinfo, require_zone
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
from cloudsched.drafts.situation import Situation, load_past_tasks, open_handlers, say_length
from cloudsched.engine.tasks.read_back import WouldCommit, make_dry_scheduler, read_back_schedule
from cloudsched.engine.tasks.schedule_parts import resolve_schedule
from cloudsched.engine.tasks.scheduler import with_preferred_channels
from cloudsched.errors import Forbidden, InvalidInput, InvalidSchedule, NotAllowed, NotFound, QuotaExceeded
from cloudsched.language.messages import tell
from cloudsched.language.task_fields import require_locale

DRAFTS: Final = "(drafts)"
"""The name of a handler under which usage counts the model's use for drafts."""
SHOWN: Final = 5
"""The number of occurrences that a draft shows."""
_CHECKED: Final = 50
"""The number of occurrences that are checked. Those of a rule repeat themselves."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The defaults for reading words, such as the delay of a task whose words name no time, and the limits.

    Attributes:
        least_lead: The shortest delay of a drafted task.
        least_interval: Its shortest interval.
    """

    default_time: time
    default_calendar: str | None
    default_lead: timedelta
    least_lead: timedelta
    least_interval: timedelta


def check_times(schedule: Schedule, now: datetime, options: ReadOptions, language: str) -> MissingField | None:
    """Return the reason why a schedule is refused. None if it is not.

    A recurring schedule that begins too soon only loses its first occurrences: it begins with the first
    one that is late enough to be confirmed. A single instant is refused.
    """

    def refuse(code: str, template: str, **said: object) -> MissingField:
        return MissingField(field="schedule", code=code, reason=tell(language, template, **said))

    times = schedule.upcoming(now, _CHECKED)
    if not times:
        return refuse("past", "It is in the past. Choose a time that is still to come.")

    if schedule.is_one_time:
        to_the_second = now.replace(microsecond=0)  # as words are read: "in 30 seconds" is thirty
        if times[0] >= to_the_second + options.least_lead:
            return None
        lead, least = say_length(times[0] - now), say_length(options.least_lead)
        return refuse("too-soon", "It would run in {lead}. Leave at least {least}.", lead=lead, least=least)

    interval = schedule.find_shortest_interval(now)
    if interval is None or interval >= options.least_interval:
        return None
    template = "There would be {shortest} between two runs. Leave at least {least}."
    return refuse("too-often", template, shortest=say_length(interval), least=say_length(options.least_interval))


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.schedules.schedule import Schedule
    from cloudsched.drafts.draft_tokens import DraftTokens, Requester
    from cloudsched.drafts.request import DraftRequest, Proposal
    from cloudsched.engine.authority import Authority
    from cloudsched.engine.engine_context import EngineContext

    Steps = Iterator[DraftStep | DraftResult]

_RESERVED: Final = frozenset({"chatId", "messageId", "modelSettings", "taskId", "handler"})
"""The fields of the context that are not the app's own."""


@dataclass(frozen=True, slots=True)
class DraftAccess:
    """The caller, with the names and tasks that the caller may use."""

    requester: Requester
    authority: Authority


class Drafts:
    """Makes drafts of people's words. `understand` reads them, by the grammar alone or with a model, too."""

    def __init__(
        self,
        engine: EngineContext,
        options: ReadOptions,
        tokens: DraftTokens,
        understand: Callable[[Situation], Proposal] = read_text,
    ) -> None:
        self._engine = engine
        self._scheduler = make_dry_scheduler(engine)
        self._options = options
        self._tokens = tokens
        self._understand = understand

    def make(self, request: DraftRequest, access: DraftAccess) -> DraftResult:
        """Return the draft of the words. Raises InvalidInput."""
        return next(each for each in self.steps(request, access) if isinstance(each, DraftResult))

    def steps(self, request: DraftRequest, access: DraftAccess) -> Steps:
        """Yield each step as it begins, and at last the draft, which has all of them. Raises InvalidInput."""
        steps: list[DraftStep] = []

        def note(text: str) -> DraftStep:
            steps.append(DraftStep(at=self._engine.clock.now(), text=text))
            return steps[-1]

        yield note("Understanding your task")
        situation = self._situation(request, access)
        proposal = replace(self._understand(situation), language=situation.language)
        yield note("Building the schedule")
        # A time is too soon as of the instant at which the words were read, however long reading them took.
        read_at = situation.now
        if request.now is not None:
            read_at = max(request.now, self._engine.clock.now())
        checked = self._check_times(proposal, read_at, access)
        yield note("Checking it")
        yield self._finish(checked, request, access).model_copy(update={"steps": tuple(steps)})

    def _situation(self, request: DraftRequest, access: DraftAccess) -> Situation:
        try:
            require_zone(request.timezone)
        except InvalidSchedule as error:
            raise InvalidInput("timezone", error.problem, error.hint) from error
        require_locale(request.locale)
        find_tasks = cache(lambda: self._find_tasks(request, access))
        if request.context.get("taskId") is not None:
            find_tasks()  # a wrong id is an error, whatever the words say

        handlers = open_handlers(self._engine.registry, access.authority.requesters)
        has_assistant = any(each.is_built_in for each in handlers)
        owner = access.requester.owner

        def count_use(queries: int, tokens: int) -> None:
            # A draft is a part of the owner's budget.
            self._engine.usage().add(owner, DRAFTS, UsageCounts(queries=queries, tokens=tokens))

        options = self._options
        return Situation(
            request,
            request.now or self._engine.clock.now(),
            handlers,
            find_tasks,
            options.default_time,
            options.default_calendar,
            max(options.default_lead, options.least_lead),
            list_open_tools(self._engine.registry) if has_assistant else (),
            find_refusal=lambda: self._engine.usage_limit().find_refusal(owner),
            count_use=count_use,
        )

    def _find_tasks(self, request: DraftRequest, access: DraftAccess) -> list[Task]:
        owner = access.requester.owner
        named = request.context.get("taskId")
        if named is None:
            return load_past_tasks(self._engine.store, owner)
        if isinstance(named, str):
            with suppress(NotFound):
                task = self._scheduler.get(named, access.authority)
                if task.owner == owner:
                    return [task]
        raise InvalidInput("context.taskId", "names no task of this owner", "Leave it out, or name another.")

    def _check_times(self, proposal: Proposal, now: datetime, access: DraftAccess) -> Proposal:
        """Resolve the schedule's calendars, and refuse a schedule that is too soon, too often or past."""
        if proposal.schedule is None:
            return proposal
        try:
            schedule = self._show_schedule(proposal.schedule, now, access.requester.owner)
        except InvalidInput as error:
            missing = (*proposal.missing, to_missing(error))
            return replace(proposal, decision=Decision.REFUSAL, missing=missing)
        if proposal.schedule.is_now:
            return proposal  # it runs as soon as it is confirmed
        refused = check_times(schedule, now, self._options, proposal.language)
        if refused is None:
            return proposal
        return replace(proposal, decision=Decision.REFUSAL, missing=(refused, *proposal.missing))

    def _show_schedule(self, schedule: Schedule, now: datetime, owner: str) -> Schedule:
        return anchor_schedule(resolve_schedule(self._engine.store.records, schedule, owner), now)

    def _finish(self, proposal: Proposal, request: DraftRequest, access: DraftAccess) -> DraftResult:
        content = _to_task(proposal, request) if proposal.task is None else _to_changes(proposal, proposal.task)
        if proposal.decision in {Decision.REFUSAL, Decision.LIST} or proposal.questions or proposal.missing:
            return self._to_result(proposal, content, access)
        reason = tell(proposal.language, "It asks for no change.")
        missing = MissingField(field="changes", code="nothing", reason=reason)
        stored: Task | None = None
        try:
            if proposal.task is None and not proposal.channels:
                content["deliveryChannels"] = self._find_channels(content, access)
            if content:
                stored = self._try(proposal, content, access)
        except InvalidInput as error:
            missing = to_missing(error)
        except (QuotaExceeded, Forbidden, NotAllowed) as error:
            refused = MissingField(field="(task)", code="not-allowed", reason=str(error))
            refusal = replace(proposal, decision=Decision.REFUSAL, missing=(refused,))
            return self._to_result(refusal, {}, access)
        if stored is None:
            return self._to_result(replace(proposal, missing=(missing,)), content, access)
        if "schedule" in content and stored.schedule.dtstart is not None:
            # Its beginning is that which it would get now, whenever it is confirmed.
            content["schedule"].setdefault("dtstart", stored.schedule.dtstart)
        if proposal.handler is not None and proposal.handler.estimate is not None:
            content["queryPerExecution"] = stored.query_per_execution
            content["tokensPerExecution"] = stored.tokens_per_execution
        result = self._to_result(proposal, content, access, stored)
        token = self._tokens.make(access.requester, content, proposal.task, proposal.language)
        return result.model_copy(update={"draft_token": token})

    def _find_channels(self, content: dict[str, Any], access: DraftAccess) -> list[str]:
        """Return the channels that the owner prefers. The inbox if they prefer none."""
        unsaid = {name: value for name, value in content.items() if name != "deliveryChannels"}
        draft = TaskDraft.from_wire({**unsaid, "owner": access.requester.owner})
        if self._engine.reads_preferences:
            draft = with_preferred_channels(draft, self._engine)
        return [channel.value for channel in draft.delivery_channels or (DeliveryChannel.WEB,)]

    def _try(self, proposal: Proposal, content: dict[str, Any], access: DraftAccess) -> Task | None:
        """Return the task that would be stored. None if an operation would change nothing."""
        task = proposal.task
        try:
            if proposal.decision is Decision.OPERATION and task is not None:
                verb = Verb(content[OPERATION])
                scheduler = self._scheduler.manual_runs if verb is Verb.TRIGGER else self._scheduler
                getattr(scheduler, verb.method)(task.id, by=access.authority)
                return None  # as it is already
            if task is not None:
                return self._scheduler.update(task.id, content, access.authority)
            draft = TaskDraft.from_wire({**content, "owner": access.requester.owner})
            return self._scheduler.create(draft, by=access.authority)[0]
        except WouldCommit as stopped:
            return stopped.task

    def _to_result(
        self,
        proposal: Proposal,
        content: dict[str, Any],
        access: DraftAccess,
        stored: Task | None = None,
    ) -> DraftResult:
        listed = proposal.listed
        shown: dict[str, Any] = {}
        if proposal.task is not None:
            listed = ((proposal.task, proposal.task.next_execution_time),)
            shown["task_id"] = proposal.task.id
            if proposal.decision is not Decision.REFUSAL:
                shown["changes"] = content
        elif proposal.decision is Decision.CREATION:
            shown["task"] = content

        shown["tasks"] = tuple(_name(task, at, proposal.language) for task, at in listed)
        schedule = proposal.schedule
        is_now = schedule is not None and schedule.is_now
        if stored is not None and proposal.decision is not Decision.OPERATION and not is_now:
            schedule = stored.schedule
        if schedule is not None:
            times = self._find_times(schedule, access)
            told = read_back_schedule(schedule, iter(times), proposal.assumptions, proposal.language)
            shown |= {"schedule": schedule, "read_back": told}
            if told is not None:
                shown["description"] = told.description
            shown["next"] = tuple(_to_occurrence(at, schedule.timezone) for at in times)
        return DraftResult(
            decision=proposal.decision,
            assumptions=proposal.assumptions,
            questions=proposal.questions,
            missing=proposal.missing,
            **shown,
        )

    def _find_times(self, schedule: Schedule, access: DraftAccess) -> list[datetime]:
        """Return the occurrences to show. There are none of a schedule whose calendars cannot be resolved."""
        now = self._engine.clock.now()
        if schedule.is_now:
            return [now]
        with suppress(InvalidInput):
            return self._show_schedule(schedule, now, access.requester.owner).upcoming(now, SHOWN)
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


def _to_task(proposal: Proposal, request: DraftRequest) -> dict[str, Any]:
    """Return the fields of a new task, as ``POST /v1/tasks`` takes them."""
    channels = proposal.channels or (DeliveryChannel.WEB,)
    fields: dict[str, Any] = {
        "title": proposal.title,
        "description": proposal.description or request.text,
        "purpose": proposal.purpose,
        "category": proposal.category.value,
        "handler": None if proposal.handler is None else proposal.handler.name,
        "payload": proposal.payload,
        "deliveryChannels": [channel.value for channel in channels],
        "schedule": None if proposal.schedule is None else _dump(proposal.schedule),
        "source": _to_source(request) or None,
        "owner": request.owner,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _to_changes(proposal: Proposal, task: Task) -> dict[str, Any]:
    """Return the changes of a task, as ``PATCH /v1/tasks/{taskId}`` takes them."""
    changes = {**proposal.changes}
    if proposal.schedule is not None:
        changes["schedule"] = _dump(proposal.schedule)
        if proposal.schedule.timezone != task.schedule.timezone:
            changes["schedule"]["timezone"] = proposal.schedule.timezone
    return changes


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
