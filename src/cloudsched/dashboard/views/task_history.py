"""The history of a task on its page: who did what, when, and what that changed."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.forms.task_options import read_before
from cloudsched.dashboard.words import only_if
from cloudsched.errors import CloudschedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cloudsched.dashboard.api import Api, Json

_MOST_SAID: Final = 12
"""The number of a history's schedules that are put into words. Each that is not known yet takes a request."""


def describe_schedules(api: Api, history: Json | None) -> dict[str, str]:
    """Return a history's schedules in words, by their JSON texts, as far as the API reads them."""
    words = {}
    for text in list(dict.fromkeys(_list_schedules(history)))[:_MOST_SAID]:
        with suppress(CloudschedError, ValueError):
            words[text] = api.describe(json.loads(text))
    return words


def _list_schedules(history: Json | None) -> Iterator[str]:
    for entry in (history or {}).get("entries", []):
        for field in entry.get("fields", ()):
            if field["field"] == "schedule":
                yield from filter(None, [field.get("before"), field.get("after")])


def build_history(answer: Json | None, words: Mapping[str, str]) -> list[Json]:
    """Return the rows of the API's answer, the latest first. Empty if the API has no history."""
    return [_build_entry(each, words) for each in (answer or {}).get("entries", [])]


def _build_entry(entry: Json, words: Mapping[str, str]) -> Json:
    fields = entry.get("fields", [])

    def write(text: str) -> str:
        return words.get(text, text)

    return {
        **entry,
        "what": entry["action"].capitalize() + only_if(entry.get("reason"), f": {entry.get('reason')}"),
        "who": _name_actor(entry.get("by")),
        "changes": [(each["field"], write(each.get("before", "")), write(each.get("after", ""))) for each in fields],
        "hasBack": bool(read_before(fields)[0]),
    }


def _name_actor(by: Json | None) -> str:
    if not by:
        return "the scheduler"
    return by.get("subject") or "the app's own code"
