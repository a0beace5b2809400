"""What a text names: tasks, people, handlers and labels. The whole id of a task or of an execution opens at once."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from cloudsched.dashboard.api import execution_path, task_path
from cloudsched.dashboard.words import write_count

if TYPE_CHECKING:
    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

_LONGEST: Final = 500
"""The longest text that the API takes."""
_MOST: Final = 20
_LATELY: Final = timedelta(days=7)
_FIELDS: Final = {"People": "owners", "Handlers": "handlers", "Labels": "labels"}


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API what the text names."""
    text = visit.query.get("q", "").strip()
    if not text or len(text) > _LONGEST:
        return {"tasks": []}
    found = api.get("/v1/search", q=text, pageSize=_MOST)
    if task := found.get("task"):
        return {"goTo": task_path(task["id"]).removeprefix("/v1/")}
    if run := found.get("execution"):
        return {"goTo": execution_path(run["taskId"], run["executionId"]).removeprefix("/v1/")}
    return found


def build(answer: Json, visit: Visit) -> Json:
    """Return what was found, in groups, and where else the text may stand."""
    text = visit.query.get("q", "").strip()
    errors = {"error": text, "from": (visit.now - _LATELY).isoformat()}
    groups = [(name, answer.get(field, ())) for name, field in _FIELDS.items()]
    return {
        "tasks": answer["tasks"],
        "sentence": _write_sentence(answer, text),
        "groups": [(name, [(each, _find_address(name, each)) for each in found]) for name, found in groups if found],
        "elsewhere": [
            ("Tasks with it in their names or payloads", f"tasks?{urlencode({'search': text})}"),
            (f"Runs of the last {_LATELY.days} days whose error has it", f"runs?{urlencode(errors)}"),
        ]
        if "isComplete" in answer
        else [],
    }


def _find_address(group: str, name: str) -> str:
    if group == "People":
        return f"people/{quote(name, safe='')}"
    return f"tasks?{urlencode({'handler' if group == 'Handlers' else 'label': name})}"


def _write_sentence(answer: Json, text: str) -> str:
    if "isComplete" not in answer:
        return f"Type a part of an id, a title, a person, a handler or a label, of at most {_LONGEST} letters."
    count = {"value": len(answer["tasks"]), "atLeast": len(answer["tasks"]) == _MOST or not answer["isComplete"]}
    said = f"{write_count(count, 'task', 'tasks')}. "
    if not any(answer[field] for field in ("tasks", *_FIELDS.values())):
        said = f"Nothing is named “{text}”. "
    if answer.get("matchedBy") == "BEGINNINGS":
        return f"{said}Tasks are found by the beginnings of words alone, if they were saved since the index is on."
    return said if answer["isComplete"] else f"{said}Not everything was looked at: type more of the name."
