"""What forms ask for. The API decides whether the caller may; its refusal is shown as it is worded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from cloudsched.dashboard.api import Api, task_path
from cloudsched.domain.transitions.allowed_verbs import Verb
from cloudsched.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

_PLAIN: Final = frozenset({Verb.PAUSE, Verb.RESUME, Verb.CANCEL, Verb.TRIGGER})


def act(api: Api, task_id: str, verb: str, form: Mapping[str, str]) -> None:
    """Do one thing with one task.

    Raises:
        NotFound: There is no such verb or task.
        InvalidInput: What the form says is not what the verb needs.
        CloudschedError: The API refuses.
    """
    path = task_path(task_id)
    execution = form.get("executionId")
    if verb in _PLAIN:
        api.post(f"{path}/{verb}", etag=form.get("etag", ""))
    elif verb == "retry":
        step = _read_step(form.get("fromStep", ""))
        api.post(f"{path}/retry", {**({"executionId": execution} if execution else {}), **step})
    elif verb == "send":
        only = {"executionId": execution} if execution else {}
        event = quote(form.get("event", ""), safe="")
        api.post(f"{path}/events/{event}", {"payload": _read_json(form.get("payload", "null")), **only})
    elif verb == "delete":
        api.delete(path)
    else:
        raise NotFound("verb", verb)


def _read_step(text: str) -> dict[str, int]:
    if not text:
        return {}
    if not (text.isascii() and text.isdigit() and len(text) <= 6):  # noqa: PLR2004 - no number of a step is longer
        raise InvalidInput("fromStep", "is not the number of a step", "Choose a step of the execution.")
    return {"fromStep": int(text)}


def _read_json(text: str) -> object:
    try:
        return json.loads(text or "null")
    except ValueError as error:
        raise InvalidInput("payload", f"is not JSON: {error}", 'Write JSON, such as {"by": "grace"}.') from error
