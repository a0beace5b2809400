"""A pytest plugin: cloudsched with one verb more than it has, as somebody would add it.

A new verb is a member and a row of the table, and a decision. The Python faces have a method each, written by hand.
Everything else has to follow, so this changes the table before anything reads it: ``-p tests.doors.new_verb``.
"""
# ruff: noqa: ANN401, SLF001 - it takes apart what type checkers have seen whole

from __future__ import annotations

import ast
import sys
from functools import partial
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any

TABLE = "cloudsched.domain.documents.verbs"
MEMBER = "NUDGE = 'nudge'"
ROW = """{
    Verb.NUDGE: VerbTraits(
        action=Action.EDITED,
        edits=True,
        about="Nudge a task.\\n\\nIts title says so.",
        body=SkipRequest,
        example={"summary": "The next one", "value": {"occurrence": "next"}},
        command=Command("Nudge a task.", arguments=("occurrence",)),
        done="Nudged.",
        button=Button("Nudge it"),
    )
}"""


def put_table() -> Any:
    """Import the table with the member and the row that it does not have."""
    spec = find_spec(TABLE)
    assert spec is not None
    assert spec.loader is not None
    tree = ast.parse(Path(str(spec.origin)).read_text("utf-8"))
    row = ast.parse(ROW, mode="eval").body
    assert isinstance(row, ast.Dict)

    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == "Verb":
            node.body += ast.parse(MEMBER).body
        if isinstance(node, ast.Dict) and any(ast.unparse(key) == "Verb.EDIT" for key in node.keys if key is not None):
            node.keys += row.keys
            node.values += row.values

    module = module_from_spec(spec)
    sys.modules[TABLE] = module
    exec(compile(ast.fix_missing_locations(tree), str(spec.origin), "exec"), module.__dict__)  # noqa: S102 - our own
    sys.modules["cloudsched.domain.documents"].verbs = module  # type: ignore[attr-defined]
    return module


def decide(task: Any, now: Any, *, occurrence: str) -> Any:
    """Say in its title that a task has been nudged."""
    domain = "cloudsched.domain.transitions"
    commit, lifecycle = import_module(f"{domain}.commit"), import_module(f"{domain}.lifecycle")
    return commit.Commit(lifecycle.with_changes(task, now, title=f"nudged: {occurrence}"))


def put_decision(nudge: str) -> None:
    """Allow the verb for each task."""
    verbs = import_module("cloudsched.domain.transitions.manual_verbs")
    is_allowed = verbs._is_allowed
    verbs._is_allowed = lambda verb, *more: verb == nudge or is_allowed(verb, *more)  # type: ignore[attr-defined]


def put_methods(verb: Any) -> None:
    """Give apps and clients the verb's method."""
    app = import_module("cloudsched.app")
    flows = import_module("cloudsched.client.flow")
    operations = import_module("cloudsched.client.task_operations")

    def of_app(self: Any, task_id: str, occurrence: str = "next", *, idempotency_key: str | None = None) -> Any:
        mark = self._mark_of("nudge", idempotency_key, occurrence)
        return self._scheduler.act(verb, task_id, partial(decide, occurrence=occurrence), self._authority, mark)

    def of_client(self: Any, task_id: str, occurrence: str = "next", *, idempotency_key: str | None = None) -> Any:
        del self
        content = {"occurrence": occurrence}
        return operations._post_change(task_id, "nudge", content, key=idempotency_key)

    of_app.__name__ = of_client.__name__ = "nudge"
    app.App.nudge = app.changes(of_app)
    app.AsyncApp.nudge = app.awaited(app.App.nudge)
    operations.TaskOperations.nudge = flows.operation(of_client)


NUDGE = put_table().Verb.NUDGE
put_decision(NUDGE)
put_methods(NUDGE)
