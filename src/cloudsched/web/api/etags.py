"""ETags, which identify a task's state so that an edit can depend on it (RFC 9110, section 13.1.1).

A tag is a hash of the stored task. States with equal content have equal tags, and all others have different ones. So an
edit that names a tag changes exactly what its caller has seen, even while the executor changes the task.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from werkzeug.http import parse_etags, quote_etag

from cloudsched.errors import InvalidInput, PreconditionFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from werkzeug.wrappers import Request

    from cloudsched.domain.documents.task import Task

TAGS_PATTERN = r'^(\*|(W/)?"[\x21\x23-\x7e]*"( ?, ?(W/)?"[\x21\x23-\x7e]*")*)$'
"""One ``*``, or some entity tags (RFC 9110, section 8.8.3)."""
_TAGS = re.compile(TAGS_PATTERN)


def compute_etag(task: Task) -> str:
    """Return the tag of a task's state, without quotes."""
    beside = {"refused_events", "usage"}  # others' mistakes, and what they cost, outdate nothing that anybody has seen
    content = task.model_dump_json(by_alias=True, exclude_none=True, exclude=beside)
    return f"{task.revision}-{hashlib.sha256(content.encode()).hexdigest()[:20]}"


def compute_quoted_etag(task: Task) -> str:
    """Return the tag of a task's state as the ``ETag`` header has it."""
    return quote_etag(compute_etag(task))


def parse_if_match(request: Request) -> Callable[[Task], None] | None:
    """Return a function that checks a task against the request's ``If-Match``; None if the request has none.

    The function raises PreconditionFailed. A weak tag never matches.

    Raises:
        InvalidInput: The header is not a list of tags.
    """
    given = request.headers.get("If-Match")
    if given is None:
        return None
    require_tags("If-Match", given)
    tags = parse_etags(given)

    def check(task: Task) -> None:
        if not tags.contains(compute_etag(task)):
            raise PreconditionFailed(f"task {task.id}")

    return check


def require_tags(header: str, value: str) -> None:
    """Check that a header's value is a list of tags.

    Raises:
        InvalidInput: It is not.
    """
    if not _TAGS.fullmatch(value):
        raise InvalidInput(
            header, "is not a list of ETags", 'Give the ETag header of a response unchanged, as in "1-2ab".'
        )
