"""A feature or a satellite can be taken out: without its folder and its row, the kernel's tests pass."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from tests.architecture.picture import KERNEL, ROOT, SATELLITES, SOURCE, find_imports, read_modules
from tests.architecture.test_imports import PAGES

from cloudsched.dashboard.routes import VIEWS
from cloudsched.features.table import FEATURES, Feature, find_place

SATELLITE_ROWS: Final = [row for row in FEATURES if all(folder in SATELLITES for folder in row.folders)]
NAMED: Final = {"locks", "pull"}
"""The features whose names the kernel's documents and answers still take from `features.fields`: a scope, an offer."""
USED: Final = {"calendars", "deliveries", "follow-ups"}
"""The features that some of the kernel's own tests use, so that these cannot pass without them."""
ROWS: Final = [row for row in FEATURES if row.name not in NAMED]
SOME_TESTS: Final = ("tests/domain/transitions", "tests/engine/sweep")
KERNEL_TESTS: Final = (
    *SOME_TESTS,
    "tests/engine/durable",
    "tests/engine/execution",
    "tests/engine/handlers",
    "tests/engine/tasks",
)
WITHOUT_A_QUEUE: Final = ("tests/domain/transitions", "tests/domain/recurrence", "tests/config")
"""The simulation, by which the engine is tested, has the emulator's model of a queue."""
LEAST_SHARE: Final = 0.6
"""The share of them that a run has to pass, so that it does not leave out what it is about."""


def find_dependents(row: Feature) -> list[Feature]:
    """Return a row, and those of the features and satellites that import what it names."""

    def has(each: Feature, module: str) -> bool:
        return module.startswith(tuple(f"{folder}/" for folder in each.folders))

    modules = read_modules().keys() - PAGES  # which only the dashboard imports
    importing = [module for module in modules if any(has(row, target) for target in find_imports(module))]
    return [each for each in FEATURES if each is row or any(has(each, module) for module in importing)]


def remove(folder: Path, rows: Collection[Feature]) -> Path:
    """Copy the package into a folder without some rows of the table and what they name."""
    package = folder / "cloudsched"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for row in rows:
        for each in row.folders:
            shutil.rmtree(package / each)
    table = package / "features" / "table.py"
    lines = table.read_text("utf-8").splitlines(keepends=True)
    names = {row.name for row in rows}
    calls = [
        node
        for node in ast.walk(ast.parse("".join(lines)))
        if isinstance(node, ast.Call)
        and any(each.arg == "name" and ast.literal_eval(each.value) in names for each in node.keywords)
    ]
    assert len(calls) == len(names)
    for call in sorted(calls, key=lambda each: -each.lineno):
        assert call.end_lineno is not None
        del lines[call.lineno - 1 : call.end_lineno]
    table.write_text("".join(lines), "utf-8")
    _remove_fields(package / "features" / "fields.py", [each for row in rows for each in row.folders])
    return package


def _remove_fields(file: Path, folders: Collection[str]) -> None:
    """Remove from the fields of features what is imported from some folders, and the classes made of it."""
    text = file.read_text("utf-8")
    for folder in folders:
        module = re.escape(f"cloudsched.{folder.replace('/', '.')}.")
        for found in re.finditer(rf"^from {module}\w+ import (\([^)]*\)|[^\n]*)\n", text, re.MULTILINE):
            text = text.replace(found[0], "")
            for name in re.findall(r"\w+", found[1]):
                text = re.sub(rf"\b{name}(, |\b)", "", text)
    file.write_text(text, "utf-8")


def run_without(rows: Collection[Feature], folder: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run Python where these rows are gone."""
    package = remove(folder, rows)
    gone = " ".join(each for row in rows for each in row.folders)
    environment = {**os.environ, "PYTHONPATH": f"{package.parent}{os.pathsep}{ROOT}", "WITHOUT": gone}
    return subprocess.run(  # noqa: S603 - our own
        [sys.executable, *command], capture_output=True, text=True, check=False, env=environment, cwd=ROOT
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_kernel_is_imported_without_it(row: Feature, tmp_path: Path) -> None:
    """All modules of the kernel, and the API with all operations that are left."""
    modules = [each for each in read_modules() if each.split("/")[0] in KERNEL and not each.endswith("__init__")]
    names = ["cloudsched." + each.replace("/", ".") for each in modules]
    code = f"import importlib; [importlib.import_module(name) for name in {names}]; import cloudsched; cloudsched.App()"
    done = run_without(find_dependents(row), tmp_path, ["-c", code])
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("row", [row for row in FEATURES if row.pages], ids=lambda row: row.name)
def test_its_pages_go_with_its_row(row: Feature, tmp_path: Path) -> None:
    """The dashboard has all of them with it, and without it none, neither their addresses nor their tabs."""
    views = find_place(row.pages)
    tabs = {view.tab for view in views.values()}
    code = "import cloudsched.dashboard.application as page; print(*page.VIEWS, *page.TABS)"
    done = run_without([replace(row, folders=())], tmp_path, ["-c", code])
    assert done.returncode == 0, done.stderr
    assert views.keys() <= VIEWS.keys()
    assert not {*views, *tabs} & {*done.stdout.split()}


def _check_tests(rows: Collection[Feature], folder: Path, tests: Collection[str]) -> None:
    blocked = (
        "cacheprovider",
        "tests.run.isolation",
    )  # the latter takes the copy's modules for what a test left behind
    options = ["-q", "-p", "tests.architecture.without", "--tb=short", *(f"-pno:{each}" for each in blocked)]
    done = run_without(rows, folder, ["-m", "pytest", *options, *tests])
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    counts = {name: int(number) for number, name in re.findall(r"(\d+) (passed|skipped)", done.stdout)}
    assert counts["passed"] >= LEAST_SHARE * sum(counts.values()), done.stdout[-500:]


def test_the_kernel_is_whole_without_any_of_them(tmp_path: Path) -> None:
    """Only what simulates the queue stays, because the tests need it."""
    rows = [row for row in SATELLITE_ROWS if row.name != "emulator"]
    _check_tests(rows, tmp_path, SOME_TESTS)


@pytest.mark.parametrize("row", [row for row in ROWS if row.name not in USED], ids=lambda row: row.name)
def test_the_kernel_is_whole_without_it(row: Feature, tmp_path: Path) -> None:
    """Each alone is taken out of the whole."""
    _check_tests([row], tmp_path, WITHOUT_A_QUEUE if row.name == "emulator" else KERNEL_TESTS)
