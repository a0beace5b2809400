"""Validates the arguments that a handler passes to its context or returns in its outcome.

A durable handler is replayed, so nothing here reads the clock: what is rejected once is rejected in every
replay.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from cloudsched.domain.call_arguments import require_instant, show_value
from cloudsched.domain.documents.authority import PERSON, SenderRole, is_subject, list_people
from cloudsched.domain.documents.delivery_channels import USERS_CHANNELS, DeliveryChannel
from cloudsched.domain.documents.json_limits import to_json_value
from cloudsched.domain.documents.policy import RetryPolicy, to_retry_policy
from cloudsched.domain.documents.task import MAX_COUNT, MAX_NAME
from cloudsched.domain.recurrence.iso8601 import FIRST_YEAR
from cloudsched.errors import InvalidInput

K = TypeVar("K")

MAX_WAIT = timedelta(days=365 * 7_000)
"""The longest wait that is accepted: one that starts before the year 2998 ends before `LAST_YEAR` does."""


def parse_wait(field: str, value: object) -> timedelta | datetime:
    """Return how long, or until when (in UTC), a handler should wait. Raises InvalidInput."""
    if isinstance(value, timedelta):
        return parse_duration(field, value)
    if not isinstance(value, datetime):
        hint = "Give a timedelta, such as timedelta(minutes=5), or an aware datetime."
        raise InvalidInput(field, f"is {show_value(value)}", hint)
    if value.year < FIRST_YEAR:  # in UTC it may be before the first of Python's
        return datetime.min.replace(tzinfo=UTC)
    return require_instant(field, value)


def parse_duration(field: str, value: object) -> timedelta:
    """Return a duration that a handler passed. Raises InvalidInput."""
    if not isinstance(value, timedelta):
        raise InvalidInput(
            field,
            f"is {show_value(value)}",
            "Give a timedelta, such as timedelta(minutes=5).",
        )
    if value > MAX_WAIT:
        raise InvalidInput(field, f"is {show_value(value)}", f"At most {MAX_WAIT.days} days.")
    return value


def deadline(wait: timedelta | datetime, now: datetime) -> datetime:
    """Return when a wait that starts now ends: never before `now`, even if it is negative or in the past."""
    if isinstance(wait, timedelta):
        return now + max(wait, timedelta(0))
    return max(wait, now)


def require_name(field: str, value: object) -> str:
    """Return a name that can be stored in a journal. Raises InvalidInput."""
    if not isinstance(value, str):
        raise InvalidInput(field, f"is {show_value(value)}", "Give a string.")
    if len(value) > MAX_NAME:
        raise InvalidInput(field, f"is {show_value(value)}", f"Give at most {MAX_NAME} characters.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInput(field, "has a lone surrogate, which UTF-8 cannot encode", "Remove it.") from None
    return value


def parse_timeout(value: object) -> timedelta | None:
    """Return the timeout of a step, or None for no limit. Raises InvalidInput."""
    if value is None:
        return None
    timeout = parse_duration("timeout", value)
    if timeout <= timedelta(0):
        raise InvalidInput("timeout", f"is {timeout}", "Give a positive timedelta, or None for no limit.")
    return timeout


def require_count(field: str, value: Any, minimum: int) -> int:  # noqa: ANN401 - any argument
    """Return a number that a store can hold, as a plain `int`, even if it is an `IntEnum`.

    Raises InvalidInput.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= MAX_COUNT:
        raise InvalidInput(
            field,
            f"is {show_value(value)}",
            f"Give a whole number from {minimum} to {MAX_COUNT}.",
        )
    return int(value)


def require_callable(field: str, value: Any) -> Any:  # noqa: ANN401 - any argument
    """Return the value if it is callable. Raises InvalidInput."""
    if not callable(value):
        hint = "Give the function itself, followed by its arguments: ctx.step('add', add, 1, 2)."
        raise InvalidInput(field, f"is {show_value(value)}, which cannot be called", hint)
    return value


def parse_retry_policy(value: Any) -> RetryPolicy:  # noqa: ANN401 - any argument
    """Return the retry policy that a value stands for. Raises InvalidInput."""
    try:
        return to_retry_policy(value)
    except InvalidInput:
        hint = "Give a RetryPolicy, a number of retries from 0 to 20, True or False."
        raise InvalidInput("retry", f"is {show_value(value)}", hint) from None


_ROLES = (SenderRole.OWNER, SenderRole.ADMIN, SenderRole.WORKER)
MAX_SENDERS = 20
"""The most roles and users whose events one wait takes: each user gets a message."""


def parse_senders(value: Any) -> tuple[str, ...]:  # noqa: ANN401 - any argument
    """Return the roles and the users whose events a handler accepts. Raises InvalidInput."""
    senders: tuple[Any, ...] = ()
    if isinstance(value, Iterable) and not isinstance(value, str):
        # The order of a set is another one in each process, and replays compare the order.
        senders = (*(sorted(value, key=str) if isinstance(value, AbstractSet) else value),)
    wrong = [each for each in senders if each not in _ROLES and not _is_person(each)]
    if wrong or not 1 <= len(senders) <= MAX_SENDERS:
        user = f"{PERSON}dr-grey"
        if wrong and is_subject(wrong[0]):
            user = f"{PERSON}{wrong[0]}"
        names = ", ".join(repr(str(each)) for each in _ROLES)
        hint = f"Give some of {names}, and users by name, as in by=('admin', {user!r}). At most {MAX_SENDERS} in all."
        raise InvalidInput("by", f"is {show_value(value)}", hint)
    return tuple(dict.fromkeys(str(each) for each in senders))


def parse_channels(value: Any, senders: Iterable[str]) -> tuple[DeliveryChannel, ...]:  # noqa: ANN401 - the same
    """Return the channels by which a question goes to the users among the senders. Raises InvalidInput.

    The operator's channel is none of them: whoever reads it could answer in the name of the person.
    """
    names = (*value,) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
    if isinstance(value, str) or not all(each in USERS_CHANNELS for each in names):
        raise InvalidInput("channels", f"is {show_value(value)}", f"Give some of {', '.join(USERS_CHANNELS)}.")
    if names and not list_people(senders):
        raise InvalidInput("channels", "reach nobody", f"Name the users who are asked: by=('{PERSON}dr-grey',).")
    return tuple(dict.fromkeys(map(DeliveryChannel, names)))


def _is_person(value: object) -> bool:
    return isinstance(value, str) and value.startswith(PERSON) and is_subject(value.removeprefix(PERSON))


def require_instances(field: str, kind: type[K], value: tuple[Any, ...], hint: str) -> tuple[K, ...]:
    """Return the values if all of them are instances of `kind`. Raises InvalidInput."""
    for number, each in enumerate(value):
        if not isinstance(each, kind):
            raise InvalidInput(f"{field}.{number}", f"is {show_value(each)}", hint)
    return value


def arguments_fingerprint(payload: object, fields: dict[str, Any]) -> str:
    """Return a call's arguments as text to compare, or "" if they are not JSON, since it is rejected then."""
    try:
        return str(to_json_value("payload", {"payload": payload, **fields}))
    except InvalidInput:
        return ""
