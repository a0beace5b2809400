"""What a handler may say to its context, and in its outcome: checked before anything is done with it.

A durable handler is replayed, so nothing here asks the clock: what is refused once is refused in every replay.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from pydantic import ValidationError

from cloudsched.domain.documents.policy import RetryPolicy, retry_policy
from cloudsched.domain.documents.task import MAX_COUNT, MAX_NAME
from cloudsched.domain.recurrence.iso8601 import LAST_YEAR
from cloudsched.errors import InvalidInput

K = TypeVar("K")

LONGEST_WAIT = timedelta(days=365 * 7_000)
"""The longest that anything may be asked to wait: until the year 2998 it ends before `LAST_YEAR` does."""

_SHOWN = 50


def wait_of(field: str, wanted: object) -> timedelta | datetime:
    """Return how long, or until when (in UTC), a handler wants to wait.

    Raises:
        InvalidInput: It is neither a timedelta nor an aware datetime, or too far away.
    """
    if isinstance(wanted, timedelta):
        return length_of(field, wanted)
    if not isinstance(wanted, datetime) or wanted.utcoffset() is None:
        hint = "Give a timedelta, such as timedelta(minutes=5), or an aware datetime."
        raise InvalidInput(field, f"is {_shown(wanted)}", hint)
    if wanted.year > LAST_YEAR:
        raise InvalidInput(field, f"is {_shown(wanted)}", f"Give a year up to {LAST_YEAR}.")
    try:
        instant = wanted.astimezone(UTC)
    except OverflowError:  # the first day of year 1, east of Greenwich
        return datetime.min.replace(tzinfo=UTC)
    if instant.year > LAST_YEAR:
        raise InvalidInput(field, f"is {_shown(wanted)}", f"Give a year up to {LAST_YEAR}.")
    return instant


def length_of(field: str, wanted: object) -> timedelta:
    """Return how long a handler wants something to last.

    Raises:
        InvalidInput: It is no timedelta, or too long.
    """
    if not isinstance(wanted, timedelta):
        raise InvalidInput(field, f"is {_shown(wanted)}", "Give a timedelta, such as timedelta(minutes=5).")
    if wanted > LONGEST_WAIT:
        raise InvalidInput(field, f"is {_shown(wanted)}", f"At most {LONGEST_WAIT.days} days.")
    return wanted


def end_of(wait: timedelta | datetime, now: datetime) -> datetime:
    """Return when a wait that begins now is over; what is past is now."""
    if isinstance(wait, timedelta):
        return now + max(wait, timedelta(0))
    return max(wait, now)


def name_of(field: str, wanted: object) -> str:
    """Return a name that a journal can keep.

    Raises:
        InvalidInput: It is no text, or too long, or not in UTF-8.
    """
    if not isinstance(wanted, str):
        raise InvalidInput(field, f"is {_shown(wanted)}", "Give a text.")
    if len(wanted) > MAX_NAME:
        raise InvalidInput(field, f"is {_shown(wanted)}", f"Give at most {MAX_NAME} characters.")
    try:
        wanted.encode()
    except UnicodeEncodeError:
        raise InvalidInput(field, "has a lone surrogate, which UTF-8 cannot say", "Repair the text.") from None
    return wanted


def timeout_of(wanted: object) -> timedelta | None:
    """Return how long a step may take.

    Raises:
        InvalidInput: It is no timedelta, or nothing could be done in it.
    """
    if wanted is None:
        return None
    length = length_of("timeout", wanted)
    if length <= timedelta(0):
        raise InvalidInput("timeout", f"is {length}", "Give more than nothing, or None for no limit.")
    return length


def count_of(field: str, wanted: Any, least: int) -> int:  # noqa: ANN401 - whatever a handler has given
    """Return a number that a store can keep, as a plain one.

    Raises:
        InvalidInput: It is no whole number, or too small or large.
    """
    if not isinstance(wanted, int) or isinstance(wanted, bool) or not least <= wanted <= MAX_COUNT:
        raise InvalidInput(field, f"is {_shown(wanted)}", f"Give a whole number from {least} to {MAX_COUNT}.")
    return int(wanted)


def callable_of(field: str, wanted: Any) -> Any:  # noqa: ANN401 - whatever a handler has given
    """Return something that can be called.

    Raises:
        InvalidInput: It cannot be.
    """
    if not callable(wanted):
        hint = "Give the function itself, and then what it is called with: ctx.step('add', add, 1, 2)."
        raise InvalidInput(field, f"is {_shown(wanted)}, which cannot be called", hint)
    return wanted


def policy_of(wanted: Any) -> RetryPolicy:  # noqa: ANN401 - whatever a handler has given
    """Return how often something is tried again.

    Raises:
        InvalidInput: It is no policy, and nothing that stands for one.
    """
    try:
        return retry_policy(wanted)
    except ValidationError as error:
        hint = "Give a RetryPolicy, a number of retries from 0 to 20, True or False."
        raise InvalidInput("retry", f"is {_shown(wanted)}", hint) from error


def each_of(field: str, kind: type[K], wanted: tuple[Any, ...], hint: str) -> tuple[K, ...]:
    """Return things that are all of one kind.

    Raises:
        InvalidInput: One of them is not; `field` says which, counted from 0.
    """
    for number, each in enumerate(wanted):
        if not isinstance(each, kind):
            raise InvalidInput(f"{field}.{number}", f"is {_shown(each)}", hint)
    return wanted


def _shown(value: object) -> str:
    try:
        said = repr(value)
    except Exception:  # noqa: BLE001 - it may be any object of the handler's own
        said = f"a {type(value).__name__}"
    return said if len(said) <= _SHOWN else f"{said[:_SHOWN]}…"
