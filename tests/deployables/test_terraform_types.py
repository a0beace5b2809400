"""The Terraform module against the provider's own schema, without the provider: as `validate` would look at it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from tests.deployables.terraform_files import Block, read_blocks
from tests.deployables.terraform_stand_in import MODULE
from tests.deployables.terraform_types import TABLE, find_kinds

if TYPE_CHECKING:
    from pathlib import Path

    from tests.deployables.fake_project import Cloud

TYPES: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8"))
META = {"count", "for_each", "depends_on", "provider"}
"""What Terraform itself knows in every resource."""
FILES = sorted(MODULE.rglob("*.tf"))


def find_problems(block: Block, shape: dict[str, Any], place: str, *, is_top: bool = True) -> list[str]:
    """Return what the provider would refuse in a block."""
    found: list[str] = []
    for name, value in block.arguments.items():
        if name in META and is_top:
            continue
        known = shape.get(name)
        if known is None or isinstance(known[0], dict):
            found.append(f"{place}: {name} is {'no argument' if known is None else 'a block'}")
        elif len(known) > 2 and re.fullmatch(r'"[^"$]*"', value) and value.strip('"') not in known[2]:
            found.append(f"{place}: {name} is {value}, not one of {known[2]}")
        elif (known[0], value[:1]) in {("string", "["), ("bool", '"'), ("number", '"'), ("list", '"'), ("map", "[")}:
            found.append(f"{place}: {name} is a {known[0]}, not {value}")
    given = {*block.arguments}
    for each in block.blocks:
        name = each.labels[0] if each.kind == "dynamic" else each.kind
        given.add(name)
        if name in {"lifecycle", "timeouts"}:
            continue
        known = shape.get(name)
        if known is None or not isinstance(known[0], dict):
            found.append(f"{place}: {name} is no block")
            continue
        inner = next(part for part in each.blocks if part.kind == "content") if each.kind == "dynamic" else each
        found += find_problems(inner, known[0], f"{place}.{name}", is_top=False)
    found += [f"{place}: {name} is required" for name, known in shape.items() if known[1] and name not in given]
    return found


def find_all(files: list[Path]) -> list[str]:
    """Return what the provider would refuse in the files."""
    found = []
    for file in files:
        for block in read_blocks(file):
            if block.kind in {"resource", "data"} and block.labels[0].startswith("google_"):
                kind = f"{block.kind} {block.labels[0]}"
                found += find_problems(block, TYPES["kinds"].get(kind, {}), f"{file.name} {kind} {block.labels[1]}")
    return found


def test_the_module_has_only_what_the_provider_knows() -> None:
    """Each resource, argument, block and literal value of the module and its examples; nothing required is missing."""
    assert set(TYPES["kinds"]) == set(find_kinds()), "run python -m tests.deployables.terraform_types"
    assert find_all(FILES) == []
    resources = [block for file in FILES for block in read_blocks(file) if block.kind == "resource"]
    written = sum(len(re.findall(r'(?m)^resource "', file.read_text(encoding="utf-8"))) for file in FILES)
    assert len(resources) == written > 25


def test_no_plan_removes_a_database() -> None:
    """Another `database`, as after a restore, would plan to destroy the old one with all tasks: the plan is refused."""
    (database,) = (
        block for block in read_blocks(MODULE / "firestore.tf") if block.labels[:1] == ("google_firestore_database",)
    )
    (lifecycle,) = (block for block in database.blocks if block.kind == "lifecycle")
    assert lifecycle.arguments == {"prevent_destroy": "true"}


def test_the_module_protects_the_database_as_the_scripts_do(deployed: Cloud) -> None:
    """Point-in-time recovery, delete protection, and daily backups that are kept as long."""
    made = deployed.state["database/cloudsched"]
    code = (MODULE / "firestore.tf").read_text(encoding="utf-8")
    for field in ("pointInTimeRecoveryEnablement", "deleteProtectionState", "type"):
        assert f'"{made[field]}"' in code
    (schedule,) = made["schedules"]
    (retention,) = (block for block in read_blocks(MODULE / "variables.tf") if block.labels == ("backup_retention",))
    assert retention.arguments["default"] == f'"{schedule["retention"]}"'
    assert "daily_recurrence {}" in code
    assert "dailyRecurrence" in schedule


@pytest.mark.parametrize(
    ("right", "wrong", "complaint"),
    [
        ("location_id ", "location ", "location is no argument"),
        ("  location_id                       = var.firestore_location\n", "", "location_id is required"),
        ("  daily_recurrence {}\n", "  each_day {}\n", "each_day is no block"),
        ("FIRESTORE_NATIVE", "NATIVE", "not one of"),
        ("      field_path   =", "      path         =", "path is no argument"),
        ("  source {\n", "  source = {\n", "source is a block"),
    ],
)
def test_what_the_provider_would_refuse_is_found(right: str, wrong: str, complaint: str, tmp_path: Path) -> None:
    """The check sees a misspelt argument, one that is missing, an unknown block or value, and blocks as arguments."""
    code = (MODULE / "firestore.tf").read_text(encoding="utf-8")
    assert right in code
    (tmp_path / "firestore.tf").write_text(code.replace(right, wrong, 1), encoding="utf-8")
    assert complaint in "\n".join(find_all([tmp_path / "firestore.tf"]))
