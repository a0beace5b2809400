"""Which test runs which line of the engine and the domain: a pytest plugin that records it, and what reads the record.

Used by `mutation.py`: a mutant meets only the tests that run its line, since no other can notice it. Lines that run
while a module is imported, and those that only a child process runs, belong to no test here; their mutants meet all
the tests near them instead. What a fixture of a module or session does is written down for the first test that asked
for it. Tests that failed while the map was drawn are left out of it: they could not tell a mutant from the sound code.
"""

from __future__ import annotations

import ast
import json
import os
import time
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
from coverage import Coverage, CoverageData

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

MAP_VARIABLE = "CLOUDSCHED_TEST_MUTATION_MAP"
"""The folder to which a run that draws the map writes it."""
TESTS_VARIABLE = "CLOUDSCHED_TEST_MUTATION_TESTS"
"""The file with the ids of the tests to run, as a JSON list; the others of the same files are left out."""
_NO_TEST = ""


class _Recorder:
    """Notes the lines of each test, how long it took, and whether it failed."""

    def __init__(self, folder: Path, rooms: list[str]) -> None:
        self._durations = folder / f"durations.{os.getpid()}.json"
        self._seconds: dict[str, float] = {}
        self._failed: set[str] = set()
        self._coverage = Coverage(
            data_file=str(folder / "coverage"),
            data_suffix=True,
            config_file=False,
            source=rooms,
            messages=False,
            concurrency=["thread"],
        )
        quiet = ["module-not-measured", "no-data-collected", "already-imported", "trace-changed", "module-not-imported"]
        self._coverage.set_option("run:disable_warnings", quiet)
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._coverage.switch_context(item.nodeid)
        begun = time.perf_counter()
        try:
            return (yield)
        finally:
            self._seconds[item.nodeid] = time.perf_counter() - begun
            self._coverage.switch_context(_NO_TEST)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        self._coverage.save()
        sound = {test: round(seconds, 4) for test, seconds in self._seconds.items() if test not in self._failed}
        self._durations.write_text(json.dumps(sound), "utf-8")


class _Selection:
    """Keeps the named tests; the files whose tests take least time come first."""

    def __init__(self, tests: list[str]) -> None:
        self._order = {test: place for place, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        kept = [each for each in items if each.nodeid in self._order]
        items[:] = sorted(kept, key=lambda each: self._order[each.nodeid])


def pytest_configure(config: pytest.Config) -> None:
    """Record or select, as the environment says."""
    # A property that fails is the answer; to find its smallest example would only take time.
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile("mutation", parent=hypothesis.settings(), phases=phases, database=None)
    hypothesis.settings.load_profile("mutation")
    if (folder := os.environ.get(MAP_VARIABLE)) and (config.option.numprocesses is None or _is_worker(config)):
        rooms = [str(config.rootpath / "src" / "cloudsched" / room) for room in ("engine", "domain")]
        config.pluginmanager.register(_Recorder(Path(folder), rooms))
    if chosen := os.environ.get(TESTS_VARIABLE):
        config.pluginmanager.register(_Selection(json.loads(Path(chosen).read_text("utf-8"))))


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def merge_map(folder: Path) -> int:
    """Make one map of what the processes of a run have written, and return how many tests it knows."""
    seconds: dict[str, float] = {}
    for part in sorted(folder.glob("durations.*.json")):
        seconds |= json.loads(part.read_text("utf-8"))
        part.unlink()
    (folder / "durations.json").write_text(json.dumps(seconds), "utf-8")
    merged = Coverage(data_file=str(folder / "coverage"), config_file=False, messages=False)
    merged.combine([str(folder)])
    merged.save()
    return len(seconds)


class LineMap:
    """The tests that run a line, quickest first."""

    def __init__(self, folder: Path) -> None:
        self._seconds: dict[str, float] = json.loads((folder / "durations.json").read_text("utf-8"))
        self._data = CoverageData(basename=str(folder / "coverage"))
        self._data.read()

    def find_tests(self, file: Path, line: int) -> list[str]:
        """Return the ids of the tests that run the statement at this line, in the order to run them."""
        measured = self._contexts(str(file))
        found = {test for each in statement_lines(file, line) for test in measured.get(each, ())} & self._seconds.keys()
        return self._order(found)

    @lru_cache(maxsize=4)  # noqa: B019 - one map lives as long as the run
    def _contexts(self, file: str) -> dict[int, list[str]]:
        return dict(self._data.contexts_by_lineno(file))

    def _order(self, tests: Iterable[str]) -> list[str]:
        by_file: dict[str, list[str]] = {}
        for test in sorted(tests):
            by_file.setdefault(test.partition("::")[0], []).append(test)
        for each in by_file.values():
            each.sort(key=self._seconds.__getitem__)
        files = sorted(by_file.values(), key=lambda tests: sum(self._seconds[each] for each in tests))
        return [test for each in files for test in each]


def statement_lines(file: Path, line: int) -> range:
    """Return the lines of the innermost statement around a line; of one with a body, those of its head."""
    found = range(line, line + 1)
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if not isinstance(node, ast.stmt):
            continue
        body = getattr(node, "body", None)
        end = body[0].lineno - 1 if isinstance(body, list) and body else (node.end_lineno or node.lineno)
        if node.lineno <= line <= max(end, node.lineno):
            found = range(node.lineno, max(end, node.lineno) + 1)  # ast.walk comes to the inner ones later
    return found
