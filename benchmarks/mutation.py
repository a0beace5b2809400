"""Measure the tests: break the engine and the domain in many small ways, and see whether a test notices.

    python -m benchmarks.mutation map [--jobs 2]               # which test runs which line; once for a commit
    python -m benchmarks.mutation run [--sample 200] [--seed 1] [--limit N] [--jobs 1]  # goes on
    python -m benchmarks.mutation report                       # the figures, and the survivors
    python -m benchmarks.mutation show 17                      # one mutant, as a diff
    python -m benchmarks.mutation again 17 23                  # run these once more

A sample is drawn from all mutants of `engine/` and `domain/`, the same for the same seed and the same code. First each
mutant meets the tests that run each time, those near its file before the others, then the survivors meet what only
`--all` runs; of both only the tests that run its line (`mutation_map.py`) and, if none does, whole rooms of tests. The
state is one JSON file, written after each mutant, so a run that is killed goes on. The mutants live in copies of `src`,
one for each job, so the working tree stays as it is.
Neither `mutmut` nor `cosmic-ray` fits (docs/explanation/decisions.md says why); `mutation_operators.py` holds the
operators.
"""

from __future__ import annotations

import argparse
import compileall
import difflib
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.mutation_map import MAP_VARIABLE, TESTS_VARIABLE, LineMap, merge_map
from benchmarks.mutation_operators import apply_mutation, count_mutations, list_mutations
from rich.console import Console
from rich.table import Table
from tests.run.tiers import runs_each_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src") / "cloudsched"
ROOMS = ("engine", "domain")
SURVIVED_FIRST = "survived first"
PYTEST = (
    *(sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=no"),
    *("-p", "no:cacheprovider", "-p", "benchmarks.mutation_map"),
    "--ignore=tests/cli/test_own_requirement.py",  # it asks where the package lies, and here it lies in a copy
)
FIRST_SECONDS, ALL_SECONDS = 900.0, 1800.0
ALL_TESTS = (
    *("tests/domain", "tests/engine", "tests/contract", "tests/simulation", "tests/worker", "tests/testing"),
    *("tests/web", "tests/client", "tests/cli", "tests/drafts", "tests/local", "tests/adapters"),
)
"""What a survivor meets if no test is known to run its line."""
QUICK_RECURRENCE = (
    *(f"tests/domain/schedules/test_{each}.py" for each in ("parse", "describe", "schedule")),
    *(
        f"tests/domain/recurrence/test_{each}.py"
        for each in ("rfc5545_cases", "clock_change_policies", "skip", "time_zones", "search_bounds", "calendar")
    ),
)
NEAR_TESTS = {
    "domain/feeds": ("tests/domain/feeds", "tests/web/api"),
    "domain/documents": ("tests/domain/documents", "tests/domain/transitions", "tests/engine/tasks"),
    "domain/schedules": QUICK_RECURRENCE,
    "domain/recurrence": QUICK_RECURRENCE,
    "domain/transitions/claim": ("tests/domain/transitions", "tests/engine/tasks", "tests/engine/pull"),
    "domain/transitions/finish": ("tests/domain/transitions", "tests/engine/tasks", "tests/engine/execution"),
    "domain/transitions/locks": ("tests/engine/state", "tests/engine/pull"),
    "domain/transitions/offers": ("tests/engine/pull",),
    "domain/transitions/suspend": ("tests/engine/durable",),
    "domain/transitions": ("tests/domain/transitions", "tests/engine/tasks", "tests/engine/execution"),
    "engine/children": ("tests/engine/children", "tests/engine/durable"),
    "engine/dispatch": ("tests/engine/execution", "tests/engine/tasks"),
    "engine/durable": ("tests/engine/durable", "tests/contract/test_journal_sizes.py"),
    "engine/execution": ("tests/engine/execution", "tests/engine/state", "tests/engine/durable", "tests/engine/tasks"),
    "engine/handlers/user_access": ("tests/web/auth/test_user_starts.py", "tests/engine/handlers"),
    "engine/handlers/validation": ("tests/web/auth/test_user_locks.py", "tests/engine/handlers", "tests/engine/tasks"),
    "engine/handlers": ("tests/engine/handlers", "tests/engine/execution"),
    "engine/ports": ("tests/contract", "tests/engine/tasks"),
    "engine/pull": ("tests/engine/pull", "tests/worker"),
    "engine/state": ("tests/engine/state", "tests/engine/execution", "tests/engine/durable"),
    "engine/tasks": ("tests/engine/tasks", "tests/engine/pull", "tests/engine/durable"),
}
"""The tests near each module; the longest prefix counts."""


@dataclass
class Mutant:
    """One small change of one file, and what became of it."""

    number: int
    path: str
    index: int
    """Which of the file's possible mutations it is."""
    line: int
    change: str
    text: str = ""
    """The line as it stands in the file, by which the mutant is found again when the code around it has changed."""
    result: str = ""
    """``killed first``, ``killed by all``, ``timed out``, ``survived first``, ``survived`` or ``gone`` (the file has
    no such line any more); empty until it has run."""
    killer: str = ""
    seconds: float = 0.0


def draw_sample(size: int, seed: int) -> list[Mutant]:
    """Return mutants drawn evenly from all that the operators can make of the rooms' files."""
    everything = []
    for room in ROOMS:
        for path in sorted((ROOT / PACKAGE / room).rglob("*.py")):
            relative = path.relative_to(ROOT).as_posix()
            source = path.read_text("utf-8")
            everything += [(relative, index) for index in range(count_mutations(source))]
    chosen = random.Random(seed).sample(everything, min(size, len(everything)))  # noqa: S311 - a repeatable sample
    mutants = []
    for number, (relative, index) in enumerate(chosen):
        source = (ROOT / relative).read_text("utf-8")
        mutated = apply_mutation(source, index)
        text = source.splitlines()[mutated.line - 1].strip()
        mutants.append(Mutant(number, relative, index, mutated.line, mutated.change, text))
    return mutants


def near_tests(path: str) -> tuple[str, ...]:
    """Return the tests near a source file: its own test file if there is one, and those of its room."""
    name = path.removeprefix(f"{PACKAGE.as_posix()}/").removesuffix(".py")
    prefix = max((each for each in NEAR_TESTS if name.startswith(each)), key=len, default="")
    own = ROOT / "tests" / Path(name).parent / f"test_{Path(name).name}.py"
    first = (own.relative_to(ROOT).as_posix(),) if own.exists() else ()
    beside = Path("tests", name).parent  # of a room without an entry; what it does is seen through the API
    others = NEAR_TESTS.get(prefix) or (*([beside.as_posix()] if (ROOT / beside).is_dir() else []), "tests/web/api")
    return (*first, *others)


class Bench:
    """A copy of the source in which one file at a time is broken, and the tests that run against it."""

    def __init__(self, folder: Path, lines: LineMap) -> None:
        self._source = folder / "src"
        self._chosen = folder / "tests.json"
        self._lines = lines
        shutil.rmtree(self._source, ignore_errors=True)
        shutil.copytree(ROOT / "src", self._source, ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(self._source, quiet=2)

    def run(self, mutant: Mutant) -> None:
        """Break the file, run the first tests or, if it has survived those, all others, and note what happened."""
        original = (ROOT / mutant.path).read_text("utf-8")
        target = self._source / Path(mutant.path).relative_to("src")
        target.write_text(apply_mutation(original, mutant.index).source, "utf-8")
        Path(cache_from_source(str(target))).unlink(missing_ok=True)
        begun = time.monotonic()
        rooms, known = near_tests(mutant.path), self._lines.find_tests(ROOT / mutant.path, mutant.line)
        first = sorted(filter(runs_each_time, known), key=lambda each: not each.startswith(rooms))
        others = [each for each in known if not runs_each_time(each)]
        try:
            if mutant.result == SURVIVED_FIRST:
                tests = others if known else ["--all", *ALL_TESTS]
                result, mutant.killer = self._test(tests, ALL_SECONDS, "killed by all")
                mutant.result = result or "survived"
            else:
                result, mutant.killer = self._test(first if known else rooms, FIRST_SECONDS, "killed first")
                mutant.result = result or SURVIVED_FIRST
        finally:
            target.write_text(original, "utf-8")
        mutant.seconds += round(time.monotonic() - begun, 1)

    def _test(self, tests: Sequence[str], limit: float, verdict: str) -> tuple[str, str]:
        """Run tests, or those of rooms; return the verdict and the first that failed, empty texts if all passed."""
        if not tests:
            return "", ""
        # The environment's path comes before that of the editable installation; child processes inherit it.
        # Byte code of one mutant would serve the next, since Python compares only the seconds and the size of a file:
        # none is written but that of the sound files, before the first mutant.
        env = {**os.environ, "PYTHONPATH": str(self._source), "PYTHONDONTWRITEBYTECODE": "1"}
        if any("::" in each for each in tests):
            self._chosen.write_text(json.dumps(tests), "utf-8")
            env[TESTS_VARIABLE] = str(self._chosen)
        process = subprocess.Popen(  # noqa: S603 - our own tests
            [*PYTEST, "-x", "--timeout=120", *dict.fromkeys(each.partition("::")[0] for each in tests)],
            cwd=ROOT,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            process_group=0,
        )
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return "timed out", f"the tests took more than {limit:.0f} s"
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        if process.returncode == 0:
            return "", ""
        failed = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return verdict, (failed or output.splitlines() or ["no output"])[0][:200]


def draw_map(folder: Path, jobs: int) -> None:
    """Run all tests, and write down which lines each of them runs."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    subprocess.run(  # noqa: S603 - our own tests
        [*PYTEST, "--all", "-n", str(jobs), *ALL_TESTS],
        cwd=ROOT,
        env={**os.environ, MAP_VARIABLE: str(folder)},
        check=False,
    )
    Console().print(f"The map knows {merge_map(folder)} tests.")


def load(state: Path) -> list[Mutant]:
    """Return the mutants of a state file."""
    return [Mutant(**each) for each in json.loads(state.read_text("utf-8"))["mutants"]]


def save(state: Path, mutants: list[Mutant], seed: int) -> None:
    """Write the state file, whole or not at all."""
    beside = state.with_suffix(".part")
    beside.write_text(json.dumps({"seed": seed, "mutants": [asdict(each) for each in mutants]}, indent=1), "utf-8")
    beside.replace(state)


def find_again(mutant: Mutant) -> bool:
    """Whether the file still has this mutation; if it has moved since the sample was drawn, note where it is now.

    The same change of an equal line is the same mutation; of several, the one nearest to the old place.
    """
    try:
        source = (ROOT / mutant.path).read_text("utf-8")
    except OSError:
        return False
    lines = [line.strip() for line in source.splitlines()]
    places = [
        (abs(line - mutant.line), abs(index - mutant.index), line, index)
        for index, (line, change) in enumerate(list_mutations(source))
        if (change, lines[line - 1]) == (mutant.change, mutant.text)
    ]
    if not places:
        return False
    _, _, mutant.line, mutant.index = min(places)
    return True


def run(state: Path, sample: int, seed: int, limit: int | None, jobs: int, again: list[int]) -> None:
    """Run what has not run yet, with as many at once as there are jobs."""
    if not state.exists():
        state.parent.mkdir(parents=True, exist_ok=True)
        save(state, draw_sample(sample, seed), seed)
    mutants = load(state)
    for each in mutants:
        if each.number in again:
            each.result, each.killer, each.seconds = "", "", 0.0
    waiting, lock = _wait_for_run(mutants), threading.Lock()
    left = itertools.count() if limit is None else range(limit)
    turns = iter(zip(left, waiting))  # noqa: B905 - whichever ends first

    def work(folder: Path) -> None:
        bench = Bench(folder, LineMap(map_folder(state)))
        while True:
            with lock:
                mutant = next(turns, (0, None))[1]
            if mutant is None:
                return
            if find_again(mutant):
                bench.run(mutant)
            else:
                mutant.result = "gone"
            with lock:
                save(state, mutants, seed)
                _tell(mutant)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(work, [state.parent / f"job-{number}" for number in range(jobs)]))


def map_folder(state: Path) -> Path:
    """Return where the map of lines stands: beside the state."""
    return state.parent / "map"


def _tell(mutant: Mutant) -> None:
    where = f"{mutant.path.removeprefix(PACKAGE.as_posix() + '/')}:{mutant.line}"
    line = f"{mutant.number:3} {mutant.result:13} {where}  {mutant.change}  ({mutant.seconds:.0f} s) {mutant.killer}"
    Console().print(line, markup=False, soft_wrap=True)


def _wait_for_run(mutants: list[Mutant]) -> Iterator[Mutant]:
    """Return the mutants to run: those that have not run come first, then the survivors of the first tests."""
    for state in ("", SURVIVED_FIRST):
        yield from [each for each in mutants if each.result == state]


def report(state: Path) -> None:
    """Print the figures and the survivors."""
    mutants = load(state)
    done = [each for each in mutants if each.result and each.result != "gone"]
    table = Table(title=f"{len(done)} of {len(mutants)} mutants")
    for column in ("result", "mutants", "share"):
        table.add_column(column)
    for result in sorted({each.result for each in done}):
        count = sum(each.result == result for each in done)
        table.add_row(result, str(count), f"{count / len(done):.1%}")
    console = Console()
    console.print(table)
    for each in done:
        if each.result.startswith("survived"):
            console.print(f"{each.number:3} {each.path}:{each.line}  {each.change}", markup=False)


def show(state: Path, number: int) -> None:
    """Print one mutant as a diff."""
    mutant = load(state)[number]
    find_again(mutant)
    original = (ROOT / mutant.path).read_text("utf-8")
    mutated = apply_mutation(original, mutant.index).source
    sys.stdout.writelines(
        difflib.unified_diff(
            original.splitlines(keepends=True), mutated.splitlines(keepends=True), mutant.path, "mutant"
        )
    )


def main() -> None:
    """Read the arguments and do as they say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["map", "run", "report", "show", "again"])
    parser.add_argument("numbers", nargs="*", type=int)
    parser.add_argument("--state", type=Path, default=ROOT / ".mutation" / "state.json")
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, default=None, help="run at most that many now")
    parser.add_argument("--jobs", type=int, default=1)
    chosen = parser.parse_args()
    if chosen.command == "map":
        draw_map(map_folder(chosen.state), chosen.jobs)
    elif chosen.command == "report":
        report(chosen.state)
    elif chosen.command == "show":
        show(chosen.state, *chosen.numbers)
    else:
        again = chosen.numbers if chosen.command == "again" else []
        run(chosen.state, chosen.sample, chosen.seed, chosen.limit, chosen.jobs, again)


if __name__ == "__main__":
    main()
