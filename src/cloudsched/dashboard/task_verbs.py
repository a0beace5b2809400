"""The buttons of a task: each sends a verb to the API."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from pydantic.alias_generators import to_camel

from cloudsched.dashboard.api import task_path
from cloudsched.dashboard.forms.fields import read_json
from cloudsched.domain.documents.receipt import Reason
from cloudsched.domain.documents.verbs import Verb
from cloudsched.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cloudsched.dashboard.api import Api

RESUMED_IN_VAIN: Final = "resumed-in-vain"
"""What is done if a task is resumed while its budget or its limit is used up."""
_LONGEST_NUMBER: Final = 6
"""The digits of the longest number of a step."""


def act(api: Api, task_id: str, word: str, form: Mapping[str, str]) -> str:
    """Do a verb with one task, and return the name of what the page then says, in `routes.DONE`.

    Raises NotFound if pages have no such verb.
    """
    known = {each.word: each for each in Verb if each.traits.done and each is not Verb.EDIT}
    verb = known.get(word)
    if verb is None:
        raise NotFound("verb", word)
    path = task_path(task_id)
    if verb is Verb.DELETE:
        api.delete(path)
        return word

    etag = form.get("etag", "")
    headers = {}
    if not etag:  # a state names the request, too
        headers["Idempotency-Key"] = str(uuid.uuid4())
    event = quote(form.get("event", ""), safe="")
    answer = api.post(path + verb.path.format(event=event), _read_body(verb, form), etag=etag, headers=headers)
    doubts = answer.get("receipt", {}).get("doubts", ())
    if verb is Verb.RESUME and any(each["reason"] == Reason.BUDGET_USED_UP for each in doubts):
        return RESUMED_IN_VAIN
    return word


def _read_body(verb: Verb, form: Mapping[str, str]) -> dict[str, object] | None:
    """Return a verb's request, from its button and from the fields of its form. None if it has no fields."""
    traits = verb.traits
    if traits.body is None or not traits.body.model_fields:
        return None
    body: dict[str, object] = {}
    if traits.button is not None:
        body |= traits.button.body
    for name in map(to_camel, traits.body.model_fields):
        if form.get(name):
            body[name] = _READERS.get(name, str)(form[name])
    return body


def _read_step(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER):
        raise InvalidInput("fromStep", "is not the number of a step", "Choose a step of the run.")
    return int(text)


_READERS: Final[Mapping[str, Callable[[str], object]]] = {"fromStep": _read_step, "payload": read_json}
"""How the fields of forms are read that are not texts."""
