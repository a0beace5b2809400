"""The keys and states that identify a repeated request: ``Idempotency-Key`` and ``If-Match``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from cloudsched.domain.transitions.idempotency import RequestMark
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

    from cloudsched.web.api.operation import ApiCall


IDEMPOTENCY_HEADER = "Idempotency-Key"
KEY_PATTERN = r"^[^\x00-\x1f\x7f]{1,3060}$"
"""The form in which a key is sent: 255 characters of four bytes each, percent-encoded."""
_KEY = re.compile(r"(?=.*\S)[^\x00-\x1f\x7f-\x9f]{1,255}")


def read_idempotency_key(request: Request) -> str | None:
    """Return the request's idempotency key, if it has one. Raises InvalidInput.

    It is any text, in UTF-8. Clients percent-encode it as in a URL, so that it passes each proxy, and curl
    sends its bytes: both mean the same.
    """
    sent = request.headers.get(IDEMPOTENCY_HEADER)
    if sent is None:
        return None
    try:
        key = unquote_to_bytes(sent.encode("latin-1")).decode()  # WSGI hands over bytes as Latin-1
    except UnicodeError:
        key = ""
    if not _KEY.fullmatch(key):
        hint = "Give 1 to 255 characters of any script, in UTF-8, as they are or percent-encoded. A `%` itself is %25."
        raise InvalidInput(IDEMPOTENCY_HEADER, "is not a valid key", hint)
    return key


def mark_change(
    call: ApiCall,
    verb: str,
    content: object = None,
    *,
    has_words: bool = False,
) -> RequestMark | None:
    """Return the mark that identifies a change of a task. None if the request has neither a key nor a state.

    `has_words` says that the meaning of the content depends on the time at which it is read. Raises
    InvalidInput.
    """
    named = _find_name(call)
    if named is None:
        return None
    is_key = named[0] == _KEY_KIND
    name: list[object] = [verb, *_sender(call), *named]
    if not is_key:
        name.append(content)  # several changes may name one state
    mark = RequestMark.of_name(name, content, depends_on_time=has_words or is_key)
    call.visibility.allow_repetition(lambda task: mark.find(task) is not None)
    return mark


_KEY_KIND = "key"


def _find_name(call: ApiCall) -> tuple[str, str] | None:
    """Return the key or the state that identifies a request, and which of the two it is."""
    key = read_idempotency_key(call.request)
    if key is not None:
        return _KEY_KIND, key
    seen = call.request.headers.get("If-Match", "*")
    return None if seen == "*" else ("state", seen)


def _sender(call: ApiCall) -> list[str]:
    """Return the sender of the request. A server that acts for a user is another sender than that user."""
    return [each for each in (call.caller.subject, call.caller.via) if each is not None]
