"""What a text names: tasks, people, handlers and labels. The whole id of a task or of an execution opens at once."""

from __future__ import annotations

import json
from datetime import timedelta
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from cloudsched.dashboard.words import join_phrases, only_if, shorten, write_count

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

_LONGEST: Final = 500
"""The longest text that the API takes."""
_MOST: Final = 20
_KINDS: Final = ("tasks", "owners", "handlers", "labels")
_LATELY: Final = timedelta(days=7)
_AROUND: Final = 30
"""The letters of a payload before and after what was found in it."""


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API what the text names."""
    text = visit.query.get("q", "").strip()
    if not text or len(text) > _LONGEST:
        return {"found": None, "handlers": []}
    found = api.get("/v1/search", q=text, pageSize=_MOST)
    if task := found.get("task"):
        return {"goTo": f"tasks/{quote(task['id'], safe='')}"}
    if run := found.get("execution"):
        return {"goTo": f"tasks/{quote(run['taskId'], safe='')}/executions/{quote(run['executionId'], safe='')}"}
    handlers = []
    if not any(found[kind] for kind in _KINDS):
        handlers = [each["name"] for each in api.list_items("/v1/handlers", "handlers")]
    return {"found": found, "handlers": handlers}


def build(answer: Json, visit: Visit) -> Json:
    """Return what was found, in groups."""
    text = visit.query.get("q", "").strip()
    found = answer["found"]
    page: Json = {
        "text": shorten(text),
        "sentence": "",
        "tasks": [],
        "groups": [],
        "more": "",
        "guess": None,
        "note": "",
        "elsewhere": [],
    }
    if found is None:
        page["sentence"] = "Type a part of an id, a title, a person, a handler or a label."
        if text:
            page["sentence"] = f"That text is longer than {_LONGEST} characters. No name is that long."
        return page

    page["tasks"] = found["tasks"]
    page["groups"] = [
        ("People", [(name, f"people/{quote(name, safe='')}") for name in found["owners"]]),
        ("Handlers", [(name, f"tasks?{urlencode({'handler': name})}") for name in found["handlers"]]),
        ("Labels", [(name, f"tasks?{urlencode({'label': name})}") for name in found["labels"]]),
    ]
    page["groups"] = [(name, items) for name, items in page["groups"] if items]
    page["sentence"] = _write_sentence(found, page["text"])
    page["note"] = _write_note(found)
    if not any(found[kind] for kind in _KINDS):
        page["elsewhere"] = _list_elsewhere(text, visit)
    if len(found["tasks"]) == _MOST:
        page["more"] = f"tasks?{urlencode({'q': text})}"
    if guess := guess_name(text, answer["handlers"]):
        page["guess"] = (guess, f"tasks?{urlencode({'handler': guess})}")
    return page


def show_match(task: Json, words: Iterable[str]) -> str:
    """Return the id, and the part of the payload, where words were found that a task's row does not show."""
    row = " ".join((task["title"], task["handler"], task["owner"], *task.get("labels", ()))).casefold()
    unseen = [word for word in map(str.casefold, words) if word not in row]
    if not unseen:
        return ""
    others = [word for word in unseen if word not in task["id"].casefold()]
    payload = json.dumps(task.get("payload", {}), ensure_ascii=False)
    parts = [_cut_around(payload, word.rpartition("=")[2]) for word in others]
    return join_phrases(only_if(len(others) < len(unseen), task["id"]), *dict.fromkeys(parts), separator=" · ")


def _cut_around(text: str, part: str) -> str:
    """Return the part of a text with what stands around it. Empty if it has none."""
    at = text.casefold().find(part)
    if at < 0:
        return ""
    start, end = max(0, at - _AROUND), at + len(part) + _AROUND
    return f"{only_if(start, '…')}{text[start:end]}{only_if(end < len(text), '…')}"


def _list_elsewhere(text: str, visit: Visit) -> list[tuple[str, str]]:
    """Return where else a text that is no name may stand: in errors, and in what tasks are given."""
    errors = {"error": text, "from": (visit.now - _LATELY).isoformat()}
    return [
        (f"Runs of the last {_LATELY.days} days whose error has it", f"runs?{urlencode(errors)}"),
        ("Tasks whose payload has it", f"tasks?{urlencode({'q': text, 'payloads': '1'})}"),
    ]


def guess_name(text: str, known: Iterable[str]) -> str | None:
    """Return the known name that a text with a slip means. None if none is near, or it is one of them."""
    typed = text.rpartition(":")[2].strip()
    near = next(iter(get_close_matches(typed, known, 1, 0.7)), None)
    return None if near == typed else near


def _write_note(found: Json) -> str:
    """Return what was not looked at, and what to do about it."""
    if found.get("matchedBy") == "BEGINNINGS":
        return (
            "Tasks are found by the beginnings of words, if they were written since the index of names is on. "
            "Any part of a name is not looked for in this store."
        )
    if found["isComplete"]:
        return ""
    if found.get("matchedBy") == "FRAGMENTS":
        return "There is more than one look reads. Type more of the name."
    return (
        "Only the newest 1,000 tasks were looked at, because the index of names is off (CLOUDSCHED_NAME_INDEX). "
        "The whole id of a task is found all the same."
    )


def _write_sentence(found: Json, text: str) -> str:
    nouns = {"tasks": ("task", "tasks"), "owners": ("person", "people")}
    nouns |= {"handlers": ("handler", "handlers"), "labels": ("label", "labels")}
    counts = [
        write_count(len(found[kind]), *names, is_at_least=len(found[kind]) == _MOST)
        for kind, names in nouns.items()
        if found[kind]
    ]
    if not counts:
        return f"Nothing is named “{text}”."
    return f"“{text}”: {', '.join(counts)}."
