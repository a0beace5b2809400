"""What is declared is imported, what is imported is declared, and floors are the same wherever they stand."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from tests.cases import try_each

from cloudsched.config.imports import EXTRAS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DEPENDENCIES = [
    *PROJECT["dependencies"],
    *(each for extra in PROJECT["optional-dependencies"].values() for each in extra),
]
REQUIREMENTS = [each for each in map(Requirement, DEPENDENCIES) if each.name != "cloudsched"]
LISTS = ("functions/requirements.txt", "src/cloudsched/cli/project_templates/requirements.txt.template")


HOMES = packages_distributions()
NAMESPACES = {
    "google-auth": "google.auth",
    "google-cloud-firestore": "google.cloud.firestore",
    "google-cloud-tasks": "google.cloud.tasks",
    "protobuf": "google.protobuf",
}
"""The modules of packages that share a namespace."""
NOT_IMPORTED = {"tzdata", "google-cloud-tasks", "google-cloud-firestore"}
"""Data, and Google's clients, beside which the tests judge what we send."""
OWN = {"cloudsched", "handlers", "pytest", "pydantic_core"}
"""Modules of ours, of whoever runs our pytest plugins, and what comes with pydantic."""


def _list_imports() -> Iterator[str]:
    for path in [*(ROOT / "src").rglob("*.py"), ROOT / "functions" / "main.py"]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                yield from (each.name for each in node.names)
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                yield from (f"{node.module}.{each.name}" for each in node.names)


IMPORTS = {each for each in _list_imports() if each.partition(".")[0] not in {*sys.stdlib_module_names, *OWN}}


def test_what_is_imported_is_of_the_core_or_of_an_extra_that_an_error_names() -> None:
    """A missing package is told with the extra that brings it."""
    core = {canonicalize_name(Requirement(each).name) for each in PROJECT["dependencies"]}
    brought = {
        extra: {canonicalize_name(Requirement(each).name) for each in listed}
        for extra, listed in PROJECT["optional-dependencies"].items()
    }
    for package in sorted({each.partition(".")[0] for each in IMPORTS}):
        homes = {canonicalize_name(each) for each in HOMES[package]}
        assert homes & core or homes & brought[EXTRAS[package]], f"{package} is of {homes}"


@try_each("requirement", [each for each in REQUIREMENTS if each.name not in NOT_IMPORTED])
def test_what_is_declared_is_imported(requirement: Requirement) -> None:
    """Nobody installs what nothing needs."""
    name = canonicalize_name(requirement.name)
    modules = [module for module, homes in HOMES.items() if name in map(canonicalize_name, homes)]
    begins = (NAMESPACES[name],) if name in NAMESPACES else tuple(f"{each}." for each in modules)
    assert any(f"{each}.".startswith(begins) for each in IMPORTS), begins


def _find_floor(requirement: Requirement) -> Version:
    (floor,) = (Version(each.version) for each in requirement.specifier if each.operator == ">=")
    return floor


@try_each("requirement", REQUIREMENTS)
def test_each_floor_is_whole(requirement: Requirement) -> None:
    """It is one exact version, and not above what the tests run with."""
    floor = _find_floor(requirement)
    assert floor <= Version(version(requirement.name))
    assert len(floor.release) >= 2, f"name a whole version of {requirement.name}"


@try_each("path", LISTS)
def test_other_lists_have_the_same_floors(path: str) -> None:
    """What is deployed asks for no older version than the package."""
    floors = {each.name: _find_floor(each) for each in REQUIREMENTS}
    named = re.findall(r"^([a-z-]+)>=([0-9.]+)$", (ROOT / path).read_text("utf-8"), re.MULTILINE)
    assert named
    assert {name: Version(floor) for name, floor in named} == {name: floors[name] for name, _ in named}
