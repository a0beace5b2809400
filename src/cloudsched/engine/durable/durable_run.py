"""Replays a durable handler: each operation returns its recorded result from the journal, or runs and is recorded.

The handler starts from the top in each attempt. Where it has to wait for a result, `Suspended` unwinds it.
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
from cloudsched.engine.durable.arguments import arguments_fingerprint
from cloudsched.engine.durable.call_results import finished_call_fields
from cloudsched.engine.durable.event_wait import wait_for_event
from cloudsched.engine.durable.exits import is_handler_failure
from cloudsched.engine.durable.journal_cursor import JournalCursor, suspend_when_unavailable
from cloudsched.engine.durable.race import run_race
from cloudsched.engine.durable.results import decode_refusal, encode_refusal
from cloudsched.engine.durable.steps import (
    Usage,
    call_with_timeout,
    decode_result,
    encode_result,
    require_not_timed_out,
)
from cloudsched.errors import (
    CallFailed,
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

MAX_MESSAGE = 1000
"""How many characters of a step's error message are stored."""


class DurableRun(JournalCursor):
    """The durable operations of one attempt of a handler."""

    @property
    def random(self) -> Random:
        """A random generator with the same seed in every replay; unseeded inside a step, whose result is recorded."""
        require_not_timed_out()
        if self.is_in_step:
            return Random()  # noqa: S311 - not used for security
        self._require_own_thread("ctx.random")
        return self._random

    @cached_property
    def _random(self) -> Random:
        return Random(self._seed())  # noqa: S311 - it must be repeatable

    @cached_property
    def _namespace(self) -> uuid.UUID:
        return uuid.UUID(bytes=self._seed()[:16])

    def _seed(self) -> bytes:
        return hashlib.sha256(f"{self.claimed_run.task.id} {self.execution_id}".encode()).digest()

    # ── Operations ───────────────────────────────────────────────────────────────────────────────────────────────

    @suspend_when_unavailable
    def now(self) -> datetime:
        """Return the current time, the same in every replay."""
        require_not_timed_out()
        if self.is_in_step:
            return self.clock.now()
        if self._position >= MAX_STEPS and not self.is_durable:
            return self.clock.now()
        number, entry = self.next_entry(StepKind.NOW, "")
        if entry is None:
            entry = self.put(self.new_entry(number, StepKind.NOW, ""), status=StepStatus.SUCCEEDED)
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
        """The handlers called so far, in this attempt and earlier ones."""
        return frozenset(entry.name for entry in self.journal.values() if entry.kind is StepKind.CALL)

    @property
    def position(self) -> int:
        """How many entries the handler has requested."""
        return self._position

    def last_finished_at(self, since: int) -> datetime:
        """Return when the last of the entries from `since` on finished, the same in every replay."""
        entries = (self.journal[number] for number in range(since, self._position + 1))
        return max(entry.finished_at or entry.started_at for entry in entries)

    @suspend_when_unavailable
    def version(self, name: str, newest: int) -> int:
        """Return which version of the code this execution follows."""
        self._require_may_record(StepKind.VERSION, name)
        if name not in self._versions:
            recorded = self.journal.get(self._position + 1)
            if recorded is None or (recorded.kind, recorded.name) == (StepKind.VERSION, name):
                number, entry = self.next_entry(StepKind.VERSION, name)
                if entry is None:
                    new_entry = self.new_entry(number, StepKind.VERSION, name)
                    entry = self.put(new_entry, status=StepStatus.SUCCEEDED, result=newest)
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
        """Return the recorded result of a step; without one, call its function, with retries, and record the result."""
        self._cause = None
        number, entry = self.next_entry(StepKind.STEP, name)
        self.is_durable = True
        if entry is None:
            entry = self.new_entry(number, StepKind.STEP, name)
        while entry.status is StepStatus.WAITING:
            if entry.due_at is not None and entry.due_at > self.clock.now():
                self.suspend(f"waits to try step {name!r} again", entry.due_at)
            self.flush()
            entry = self._try_step(entry, partial(call_with_timeout, function, timeout), annotated, retry)
            self.commit()
        if entry.status is StepStatus.SUCCEEDED:
            return decode_result(self.results.read(entry), annotated, by_name=bool(entry.is_by_name))
        raise self.note_failure(self._to_exception(entry))

    @suspend_when_unavailable
    def sleep_until(self, until: Callable[[datetime], datetime]) -> None:
        """Suspend the handler until an instant that is computed once and recorded."""
        number, entry = self.next_entry(StepKind.SLEEP, "")
        self.is_durable = True
        if entry is None:
            new_entry = self.new_entry(number, StepKind.SLEEP, "")
            entry = self.put(new_entry, due_at=until(new_entry.started_at))
        self.require_same(number, "sleep", entry.due_at, until(entry.started_at))
        if entry.status is StepStatus.WAITING and entry.due_at is not None:
            if entry.due_at > self.clock.now():
                self.suspend(f"sleeps until {entry.due_at.isoformat()}", entry.due_at)
            self.put(entry, status=StepStatus.SUCCEEDED, finished_at=self.clock.now())

    @suspend_when_unavailable
    def wait_for(
        self, name: str, timeout: timedelta | None, senders: tuple[SenderRole, ...]
    ) -> tuple[Any, EventSender | None]:
        """Return the payload and the sender of the earliest event of that name from one of `senders`.

        Events from other senders stay with the task.
        """
        return wait_for_event(self, name, timeout, senders)

    @suspend_when_unavailable
    def call(
        self,
        handler: str,
        payload: Any,  # noqa: ANN401 - as the handler takes it
        fields: dict[str, Any],
        check: Callable[[], None] = lambda: None,
    ) -> int:
        """Start a call and return its entry number; its task is created before a step runs or the handler stops.

        An error that `check` raises is recorded as a rejection. It runs only for a call that certainly has no task.
        """
        number, entry = self.next_entry(StepKind.CALL, handler)
        self.is_durable = True
        if self.surroundings.suspend_policy.every_step:
            key = (self.claimed_run.task.id, self._run.started_at, number)
            arguments = arguments_fingerprint(payload, fields)
            recorded = self.surroundings.suspend_policy.call_arguments
            before = arguments if entry is None else recorded.get(key, arguments)
            self.require_same(number, f"call {handler!r}", before, arguments)
            recorded[key] = arguments
        if entry is not None and entry.status is StepStatus.FAILED and entry.child is None:
            raise self.note_failure(decode_refusal(entry))
        if entry is not None and (entry.status is not StepStatus.WAITING or number <= self.calls_made or entry.is_made):
            return number
        task = self.claimed_run.task
        child = (entry and entry.child) or call_id(task.id, self.execution_id, number, self._run.attempt)
        if entry is None and len(self._waiting_calls) >= MAX_CALLS:
            self._poll_calls()
        try:
            if entry is None or entry.is_made is False:
                check()
            depth = self._call_depth(is_new=entry is None)
            parent = Parent(task_id=task.id, execution_id=self.execution_id, step=number, depth=depth)
            self.pending_calls[number] = self.surroundings.draft_call(handler, payload, child, fields, parent)
        except Unavailable:
            raise
        except Exception as error:  # recorded, so that every replay is rejected in the same way
            refused = self.new_entry(number, StepKind.CALL, handler) if entry is None else entry
            now = self.clock.now()
            self.put(refused, status=StepStatus.FAILED, child=None, finished_at=now, **encode_refusal(error))
            if isinstance(error, InvalidInput | LimitExceeded):
                self.note_failure(error)
                raise
            raise self.note_failure(decode_refusal(self.journal[number])) from error
        if entry is None:
            self.put(self.new_entry(number, StepKind.CALL, handler), child=child)
        return number

    def _call_depth(self, *, is_new: bool) -> int:
        task = self.claimed_run.task
        depth = (task.parent.depth if task.parent else 0) + 1
        if depth > MAX_NESTING:
            raise LimitExceeded(f"Calls are nested {depth} deep (at most {MAX_NESTING}). Does a handler call itself?")
        if is_new and len(self._waiting_calls) >= MAX_CALLS:
            raise LimitExceeded(f"{MAX_CALLS} calls are in progress, the maximum; gather some before starting more.")
        return depth

    def _poll_calls(self) -> None:
        """Record the results of finished calls that the handler has not waited for."""
        self.flush()
        for number in sorted(self._waiting_calls):
            self.poll_call(number)

    @suspend_when_unavailable
    def wait_for_results(self, numbers: Sequence[int], *, as_recorded: bool = False) -> list[Any]:
        """Return the results of calls once all of them have finished, with a `CallFailed` in place of each failed one.

        Results are decoded as their handlers' return annotations, or returned as JSON if `as_recorded`.
        """
        self._require_may_record(StepKind.CALL, self.journal[numbers[0]].name if numbers else "")
        self.flush()
        waiting = [number for number in numbers if not self.poll_call(number)]
        if waiting:
            now = self.clock.now()
            since = min(self.journal[number].started_at for number in waiting)
            what = f"{len(waiting)} calls" if len(waiting) > 1 else f"the call of {self.journal[waiting[0]].name!r}"
            self.suspend(f"waits for {what}", next_poll(since, now), calls=tuple(waiting))
        outcomes = {number: self.read_call_result(self.journal[number], as_recorded=as_recorded) for number in numbers}
        failed = {number: outcome for number, outcome in outcomes.items() if isinstance(outcome, CallFailed)}
        self.failures.note(failed.values(), failed, self._position)
        return [outcomes[number] for number in numbers]

    @suspend_when_unavailable
    def race(self, numbers: Sequence[int], *, cancel_losers: bool) -> tuple[int, Any]:
        """Return the number and the result of the call that ended first; see `race.run_race`."""
        return run_race(self, self, numbers, cancel_losers=cancel_losers)

    # ── Internals ────────────────────────────────────────────────────────────────────────────────────────────────

    def _try_step(
        self, entry: JournalEntry, attempt: Callable[[], Any], annotated: Callable[..., Any], retry: RetryPolicy
    ) -> JournalEntry:
        self._position = entry.number  # its outcome is recorded, whatever it is
        self.is_in_step, self.step_usage = True, Usage()
        try:
            try:
                result = attempt()
            except BaseException as error:  # any failure of user code fails the step
                if not is_handler_failure(error):
                    raise
                is_refusal = isinstance(error, WorkflowError)  # forbidden in a step: a retry cannot help
                return self._record_failure(entry, error, None if is_refusal else retry)
            try:
                encoded = encode_result(result, annotated)
                encoded |= self.results.store(entry.number, encoded["result"], is_stored_elsewhere=False)
            except Unavailable:
                raise
            except Exception as error:  # noqa: BLE001 - user code may define the JSON encoding
                return self._record_failure(entry, error, None)  # no retry: the function itself succeeded
        finally:
            self.is_in_step = False
        done = {**self._attempt_fields(entry), "status": StepStatus.SUCCEEDED}
        return self.put(entry, **done, **encoded, error=None, due_at=None)

    def _record_failure(self, entry: JournalEntry, error: BaseException, retry: RetryPolicy | None) -> JournalEntry:
        self._cause = error
        changes = {**self._attempt_fields(entry), "error": _to_step_error(error)}
        if retry is not None and entry.attempts < retry.max_retries:
            wait = retry.delay(entry.attempts + 1, self.surroundings.chance)
            return self.put(entry, **changes, due_at=changes["finished_at"] + wait)
        status = StepStatus.TIMED_OUT if isinstance(error, TimeoutError) else StepStatus.FAILED
        return self.put(entry, **changes, status=status)

    def _attempt_fields(self, entry: JournalEntry) -> dict[str, Any]:
        return {
            "attempts": entry.attempts + 1,
            "finished_at": self.clock.now(),
            "queries": (entry.queries or 0) + self.step_usage.queries or None,
            "tokens": (entry.tokens or 0) + self.step_usage.tokens or None,
        }

    def poll_call(self, number: int) -> bool:
        """Return whether a call has ended, and record its outcome if it has."""
        self._flush_if_large()
        entry = self.journal[number]
        if entry.status is not StepStatus.WAITING:
            return True
        if number in self._new_calls or number in self.pending_calls or entry.child is None:
            return False
        changes = finished_call_fields(entry, self.surroundings.call_outcome, self.results, self.clock.now())
        if changes is not None:
            self.put(entry, **changes)
        return changes is not None

    def read_call_result(self, entry: JournalEntry, *, as_recorded: bool) -> Any:  # noqa: ANN401 - whatever it returns
        """Return the result of a call that has ended, or its `CallFailed`."""
        if entry.status is not StepStatus.SUCCEEDED:
            return self._to_exception(entry)
        value = self.results.read(entry)
        function = None if as_recorded else self.surroundings.function(entry.name)
        return value if function is None else decode_result(value, function)

    def find_call_end(self, number: int) -> datetime:
        """Return when a call that has ended did so, by its own record; as the journal says if that record is gone."""
        entry = self.journal[number]
        return self.surroundings.call_end(entry.child or "") or entry.finished_at or entry.started_at

    def _to_exception(self, entry: JournalEntry) -> Exception:
        error = entry.error or StepError(type="Error", message="")
        if entry.kind is StepKind.CALL:
            return CallFailed(entry.name, entry.child or "", error.status or "", error.type, error.message)
        failure = StepFailed(entry.name, error.type, error.message)
        failure.__cause__ = self._cause
        return failure


def _to_step_error(error: BaseException) -> StepError:
    return StepError(type=escape_surrogates(type(error).__qualname__), message=exception_text(error)[:MAX_MESSAGE])
