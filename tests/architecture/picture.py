"""The picture of the packages, drawn from their imports: kernel, features and satellites, and the doors above them.

    python -m tests.architecture.picture

writes it into the page. A test compares the two.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Final

from cloudsched.features.table import FEATURES

ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = ROOT / "src" / "cloudsched"
PAGE: Final = ROOT / "docs" / "contributors" / "architecture.md"

KERNEL: Final = {
    "errors": "one tree of errors",
    "domain": "documents, recurrence, transitions",
    "config": "settings, read once",
    "engine": "load, decide, commit, dispatch",
    "adapters": "one outside thing each",
    "client": "the API from Python",
    "runtime": "puts an app together",
    "app": "handlers, and what callers do",
    "web": "HTTP API, authentication, functions",
}
"""The packages and modules of the kernel, each with what it is for. A package may import those above it here."""
DOORS: Final = {
    "testing": "Simulation, pytest plugin",
    "local": "everything in one process",
    "cli": "one file for each command",
}
"""The packages by which programs and people use all the others."""
SATELLITES: Final = {folder: row for row in FEATURES for folder in row.folders if "/" not in folder}
SLICES: Final = {folder.partition("/")[2]: row for row in FEATURES for folder in row.folders if "/" in folder}
"""The features, by their folders below `features`."""


@cache
def read_modules() -> dict[str, ast.Module]:
    """Return every module of the package by its path without the suffix."""
    return {
        path.relative_to(SOURCE).with_suffix("").as_posix(): ast.parse(path.read_text("utf-8"))
        for path in sorted(SOURCE.rglob("*.py"))
    }


@cache
def find_imports(module: str) -> frozenset[str]:
    """Return the modules of the package that a module imports, at its top, in functions, or only for types."""
    known = {name.removesuffix("/__init__").replace("/", "."): name for name in read_modules()}
    found = set[str]()
    for node in ast.walk(read_modules()[module]):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            inside = name.removeprefix("cloudsched.") if name.startswith("cloudsched.") else ""
            target = known.get(inside) or known.get(inside.rpartition(".")[0])
            if inside and target:
                found.add(target)
    return frozenset(found - {module, "__init__"})


def package_of(module: str) -> str:
    """Return the package or the top-level module that a module belongs to."""
    return module.partition("/")[0]


def _box_of(module: str) -> str:
    """Return the box of the picture that a module belongs to: its package, or its feature."""
    package, _, rest = module.partition("/")
    return rest.partition("/")[0] if package == "features" and "/" in rest else package


def find_arrows() -> dict[str, set[str]]:
    """Return by box which others its modules import."""
    arrows: dict[str, set[str]] = {}
    for module in read_modules():
        package = _box_of(module)
        targets = {_box_of(target) for target in find_imports(module)} - {package}
        arrows.setdefault(package, set()).update(targets)
    return {package: targets for package, targets in arrows.items() if package not in {"__init__", "__main__"}}


def reach(arrows: dict[str, set[str]], package: str) -> set[str]:
    """Return what a package reaches by arrows."""
    found, waiting = set[str](), set(arrows.get(package, ()))
    while waiting:
        found |= waiting
        waiting = {target for each in waiting for target in arrows.get(each, ())} - found
    return found


def reduce_arrows(arrows: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the fewest arrows by which each package reaches the same ones."""
    return {
        package: {each for each in targets if not any(each in reach(arrows, other) for other in targets - {each})}
        for package, targets in arrows.items()
    }


def draw() -> str:
    """Return the picture in Mermaid's language. What is beside the kernel uses `cli` for its commands: no arrows."""
    arrows = {
        package: targets - {"features"} - (DOORS.keys() if package in {*SATELLITES, *SLICES} else set())
        for package, targets in find_arrows().items()
        if package != "features"
    }
    groups = {
        "doors": ("Doors", DOORS),
        "satellites": ("Satellites", {name: row.about for name, row in SATELLITES.items()}),
        "features": ("Features", {name: row.about for name, row in SLICES.items()}),
        "kernel": ("Kernel", KERNEL),
    }
    lines = ["flowchart TD"]
    for name, (title, members) in groups.items():
        lines.append(f"    subgraph {name}[{title}]")
        lines += [f'        {member}["{member}: {about}"]' for member, about in members.items()]
        lines.append("    end")
    for package, targets in sorted(reduce_arrows(arrows).items()):
        lines += [f"    {package} --> {target}" for target in sorted(targets)]
    return "\n".join(lines)


def replace_picture(page: str) -> str:
    """Return the page with the picture as it is drawn now."""
    before, opening, rest = page.partition("```mermaid\n")
    _old, closing, after = rest.partition("\n```")
    return before + opening + draw() + closing + after


if __name__ == "__main__":
    PAGE.write_text(replace_picture(PAGE.read_text("utf-8")), "utf-8")
