"""How a durable handler is replayed: each thing that it asks for is looked up in the journal, or done and recorded.

The handler runs from its beginning each time. What it has done already is answered from the journal; at the first
thing that is not there yet it is suspended: `Suspended` leaves it, its function ends, and nothing runs until there is
something to go on with.
"""

from __future__ import annotations

import hashlib
import uuid
from functools import cached_property, partial
from random import Random
from typing import TYPE_CHECKING, Any

from cloudsched.domain.journal import (
    MAX_CALLS,
    MAX_NESTING,
    MAX_STEPS,
    JournalEntry,
    StepError,
    StepKind,
    StepStatus,
    call_id,
)
from cloudsched.domain.suspending import next_look
from cloudsched.domain.task import Parent
from cloudsched.engine.stepping import as_annotated, as_json, called
from cloudsched.engine.walking import Walk, patient
from cloudsched.errors import CallFailed, EventTimedOut, LimitExceeded, StepFailed, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime, timedelta

    from cloudsched.domain.policy import RetryPolicy


class Journal(Walk):
    """What one attempt of a durable handler asks for."""

    @property
    def random(self) -> Random:
        """Chance that repeats itself in every replay; inside a step, whose result is recorded, it need not."""
        return Random() if self._is_in_step else self._random  # noqa: S311 - it guards nothing

    @cached_property
    def _random(self) -> Random:
        return Random(self._seed())  # noqa: S311 - it is to be repeatable

    @cached_property
    def _namespace(self) -> uuid.UUID:
        return uuid.UUID(bytes=self._seed()[:16])

    def _seed(self) -> bytes:
        return hashlib.sha256(f"{self._held.task.id} {self._execution_id}".encode()).digest()

    # ── What a handler asks for ──────────────────────────────────────────────────────────────────────────────────

    def now(self) -> datetime:
        """Return the present instant, the same in every replay."""
        if self._is_in_step:
            return self._clock.now()
        if self._position >= MAX_STEPS and not self.is_durable:
            self._position += 1
            return self._clock.now()
        number, entry = self._next(StepKind.NOW, "")
        if entry is None:
            entry = self._changed(self._begun(number, StepKind.NOW, ""), status=StepStatus.SUCCEEDED)
        return entry.started_at

    def uuid(self) -> uuid.UUID:
        """Return a new UUID, the same in every replay."""
        if self._is_in_step:
            return uuid.uuid4()
        self._uuids += 1
        return uuid.uuid5(self._namespace, str(self._uuids))

    def version(self, name: str, newest: int) -> int:
        """Return which version of the code this execution follows."""
        if name not in self._versions:
            recorded = self._journal.get(self._position + 1)
            if recorded is None:
                entry = self._begun(self._position + 1, StepKind.VERSION, name)
                recorded = self._changed(entry, status=StepStatus.SUCCEEDED, result=newest)
            if (recorded.kind, recorded.name) == (StepKind.VERSION, name):
                self._position += 1
                self._versions[name] = recorded.result
            else:
                self._versions[name] = 1
        return self._versions[name]

    @patient
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
        number, entry = self._next(StepKind.STEP, name)
        self.is_durable = True
        if entry is None:
            entry = self._begun(number, StepKind.STEP, name)
        while entry.status is StepStatus.WAITING:
            if entry.due_at is not None and entry.due_at > self._clock.now():
                self._suspend(f"step {name!r} is tried again", entry.due_at)
            self._flush()
            entry = self._tried(entry, partial(called, function, timeout), retry)
            self._commit()
        if entry.status is StepStatus.SUCCEEDED:
            return as_annotated(self._results.read(entry), annotated)
        raise self._failure(entry)

    @patient
    def sleep_until(self, until: Callable[[datetime], datetime]) -> None:
        """Wait without a function until an instant that is chosen once."""
        number, entry = self._next(StepKind.SLEEP, "")
        self.is_durable = True
        if entry is None:
            begun = self._begun(number, StepKind.SLEEP, "")
            entry = self._changed(begun, due_at=until(begun.started_at))
        if entry.status is StepStatus.WAITING and entry.due_at is not None:
            if entry.due_at > self._clock.now():
                self._suspend(f"sleeps until {entry.due_at.isoformat()}", entry.due_at)
            self._changed(entry, status=StepStatus.SUCCEEDED, finished_at=self._clock.now())

    @patient
    def wait_for(self, name: str, timeout: timedelta | None) -> Any:  # noqa: ANN401 - any JSON
        """Return the payload of the earliest event of that name that nobody has taken, once there is one."""
        number, entry = self._next(StepKind.EVENT, name)
        self.is_durable = True
        if entry is None:
            entry = self._begun(number, StepKind.EVENT, name)
            entry = self._changed(entry, due_at=None if timeout is None else entry.started_at + timeout)
        if entry.status is StepStatus.WAITING:
            entry = self._awaited(entry)
        if entry.status is StepStatus.TIMED_OUT:
            raise EventTimedOut(name)
        return self._results.read(entry)

    @patient
    def call(self, handler: str, payload: Any, fields: dict[str, Any]) -> int:  # noqa: ANN401 - as the handler takes it
        """Begin a call, and return its number: its task is made before anything else happens."""
        number, entry = self._next(StepKind.CALL, handler)
        self.is_durable = True
        if entry is not None and (entry.status is not StepStatus.WAITING or number <= self.calls_made):
            return number
        task = self._held.task
        depth = (task.parent.depth if task.parent else 0) + 1
        if depth > MAX_NESTING:
            raise LimitExceeded(f"Calls are nested {depth} deep, and {MAX_NESTING} is the most. Does one call itself?")
        if entry is None:
            under_way = sum(
                each.kind is StepKind.CALL and each.status is StepStatus.WAITING for each in self._journal.values()
            )
            if under_way >= MAX_CALLS:
                raise LimitExceeded(f"{MAX_CALLS} calls are under way; gather some of them before you make more.")
            child = call_id(task.id, self._execution_id, number, self._run.attempt)
            entry = self._changed(self._begun(number, StepKind.CALL, handler), child=child)
        parent = Parent(task_id=task.id, execution_id=self._execution_id, step=number, depth=depth)
        self._unmade[number] = self._around.draft_call(handler, payload, entry.child or "", fields, parent)
        return number

    @patient
    def results(self, numbers: Sequence[int]) -> list[Any]:
        """Return what calls returned, once all of them have ended: a `CallFailed` in place of one that failed."""
        before = self.calls_made
        self._flush()
        waiting = [number for number in numbers if not self._has_ended(number, number <= before)]
        if waiting:
            now = self._clock.now()
            since = min(self._journal[number].started_at for number in waiting)
            what = f"{len(waiting)} calls" if len(waiting) > 1 else f"the call of {self._journal[waiting[0]].name!r}"
            self._suspend(f"waits for {what}", next_look(since, now), calls=tuple(waiting))
        return [self._call_result(self._journal[number]) for number in numbers]

    # ── How ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _tried(self, entry: JournalEntry, attempt: Callable[[], Any], retry: RetryPolicy) -> JournalEntry:
        attempts = entry.attempts + 1
        try:
            self._is_in_step = True
            kept = self._results.kept(entry.number, as_json(attempt()))
        except Exception as error:  # noqa: BLE001 - whatever a step raises is its failure
            self._cause = error
            ended = {"attempts": attempts, "error": _described(error), "finished_at": self._clock.now()}
            if attempts <= retry.max_retries:
                again = self._clock.now() + retry.delay(attempts, self._around.chance)
                return self._changed(entry, **ended, due_at=again)
            status = StepStatus.TIMED_OUT if isinstance(error, TimeoutError) else StepStatus.FAILED
            return self._changed(entry, **ended, status=status)
        finally:
            self._is_in_step = False
        done = {"attempts": attempts, "status": StepStatus.SUCCEEDED, "finished_at": self._clock.now()}
        return self._changed(entry, **done, **kept, error=None, due_at=None)

    def _awaited(self, entry: JournalEntry) -> JournalEntry:
        while (event := next((e for e in self._held.task.events if e.name == entry.name), None)) is not None:
            now = self._clock.now()
            taken = self._changed(entry, status=StepStatus.SUCCEEDED, result=event.payload, finished_at=now)
            try:
                self._commit(entry.name)
            except Unavailable:
                del self._unwritten[entry.number]  # whether it was taken, the next replay reads
                raise
            except LookupError:  # this commit, of which no answer came at first, has taken it; or another run has
                stored = {each.number: each for each in self._around.load()}.get(entry.number)
                if stored is not None and stored.status is StepStatus.SUCCEEDED:
                    self._unwritten.clear()
                    return stored
                self._changed(entry)
                continue
            return taken
        now = self._clock.now()
        if entry.due_at is not None and entry.due_at <= now:
            return self._changed(entry, status=StepStatus.TIMED_OUT, finished_at=now)
        look = next_look(entry.started_at, now)
        until = look if entry.due_at is None else min(look, entry.due_at)
        return self._suspend(f"waits for the event {entry.name!r}", until, events=(entry.name,))

    def _has_ended(self, number: int, is_old: bool) -> bool:  # noqa: FBT001 - whether it was made before this attempt
        entry = self._journal[number]
        if entry.status is not StepStatus.WAITING:
            return True
        if not is_old or entry.child is None:
            return False
        try:
            has_ended, content = self._around.call_outcome(entry.name, entry.child)
        except CallFailed as failure:
            error = StepError(type=failure.type, message=failure.message, status=failure.status)
            self._changed(entry, status=StepStatus.FAILED, error=error, finished_at=self._clock.now())
            return True
        if has_ended:
            kept = self._results.kept(number, content)
            self._changed(entry, status=StepStatus.SUCCEEDED, finished_at=self._clock.now(), **kept)
        return has_ended

    def _call_result(self, entry: JournalEntry) -> Any:  # noqa: ANN401 - whatever was called returns
        if entry.status is not StepStatus.SUCCEEDED:
            return self._failure(entry)
        registry = self._around.registry
        value = self._results.read(entry)
        return as_annotated(value, registry.get(entry.name).function) if entry.name in registry else value

    def _failure(self, entry: JournalEntry) -> Exception:
        error = entry.error or StepError(type="Error", message="")
        if entry.kind is StepKind.CALL:
            return CallFailed(entry.name, entry.child or "", error.status or "", error.type, error.message)
        failure = StepFailed(entry.name, error.type, error.message)
        failure.__cause__ = self._cause
        return failure


def _described(error: Exception) -> StepError:
    text = str(error)[:1000].encode("utf-8", "backslashreplace").decode()
    return StepError(type=type(error).__qualname__, message=text)
