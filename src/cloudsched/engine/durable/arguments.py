"""What a handler may say to its context, and in its outcome: checked before anything is done with it.

A durable handler is replayed, so nothing here asks the clock: what is refused once is refused in every replay.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from pydantic import ValidationError

from cloudsched.domain.documents.authority import SenderRole
from cloudsched.domain.documents.json_limits import to_json_value
from cloudsched.domain.documents.policy import RetryPolicy, to_retry_policy
from cloudsched.domain.documents.task import MAX_COUNT, MAX_NAME
from cloudsched.domain.recurrence.iso8601 import LAST_YEAR
from cloudsched.errors import InvalidInput

K = TypeVar("K")

MAX_WAIT = timedelta(days=365 * 7_000)
"""The longest that anything may be asked to wait: until the year 2998 it ends before `LAST_YEAR` does."""

_MAX_REPR_CHARS = 50


def parse_wait(field: str, value: object) -> timedelta | datetime:
    """Return how long, or until when (in UTC), a handler wants to wait.

    Raises:
        InvalidInput: It is neither a timedelta nor an aware datetime, or too far away.
    """
    if isinstance(value, timedelta):
        return parse_duration(field, value)
    if not isinstance(value, datetime) or value.utcoffset() is None:
        hint = "Give a timedelta, such as timedelta(minutes=5), or an aware datetime."
        raise InvalidInput(field, f"is {_short_repr(value)}", hint)
    if value.year > LAST_YEAR:
        raise InvalidInput(field, f"is {_short_repr(value)}", f"Give a year up to {LAST_YEAR}.")
    try:
        instant = value.astimezone(UTC)
    except OverflowError:  # the first day of year 1, east of Greenwich
        return datetime.min.replace(tzinfo=UTC)
    if instant.year > LAST_YEAR:
        raise InvalidInput(field, f"is {_short_repr(value)}", f"Give a year up to {LAST_YEAR}.")
    return instant


def parse_duration(field: str, value: object) -> timedelta:
    """Return how long a handler wants something to last.

    Raises:
        InvalidInput: It is no timedelta, or too long.
    """
    if not isinstance(value, timedelta):
        raise InvalidInput(field, f"is {_short_repr(value)}", "Give a timedelta, such as timedelta(minutes=5).")
    if value > MAX_WAIT:
        raise InvalidInput(field, f"is {_short_repr(value)}", f"At most {MAX_WAIT.days} days.")
    return value


def deadline(wait: timedelta | datetime, now: datetime) -> datetime:
    """Return when a wait that begins now is over; what is past is now."""
    if isinstance(wait, timedelta):
        return now + max(wait, timedelta(0))
    return max(wait, now)


def require_name(field: str, value: object) -> str:
    """Return a name that a journal can keep.

    Raises:
        InvalidInput: It is no text, or too long, or not in UTF-8.
    """
    if not isinstance(value, str):
        raise InvalidInput(field, f"is {_short_repr(value)}", "Give a text.")
    if len(value) > MAX_NAME:
        raise InvalidInput(field, f"is {_short_repr(value)}", f"Give at most {MAX_NAME} characters.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInput(field, "has a lone surrogate, which UTF-8 cannot say", "Repair the text.") from None
    return value


def parse_timeout(value: object) -> timedelta | None:
    """Return how long a step may take.

    Raises:
        InvalidInput: It is no timedelta, or nothing could be done in it.
    """
    if value is None:
        return None
    length = parse_duration("timeout", value)
    if length <= timedelta(0):
        raise InvalidInput("timeout", f"is {length}", "Give more than nothing, or None for no limit.")
    return length


def require_count(field: str, value: Any, minimum: int) -> int:  # noqa: ANN401 - whatever a handler has given
    """Return a number that a store can keep, as a plain one.

    Raises:
        InvalidInput: It is no whole number, or too small or large.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= MAX_COUNT:
        raise InvalidInput(field, f"is {_short_repr(value)}", f"Give a whole number from {minimum} to {MAX_COUNT}.")
    return int(value)


def require_callable(field: str, value: Any) -> Any:  # noqa: ANN401 - whatever a handler has given
    """Return something that can be called.

    Raises:
        InvalidInput: It cannot be.
    """
    if not callable(value):
        hint = "Give the function itself, and then what it is called with: ctx.step('add', add, 1, 2)."
        raise InvalidInput(field, f"is {_short_repr(value)}, which cannot be called", hint)
    return value


def parse_retry_policy(value: Any) -> RetryPolicy:  # noqa: ANN401 - whatever a handler has given
    """Return how often something is tried again.

    Raises:
        InvalidInput: It is no policy, and nothing that stands for one.
    """
    try:
        return to_retry_policy(value)
    except ValidationError as error:
        hint = "Give a RetryPolicy, a number of retries from 0 to 20, True or False."
        raise InvalidInput("retry", f"is {_short_repr(value)}", hint) from error


def parse_senders(value: Any) -> tuple[SenderRole, ...]:  # noqa: ANN401 - whatever a handler has given
    """Return whose events a handler takes.

    Raises:
        InvalidInput: It is empty, a single string, or names no sender.
    """
    try:
        senders = () if isinstance(value, str) else tuple(SenderRole(each) for each in value)
    except (TypeError, ValueError):
        senders = ()
    if not senders:
        names = ", ".join(repr(str(each)) for each in SenderRole)
        raise InvalidInput("by", f"is {_short_repr(value)}", f"Give some of {names}, as in by=('owner', 'admin').")
    return senders


def require_instances(field: str, kind: type[K], value: tuple[Any, ...], hint: str) -> tuple[K, ...]:
    """Return things that are all of one kind.

    Raises:
        InvalidInput: One of them is not; `field` says which, counted from 0.
    """
    for number, each in enumerate(value):
        if not isinstance(each, kind):
            raise InvalidInput(f"{field}.{number}", f"is {_short_repr(each)}", hint)
    return value


def arguments_fingerprint(payload: object, fields: dict[str, Any]) -> str:
    """Return what a call was given, as text to compare; empty if it is not JSON, for which the call is refused."""
    try:
        return str(to_json_value("payload", {"payload": payload, **fields}))
    except InvalidInput:
        return ""


def _short_repr(value: object) -> str:
    try:
        said = repr(value)
    except Exception:  # noqa: BLE001 - it may be any object of the handler's own
        said = f"a {type(value).__name__}"
    return said if len(said) <= _MAX_REPR_CHARS else f"{said[:_MAX_REPR_CHARS]}…"
