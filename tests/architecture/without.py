"""A pytest plugin for a run without some satellites: what needs them is left out, and all else has to pass.

It is told their names by the variable WITHOUT. A test needs a satellite if it imports one, itself or by a helper, or if
the app tells it that this installation has none.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
FOLDERS: Final = tuple(os.environ.get("WITHOUT", "").split())
"""The folders that are gone. The simulation's queue is the emulator's model, so its tests need that."""
_NEEDED: Final = (*FOLDERS, *(("testing",) if "emulator" in FOLDERS else ()))
_GONE: Final = re.compile(rf"cloudsched\.({'|'.join(_NEEDED).replace('/', '[.]') or 'nothing'})(\.|$)")
_MISSING: Final = "This installation of cloudsched has no"


@cache
def _list_imports(path: Path) -> frozenset[str]:
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return frozenset(found)


@cache
def needs_what_is_gone(path: Path) -> bool:
    """Return whether a file of tests imports a satellite that is gone, itself or by other files of tests."""
    names = _list_imports(path)
    helpers = {ROOT / f"{name.replace('.', '/')}.py" for name in names if name.startswith("tests.")}
    return any(map(_GONE.match, names)) or any(each.is_file() and needs_what_is_gone(each) for each in helpers - {path})


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the files that need what is gone."""
    is_test = collection_path.suffix == ".py" and collection_path.name.startswith("test_")
    return True if is_test and needs_what_is_gone(collection_path) else None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Count a test as skipped that the app has told what it lacks."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]  # of pluggy
    error = None if call.excinfo is None else call.excinfo.value
    chain = set[BaseException]()
    while error is not None and error not in chain:
        chain.add(error)
        error = error.__cause__ or error.__context__
    told = (report.longreprtext, report.caplog, *map(str, chain))
    if report.failed and any(_MISSING in each for each in told):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 0, f"Skipped: it needs one of {', '.join(FOLDERS)}")
