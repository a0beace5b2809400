"""What each install of cloudsched brings, read from the metadata of the packages installed here.

`pyproject.toml` says what an install declares; the packages' own metadata says what that brings along. Nothing is
downloaded. `hide_all_but` makes an interpreter behave as if only some of the packages were installed.
"""

from __future__ import annotations

import importlib.machinery
import sys
import sysconfig
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.metadata import distribution, packages_distributions
from pathlib import Path
from types import ModuleType
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "cloudsched"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def declared(*extras: str) -> list[Requirement]:
    """Return what ``pip install 'cloudsched[extras]'`` declares; a reference to own extras is replaced by them."""
    found: list[Requirement] = []
    for text in [
        *PROJECT["dependencies"],
        *(each for extra in extras for each in PROJECT["optional-dependencies"][extra]),
    ]:
        requirement = Requirement(text)
        found += declared_alone(*requirement.extras) if requirement.name == "cloudsched" else [requirement]
    return found


def declared_alone(*extras: str) -> list[Requirement]:
    """Return what extras declare themselves, without the dependencies that every install has."""
    return declared(*extras)[len(PROJECT["dependencies"]) :]


def packages(requirements: Iterable[Requirement]) -> frozenset[str]:
    """Return the names of the packages that requirements bring, directly or not."""
    seen: dict[str, set[str]] = {}
    waiting = [*requirements]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        extras = {"", *requirement.extras} - seen.setdefault(name, set())
        seen[name] |= extras
        for text in (distribution(name).requires or []) if extras else []:
            further = Requirement(text)
            if further.marker is None or any(further.marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append(further)
    return frozenset(seen)


list_providers = cache(packages_distributions)
"""Which packages bring which names; it reads the files of all, so it is asked only once a test needs it."""
GOOGLE = {
    "google.adk": "google-adk",
    "google.genai": "google-genai",
    "google.api_core": "google-api-core",
    "google.auth": "google-auth",
    "google.oauth2": "google-auth",
    "google.cloud.firestore": "google-cloud-firestore",
    "google.cloud.tasks": "google-cloud-tasks",
    "google.protobuf": "protobuf",
}
"""The packages that share the name ``google``."""


@cache
def providers(name: str) -> set[str]:
    """Return the packages that a dotted name may come from."""
    if name.partition(".")[0] == "google":
        return {package for start, package in GOOGLE.items() if name.startswith(start)}
    return {package.lower().replace("_", "-") for package in list_providers().get(name.partition(".")[0], [])}


def find_declared(modules: Iterable[str]) -> set[str]:
    """Return which packages, of all that some install of cloudsched declares, these modules are of.

    What such a package imports on its own account is its own affair, and differs between its releases.
    """
    ours = {str(canonicalize_name(each.name)) for each in declared(*PROJECT["optional-dependencies"])}
    return ours & {package for name in modules for package in providers(name)}


def hide_all_but(names: Iterable[str]) -> None:
    """Let this interpreter find no installed packages but these (and cloudsched), as if they were not installed."""
    kept = {str(file.locate()) for name in names for file in distribution(name).files or []}
    folders = tuple({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})

    class Finder(importlib.machinery.PathFinder):
        @classmethod
        def find_spec(
            cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
        ) -> ModuleSpec | None:
            spec = super().find_spec(fullname, path, target)
            origin = None if spec is None else spec.origin
            is_hidden = origin is not None and origin.startswith(folders) and origin not in kept
            return None if is_hidden else spec

    sys.meta_path[sys.meta_path.index(importlib.machinery.PathFinder)] = Finder
