"""What identifies a request that changes a task, so that its caller may send it again when the answer was lost.

Either a key does (``Idempotency-Key``), or the state that it changes (``If-Match``): the task remembers both in the
commit of the change. A repetition is not refused because that state has gone.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cloudsched.domain.transitions.manual_runs import TriggerMark
from cloudsched.domain.transitions.request_marks import RequestMark
from cloudsched.web.api.task_creation import read_idempotency_key

if TYPE_CHECKING:
    from typing import Any

    from cloudsched.web.api.operation import ApiCall


def mark_change(call: ApiCall, verb: str, content: object = None, *, has_words: bool = False) -> RequestMark | None:
    """Return what identifies a change of a task; None if neither a key nor a state does.

    Args:
        call: The request.
        verb: What it does.
        content: What it says.
        has_words: Whether that is text, whose meaning depends on when it is read.

    Raises:
        InvalidInput: The key is not valid.
    """
    named = _find_name(call)
    if named is None:
        return None
    depends_on_time = has_words or named[0] == _KEY
    mark = RequestMark.of_name(json.dumps([verb, *_sender(call), *named]), content, depends_on_time=depends_on_time)
    call.visibility.allow_repetition(mark.is_known_to)
    return mark


def mark_trigger(call: ApiCall, payload: dict[str, Any] | None) -> TriggerMark | None:
    """Return what identifies a trigger, of which more are remembered, each with its execution; None if nothing does.

    Raises:
        InvalidInput: The key is not valid.
    """
    named = _find_name(call)
    if named is None:
        return None
    kind, name = named
    key = name if kind == _KEY else json.dumps([kind, name, payload], sort_keys=True)
    mark = TriggerMark.of(key, " ".join(_sender(call)), payload)
    call.visibility.allow_repetition(lambda task: mark.find(task) is not None)
    return mark


_KEY = "key"


def _find_name(call: ApiCall) -> tuple[str, str] | None:
    """Return the key or the state that names a request, and which of both it is."""
    key, seen = read_idempotency_key(call.request), call.request.headers.get("If-Match", "*")
    if key is not None:
        return _KEY, key
    return None if seen == "*" else ("state", seen)


def _sender(call: ApiCall) -> list[str]:
    """Return who sends it: a server that acts for somebody sends requests of its own."""
    return [call.caller.subject, *([] if call.caller.via is None else [call.caller.via])]
