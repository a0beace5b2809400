"""The ETags of tasks and people, and the conditions that requests make of them.

An ETag identifies a state so that an edit can depend on it (RFC 9110, section 13.1.1). A task's tag is a hash
of the stored task: states with equal content have equal tags, and all others have different ones. So an edit
that names a tag applies only to the state that its caller has seen, even while the executor changes the task.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from werkzeug.http import parse_etags

from cloudsched.domain.documents.task import Task
from cloudsched.errors import InvalidInput, PreconditionFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from werkzeug.datastructures import ETags
    from werkzeug.wrappers import Request

    from cloudsched.domain.documents.person import Person


TAGS_PATTERN = r'^(\*|(W/)?"[\x21\x23-\x7e]*"( ?, ?(W/)?"[\x21\x23-\x7e]*")*)$'
"""One ``*``, or some entity tags (RFC 9110, section 8.8.3)."""
_TAGS = re.compile(TAGS_PATTERN)


def compute_etag(stored: Task | Person) -> str:
    """Return the tag of a task's or a person's state, without quotes."""
    if not isinstance(stored, Task):
        return stored.etag
    content = stored.model_dump_json(by_alias=True, exclude_none=True, exclude={"usage"})
    return f"{stored.revision}-{hashlib.sha256(content.encode()).hexdigest()[:20]}"


def parse_if_match(request: Request) -> Callable[[Task | Person | None], None] | None:
    """Return a check of a task or a person against the request's ``If-Match``. None if it has none.

    The check raises PreconditionFailed, also for what does not exist. Raises InvalidInput if the header is
    no list of tags.
    """
    given = request.headers.get("If-Match")
    if given is None:
        return None
    require_tags("If-Match", given)
    tags = parse_etags(given)

    def check(stored: Task | Person | None) -> None:
        if stored is None or not includes_tag(tags, compute_etag(stored)):
            what = f"task {stored.id}" if isinstance(stored, Task) else "The person"
            raise PreconditionFailed(what)

    return check


def includes_tag(tags: ETags, own: str) -> bool:
    """Return whether a list of tags names a state, also as a proxy that compresses has changed its tag.

    nginx makes it weak, Apache and Caddy append the encoding, as in ``"1-2ab-gzip"``. RFC 9110 compares such
    tags of ``If-Match`` only byte by byte (section 13.1.1), for a server whose tags name bytes. Ours name a
    state, whatever became of its bytes on the way.
    """
    given = filter(None, tags.as_set(include_weak=True))  # werkzeug reads an empty one as None
    return tags.star_tag or any(tag == own or tag.startswith(f"{own}-") for tag in given)


def require_tags(header: str, value: str) -> None:
    """Check that a header's value is a list of tags. Raises InvalidInput."""
    if not _TAGS.fullmatch(value):
        hint = 'Give the ETag header of a response unchanged, as in "1-2ab".'
        raise InvalidInput(header, "is not a list of ETags", hint)
