"""Measure the tests: break the engine and the domain in many small ways, and see whether a test notices.

    python -m benchmarks.mutation run [--sample 200] [--seed 1] [--limit N] [--jobs 1]  # goes on
    python -m benchmarks.mutation report                       # the figures, and the survivors
    python -m benchmarks.mutation show 17                      # one mutant, as a diff
    python -m benchmarks.mutation again 17 23                  # run these once more

A sample is drawn from all mutants of `engine/` and `domain/`, the same for the same seed and the same code. First each
mutant meets the tests near its file, then those that survived meet all tests of the core. The state is one JSON file,
written after each mutant, so a run that is killed goes on. The mutants live in a copy of `src`, so the working tree
stays as it is. Neither `mutmut` nor `cosmic-ray` fits (docs/explanation/decisions.md says why);
`mutation_operators.py` holds the operators.
"""

from __future__ import annotations

import argparse
import compileall
import difflib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from importlib.util import cache_from_source
from pathlib import Path

from benchmarks.mutation_operators import apply_mutation, count_mutations, list_mutations
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src") / "cloudsched"
ROOMS = ("engine", "domain")
SURVIVED_NEAR = "survived near"
NEAR_SECONDS, ALL_SECONDS = 600.0, 1800.0
ALL_TESTS = (
    *(f"tests/{each}" for each in ("engine", "domain", "contract", "worker", "testing")),
    *(f"tests/web/{each}" for each in ("auth", "api")),
    "tests/simulation",
)
"""What a survivor of the tests near it meets."""
QUICK_RECURRENCE = tuple(
    f"tests/domain/recurrence/test_{each}.py"
    for each in (
        "parse",
        "describe",
        "rfc5545_cases",
        "clock_change_policies",
        "schedule",
        "skip",
        "time_zones",
        "search_bounds",
        "calendar",
    )
)
THOROUGH_RECURRENCE = tuple(f"tests/domain/recurrence/test_against_{each}.py" for each in ("dateutil", "reference"))
NEAR_TESTS = {
    "domain/feeds": ("tests/domain/feeds", "tests/web/api"),
    "domain/documents": ("tests/domain/documents", "tests/domain/transitions", "tests/engine/tasks"),
    "domain/recurrence": (*QUICK_RECURRENCE, *THOROUGH_RECURRENCE),
    "domain/transitions/claim": ("tests/domain/transitions", "tests/engine/tasks", "tests/engine/pull"),
    "domain/transitions/finish": ("tests/domain/transitions", "tests/engine/tasks", "tests/engine/execution"),
    "domain/transitions/locks": ("tests/engine/state", "tests/engine/pull"),
    "domain/transitions/offers": ("tests/engine/pull",),
    "domain/transitions/suspend": ("tests/engine/durable",),
    "domain/transitions": ("tests/domain/transitions", "tests/engine/tasks", "tests/engine/execution"),
    "engine/children": ("tests/engine/children", "tests/engine/durable"),
    "engine/dispatch": ("tests/engine/execution", "tests/engine/tasks"),
    "engine/durable": ("tests/engine/durable", "tests/contract/test_durable_workflow.py"),
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
    """``killed near``, ``killed by all``, ``timed out``, ``survived near``, ``survived`` or ``gone`` (the file has
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

    def __init__(self, folder: Path, jobs: int) -> None:
        self._source = folder / "src"
        self._jobs = jobs
        shutil.rmtree(self._source, ignore_errors=True)
        shutil.copytree(ROOT / "src", self._source, ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(self._source, quiet=2)

    def run(self, mutant: Mutant) -> None:
        """Break the file, run the tests near it, or all if it has survived those, and note what happened."""
        original = (ROOT / mutant.path).read_text("utf-8")
        target = self._source / Path(mutant.path).relative_to("src")
        target.write_text(apply_mutation(original, mutant.index).source, "utf-8")
        Path(cache_from_source(str(target))).unlink(missing_ok=True)
        begun = time.monotonic()
        try:
            if mutant.result == SURVIVED_NEAR:
                result, mutant.killer = self._test(ALL_TESTS, ALL_SECONDS, "killed by all")
                mutant.result = result or "survived"
            else:
                result, mutant.killer = self._test(near_tests(mutant.path), NEAR_SECONDS, "killed near")
                mutant.result = result or SURVIVED_NEAR
        finally:
            target.write_text(original, "utf-8")
        mutant.seconds += round(time.monotonic() - begun, 1)

    def _test(self, tests: tuple[str, ...], limit: float, verdict: str) -> tuple[str, str]:
        """Return the verdict and the first test that failed; empty texts if all passed."""
        options = ["-q", "-x", "--no-header", "-p", "no:cacheprovider", "--tb=no", "--timeout=120"]
        parallel = ["-n", str(self._jobs)] if self._jobs > 1 else []
        command = [sys.executable, "-m", "pytest", *options, *parallel, *tests]
        # The environment's path comes before that of the editable installation; child processes inherit it.
        # Byte code of one mutant would serve the next, since Python compares only the seconds and the size of a file:
        # none is written but that of the sound files, before the first mutant.
        env = {**os.environ, "PYTHONPATH": str(self._source), "PYTHONDONTWRITEBYTECODE": "1"}
        process = subprocess.Popen(  # noqa: S603 - our own tests
            command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, process_group=0
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
    """Run what has not run yet."""
    console = Console()
    if not state.exists():
        state.parent.mkdir(parents=True, exist_ok=True)
        save(state, draw_sample(sample, seed), seed)
    mutants = load(state)
    bench = Bench(state.parent, jobs)
    for each in mutants:
        if each.number in again:
            each.result, each.killer, each.seconds = "", "", 0.0
    done = 0
    while (mutant := _next(mutants)) is not None and (limit is None or done < limit):
        if find_again(mutant):
            bench.run(mutant)
        else:
            mutant.result = "gone"
        done += 1
        save(state, mutants, seed)
        where = f"{mutant.path.removeprefix(PACKAGE.as_posix() + '/')}:{mutant.line}"
        line = (
            f"{mutant.number:3} {mutant.result:13} {where}  {mutant.change}  ({mutant.seconds:.0f} s) {mutant.killer}"
        )
        console.print(line, markup=False, soft_wrap=True)


def _next(mutants: list[Mutant]) -> Mutant | None:
    """Return the next mutant to run: those that have not run come first, then the survivors of the tests near them."""
    waiting = [each for state in ("", SURVIVED_NEAR) for each in mutants if each.result == state]
    return waiting[0] if waiting else None


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
    parser.add_argument("command", choices=["run", "report", "show", "again"])
    parser.add_argument("numbers", nargs="*", type=int)
    parser.add_argument("--state", type=Path, default=ROOT / ".mutation" / "state.json")
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, default=None, help="run at most that many now")
    parser.add_argument("--jobs", type=int, default=1)
    chosen = parser.parse_args()
    if chosen.command == "report":
        report(chosen.state)
    elif chosen.command == "show":
        show(chosen.state, *chosen.numbers)
    else:
        again = chosen.numbers if chosen.command == "again" else []
        run(chosen.state, chosen.sample, chosen.seed, chosen.limit, chosen.jobs, again)


if __name__ == "__main__":
    main()
