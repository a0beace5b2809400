"""A new channel, status, verb, priority or role is noticed wherever its part is forgotten."""

from __future__ import annotations

import ast
import json
from enum import StrEnum

from tests.architecture.picture import ROOT
from tests.architecture.test_imports import MODULES, nodes

from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.delivery_channels import QUEUE_CHANNELS, DeliveryChannel
from cloudsched.domain.documents.execution import ExecutionStatus, Trigger
from cloudsched.domain.documents.policy import CatchUpMode, Overlap, Priority
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.documents.verbs import Verb
from cloudsched.web.auth.roles import Role

ENUMS: dict[str, type[StrEnum]] = {
    each.__name__: each
    for each in (
        *(Category, CatchUpMode, DeliveryChannel, ExecutionStatus, Overlap, Priority, Role, TaskStatus, Trigger, Verb),
    )
}


def _read_member(node: ast.expr) -> tuple[str, str] | None:
    """Return the set and the member that an expression such as `Role.ADMIN` names; `_S` is `TaskStatus`."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        name = {"_S": TaskStatus.__name__}.get(node.value.id, node.value.id)
        return (name, node.attr) if name in ENUMS else None
    return None


def test_a_match_of_members_has_them_all() -> None:
    """A `match` whose cases all return, or that ends in `assert_never`, passes over no new member: mypy sees that."""
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
        and not all(isinstance(case.body[-1], ast.Return | ast.Raise) for case in node.cases)
    ]
    assert not open_ended


def test_every_priority_and_channel_has_a_queue() -> None:
    """The scripts make queues from one file, which has them all; each has a line in the example."""
    table = json.loads((ROOT / "infra" / "resources.json").read_text("utf-8"))
    priorities, channels = ([each.lower() for each in members] for members in (Priority, QUEUE_CHANNELS))
    assert table["priorities"] == priorities
    assert [*table["queues"]] == [*priorities, *channels, "hops"]
    example = (ROOT / "infra" / "config.example.sh").read_text("utf-8")
    assert not [each for each in table["queues"] if f'QUEUE_{each.upper()}="{table["queues"][each]}"' not in example]
