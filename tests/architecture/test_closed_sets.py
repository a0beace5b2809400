"""Channels, statuses, verbs, priorities, stores and roles have one list each; a forgotten part is noticed."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from enum import StrEnum
from typing import get_args

import pytest
from tests.architecture.test_imports import MODULES, ROOT, nodes

from cloudsched.config.settings import StoreKind
from cloudsched.domain.closed_sets import complete_table
from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.delivery import SENT_CHANNELS, DeliveryChannel
from cloudsched.domain.documents.execution import ExecutionStatus, Trigger
from cloudsched.domain.documents.policy import CatchUpMode, Overlap, Priority
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.transitions.allowed_verbs import Verb
from cloudsched.web.auth.roles import Role

ENUMS: dict[str, type[StrEnum]] = {
    each.__name__: each
    for each in (
        *(Category, CatchUpMode, DeliveryChannel, ExecutionStatus, Overlap, Priority, Role, TaskStatus, Trigger, Verb),
    )
}
TEXTS = {
    **{name: {str(each) for each in members} for name, members in ENUMS.items()},
    "StoreKind": set(get_args(StoreKind)),
}
OTHER_LISTS = {
    "cli/main": "names of commands",
    "client/worker_operations": "the two statuses that a worker may report, as its caller's type checker sees them",
    "config/settings": "where the stores are listed",
    "dashboard/routes": "the page's own verbs, some of which the API has, too",
    "web/api/request_bodies": "the two statuses that a worker may report",
}
"""Modules that write several members' texts for another reason."""


def _list_texts(node: ast.Dict | ast.Set | ast.Tuple | ast.List) -> set[str]:
    parts = node.keys if isinstance(node, ast.Dict) else node.elts
    return {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}


def test_no_closed_set_is_listed_a_second_time() -> None:
    """No literal in the code has two texts of one set: such a list stays as it is when the set grows."""
    found = {
        f"{module}:{getattr(node, 'lineno', 0)} lists members of {name}"
        for module in MODULES
        if not module.startswith(("emulator/", "web/api/openapi_")) and module not in OTHER_LISTS
        for node in nodes(module)
        if isinstance(node, ast.Dict | ast.Set | ast.Tuple | ast.List)
        for listed in (_list_texts(node),)
        for name, texts in TEXTS.items()
        if len(listed & texts) > 1
    }
    assert not found


def _read_member(node: ast.expr) -> tuple[str, str] | None:
    """Return the set and the member that an expression such as `Role.ADMIN` names; `_S` is `TaskStatus`."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        name = {"_S": TaskStatus.__name__}.get(node.value.id, node.value.id)
        return (name, node.attr) if name in ENUMS else None
    return None


def _list_chained(function: ast.AST) -> Iterator[str]:
    """Yield what a function compares in several `if`s, each time with another member of one set."""
    compared: dict[tuple[str, str], set[str]] = {}
    for node in ast.walk(function):
        test = node.test if isinstance(node, ast.If | ast.IfExp) else None
        if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq | ast.Is):
            member = _read_member(test.comparators[0])
            if member is not None:
                compared.setdefault((ast.unparse(test.left), member[0]), set()).add(member[1])
    yield from (left for (left, _), members in compared.items() if len(members) > 1)


def test_what_differs_by_member_is_a_match() -> None:
    """A chain of `if`s gives a new member whatever comes last; a `match` that ends in `assert_never` does not."""
    chains = [
        f"{module}:{node.lineno} {left}"
        for module in MODULES
        for node in nodes(module)
        if isinstance(node, ast.FunctionDef)
        for left in _list_chained(node)
    ]
    assert not chains
    open_ended = [
        f"{module}:{node.lineno}"
        for module in MODULES
        for node in nodes(module)
        if isinstance(node, ast.Match)
        and any(
            isinstance(pattern, ast.MatchValue) and _read_member(pattern.value)
            for case in node.cases
            for pattern in ast.walk(case.pattern)
        )
        and "assert_never" not in ast.unparse(node.cases[-1])
    ]
    assert not open_ended


def test_a_table_without_a_member_is_refused() -> None:
    """When it is imported, with the member's name."""
    rows: dict[Priority, int] = {each: 1 for each in Priority if each is not Priority.LOW}
    with pytest.raises(TypeError, match="Priority has no row for LOW"):
        complete_table(Priority, rows)


def test_every_priority_and_channel_has_a_queue() -> None:
    """The scripts make queues from one file, which has them all; each has a line in the example."""
    table = json.loads((ROOT / "infra" / "resources.json").read_text("utf-8"))
    priorities, channels = ([each.lower() for each in members] for members in (Priority, SENT_CHANNELS))
    assert table["priorities"] == priorities
    assert [*table["queues"]] == [*priorities, *channels, "hops"]
    example = (ROOT / "infra" / "config.example.sh").read_text("utf-8")
    assert not [each for each in table["queues"] if f'QUEUE_{each.upper()}="{table["queues"][each]}"' not in example]
