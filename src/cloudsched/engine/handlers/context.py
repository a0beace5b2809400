"""What a handler may ask and say while it runs."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from cloudsched.domain.documents.authority import DEFAULT_SENDERS
from cloudsched.domain.documents.execution import ProgressNote
from cloudsched.domain.documents.json_limits import MAX_CONTENT, deep_copy_json, escape_surrogates, require_storable
from cloudsched.domain.documents.task import MAX_COUNT
from cloudsched.domain.transitions.finish import InboxMessage
from cloudsched.domain.transitions.suspend import parse_event_name
from cloudsched.engine.durable.arguments import (
    deadline,
    parse_duration,
    parse_retry_policy,
    parse_senders,
    parse_timeout,
    parse_wait,
    require_callable,
    require_count,
    require_instances,
)
from cloudsched.engine.durable.call_handle import CallHandle
from cloudsched.engine.durable.steps import Usage, require_not_timed_out
from cloudsched.errors import CallFailed, InvalidInput, Unavailable, WorkflowError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from random import Random
    from uuid import UUID

    from cloudsched.domain.documents.authority import EventSender
    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.policy import RetryPolicy
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.durable.durable_run import DurableRun
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.state.lease import LeaseState

log = logging.getLogger(__name__)

T = TypeVar("T")

MAX_PROGRESS_NOTES = 50
"""How many progress steps a record keeps; the oldest go first."""
MAX_NOTICES = 20
"""How many messages one attempt may put into the inbox: they are written in the commit that ends it."""
MAX_TEXT = 200
"""How many characters of a progress step or a notice's title are kept."""


class EventPayload(dict[str, Any]):
    """An event's payload whose fields can be read as attributes: ``approval.by`` is ``approval["by"]``."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any JSON
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"The event has no field {name!r}; it has {', '.join(self) or 'none'}.") from None


class Context:
    """One attempt at one occurrence, as its handler sees it.

    A handler that uses `step`, `call`, `gather`, `sleep` or `wait_for` is durable: it is replayed from its beginning
    each time it goes on, and what it has done already is answered from its journal. So it has to ask for the same
    things in the same order each time; see ``docs/durable.md``.

    Attributes:
        task: The task as it was when the attempt began.
        execution_id: The same on every retry of the occurrence: use it as an idempotency key towards others.
        scheduled_for: The occurrence's instant, in UTC.
        attempt: Which attempt this is, counted from 1.
    """

    def __init__(
        self,
        task: Task,
        run: Run,
        clock: Clock,
        renew: Callable[[Sequence[ProgressNote]], LeaseState],
        durable_run: DurableRun,
    ) -> None:
        self.durable_run = durable_run
        self.task = task.model_copy(update={"payload": deep_copy_json(task.payload)})  # the handler's own, to change it
        self.execution_id = run.execution_id
        self.scheduled_for = run.scheduled_for
        self.attempt = run.attempt
        self._clock = clock
        self._renew = renew
        self._lease_until = run.wake_at
        self._progress = list(run.progress)
        self._notices: list[InboxMessage] = []
        self._usage = Usage()

    def now(self) -> datetime:
        """Return the present instant by the scheduler's clock, which a test can move.

        In a durable handler it is recorded: a replay is told the same instant.
        """
        return self.durable_run.now()

    def uuid(self) -> UUID:
        """Return a new UUID, the same in every replay and on every retry. It is made from public ids: no secret."""
        return self.durable_run.uuid()

    @property
    def random(self) -> Random:
        """A source of chance that gives the same in every replay, for one occurrence. It is no source of secrets."""
        return self.durable_run.random

    def version(self, name: str, newest: int) -> int:
        """Return which version of a changed piece of code this execution follows.

        An execution that comes here for the first time follows `newest`, and keeps to it; one that had passed here
        before there was a version follows 1.
        """
        return self.durable_run.version(name, require_count("newest", newest, 1))

    def step(
        self,
        name: str,
        function: Callable[..., T],
        /,
        *args: Any,
        retry: RetryPolicy | int | bool | None = None,
        timeout: timedelta | None = None,
        **kwargs: Any,
    ) -> T:
        """Call a function once and remember its result: a replay is given that, and does not call it again.

        Args:
            name: What the journal calls the step. The same name may be used again.
            function: What to call. Its result is kept as JSON, and read as its annotation says.
            *args: What it is called with.
            retry: How often it is tried again when it raises, and when; as the task's policy says if None.
            timeout: How long one try may take. A function that takes longer is given up, and goes on unheard.
            **kwargs: What it is called with.

        Raises:
            StepFailed: It has raised as often as it may.
            InvalidInput: The name is too long, the function cannot be called, the timeout is no timedelta, or the retry
                is none.
        """
        policy = self.task.retry if retry is None else parse_retry_policy(retry)
        limit = parse_timeout(timeout)
        given = require_callable("function", function)
        result: T = self.durable_run.step(name, partial(given, *args, **kwargs), given, policy, limit)
        return result

    def call(self, handler: str, payload: Any = None, **fields: Any) -> CallHandle:  # noqa: ANN401 - as the handler takes it
        """Begin a call of another handler, as a task of its own whose parent this one is.

        Args:
            handler: The registered name.
            payload: What it is given: an instance of its model, or a JSON object (a dict) that fits it.
            **fields: More of what a task says (`TaskDraft`): title, priority, lock_key, expected_duration …; and retry,
                as a policy, a number of retries, True or False. It begins at once, for the same owner.

        Raises:
            InvalidInput: There is no such handler, or the payload or a field does not fit.
            LimitExceeded: Too many calls are under way, or they are nested too deep.
        """
        return CallHandle(self.durable_run, self.durable_run.call(handler, payload, fields), handler)

    def gather(self, *calls: CallHandle, return_failures: bool = False) -> list[Any]:
        """Return what the calls returned, in their order, once all of them have ended.

        Args:
            *calls: What `call` returned.
            return_failures: Put the `CallFailed` of a call that failed into the list instead of raising it.

        Raises:
            CallFailed: One of them did not succeed: the first in their order.
            InvalidInput: One of them is no call.
        """
        hint = "Give what ctx.call has returned, each by itself: ctx.gather(*calls)."
        outcomes = self.durable_run.wait_for_results(
            [call.number for call in require_instances("calls", CallHandle, calls, hint)]
        )
        for outcome in outcomes:
            if isinstance(outcome, CallFailed) and not return_failures:
                raise outcome
        return outcomes

    def sleep(self, until: timedelta | datetime) -> None:
        """Wait so long, or until an aware instant, without any function running meanwhile. What is past is now.

        Raises:
            InvalidInput: It is something else (seconds, say), or beyond the year 9998.
        """
        self.durable_run.sleep_until(partial(deadline, parse_wait("until", until)))

    @overload
    def wait_for(
        self,
        event: str,
        timeout: timedelta | None = None,
        *,
        by: Sequence[str] = DEFAULT_SENDERS,
        with_sender: Literal[False] = False,
    ) -> Any: ...  # noqa: ANN401 - any JSON
    @overload
    def wait_for(
        self,
        event: str,
        timeout: timedelta | None = None,
        *,
        by: Sequence[str] = DEFAULT_SENDERS,
        with_sender: Literal[True],
    ) -> tuple[Any, EventSender]: ...
    def wait_for(
        self,
        event: str,
        timeout: timedelta | None = None,
        *,
        by: Sequence[str] = DEFAULT_SENDERS,
        with_sender: bool = False,
    ) -> Any:
        """Return the payload of an event that is sent to this task from outside, once it has come.

        An event that came earlier counts too, unless something else has taken it. A payload that is a JSON object is
        an `EventPayload`, whose fields are attributes.

        Args:
            event: Its name.
            timeout: How long to wait; without limit if None.
            by: Whose events count, of ``"owner"``, ``"admin"`` and ``"worker"``. Others' events stay with the task
                until a wait that names their sender takes them.
            with_sender: Return ``(payload, sender)``, where `sender` is an `EventSender`.

        Raises:
            EventTimedOut: It did not come in time.
            InvalidInput: No event can have that name, the timeout is not a timedelta, or `by` names something else.
        """
        limit = None if timeout is None else parse_duration("timeout", timeout)
        senders = parse_senders(by)
        payload, sender = self.durable_run.wait_for(parse_event_name(event), limit, senders)
        content = EventPayload(payload) if isinstance(payload, dict) else payload
        return (content, sender) if with_sender else content

    def time_left(self) -> timedelta:
        """Return how long the lease lasts: past it, another executor may begin the next attempt.

        Each step of a durable handler renews it, as `heartbeat` does.
        """
        renewed = self.durable_run.lease_until
        until = self._lease_until if renewed is None else max(self._lease_until, renewed)
        return until - self._clock.now()

    def progress(self, text: str) -> None:
        """Say how far the work is. It is stored at once (one commit), and renews the lease.

        A replay has said it before, and does not say it again; it renews the lease if half of that is over.
        """
        require_not_timed_out()
        if self.durable_run.is_replaying:
            if self.time_left() < self.task.expected_duration / 2:
                self.heartbeat()
            return
        self._progress.append(truncate_progress(self._clock.now(), text))
        del self._progress[:-MAX_PROGRESS_NOTES]
        self.heartbeat()

    def replace_progress(self, progress: Sequence[ProgressNote]) -> None:
        """Put these in place of what was said before. They are stored with what comes next, not at once."""
        self._progress = list(progress)

    def heartbeat(self) -> bool:
        """Renew the lease (one commit); return False if the task was cancelled or the run is no longer this one's.

        A store that does not answer is no reason to stop, as long as the lease lasts.
        A lease that has ended is not renewed: others may be at it already. A task that is paused lets its runs finish.
        """
        require_not_timed_out()
        try:
            state = self._renew(self._progress)
        except Unavailable as error:  # the lease still stands; the handler need not fail for this
            log.warning("not renewed: %s", error, extra={"action": "not renewed", "taskId": self.task.id})
            return self.time_left() > timedelta(0)
        if state.until is not None:
            self._lease_until = state.until
        return not state.is_cancelled

    def notify(self, title: str, body: str) -> None:
        """Put a message into the owner's web inbox, in the same commit as the success of this attempt.

        So it is there exactly once if the occurrence succeeds, and not at all if it does not.

        Raises:
            InvalidInput: It is larger than a store keeps, or there are too many of them.
            WorkflowError: It is said inside a step, which is not called again by the attempt that succeeds.
        """
        require_not_timed_out()
        if self.durable_run.is_in_step:
            raise WorkflowError("A step is one thing: ctx.notify inside it belongs beside it, in the handler.")
        if len(self._notices) == MAX_NOTICES:
            raise InvalidInput("notices", f"are more than {MAX_NOTICES}", "Put several things into one message.")
        self._notices.append(truncate_notice(title, body))

    def used(self, *, queries: int = 0, tokens: int = 0) -> None:
        """Add to what the record says this attempt has cost; inside a step, to what the step has cost."""
        require_not_timed_out()
        for number in (queries, tokens):
            if type(number) is not int or not 0 <= number <= MAX_COUNT:
                raise ValueError(f"What was used is a whole number from 0 to {MAX_COUNT}; {number!r} is not.")
        spent = self.durable_run.step_usage if self.durable_run.is_in_step else self._usage
        spent.queries += queries
        spent.tokens += tokens

    @property
    def output(self) -> HandlerOutput:
        """What the handler has said so far."""
        inside = self.durable_run.usage_in_steps
        queries, tokens = self._usage.queries + inside.queries, self._usage.tokens + inside.tokens
        return HandlerOutput(tuple(self._notices), tuple(self._progress), queries, tokens)


def truncate_progress(at: datetime, text: str) -> ProgressNote:
    """Return a progress step as the record keeps it."""
    return ProgressNote(at=at, text=escape_surrogates(text[:MAX_TEXT]))


def truncate_notice(title: str, body: str) -> InboxMessage:
    """Return a message as the inbox keeps it. Raises InvalidInput if it is larger than a store keeps."""
    body = escape_surrogates(body)
    require_storable("body", body, MAX_CONTENT)
    return InboxMessage(escape_surrogates(title[:MAX_TEXT]), body)


@dataclass(frozen=True, slots=True)
class HandlerOutput:
    """What a handler has said besides its result."""

    notices: tuple[InboxMessage, ...]
    progress: tuple[ProgressNote, ...]
    queries: int
    tokens: int
