"""Check the options that `Registry.register` is given."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from cloudsched.domain.documents.authority import Requesters
from cloudsched.domain.documents.policy import Priority, to_retry_policy
from cloudsched.domain.documents.pull import Pull
from cloudsched.domain.documents.task import MAX_DURATION, MAX_NAME
from cloudsched.errors import Misconfigured

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cloudsched.domain.documents.policy import RetryPolicy

_URL_NAME = re.compile(r"(?!\.{1,2}\Z)(?!\s)[^/\\\x00-\x1f\x7f\ud800-\udfff]+(?<!\s)\Z")
"""A name that a URL can carry as one segment of its path."""


def validate_options(
    name: object,
    retry: RetryPolicy | int | bool | None,  # noqa: FBT001 - True, 3 or a policy
    retry_on: type[Exception] | tuple[type[Exception], ...],
    expected_duration: timedelta | None,
) -> RetryPolicy | None:
    """Return the retry policy from a handler's options; reject options with which its tasks could not be stored."""
    if not isinstance(name, str) or not 1 <= len(name) <= MAX_NAME:
        raise Misconfigured(
            f'A handler is registered by its name, of at most {MAX_NAME} characters: @app.handler("greet"); '
            f"{name!r} is not a valid name."
        )
    if not _URL_NAME.match(name):
        raise Misconfigured(
            f"Handler {name!r}: no URL carries this name; leave out slashes, control characters and spaces at the ends."
        )
    kinds: tuple[object, ...] = retry_on if isinstance(retry_on, tuple) else (retry_on,)
    if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
        raise Misconfigured(f"Handler {name!r}: retry_on is {retry_on!r}; give exception classes.")
    if expected_duration is not None and not timedelta(0) < expected_duration <= MAX_DURATION:
        raise Misconfigured(f"Handler {name!r}: expected_duration is {expected_duration}; at most {MAX_DURATION}.")
    try:
        return None if retry is None else to_retry_policy(retry)
    except ValidationError as error:
        raise Misconfigured(f"Handler {name!r}: retry is {retry!r}; give 0 to 20, or a RetryPolicy.") from error


def validate_pull(name: str, pull: str | Pull | None) -> Pull | None:
    """Return the workers that run a handler's tasks. Raises Misconfigured."""
    try:
        return None if pull is None else Pull.model_validate(pull)
    except ValidationError as error:
        raise Misconfigured(f"Handler {name!r}: pull is {pull!r}; give a queue's name, or a Pull.") from error


def validate_access(
    name: str, access: str, user_max_priority: str | None, user_queues: Iterable[str]
) -> dict[str, Any]:
    """Return a handler's options for users; reject such options if users may not name the handler."""
    if access not in set(Requesters):
        raise Misconfigured(f'Handler {name!r}: access is {access!r}; give "users" or "servers".')
    if user_max_priority is not None and user_max_priority not in set(Priority):
        raise Misconfigured(
            f"Handler {name!r}: user_max_priority is {user_max_priority!r}; give one of {', '.join(Priority)}."
        )
    try:
        queues = None if isinstance(user_queues, str) else [Pull.model_validate(each).queue for each in user_queues]
    except (TypeError, ValidationError):
        queues = None
    if queues is None:
        raise Misconfigured(f'Handler {name!r}: user_queues is {user_queues!r}; give names, as in ("render", "gpu").')
    if access != Requesters.USERS and (user_max_priority is not None or queues):
        raise Misconfigured(
            f'Handler {name!r}: user_max_priority and user_queues are for handlers with access="users".'
        )
    return {
        "access": Requesters(access),
        "user_max_priority": Priority.HIGH if user_max_priority is None else Priority(user_max_priority),
        "user_queues": frozenset(queues),
    }


def validate_log_readers(name: str, logs: str) -> bool:
    """Return whether a handler's logs are for their owners, too. Raises Misconfigured."""
    if logs not in {"admins", "owner"}:
        raise Misconfigured(f'Handler {name!r}: logs is {logs!r}; give "owner" or "admins".')
    return logs == "owner"


MAX_DRAFT_TEXT = 500


def validate_draft_text(name: str, draft: object) -> str | None:
    """Return what a handler does, in words. Raises Misconfigured."""
    if draft is None:
        return None
    if not isinstance(draft, str) or not draft.strip() or len(draft) > MAX_DRAFT_TEXT:
        raise Misconfigured(
            f"Handler {name!r}: draft is {draft!r}; say in at most {MAX_DRAFT_TEXT} characters what it does, such as "
            '"Sends a reminder".'
        )
    return draft.strip()
