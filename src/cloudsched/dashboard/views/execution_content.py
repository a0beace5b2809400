"""The payload and the result of a run: what is known of them, and how JSON is shown."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.times import parse_instant
from cloudsched.dashboard.words import only_if, shorten
from cloudsched.domain.documents.verbs import EDITS

if TYPE_CHECKING:
    from cloudsched.dashboard.api import Json

FOLDED: Final = 2000
"""Longer JSON than this is folded."""
_SHOWN: Final = 20_000
"""The number of its characters that are shown. The download has all of it."""
_KILOBYTE: Final = 1000


@dataclass(frozen=True, slots=True)
class Content:
    """JSON of a run's payload or result, as it is shown."""

    text: str
    size: str
    is_folded: bool
    download: str
    """The address of the complete content, below the mount. Empty if this is all of it."""


def show_content(content: object, path: str) -> Content | None:
    """Return JSON as it is shown: long texts folded, very long ones cut. None if there is none."""
    if content is None:
        return None
    text = content if isinstance(content, str) else json.dumps(content, indent=2, ensure_ascii=False)
    size = len(text.encode())
    words = f"{size:,} bytes"
    if size >= _KILOBYTE:
        words = f"{size / _KILOBYTE:,.1f} kB"
    is_folded = len(text) > FOLDED
    return Content(shorten(text, _SHOWN), words, is_folded, download=only_if(is_folded, path))


def may_have_changed(record: Json, task: Json) -> bool:
    """Return whether an edit may have changed the task's payload since this run."""
    is_own = "payload" in record or record.get("hasUnrecordedPayload")
    return not is_own and not task.get("children") and task["revision"] > 1


def find_payload(record: Json, task: Json, history: Json | None) -> tuple[object, str]:
    """Return a run's payload, None if it is not known, and its source, or the reason why it is not known."""
    if record.get("hasUnrecordedPayload"):
        return None, "It had its own payload, which was too large to keep beside the result."
    if "payload" in record:
        return record["payload"], "It had its own payload."
    if task.get("children"):
        return None, "It runs other tasks, each with a payload of its own."

    began = parse_instant(record.get("startedAt") or record["scheduledFor"])
    entries = (history or {}).get("entries", [])
    since = [each for each in entries if parse_instant(each["at"]) >= began]
    edited = {field["field"] for each in since if each["action"] in EDITS for field in each.get("fields", ())}
    if not edited.isdisjoint({"payload", "handler"}):
        return None, "The task's payload was edited since, and the old one was not kept."
    if (history is None and task["revision"] > 1) or not _has_all(entries, len(since)):
        return None, "The task was edited since. Whether its payload changed was not recorded."
    return task.get("payload", {}), "The task's payload."


def _has_all(entries: list[Json], count: int) -> bool:
    """Return whether a history has kept all of its latest entries. They are numbered from 1, the latest first."""
    numbers = [*(each["number"] for each in entries), 0]
    return bool(numbers[0] - count <= numbers[count])
