"""Everything that cloudsched raises on purpose.

::

    CloudschedError
    ├── InvalidInput                 the caller's data is wrong; `field` and `hint` say what and how to mend it
    │   ├── InvalidSchedule          a rule, zone, date or policy of a schedule
    │   │   └── AmbiguousSchedule    plain words with several meanings; `readings` has them
    │   ├── InvalidPayload           a payload that does not fit its handler's model
    │   ├── UnknownHandler           no handler is registered by that name
    │   └── KeyReused                an idempotency key that came before, with another request
    ├── WorkflowError                what a durable handler met; every replay meets it again, so no attempt follows
    │   ├── StepFailed               a step failed as often as it may
    │   ├── CallFailed               a nested call did not succeed
    │   ├── EventTimedOut            what was waited for did not come in time
    │   ├── JournalMismatch          a replay asks for something else than what was recorded
    │   ├── ScriptFailed             a task's own script failed, and caught nothing
    │   └── LimitExceeded            too deep, too many calls, too long a journal, or a script that uses too much
    ├── NotFound                     no such task or execution (or not this caller's)
    ├── NotAllowed                   this status does not permit that change
    ├── LeaseLost                    a worker's claim on a run has ended, or was never its own
    ├── VersionConflict              the document changed since it was read
    │   └── PreconditionFailed       it is not in the state that the caller says it is (If-Match)
    ├── Unauthenticated              a token is missing, wrong or expired
    ├── Forbidden                    the caller is known, and may not do this
    ├── QuotaExceeded                an owner has as much as one owner may have
    ├── Unavailable                  an outside service did not answer; trying again may help
    │   ├── StoreUnavailable
    │   │   └── BlobsUnavailable     the place for what is too large for a document, and not the store itself
    │   ├── QueueUnavailable
    │   └── InterpreterUnavailable   what runs scripts did not start, or died
    ├── UnsupportedDocument          a stored document of a schema version that this code does not know
    └── Misconfigured                a setting is missing or contradicts another

Every error says what is wrong and what to do, and keeps its data as attributes. `NotFound` and its siblings are
answers to a caller, not bugs; the web layer turns each into one RFC 9457 problem document.
"""

from __future__ import annotations


class CloudschedError(Exception):
    """The root of all that cloudsched raises on purpose."""


class InvalidInput(CloudschedError):
    """The caller's data is wrong.

    Attributes:
        field: The camelCase path of the offending field, as on the wire, such as ``schedule.rrule``.
        problem: What is wrong with it.
        hint: What to do about it; may be empty.
    """

    def __init__(self, field: str, problem: str, hint: str = "") -> None:
        self.field = field
        self.problem = problem
        self.hint = hint
        super().__init__(f"{field}: {problem}" + (f" ({hint})" if hint else ""))


class InvalidSchedule(InvalidInput):
    """A rule, zone, date or policy of a schedule is wrong, or the schedule can never fire."""


class AmbiguousSchedule(InvalidSchedule):
    """A schedule in plain words has several meanings, and the caller has to choose.

    Attributes:
        readings: Each meaning as a dict: ``schedule`` (JSON, as in a task), ``description``, and ``label``, which says
            what sets it apart from the others.
    """

    def __init__(self, field: str, problem: str, hint: str, readings: tuple[dict[str, object], ...]) -> None:
        super().__init__(field, problem, hint)
        self.readings = readings


class InvalidPayload(InvalidInput):
    """A payload does not fit the model of its handler."""


class UnknownHandler(InvalidInput):
    """No handler is registered by that name."""


class KeyReused(InvalidInput):
    """An idempotency key stands for one request, and came again with another."""


class WorkflowError(CloudschedError):
    """What a durable handler met. It may catch it; left uncaught it fails the execution, and no attempt follows."""


class StepFailed(WorkflowError):
    """A step failed as often as it may.

    Attributes:
        step: The step's name.
        type: The class of the exception that the last try raised, as it was recorded; it is also the ``__cause__``
            when the step has just failed, but not in a replay.
    """

    def __init__(self, step: str, type_: str, message: str) -> None:
        self.step = step
        self.type = type_
        super().__init__(f"Step {step!r} failed: {type_}: {message}")


class CallFailed(WorkflowError):
    """A nested call did not succeed.

    Attributes:
        handler: What was called.
        task_id: The call's task.
        status: How it ended: FAILED, TIMED_OUT, CANCELLED, EXPIRED or DELETED; REFUSED if it could not begin.
        type: The class of the exception that its last attempt raised, if there was one.
    """

    def __init__(self, handler: str, task_id: str, status: str, type_: str = "", message: str = "") -> None:
        self.handler = handler
        self.task_id = task_id
        self.status = status
        self.type = type_
        self.message = message
        why = f": {type_}: {message}" if type_ else (f": {message}" if message else "")
        super().__init__(f"The call of {handler!r}{f' ({task_id})' if task_id else ''} is {status}{why}")


class EventTimedOut(WorkflowError):
    """The event that was waited for did not come in time."""

    def __init__(self, event: str) -> None:
        self.event = event
        super().__init__(f"No event {event!r} came in time.")


class JournalMismatch(WorkflowError):
    """A replay asks for something else than what was recorded: the code was changed, or is not deterministic.

    Attributes:
        number: Which step it is, counted from 1.
        expected: What the journal says.
        found: What the handler asks for.
    """

    def __init__(self, number: int, expected: str, found: str) -> None:
        self.number = number
        self.expected = expected
        self.found = found
        super().__init__(
            f"Step {number} was {expected} when it was recorded, and is {found} now. A durable handler asks for the "
            "same things in the same order in every replay: keep chance, clocks and I/O inside ctx.step, and guard "
            "changed code with ctx.version."
        )


class ScriptFailed(WorkflowError):
    """A task's own script failed, and caught nothing.

    Attributes:
        problem: What is wrong.
        name: The name of what it threw, such as ``TypeError``; empty where it threw none.
        line: Which line of the script threw it, counted from 1; None if that is not known.
    """

    def __init__(self, problem: str, name: str = "", line: int | None = None) -> None:
        self.problem = problem
        self.name = name
        self.line = line
        where = "" if line is None else f" in line {line}"
        super().__init__(f"The script failed{where}: {name}{': ' if name and problem else ''}{problem}")


class LimitExceeded(WorkflowError):
    """A durable handler or a script asks for more than one may have: depth, calls, entries in its journal, memory."""


class NotFound(CloudschedError):
    """There is no such task or execution, or it is not this caller's to see."""

    def __init__(self, kind: str, key: str) -> None:
        self.kind = kind
        self.key = key
        super().__init__(f"There is no {kind} {key!r}.")


class NotAllowed(CloudschedError):
    """The task's status does not permit the change that was asked for."""

    def __init__(self, action: str, status: str, hint: str = "") -> None:
        self.action = action
        self.status = status
        self.hint = hint
        super().__init__(f"Cannot {action} a task that is {status}." + (f" {hint}" if hint else ""))


class LeaseLost(CloudschedError):
    """A worker's claim on a run has ended, or was never its own; what it says of that run is dropped.

    Attributes:
        key: The execution.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(
            f"The claim on execution {key} has ended: its lease ran out, its task was changed by its owner, or it was "
            "never yours. Somebody else may run it; drop what you did. Send heartbeats to keep a claim."
        )


class VersionConflict(CloudschedError):
    """A document changed since it was read. Read it again and decide again."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f"{key} was changed by somebody else since it was read; read it and try again.")


class PreconditionFailed(VersionConflict):
    """A document is not in the state that its caller has seen. Nothing was changed."""


class Unauthenticated(CloudschedError):
    """A token is missing, wrong or expired. The message never repeats it."""


class Forbidden(CloudschedError):
    """The caller is known, and may not do this."""


class QuotaExceeded(CloudschedError):
    """An owner has as much as one owner may have.

    Attributes:
        quota: What there is enough of, such as ``active tasks``.
        limit: How many an owner may have.
        retry_after: In how many seconds there may be room again; None if that is in the owner's own hands.
    """

    def __init__(self, quota: str, limit: int, hint: str, retry_after: int | None = None) -> None:
        self.quota = quota
        self.limit = limit
        self.hint = hint
        self.retry_after = retry_after
        super().__init__(f"An owner may have {limit} {quota}. {hint}")


class Unavailable(CloudschedError):
    """An outside service did not answer in time. Trying again later may help."""

    def __init__(self, service: str, reason: str) -> None:
        self.service = service
        self.reason = reason
        super().__init__(f"{service} cannot be reached: {reason}")


class StoreUnavailable(Unavailable):
    """The document store did not answer."""


class BlobsUnavailable(StoreUnavailable):
    """The place for what is too large for a document did not answer; the store itself may be well."""


class QueueUnavailable(Unavailable):
    """The task queue did not answer. What was committed to the store is safe; the sweep dispatches it."""


class InterpreterUnavailable(Unavailable):
    """What runs scripts did not start, or died in the middle."""


class UnsupportedDocument(CloudschedError):
    """A stored document has a schema version that this code does not know."""

    def __init__(self, key: str, version: object, supported: int) -> None:
        self.key = key
        self.version = version
        self.supported = supported
        super().__init__(
            f"{key} has schema version {version!r}; this code reads versions up to {supported}. "
            "Deploy the newer cloudsched that wrote it."
        )


class Misconfigured(CloudschedError):
    """A setting is missing or contradicts another."""
