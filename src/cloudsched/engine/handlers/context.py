"""The context of a running handler: durable operations, progress, messages and usage."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import get_close_matches
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from typing_extensions import TypeVar

from cloudsched.domain.documents.authority import DEFAULT_SENDERS, EventSender, Requesters
from cloudsched.domain.documents.execution import ProgressNote, Run
from cloudsched.domain.documents.json_limits import (
    MAX_CONTENT,
    deep_copy_json,
    escape_surrogates,
    json_size,
    require_storable,
    truncate,
)
from cloudsched.domain.documents.task import MAX_COUNT, Task
from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.transitions.finish import AttemptReport
from cloudsched.domain.transitions.notices import InboxMessage
from cloudsched.domain.transitions.suspend import parse_event_name
from cloudsched.engine.durable.arguments import (
    deadline,
    parse_channels,
    parse_duration,
    parse_senders,
    parse_wait,
    require_count,
    require_instances,
)
from cloudsched.engine.durable.durable_run import CallHandle
from cloudsched.engine.durable.step_attempt import ReportedUsage, require_not_timed_out
from cloudsched.engine.handlers.typed_calls import Calls
from cloudsched.engine.ports.procedure import run_procedure
from cloudsched.errors import CallFailed, InvalidInput, Unavailable, WorkflowError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from random import Random
    from uuid import UUID

    from cloudsched.domain.documents.execution import ExecutionError
    from cloudsched.domain.documents.journal import FailureCause
    from cloudsched.domain.documents.policy import RetryPolicy
    from cloudsched.domain.transitions.outcome import Outcome
    from cloudsched.engine.durable.durable_run import DurableRun
    from cloudsched.engine.durable.race import RaceResult
    from cloudsched.engine.handlers.payload_fields import EventType
    from cloudsched.engine.ports.clock import Clock


class EventPayload(dict[str, Any]):
    """An event's payload whose fields can be read as attributes: ``approval.by`` is ``approval["by"]``."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any JSON
        try:
            return self[name]
        except KeyError:
            hint = "Declare its type, events={'approved': Approval}, and what does not fit is refused when it is sent"
            raise AttributeError(
                f"The event has no field {name!r}; it has {', '.join(self) or 'none'}. {hint}."
            ) from None


def _read_answer(kind: EventType, name: str, payload: object) -> Any:  # noqa: ANN401 - whatever was declared
    try:
        return kind.read(payload)
    except InvalidInput as error:
        hint = "Mend the type and retry the execution, or retry it from this step, which asks again"
        raise WorkflowError(
            f"The event {name!r} in the journal cannot be read any more: {error}. {hint}.",
        ) from error


log: Final = own_logger(__name__)

T = TypeVar("T")
E = TypeVar("E", default=Any)
"""The type of an event that the handler has declared, or any JSON."""

MAX_PROGRESS_NOTES = 50
"""The number of progress notes that a record keeps. The oldest are dropped first."""
MAX_NOTICES = 20
"""The most messages that one attempt may send to the inbox: they are written in the commit that finishes
it."""
MAX_NOTICES_BYTES = 3 * 1024 * 1024
"""The most bytes that these messages have together, because one request to Firestore has at most 10 MiB."""
MAX_QUESTION = 2_000
"""The number of bytes of a question that are kept."""
MAX_TEXT = 200
"""The number of bytes of a progress note or of a message's title that are kept."""


@dataclass(frozen=True, slots=True)
class LeaseRenewal:
    """The result of a renewal: the new end of the lease, or None if the caller no longer holds it."""

    until: datetime | None
    is_cancelled: bool
    """True if the handler should stop: the lease is lost, or the task has ended or is being deleted."""
    renewed_at: datetime | None = None
    """The instant of its renewal, by the clock that leases are measured by. None if that is not known."""


class Context(Calls):
    """One attempt at one occurrence, as its handler sees it.

    A handler that uses `step`, `call`, `gather`, `sleep` or `wait_for` is durable: each time it resumes, it
    is replayed from the beginning, and its journal answers what it has already done. It must therefore make
    the same requests in the same order each time. See ``docs/guides/workflows.md``.

    Attributes:
        task: The task as it was when the attempt started, with the payload that this run has.
        execution_id: The same on every retry of the occurrence. Use it as an idempotency key for other
            services.
        scheduled_for: The occurrence's instant, in UTC.
        attempt: The number of this attempt, counted from 1.
    """

    def __init__(
        self,
        task: Task,
        run: Run,
        clock: Clock,
        renew: Callable[[Sequence[ProgressNote]], LeaseRenewal],
        durable_run: DurableRun,
    ) -> None:
        self.durable_run = durable_run
        self.stored_task = task
        """The task that `task` is a copy of."""
        self.stored_payload: dict[str, Any] = task.payload if run.payload is None else run.payload

        self.execution_id: str = run.execution_id
        self.scheduled_for: datetime = run.scheduled_for
        self.attempt: int = run.attempt
        self._clock = clock
        self._renew = renew
        self._lease_until = run.due_at if run.lease is None else run.lease.until
        self.began: datetime = run.due_at if run.lease is None else run.lease.started_at
        """When the attempt did."""

        self._progress = list(run.progress)
        self._author: Requesters | None = None
        self._notices: list[InboxMessage] = []
        self._usage = ReportedUsage()
        self.event_types: Mapping[str, EventType] = {}
        """The types of the events that its handler has declared."""

    @cached_property
    def task(self) -> Task:
        """The task as the attempt found it, with the payload of this run. You may change this copy."""
        return self.stored_task.model_copy(update={"payload": deep_copy_json(self.stored_payload)})

    def now(self) -> datetime:
        """Return the present instant by the scheduler's clock, which a test can move.

        In a durable handler it is recorded: a replay gets the same instant.

        >>> ctx.now().year
        2027
        """
        return self.durable_run.now()

    def uuid(self) -> UUID:
        """Return a new UUID, the same in every replay and retry.

        It is not secret: it derives from public ids.

        >>> number = ctx.uuid()
        """
        return self.durable_run.uuid()

    @property
    def random(self) -> Random:
        """A random source that repeats itself in every replay of an occurrence. Do not use it for secrets."""
        return self.durable_run.random

    def version(self, name: str, newest: int) -> int:
        """Return the version of a changed piece of code that this execution follows.

        An execution that reaches this point for the first time follows `newest` from then on. One that passed
        this point before the code had versions follows 1.

        >>> ctx.version("two mails instead of one", 2)
        2
        """
        from cloudsched.engine.durable.waits import choose_version  # noqa: PLC0415 - few handlers are durable

        least = require_count("newest", newest, 1)
        return self.durable_run.perform(f"ctx.version({name!r})", choose_version, name, least)

    @overload
    def step(
        self,
        name: str,
        function: Callable[..., Awaitable[T]],
        /,
        *args: Any,
        retry: RetryPolicy | int | bool | None = None,
        timeout: timedelta | None = None,
        **kwargs: Any,
    ) -> T: ...
    @overload
    def step(
        self,
        name: str,
        function: Callable[..., T],
        /,
        *args: Any,
        retry: RetryPolicy | int | bool | None = None,
        timeout: timedelta | None = None,
        **kwargs: Any,
    ) -> T: ...
    def step(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        retry: RetryPolicy | int | bool | None = None,
        timeout: timedelta | None = None,
        **kwargs: Any,
    ) -> Any:
        """Call a function once and record its result. A replay gets that result without calling the function.

        Args:
            name: The step's name in the journal. It need not be unique.
            function: The function. If it is ``async def``, it runs on the event loop. Its result is stored as
                JSON, and read back as its return annotation says.
            *args: Its positional arguments.
            retry: The policy of its retries if it raises, the task's policy if None.
            timeout: The most time that one attempt may take. A function that takes longer is abandoned: its
                thread keeps running, but its result is ignored. An ``async def`` function is cancelled.
            **kwargs: Its keyword arguments.

        Raises:
            StepFailed: It raised, and no retries are left.
            InvalidInput: The name is too long, the function is not callable, the timeout is not a timedelta,
                or the retry is not a policy.

        >>> ctx.step("choose", random.randint, 1, 1)
        1
        """
        from cloudsched.engine.durable.steps import StepRequest  # noqa: PLC0415 - the same

        step = StepRequest(name, function, args, kwargs, self.task.retry if retry is None else retry, timeout)
        return run_procedure(step.plan(self.durable_run))

    @overload
    def gather(self, *calls: CallHandle[T], return_failures: Literal[False] = False) -> list[T]: ...
    @overload
    def gather(self, *calls: CallHandle[T], return_failures: bool) -> list[T | CallFailed]: ...
    def gather(self, *calls: CallHandle[Any], return_failures: bool = False) -> list[Any]:
        """Wait until all calls have ended, and return their results in the order of the arguments.

        Args:
            *calls: The calls, as `call` returned them.
            return_failures: Put the `CallFailed` of a failed call into the list instead of raising it.

        Raises:
            CallFailed: A call did not succeed. Of several, the first in the order of the arguments is raised.
            InvalidInput: An argument is not a call.

        >>> calls = [ctx.call("remind", {"about": tea}) for tea in ("Mint", "Sencha")]
        >>> ctx.gather(*calls)
        ['Mint', 'Sencha']
        """
        from cloudsched.engine.durable.calls import wait_for_results  # noqa: PLC0415 - the same

        hint = "Pass what ctx.call returned as separate arguments: ctx.gather(*calls)."
        numbers = [call.number for call in require_instances("calls", CallHandle, calls, hint)]
        outcomes = self.durable_run.perform("ctx.gather", wait_for_results, numbers)
        for outcome in outcomes:
            if isinstance(outcome, CallFailed) and not return_failures:
                raise outcome
        return outcomes

    def race(self, *calls: CallHandle[T], cancel_losers: bool = True) -> RaceResult[T, CallHandle[T]]:
        """Wait until the first of the calls has ended, and return its result and that call.

        The calls' own records say which one ended first, and every replay gets the same winner. A call that
        ended before the race began takes part.

        Args:
            *calls: The calls, as `call` returned them, each of them once.
            cancel_losers: Cancel the others, and what is below them. Their results are then `CallFailed`. If
                False, they go on.

        Raises:
            CallFailed: The call that ended first did not succeed. The others are cancelled all the same.
            InvalidInput: There are no calls, one of them is given twice, or one is not a call of this
                attempt.

        >>> winner = ctx.race(ctx.call("remind", {"about": "Mint"}), ctx.call("remind", {"about": "Sencha"}))
        """
        from cloudsched.engine.durable.race import race  # noqa: PLC0415 - the same

        return race(self.durable_run, calls, cancel_losers=cancel_losers)

    def sleep(self, until: timedelta | datetime) -> None:
        """Wait for a duration, or until an aware instant, while no function runs.

        An instant in the past does not wait.

        Raises:
            InvalidInput: It is neither (a number of seconds, for example), or it is beyond the year 9998.

        >>> ctx.sleep(timedelta(days=30))
        """
        from cloudsched.engine.durable.waits import sleep_until  # noqa: PLC0415 - the same

        self.durable_run.perform("ctx.sleep", sleep_until, partial(deadline, parse_wait("until", until)))

    @overload
    def wait_for(
        self,
        event: str,
        model: type[E] | None = None,
        timeout: timedelta | None = None,
        *,
        by: Sequence[str] = DEFAULT_SENDERS,
        question: str | None = None,
        channels: Sequence[str] = (),
        with_sender: Literal[False] = False,
    ) -> E: ...
    @overload
    def wait_for(
        self,
        event: str,
        model: type[E] | None = None,
        timeout: timedelta | None = None,
        *,
        by: Sequence[str] = DEFAULT_SENDERS,
        question: str | None = None,
        channels: Sequence[str] = (),
        with_sender: Literal[True],
    ) -> tuple[E, EventSender]: ...
    def wait_for(
        self,
        event: str,
        model: type[Any] | None = None,
        timeout: timedelta | None = None,
        *,
        by: Sequence[str] = DEFAULT_SENDERS,
        question: str | None = None,
        channels: Sequence[str] = (),
        with_sender: bool = False,
    ) -> Any:
        """Return the payload of an event that is sent to this execution from outside, once it has come.

        An event is accepted only while an execution waits for it, unless its sender, or `early_events` of the
        handler, asks that it be kept. A payload that is a JSON object is an `EventPayload`, whose fields are
        attributes.

        Args:
            event: Its name.
            model: The type of its payload, which the handler has declared: ``events={"decision": Decision}``.
                Anything else is refused when it is sent.
            timeout: The longest wait, without limit if None.
            by: The senders whose events count: ``"owner"``, ``"admin"``, ``"worker"``, and users by name,
                such as ``"user:dr-grey"``. Others' are refused. Each user gets the question in the inbox, and
                may answer it with a credential of their own. They see nothing else of the task.
            question: The question that these users read.
            channels: The channels by which it goes to them, besides their inboxes: ``"EMAIL"`` and so on.
                Each message has a link to a page with the buttons Approve and Reject, which sends
                ``{"approved": true}`` or ``{"approved": false}``, with a ``"note"`` if they write one.
            with_sender: Return ``(payload, sender)``, where `sender` is an `EventSender`.

        Raises:
            EventTimedOut: It did not come in time.
            InvalidInput: No event can have that name, the timeout is not a timedelta, or `by` or `channels`
                names something else.
            WorkflowError: The handler has not declared this type for the event, the journal's payload is not
                of it, or there are channels and the declared type cannot take what their links send.

        >>> approval = ctx.wait_for("approved", timeout=timedelta(days=2), question="May I order tea?")
        >>> approval.by
        'grace'
        """
        from cloudsched.engine.durable.waits import wait_for_event  # noqa: PLC0415 - the same

        if isinstance(model, str | int | float | timedelta):  # given without its name
            hint = "Give a type. A time is timeout=timedelta(days=1), a text question='Is it true?'."
            raise InvalidInput("model", f"is {model!r}, and no type", hint)
        limit = None if timeout is None else parse_duration("timeout", timeout)
        senders = parse_senders(by)
        name = parse_event_name(event)
        kind = None if model is None else self._find_event_type(name, model)
        asked = None if question is None else truncate(str(question), MAX_QUESTION)

        ways = parse_channels(channels, senders)
        if ways:
            self._require_tap(name)

        wait = (name, limit, senders, asked, ways)
        payload, sender = self.durable_run.perform(f"ctx.wait_for({name!r})", wait_for_event, *wait)
        content = payload
        if kind is not None:
            content = _read_answer(kind, name, payload)
        elif isinstance(payload, dict):
            content = EventPayload(payload)
        return (content, sender) if with_sender else content

    def _require_tap(self, name: str) -> None:
        """Check that the type of an event takes what a tap on a link sends. Raises WorkflowError."""
        kind = self.event_types.get(name)
        if kind is None:
            return
        for approved in (True, False):
            try:
                kind.read({"approved": approved})
            except InvalidInput as error:
                sent = f'{{"approved": {str(approved).lower()}}}'
                raise WorkflowError(
                    f"The type of the event {name!r} does not take what a tap on a link sends, {sent}: {error}. "
                    "Give its other fields a default, or leave out the channels."
                ) from error

    def _find_event_type(self, name: str, model: type[Any]) -> EventType:
        declared = self.event_types.get(name)
        if declared is None or declared.model != model:  # a union is made anew each time
            shown = getattr(model, "__name__", repr(model))
            example = f'@app.handler({self.task.handler!r}, events={{"{name}": {shown}}})'
            near = get_close_matches(name, self.event_types, n=1) if declared is None else []
            meant = f" Did you mean {near[0]!r}?" if near else ""
            raise WorkflowError(
                f"The type of an event is declared, so that it is checked when it is sent: {example}.{meant}"
            )
        return declared

    def time_left(self) -> timedelta:
        """Return the time that the lease still lasts.

        After that, another executor may start the next attempt.

        Each step of a durable handler renews it, as `heartbeat` does.

        >>> ctx.time_left() > timedelta(minutes=1)
        True
        """
        renewed = self.durable_run.lease_until
        until = self._lease_until if renewed is None else max(self._lease_until, renewed)
        return until - self._clock.now()

    def progress(self, text: str) -> None:
        """Record how far the work is. It is stored at once (one commit), and renews the lease.

        A replay does not record it again. It renews the lease if more than half of it has passed.

        >>> ctx.progress("half of the plants")
        """
        require_not_timed_out()
        if self.durable_run.is_replaying:
            if self.time_left() < self.task.expected_duration / 2:
                self.heartbeat()
            return
        self._progress.append(truncate_progress(self._clock.now(), text))
        del self._progress[:-MAX_PROGRESS_NOTES]
        self.heartbeat()

    def note_author(self, author: Requesters | None) -> None:
        """Note who wrote what this execution runs beside its task, such as a stored script."""
        self._author = self._author or author

    def replace_progress(self, progress: Sequence[ProgressNote]) -> None:
        """Replace all progress notes. They are stored with the next commit, not at once."""
        self._progress = list(progress)

    def heartbeat(self) -> bool:
        """Renew the lease (one commit). Return False if the task was cancelled or the lease is lost.

        If the store does not answer, the result is True as long as the lease lasts. A lease that has ended is
        not renewed, and one whose renewal was answered only after its new end is lost as well, because
        another executor may have started the next attempt. Runs of a paused task may finish.

        >>> ctx.heartbeat()
        True
        """
        require_not_timed_out()
        try:
            state = self._renew(self._progress)
        except Unavailable as error:  # the lease is still valid; the handler need not fail for this
            log.warning(
                "lease renewal failed: %s",
                error,
                extra={"action": "lease_renewal_failed", "taskId": self.task.id},
            )
            return self.time_left() > timedelta(0)
        if state.until is not None:
            self._lease_until = state.until
        return not state.is_cancelled and self.time_left() > timedelta(0)

    def notify(self, title: str, body: str) -> None:
        """Send a message to the owner's web inbox, in the commit that records the success of this attempt.

        The message therefore arrives exactly once if the occurrence succeeds, and not at all if it does not.

        Raises:
            InvalidInput: It is larger than a store can hold, or the attempt has sent too many.
            WorkflowError: It is sent inside a step, which the attempt that succeeds may not call again.

        >>> ctx.notify("Do not forget", "Tea")
        """
        require_not_timed_out()
        if self.durable_run.step_usage is not None:
            raise WorkflowError(
                "A step cannot contain other operations: move ctx.notify out of it, into the handler.",
            )
        if len(self._notices) == MAX_NOTICES:
            raise InvalidInput(
                "notices",
                f"are more than {MAX_NOTICES}",
                "Put several things into one message.",
            )
        notice = truncate_notice(title, body)
        size = sum(json_size(each.body) for each in (*self._notices, notice))
        if size > MAX_NOTICES_BYTES:
            hint = f"At most {MAX_NOTICES_BYTES} are allowed together; store large data elsewhere and link to it."
            raise InvalidInput("notices", f"have {size} bytes", hint)
        self._notices.append(notice)

    def used(self, *, queries: int = 0, tokens: int = 0) -> None:
        """Add to the recorded usage of this attempt, and inside a step to that of the step.

        A replay repeats what it has reported, and counts nothing twice.

        >>> ctx.used(queries=1, tokens=1200)
        """
        require_not_timed_out()
        for number in (queries, tokens):
            if type(number) is not int or not 0 <= number <= MAX_COUNT:
                raise ValueError(f"Usage must be a whole number from 0 to {MAX_COUNT}, not {number!r}.")
        in_step = self.durable_run.step_usage
        spent = self._usage if in_step is None else in_step
        spent.queries += queries
        spent.tokens += tokens

    @property
    def progress_notes(self) -> Sequence[ProgressNote]:
        """The progress that it has recorded so far."""
        return tuple(self._progress)

    def report(
        self, outcome: Outcome, error: ExecutionError | None = None, cause: FailureCause | None = None
    ) -> AttemptReport:
        """Return how this attempt ended, with its messages, progress and usage, and its part of the journal."""
        recorded = self.durable_run.recorded
        inside = recorded.usage
        outside = self._usage
        repeated = outside if recorded.is_replayed else ReportedUsage()
        return AttemptReport(
            outcome=outcome,
            error=error,
            notices=tuple(self._notices),
            progress=tuple(self._progress),
            queries=outside.queries + inside.queries,
            tokens=outside.tokens + inside.tokens,
            step_queries=repeated.queries + inside.queries,
            step_tokens=repeated.tokens + inside.tokens,
            called_queries=recorded.called.queries,
            called_tokens=recorded.called.tokens,
            entries=recorded.entries,
            journal=recorded.journal,
            calls_made=recorded.calls_made,
            failure_cause=cause,
            defined_by=self._author,
        )


def truncate_progress(at: datetime, text: str) -> ProgressNote:
    """Return a progress note, cut to the length that the record keeps."""
    return ProgressNote(at=at, text=truncate(str(text), MAX_TEXT))


def truncate_notice(title: str, body: str) -> InboxMessage:
    """Return an inbox message with its title cut to length.

    Raises InvalidInput if its body is too large to store.
    """
    body = escape_surrogates(str(body))
    require_storable("body", body, MAX_CONTENT)
    return InboxMessage(truncate(str(title), MAX_TEXT), body)
