"""Everything that cloudsched raises on purpose.

::

    CloudschedError
    ├── InvalidInput                 the caller's data is wrong; `field` and `hint` say what and how to mend it
    │   ├── InvalidSchedule          a rule, zone, date or policy of a schedule
    │   ├── InvalidPayload           a payload that does not fit its handler's model
    │   ├── UnknownHandler           no handler is registered by that name
    │   └── KeyReused                an idempotency key that came before, with another request
    ├── NotFound                     no such task or execution (or not this caller's)
    ├── NotAllowed                   this status does not permit that change
    ├── VersionConflict              the document changed since it was read
    │   └── PreconditionFailed       it is not in the state that the caller says it is (If-Match)
    ├── Unauthenticated              a token is missing, wrong or expired
    ├── Forbidden                    the caller is known, and may not do this
    ├── QuotaExceeded                an owner has as much as one owner may have
    ├── Unavailable                  an outside service did not answer; trying again may help
    │   ├── StoreUnavailable
    │   └── QueueUnavailable
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


class InvalidPayload(InvalidInput):
    """A payload does not fit the model of its handler."""


class UnknownHandler(InvalidInput):
    """No handler is registered by that name."""


class KeyReused(InvalidInput):
    """An idempotency key stands for one request, and came again with another."""


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


class QueueUnavailable(Unavailable):
    """The task queue did not answer. What was committed to the store is safe; the sweep dispatches it."""


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
