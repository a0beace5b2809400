"""How a durable handler is replayed: each thing that it asks for is looked up in the journal, or done and recorded.

The handler starts from the top each time; where no result is recorded yet, `Suspended` ends its function until one is.
"""

from __future__ import annotations

import hashlib
import uuid
from functools import cached_property, partial
from random import Random
from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.journal import (
    MAX_CALLS,
    MAX_NESTING,
    MAX_STEPS,
    JournalEntry,
    StepError,
    StepKind,
    StepStatus,
    call_id,
)
from cloudsched.domain.documents.json_limits import escape_surrogates, exception_text
from cloudsched.domain.documents.task import Parent
from cloudsched.domain.transitions.suspend import next_poll
from cloudsched.engine.durable.arguments import arguments_fingerprint, deadline
from cloudsched.engine.durable.call_results import finished_call_fields
from cloudsched.engine.durable.exits import is_handler_failure
from cloudsched.engine.durable.journal_cursor import JournalCursor, suspend_when_unavailable
from cloudsched.engine.durable.results import decode_refusal, encode_refusal
from cloudsched.engine.durable.steps import (
    Usage,
    call_with_timeout,
    decode_result,
    encode_result,
    require_not_timed_out,
)
from cloudsched.engine.durable.suspend import Suspended
from cloudsched.errors import (
    CallFailed,
    EventTimedOut,
    InvalidInput,
    LimitExceeded,
    StepFailed,
    Unavailable,
    WorkflowError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime, timedelta

    from cloudsched.domain.documents.authority import EventSender, SenderRole
    from cloudsched.domain.documents.policy import RetryPolicy
    from cloudsched.domain.documents.task import Event

MAX_MESSAGE = 1000
"""How many characters of a step's error are kept."""


class DurableRun(JournalCursor):
    """What one attempt of a durable handler asks for."""

    @property
    def random(self) -> Random:
        """Chance that repeats itself in every replay; inside a step, whose result is recorded, it need not."""
        require_not_timed_out()
        if self.is_in_step:
            return Random()  # noqa: S311 - it guards nothing
        self._require_own_thread("ctx.random")
        return self._random

    @cached_property
    def _random(self) -> Random:
        return Random(self._seed())  # noqa: S311 - it is to be repeatable

    @cached_property
    def _namespace(self) -> uuid.UUID:
        return uuid.UUID(bytes=self._seed()[:16])

    def _seed(self) -> bytes:
        return hashlib.sha256(f"{self._claimed_run.task.id} {self._execution_id}".encode()).digest()

    # ── What a handler asks for ──────────────────────────────────────────────────────────────────────────────────

    @suspend_when_unavailable
    def now(self) -> datetime:
        """Return the present instant, the same in every replay."""
        require_not_timed_out()
        if self.is_in_step:
            return self._clock.now()
        if self._position >= MAX_STEPS and not self.is_durable:
            return self._clock.now()
        number, entry = self._next_entry(StepKind.NOW, "")
        if entry is None:
            entry = self._put(self._new_entry(number, StepKind.NOW, ""), status=StepStatus.SUCCEEDED)
        return entry.started_at

    def uuid(self) -> uuid.UUID:
        """Return a new UUID, the same in every replay."""
        require_not_timed_out()
        if self.is_in_step:
            return uuid.uuid4()
        self._require_own_thread("ctx.uuid()")
        self._uuids += 1
        return uuid.uuid5(self._namespace, str(self._uuids))

    @property
    def called_handlers(self) -> frozenset[str]:
        """The handlers that were called so far, in this attempt and before."""
        return frozenset(entry.name for entry in self._journal.values() if entry.kind is StepKind.CALL)

    @property
    def position(self) -> int:
        """How many entries the handler has asked for."""
        return self._position

    def last_finished_at(self, since: int) -> datetime:
        """Return when the last thing was done that was asked for from entry `since` on; every replay says the same."""
        entries = (self._journal[number] for number in range(since, self._position + 1))
        return max(entry.finished_at or entry.started_at for entry in entries)

    @suspend_when_unavailable
    def version(self, name: str, newest: int) -> int:
        """Return which version of the code this execution follows."""
        self._require_may_record(StepKind.VERSION, name)
        if name not in self._versions:
            recorded = self._journal.get(self._position + 1)
            if recorded is None or (recorded.kind, recorded.name) == (StepKind.VERSION, name):
                number, entry = self._next_entry(StepKind.VERSION, name)
                if entry is None:
                    begun = self._new_entry(number, StepKind.VERSION, name)
                    entry = self._put(begun, status=StepStatus.SUCCEEDED, result=newest)
                self._versions[name] = entry.result
            else:
                self._versions[name] = 1
        return self._versions[name]

    @suspend_when_unavailable
    def step(
        self,
        name: str,
        function: Callable[[], Any],
        annotated: Callable[..., Any],
        retry: RetryPolicy,
        timeout: timedelta | None,
    ) -> Any:  # noqa: ANN401 - whatever the step returns
        """Call a function once, and remember what it returned."""
        self._cause = None
        number, entry = self._next_entry(StepKind.STEP, name)
        self.is_durable = True
        if entry is None:
            entry = self._new_entry(number, StepKind.STEP, name)
        while entry.status is StepStatus.WAITING:
            if entry.due_at is not None and entry.due_at > self._clock.now():
                self._suspend(f"waits to try step {name!r} again", entry.due_at)
            self._flush()
            entry = self._try_step(entry, partial(call_with_timeout, function, timeout), annotated, retry)
            self._commit()
        if entry.status is StepStatus.SUCCEEDED:
            return decode_result(self._results.read(entry), annotated, by_name=bool(entry.is_by_name))
        raise self._note_failure(self._to_exception(entry))

    @suspend_when_unavailable
    def sleep_until(self, until: Callable[[datetime], datetime]) -> None:
        """Wait without a function until an instant that is chosen once."""
        number, entry = self._next_entry(StepKind.SLEEP, "")
        self.is_durable = True
        if entry is None:
            begun = self._new_entry(number, StepKind.SLEEP, "")
            entry = self._put(begun, due_at=until(begun.started_at))
        self._require_same(number, "sleep", entry.due_at, until(entry.started_at))
        if entry.status is StepStatus.WAITING and entry.due_at is not None:
            if entry.due_at > self._clock.now():
                self._suspend(f"sleeps until {entry.due_at.isoformat()}", entry.due_at)
            self._put(entry, status=StepStatus.SUCCEEDED, finished_at=self._clock.now())

    @suspend_when_unavailable
    def wait_for(
        self, name: str, timeout: timedelta | None, senders: tuple[SenderRole, ...]
    ) -> tuple[Any, EventSender | None]:
        """Return the payload and the sender of the earliest event of that name that one of `senders` sent.

        Events of others stay with the task.
        """
        number, entry = self._next_entry(StepKind.EVENT, name)
        self.is_durable = True
        if entry is None:
            entry = self._new_entry(number, StepKind.EVENT, name)
            entry = self._put(entry, due_at=_wait_deadline(timeout, entry))
        self._require_same(number, entry.description, entry.due_at, _wait_deadline(timeout, entry))
        if entry.status is StepStatus.WAITING:
            entry = self._wait_for_event(entry, senders)
        if entry.status is StepStatus.TIMED_OUT:
            raise self._note_failure(EventTimedOut(name))
        return self._results.read(entry), entry.sender

    @suspend_when_unavailable
    def call(
        self,
        handler: str,
        payload: Any,  # noqa: ANN401 - as the handler takes it
        fields: dict[str, Any],
        check: Callable[[], None] = lambda: None,
    ) -> int:
        """Begin a call, and return its number: its task is made before anything else happens.

        What `check` refuses is recorded as any refusal; it is not asked about a call that is recorded already.
        """
        number, entry = self._next_entry(StepKind.CALL, handler)
        self.is_durable = True
        if self._surroundings.suspend_policy.every_step:
            key, given = (
                (self._claimed_run.task.id, self._run.started_at, number),
                arguments_fingerprint(payload, fields),
            )
            before = given if entry is None else self._surroundings.suspend_policy.call_arguments.get(key, given)
            self._require_same(number, f"call {handler!r}", before, given)
            self._surroundings.suspend_policy.call_arguments[key] = given
        if entry is not None and entry.status is StepStatus.FAILED and entry.child is None:
            raise self._note_failure(decode_refusal(entry))
        if entry is not None and (entry.status is not StepStatus.WAITING or number <= self.calls_made or entry.is_made):
            return number
        task = self._claimed_run.task
        child = (entry and entry.child) or call_id(task.id, self._execution_id, number, self._run.attempt)
        if entry is None and len(self._waiting_calls) >= MAX_CALLS:
            self._poll_calls()
        try:
            if entry is None or entry.is_made is False:
                check()
            depth = self._call_depth(is_new=entry is None)
            parent = Parent(task_id=task.id, execution_id=self._execution_id, step=number, depth=depth)
            self._pending_calls[number] = self._surroundings.draft_call(handler, payload, child, fields, parent)
        except Unavailable:
            raise
        except Exception as error:  # recorded, so that every replay is refused as this one was
            refused = self._new_entry(number, StepKind.CALL, handler) if entry is None else entry
            now = self._clock.now()
            self._put(refused, status=StepStatus.FAILED, child=None, finished_at=now, **encode_refusal(error))
            if isinstance(error, InvalidInput | LimitExceeded):
                self._note_failure(error)
                raise
            raise self._note_failure(decode_refusal(self._journal[number])) from error
        if entry is None:
            self._put(self._new_entry(number, StepKind.CALL, handler), child=child)
        return number

    def _call_depth(self, *, is_new: bool) -> int:
        task = self._claimed_run.task
        depth = (task.parent.depth if task.parent else 0) + 1
        if depth > MAX_NESTING:
            raise LimitExceeded(f"Calls are nested {depth} deep, and {MAX_NESTING} is the most. Does one call itself?")
        if is_new and len(self._waiting_calls) >= MAX_CALLS:
            raise LimitExceeded(f"{MAX_CALLS} calls are under way; gather some of them before you make more.")
        return depth

    def _poll_calls(self) -> None:
        """Record which calls have ended that nobody has waited for."""
        self._flush()
        for number in sorted(self._waiting_calls):
            self._poll_call(number)

    @suspend_when_unavailable
    def wait_for_results(self, numbers: Sequence[int], *, as_recorded: bool = False) -> list[Any]:
        """Return what calls returned, once all of them have ended: a `CallFailed` in place of one that failed.

        As their handlers' annotations say, or as the JSON that was recorded.
        """
        self._require_may_record(StepKind.CALL, self._journal[numbers[0]].name if numbers else "")
        self._flush()
        waiting = [number for number in numbers if not self._poll_call(number)]
        if waiting:
            now = self._clock.now()
            since = min(self._journal[number].started_at for number in waiting)
            what = f"{len(waiting)} calls" if len(waiting) > 1 else f"the call of {self._journal[waiting[0]].name!r}"
            self._suspend(f"waits for {what}", next_poll(since, now), calls=tuple(waiting))
        outcomes = {
            number: self._read_call_result(self._journal[number], as_recorded=as_recorded) for number in numbers
        }
        failed = {number: outcome for number, outcome in outcomes.items() if isinstance(outcome, CallFailed)}
        self._failures.note(failed.values(), failed, self._position)
        return [outcomes[number] for number in numbers]

    # ── How ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _try_step(
        self, entry: JournalEntry, attempt: Callable[[], Any], annotated: Callable[..., Any], retry: RetryPolicy
    ) -> JournalEntry:
        self._position = entry.number  # whatever becomes of it is recorded
        self.is_in_step, self.step_usage = True, Usage()
        try:
            try:
                answer = attempt()
            except BaseException as error:  # whatever a step raises is its failure
                if not is_handler_failure(error):
                    raise
                is_refusal = isinstance(error, WorkflowError)  # what no step may do is refused to it each time
                return self._record_failure(entry, error, None if is_refusal else retry)
            try:
                kept = encode_result(answer, annotated)
                kept |= self._results.store(entry.number, kept["result"], is_stored_elsewhere=False)
            except Unavailable:
                raise
            except Exception as error:  # noqa: BLE001 - what turns a result into JSON is the handler's own, too
                return self._record_failure(entry, error, None)  # it is done, and doing it again would change nothing
        finally:
            self.is_in_step = False
        done = {**self._attempt_fields(entry), "status": StepStatus.SUCCEEDED}
        return self._put(entry, **done, **kept, error=None, due_at=None)

    def _record_failure(self, entry: JournalEntry, error: BaseException, retry: RetryPolicy | None) -> JournalEntry:
        self._cause = error
        ended = {**self._attempt_fields(entry), "error": _to_step_error(error)}
        if retry is not None and entry.attempts < retry.max_retries:
            wait = retry.delay(entry.attempts + 1, self._surroundings.chance)
            return self._put(entry, **ended, due_at=ended["finished_at"] + wait)
        status = StepStatus.TIMED_OUT if isinstance(error, TimeoutError) else StepStatus.FAILED
        return self._put(entry, **ended, status=status)

    def _attempt_fields(self, entry: JournalEntry) -> dict[str, Any]:
        return {
            "attempts": entry.attempts + 1,
            "finished_at": self._clock.now(),
            "queries": (entry.queries or 0) + self.step_usage.queries or None,
            "tokens": (entry.tokens or 0) + self.step_usage.tokens or None,
        }

    def _wait_for_event(self, entry: JournalEntry, senders: tuple[SenderRole, ...]) -> JournalEntry:
        while (event := self._find_event(entry.name, senders)) is not None:
            try:
                taken = self._consume_event(entry, event)
            except (Unavailable, Suspended):
                if self._pending.pop(entry.number, None):  # whether it was taken, the next replay reads
                    self._is_complete = False
                raise
            if taken is not None:
                return taken
        now = self._clock.now()
        if entry.due_at is not None and entry.due_at <= now:
            return self._put(entry, status=StepStatus.TIMED_OUT, finished_at=now)
        look = next_poll(entry.started_at, now)
        until = look if entry.due_at is None else min(look, entry.due_at)
        return self._suspend(f"waits for the event {entry.name!r}", until, events=(entry.name,), senders=senders)

    def _find_event(self, name: str, senders: tuple[SenderRole, ...]) -> Event | None:
        """Return the earliest event of that name from one of `senders` that this execution may take."""
        events = self._claimed_run.task.events
        return next((each for each in events if each.is_for(name, self._execution_id, senders)), None)

    def _consume_event(self, entry: JournalEntry, event: Event) -> JournalEntry | None:
        """Take an event off the task, and record that in the same commit; None if another run was quicker."""
        now = self._clock.now()
        received = {"result": event.payload, "sender": event.sender}
        taken = self._put(entry, status=StepStatus.SUCCEEDED, finished_at=now, **received)
        try:
            self._commit(event)
        except LookupError:  # this commit, of which no answer came at first, has taken it; or another run has
            stored = {each.number: each for each in self._surroundings.load()}.get(entry.number)
            if stored is not None and stored.status is StepStatus.SUCCEEDED:
                self._pending.clear()
                return stored
            self._put(entry)
            return None
        return taken

    def _poll_call(self, number: int) -> bool:
        self._flush_if_large()
        entry = self._journal[number]
        if entry.status is not StepStatus.WAITING:
            return True
        if number in self._new_calls or entry.child is None:
            return False
        end = finished_call_fields(entry, self._surroundings.call_outcome, self._results, self._clock.now())
        if end is not None:
            self._put(entry, **end)
        return end is not None

    def _read_call_result(self, entry: JournalEntry, *, as_recorded: bool) -> Any:  # noqa: ANN401 - whatever it returns
        if entry.status is not StepStatus.SUCCEEDED:
            return self._to_exception(entry)
        value = self._results.read(entry)
        function = None if as_recorded else self._surroundings.function(entry.name)
        return value if function is None else decode_result(value, function)

    def _to_exception(self, entry: JournalEntry) -> Exception:
        error = entry.error or StepError(type="Error", message="")
        if entry.kind is StepKind.CALL:
            return CallFailed(entry.name, entry.child or "", error.status or "", error.type, error.message)
        failure = StepFailed(entry.name, error.type, error.message)
        failure.__cause__ = self._cause
        return failure


def _to_step_error(error: BaseException) -> StepError:
    return StepError(type=escape_surrogates(type(error).__qualname__), message=exception_text(error)[:MAX_MESSAGE])


def _wait_deadline(timeout: timedelta | None, entry: JournalEntry) -> datetime | None:
    return None if timeout is None else deadline(timeout, entry.started_at)
