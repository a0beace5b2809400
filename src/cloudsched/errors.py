"""All errors that cloudsched raises on purpose.

::

    CloudschedError
    ├── InvalidInput                 the caller's data is wrong (`field`), with a remedy (`hint`)
    │   ├── InvalidSchedule          a rule, zone, date or policy of a schedule
    │   │   ├── AmbiguousSchedule    plain words with several meanings, listed in `readings`
    │   │   └── SearchLimitReached   its occurrences are too rare, or too many, to be searched in one request
    │   ├── InvalidArgument          an argument of another type than the method takes, which is also a TypeError
    │   ├── InvalidPayload           a payload that is not valid for its handler's model
    │   ├── UnknownHandler           no handler is registered by that name
    │   ├── KeyReused                an idempotency key that was used for a different request
    │   └── DraftExpired             a draft was confirmed too late
    ├── WorkflowError                an error in a durable handler, which every replay repeats, so no attempt follows
    │   ├── StepFailed               a step failed, and has no attempts left
    │   ├── CallFailed               a nested call did not succeed
    │   ├── EventTimedOut            an awaited event did not arrive in time
    │   ├── JournalMismatch          a replay does not request what was recorded
    │   ├── ScriptFailed             a task's script threw an error that it did not catch
    │   └── LimitExceeded            nesting, calls, journal or a script's resources exceed a limit
    ├── NotFound                     no such task or execution, or not visible to this caller
    ├── NotAllowed                   the task's status does not allow the change
    │   └── NotAwaited               no execution waits for the event, but for those in `awaited`
    ├── LeaseLost                    a worker's claim on a run has ended, or was never valid
    ├── VersionConflict              the document changed since it was read
    │   └── PreconditionFailed       it is not in the state that the caller expects (If-Match)
    ├── Unauthenticated              a token is missing, wrong or expired
    ├── Forbidden                    the caller is authenticated, but may not do this
    ├── QuotaExceeded                an owner has reached a limit
    ├── Unavailable                  an external service did not respond; `is_retryable`: trying again may help
    │   ├── StoreUnavailable
    │   │   ├── ClockSkewed          this machine's clock differs too much from the store's
    │   │   ├── Contended            others kept changing the same document
    │   │   └── BlobsUnavailable     the blob storage, not the store itself
    │   ├── QueueUnavailable
    │   ├── ModelUnavailable         the language model did not answer, or not in time
    │   ├── InterpreterUnavailable   the script interpreter did not start, or died
    │   ├── NotReady                 threads of this process cannot do their work at present
    │   └── DeliveryDelayed          a message could not be handed over now, but may be after `retry_after`
    ├── DeliveryRefused              a message will not be accepted, however often it is sent
    │   └── AddressGone              its recipient no longer exists there: send nothing to that address again
    ├── UnusableAnswer               a language model refused, was cut off, or did not answer in JSON
    ├── UnreadableDocument
    │   ├── DamagedDocument          a stored document that is not as cloudsched wrote it
    │   └── UnsupportedDocument      a stored document of a schema version that this code does not know
    └── Misconfigured                a setting is missing or contradicts another
        └── MissingExtra             an optional part needs a package that is not installed

Every error says what is wrong and what to do, and keeps its data as attributes. `NotFound` and the like are responses
to a caller, not bugs. The web layer turns each into an RFC 9457 problem document.
"""

from __future__ import annotations

from copy import copy
from copyreg import __newobj__  # type: ignore[attr-defined]  # typeshed lacks it
from dataclasses import dataclass
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta


class Portable:
    """An exception that keeps its text and its attributes through pickle and copy, as in `concurrent.futures`.

    They do not call `__init__` again: its arguments may be others than `args`. The cause, the context and the
    traceback stay behind, as those of every exception do.
    """

    args: tuple[Any, ...]

    def __reduce__(self) -> tuple[object, ...]:
        """Return how to make the exception again. Members are what builtin classes and slots hold beside the rest."""
        named = [each for kind in type(self).__mro__ for each in vars(kind).items()]
        members = [name for name, each in named if isinstance(each, MemberDescriptorType) and hasattr(self, name)]
        state = {name: getattr(self, name) for name in members} | vars(self) | {"args": self.args}
        return __newobj__, (type(self), *self.args), state


class CloudschedError(Portable, Exception):
    """The base class of all errors that cloudsched raises on purpose."""


class InvalidInput(CloudschedError):
    """The caller's data is wrong.

    Attributes:
        field: The camelCase path of the offending field, as on the wire, such as ``schedule.rrule``.
        problem: The fault.
        hint: The remedy. May be empty.
        path: The same path in parts, if it is known: keys may have dots.
        others: The other faults of the same data. The message has a line for each.
        meant: The right name of an unknown field, if it can be guessed. That field then does not count as missing.
        readings: The meanings of a schedule in words that has several. See `AmbiguousSchedule`.
        words: The words at fault in a schedule that was given as a text. Empty if they are not known.
    """

    path: tuple[str | int, ...] | None = None
    others: tuple[InvalidInput, ...] = ()
    meant: str | None = None
    readings: tuple[dict[str, object], ...] = ()
    words: str = ""

    def __init__(self, field: str, problem: str, hint: str = "") -> None:
        self.field = field
        self.problem = problem
        self.hint = hint
        super().__init__(f"{field}: {problem}" + (f" ({hint})" if hint else ""))

    def __str__(self) -> str:
        return "\n".join(str(each.args[0]) for each in self.faults)

    def within(self, place: str) -> Self:
        """Return the same error, without its others, as that of a part of a request."""
        moved = copy(self)
        InvalidInput.__init__(moved, f"{place}.{self.field}", self.problem, self.hint)
        moved.path = self.path and (*place.split("."), *self.path)
        moved.others = ()
        return moved

    @property
    def faults(self) -> tuple[InvalidInput, ...]:
        """Return all faults: this, and the others."""
        return (self, *self.others)


class InvalidSchedule(InvalidInput):
    """A rule, zone, date or policy of a schedule is wrong, or the schedule can never fire."""

    def __init__(self, field: str, problem: str, hint: str = "", words: str = "") -> None:
        super().__init__(field, problem, hint)
        self.words = words

    def at(self, field: str) -> InvalidSchedule:
        """Return the same error as that of another field, such as the one that has the schedule."""
        return InvalidSchedule(field, self.problem, self.hint, self.words)

    def below(self, field: str) -> InvalidSchedule:
        """Return the same error, with its others, as that of parts of a field."""
        moved, *others = (each.at(f"{field}.{each.field}") for each in self.faults if isinstance(each, InvalidSchedule))
        moved.others = tuple(others)
        return moved


class AmbiguousSchedule(InvalidSchedule):
    """A schedule in plain words has several meanings, and the caller has to choose.

    Attributes:
        readings: Each meaning as a dict: ``schedule`` (JSON, as in a task), ``description``, and ``label``, which
            distinguishes it from the others.
    """

    def __init__(self, field: str, problem: str, hint: str, readings: tuple[dict[str, object], ...]) -> None:
        super().__init__(field, problem, hint)
        self.readings = readings


class SearchLimitReached(InvalidSchedule):
    """The searches of one request, or of one run, exceeded their common limit of steps.

    Attributes:
        steps: The limit.
    """

    def __init__(self, steps: int, field: str = "schedule") -> None:
        self.steps = steps
        problem = f"takes more than {steps} steps to search, all that one request may take"
        super().__init__(field, problem, "Give fewer rules or conditions, a later start, or fewer at a time.")

    def at(self, field: str) -> SearchLimitReached:
        """Return the same error as that of another field."""
        return SearchLimitReached(self.steps, field if field.count("schedule") == 1 else "schedule")


class InvalidArgument(InvalidInput, TypeError):
    """An argument of a Python method is of another type than it takes, or of a name that it does not have."""


class InvalidPayload(InvalidInput):
    """A payload is not valid for the model of its handler."""


class UnknownHandler(InvalidInput):
    """No handler is registered by that name."""


class KeyReused(InvalidInput):
    """An idempotency key was used again with a different request."""


class DraftExpired(InvalidInput):
    """A draft was confirmed too long after it was shown."""


class WorkflowError(CloudschedError):
    """An error in a durable handler. If the handler does not catch it, the execution fails without a retry."""


class StepFailed(WorkflowError):
    """A step failed, and has no attempts left.

    Attributes:
        step: The step's name.
        type: The class of the exception that the last attempt raised, as recorded. The exception is the ``__cause__``
            if the step has just failed, but not in a replay.
    """

    def __init__(self, step: str, type_: str, message: str) -> None:
        self.step = step
        self.type = type_
        super().__init__(f"Step {step!r} failed: {type_}: {message}")


class CallFailed(WorkflowError):
    """A nested call did not succeed.

    Attributes:
        handler: The called handler.
        task_id: The call's task.
        status: Its final status: FAILED, TIMED_OUT, CANCELLED, EXPIRED or DELETED. REFUSED if it could not start.
        type: The class of the exception that its last attempt raised, if there was one.
        for_owners: What owners may read of it: its text, without that of a handler that does not tell its errors.
    """

    def __init__(self, handler: str, task_id: str, status: str, type_: str = "", message: str = "") -> None:
        self.handler = handler
        self.task_id = task_id
        self.status = status
        self.type = type_
        self.message = message
        why = f": {type_}: {message}" if type_ else (f": {message}" if message else "")
        super().__init__(f"The call of {handler!r}{f' ({task_id})' if task_id else ''} is {status}{why}")
        self.for_owners = str(self)


class EventTimedOut(WorkflowError):
    """An awaited event did not arrive in time."""

    def __init__(self, event: str) -> None:
        self.event = event
        super().__init__(f"No event {event!r} arrived in time.")


class JournalMismatch(WorkflowError):
    """A replay does not request what was recorded: the code was changed, or is not deterministic.

    Attributes:
        number: The number of the step, counted from 1.
        expected: The entry of the journal.
        found: The request of the handler.
    """

    def __init__(self, number: int, expected: str, found: str) -> None:
        self.number = number
        self.expected = expected
        self.found = found
        super().__init__(
            f"Step {number} was {expected} when it was recorded, and is {found} now. A durable handler must make the "
            "same requests in the same order in every replay: keep randomness, clocks and I/O inside ctx.step, and "
            "guard changed code with ctx.version."
        )


class ScriptFailed(WorkflowError):
    """A task's script threw an error that it did not catch.

    Attributes:
        problem: The fault.
        name: The name of the error, such as ``TypeError``. Empty if it has none.
        line: The line of the script that threw it, from 1. None if unknown.
    """

    def __init__(self, problem: str, name: str = "", line: int | None = None) -> None:
        self.problem = problem
        self.name = name
        self.line = line
        where = "" if line is None else f" in line {line}"
        super().__init__(f"The script failed{where}: {name}{': ' if name and problem else ''}{problem}")


class LimitExceeded(WorkflowError):
    """A durable handler or a script exceeds a limit: nesting depth, calls, journal entries, memory."""


class NotFound(CloudschedError):
    """There is no such task or execution, or this caller may not see it."""

    def __init__(self, kind: str, key: str, hint: str = "") -> None:
        self.kind = kind
        self.key = key
        super().__init__(f"There is no {kind} {key!r}." + (f" {hint}" if hint else ""))


class NotAllowed(CloudschedError):
    """The task's status does not allow the requested change."""

    def __init__(self, action: str, status: str, hint: str = "") -> None:
        self.action = action
        self.status = status
        self.hint = hint
        super().__init__(f"Cannot {action} a task that is {status}." + (f" {hint}" if hint else ""))


@dataclass(frozen=True, slots=True)
class AwaitedEvent:
    """An event for which an execution waits."""

    name: str
    execution_id: str
    until: datetime | None
    """The end of the wait. None if it never ends."""
    by: tuple[str, ...] = ()
    """The senders whose events count: roles, and users as ``user:…``."""

    def __str__(self) -> str:
        until = "" if self.until is None else f" until {self.until:%Y-%m-%dT%H:%M:%SZ}"
        return f"{self.name!r} by execution {self.execution_id}{until}"


class NotAwaited(NotAllowed):
    """No execution of the task waits for the event, or several do. The event was not kept.

    Attributes:
        event: The event's name.
        awaited: The events for which the task's executions do wait.
    """

    def __init__(self, event: str, awaited: Sequence[AwaitedEvent] = (), why: str = "") -> None:
        self.event = event
        self.awaited: tuple[AwaitedEvent, ...] = tuple(awaited)
        waits = f"Awaited: {', '.join(map(str, awaited[:5]))}." if awaited else "It waits for no event now."
        super().__init__(f"send the event {event!r} to", "not waiting for it", f"{why} {waits}".strip())


class LeaseLost(CloudschedError):
    """A worker's claim on a run has ended, or was never valid, and its report is dropped.

    Attributes:
        key: The execution's id.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(
            f"The claim on execution {key} has ended: its lease ran out, its task was changed by its owner, or it was "
            "never yours. Another worker may run it; discard your result. Send heartbeats to keep a claim."
        )


class VersionConflict(CloudschedError):
    """A document changed since it was read. Read it again and decide again."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f"{key} was changed since it was read; read it and try again.")


class PreconditionFailed(VersionConflict):
    """A document is not in the state that its caller expects. Nothing was changed."""


class Unauthenticated(CloudschedError):
    """A token is missing, wrong or expired. The message never contains it."""


class Forbidden(CloudschedError):
    """The caller is authenticated, but may not do this."""


class QuotaExceeded(CloudschedError):
    """An owner has reached a limit.

    Attributes:
        quota: The exhausted quota, for example ``active tasks``.
        limit: The most that an owner may have.
        retry_after: The seconds after which a retry may succeed. None if the owner has to free something first.
    """

    def __init__(self, quota: str, limit: int, hint: str, retry_after: int | None = None) -> None:
        self.quota: str = quota
        self.limit: int = limit
        self.hint = hint
        self.retry_after = retry_after
        super().__init__(f"An owner may have {limit} {quota}. {hint}")


class Unavailable(CloudschedError):
    """An external service did not respond in time, or something else answered in its place.

    Attributes:
        is_retryable: Whether the same call may succeed later. False if somebody has to mend something first, such as
            an address, a certificate or the service's settings.
        retry_after: The wait that the service asked for. None if it said nothing.
        idempotency_key: The key with which you repeat a client's change: it may have been made. None if it has none.
        has_answered: Whether the service was reached, and has refused for now.
        is_busy: Whether it was not even asked, since as many calls to it as may be are under way.
    """

    is_retryable: bool = True
    has_answered: bool = False
    is_busy: bool = False
    retry_after: timedelta | None = None
    idempotency_key: str | None = None

    def __init__(self, service: str, reason: str) -> None:
        self.service: str = service
        self.reason: str = reason
        super().__init__(f"{service} cannot be reached: {reason}")


class StoreUnavailable(Unavailable):
    """The document store did not respond."""


class Contended(StoreUnavailable):
    """Others kept changing a document, each time before this change was committed. Trying again may help."""

    def __init__(self, what: str, tries: int) -> None:
        reason = f"{what} changed {tries} times, each time before this change could be stored"
        super().__init__("The store", reason)
        self.args: tuple[Any, ...] = (f"{reason[:1].upper()}{reason[1:]}. Try again.",)


class ClockSkewed(StoreUnavailable):
    """This machine's clock differs too much from the store's: its leases would begin or end at the wrong time."""

    is_retryable = False

    def __init__(self, skew: timedelta, allowed: timedelta) -> None:
        difference = f"{abs(skew).total_seconds():.0f} s {'ahead of' if skew.days >= 0 else 'behind'} the store's"
        reason = f"this machine's clock is {difference}, and leases depend on both"
        super().__init__("The store", reason)
        self.args: tuple[Any, ...] = (
            f"{reason[:1].upper()}{reason[1:]}: at most {allowed.total_seconds():.0f} s are allowed. Correct it.",
        )


class BlobsUnavailable(StoreUnavailable):
    """The blob storage, which holds data too large for a document, did not respond. The store itself may work."""


class QueueUnavailable(Unavailable):
    """The task queue did not respond. Committed tasks are safe, and the sweep sends them."""


class ModelUnavailable(Unavailable):
    """The language model did not answer, or not in time."""


class InterpreterUnavailable(Unavailable):
    """The script interpreter did not start, or died while running."""


class NotReady(Unavailable):
    """Threads of this process cannot do their work at present. It goes on trying."""

    def __init__(self, faults: dict[str, str]) -> None:
        reason = ", ".join(f"{name} {fault}" for name, fault in faults.items())
        super().__init__("This process", reason)
        self.args: tuple[Any, ...] = (f"This process goes on trying, but {reason}. Its log says why.",)


class UnusableAnswer(CloudschedError):
    """A language model's answer is of no use: `kind` is refused, truncated, not-json, garbage or schema."""

    def __init__(self, kind: str, why: str, text: str = "") -> None:
        self.kind: str = kind
        self.text: str = text
        super().__init__(f"The model's answer is of no use: {why}.")


class UnreadableDocument(CloudschedError):
    """A stored document cannot be read.

    Attributes:
        key: Its id.
    """

    def __init__(self, key: str, problem: str, hint: str) -> None:
        self.key = key
        self.hint = hint
        super().__init__(f"{key} {problem} {hint}")


class DamagedDocument(UnreadableDocument):
    """A stored document is not what cloudsched wrote: another program has changed it, or it was truncated."""

    def __init__(self, kind: str, key: str, problem: str) -> None:
        hint = "Restore it from a backup, or remove it from the store; until then it is skipped in lists."
        super().__init__(f"The stored {kind.lower()} {key!r}", f"is damaged: {problem}.", hint)


class UnsupportedDocument(UnreadableDocument):
    """A stored document, or a store's file, has a version that this code does not know: a newer or a forgotten one."""

    def __init__(self, key: str, version: object, supported: int, *, oldest: int = 1) -> None:
        self.version: object = version
        self.supported: int = supported
        if isinstance(version, int) and version < oldest:
            problem = f"has schema version {version}, of an older cloudsched; this code reads {supported}."
            hint = "Open it with the release that wrote it, or begin with a new one."
        else:
            problem = f"has schema version {version!r}; this code reads versions up to {supported}."
            hint = "Deploy the newer cloudsched that wrote it."
        super().__init__(key, problem, hint)


class DeliveryDelayed(Unavailable):
    """A message could not be handed over now, as far as is known. `retry_after` is the wait, or None.

    Of a service that was reached, and refuses for now, `answer` is what is said of it.
    """

    def __init__(
        self,
        service: str,
        reason: str,
        retry_after: timedelta | None = None,
        *,
        answer: str = "",
        has_answered: bool = False,
    ) -> None:
        self.retry_after = retry_after
        self.has_answered = has_answered or bool(answer)
        super().__init__(service, reason)
        if answer:
            self.args: tuple[Any, ...] = (answer,)


class DeliveryRefused(CloudschedError):
    """A message will not be accepted, however often it is sent."""


class AddressGone(DeliveryRefused):
    """The recipient of a message no longer exists at this address: send nothing there again."""


class Misconfigured(CloudschedError):
    """A setting is missing or contradicts another."""


class MissingExtra(Misconfigured, ImportError):
    """An optional part needs a package that is not installed.

    Attributes:
        extra: The extra of cloudsched that brings it.
    """

    def __init__(self, part: str, module: str, extra: str, requirement: str = "") -> None:
        self.extra = extra
        remedy = f"pip install '{requirement}'" if requirement else f"install cloudsched with its extra {extra}"
        super().__init__(f"{part} needs {module}, which is not installed: {remedy}", name=module)
