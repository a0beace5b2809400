"""The oldest versions that may be installed: what is deployed asks for none that is older."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version
from tests.cases import try_each

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DEPENDENCIES = [
    *PROJECT["dependencies"],
    *(each for extra in PROJECT["optional-dependencies"].values() for each in extra),
]
REQUIREMENTS = [each for each in map(Requirement, DEPENDENCIES) if each.name != "cloudsched"]
LISTS = ("functions/requirements.txt", "src/cloudsched/cli/project_templates/requirements.txt.template")


def _find_floor(requirement: Requirement) -> Version:
    (floor,) = (Version(each.version) for each in requirement.specifier if each.operator == ">=")
    return floor


@try_each("path", LISTS)
def test_other_lists_have_the_same_floors(path: str) -> None:
    """What is deployed asks for no older version than the package."""
    floors = {each.name: _find_floor(each) for each in REQUIREMENTS}
    named = re.findall(r"^([a-z-]+)>=([0-9.]+)$", (ROOT / path).read_text("utf-8"), re.MULTILINE)
    assert named
    assert {name: Version(floor) for name, floor in named} == {name: floors[name] for name, _ in named}
