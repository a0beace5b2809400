"""Measure the tests: break the engine and the domain in many small ways, and see whether a test notices.

    python -m tests.run.mutation [--sample 200] [--seed 1] [--limit N] [--report]

A sample is drawn from all mutants of `engine/` and `domain/`, the same for the same seed and the same code. Each meets
the tests near its file first, and then, if it survives, those of all rooms that run in this process. The state is one
JSON file, written after each mutant, so a run that is killed goes on. The mutants live in a copy of `src`, and the
working tree stays as it is. Neither `mutmut` nor `cosmic-ray` fits (docs/explanation/decisions.md says why).

A mutation edits one comparison, condition, value, call or order in the source text. Docstrings, annotations,
`TYPE_CHECKING` blocks, log calls and the texts of errors are left alone: no test should depend on them.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.util import cache_from_source
from itertools import pairwise
from pathlib import Path

from rich.console import Console

ROOT = Path(__file__).parents[2]
PACKAGE = Path("src") / "cloudsched"
ROOMS = ("engine", "domain")
STATE = ROOT / ".mutation" / "state.json"
PYTEST = (
    *(sys.executable, "-m", "pytest", "-q", "-x", "-n0", "--no-header", "--tb=no", "--timeout=120"),
    *("-p", "no:cacheprovider"),
    "--ignore=tests/cli/test_own_requirement.py",  # it asks where the package lies, and here it lies in a copy
)
SECONDS = 1800.0
"""How long the tests may take; a mutant may never end."""
ALL_TESTS = (
    *("tests/domain", "tests/engine", "tests/contract", "tests/simulation", "tests/worker", "tests/testing"),
    *("tests/web", "tests/client", "tests/cli", "tests/drafts", "tests/local", "tests/adapters"),
)
"""What a survivor meets."""


@dataclass
class Mutant:
    """One small change of one file, and what became of it."""

    path: str
    index: int
    """Which of the file's possible mutations it is."""
    line: int
    change: str
    result: str = ""
    """``killed nearby``, ``killed``, ``timed out`` or ``survived``; empty until it has run."""
    killer: str = ""


def main() -> None:
    """Run what has not run yet, or print the figures so far."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, help="run at most that many now")
    parser.add_argument("--report", action="store_true", help="run none")
    chosen = parser.parse_args()
    if STATE.exists():
        mutants = [Mutant(**each) for each in json.loads(STATE.read_text("utf-8"))]
    else:
        mutants = draw_sample(chosen.sample, chosen.seed)
    waiting = [] if chosen.report else [each for each in mutants if not each.result][: chosen.limit]
    bench = Bench(STATE.parent) if waiting else None
    for each in waiting:
        assert bench is not None
        bench.run(each)
        beside = STATE.with_suffix(".part")
        beside.write_text(json.dumps([asdict(one) for one in mutants], indent=1), "utf-8")
        beside.replace(STATE)
        tell(each)
    for result, count in Counter(each.result or "not yet" for each in mutants).most_common():
        Console().print(f"{result:15} {count}")
    for each in mutants:
        if each.result == "survived":
            tell(each)


def tell(mutant: Mutant) -> None:
    """Print one mutant, and what became of it."""
    where = f"{mutant.path.removeprefix(PACKAGE.as_posix() + '/')}:{mutant.line}"
    Console().print(f"{mutant.result:13} {where}  {mutant.change}  {mutant.killer}", markup=False, soft_wrap=True)


def draw_sample(size: int, seed: int) -> list[Mutant]:
    """Return mutants drawn evenly from all that the operators can make of the rooms' files."""
    everything = [
        Mutant(path.relative_to(ROOT).as_posix(), index, edit.line, edit.change)
        for room in ROOMS
        for path in sorted((ROOT / PACKAGE / room).rglob("*.py"))
        for index, edit in enumerate(find_edits(path.read_text("utf-8")))
    ]
    return random.Random(seed).sample(everything, min(size, len(everything)))  # noqa: S311 - a repeatable sample


def list_near_tests(path: str) -> tuple[str, ...]:
    """Return the tests near a source file: its own test file if there is one, and those of its room."""
    name = Path("tests", path.removeprefix(f"{PACKAGE.as_posix()}/"))
    near = (name.with_name(f"test_{name.name}"), name.parent)
    return tuple(each.as_posix() for each in near if (ROOT / each).exists())


class Bench:
    """A copy of the source in which one file at a time is broken, and the tests that run against it."""

    def __init__(self, folder: Path) -> None:
        self._source = folder / "src"
        shutil.rmtree(self._source, ignore_errors=True)
        shutil.copytree(ROOT / "src", self._source, ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(self._source, quiet=2)

    def run(self, mutant: Mutant) -> None:
        """Break the file, run the tests near it and, if it has survived those, all others, and note what happened."""
        original = (ROOT / mutant.path).read_text("utf-8")
        target = self._source / Path(mutant.path).relative_to("src")
        target.write_text(find_edits(original)[mutant.index].apply(original), "utf-8")
        Path(cache_from_source(str(target))).unlink(missing_ok=True)
        try:
            for tests, verdict in ((list_near_tests(mutant.path), "killed nearby"), (ALL_TESTS, "killed")):
                mutant.result, mutant.killer = self._test(tests, verdict)
                if mutant.result:
                    return
            mutant.result = "survived"
        finally:
            target.write_text(original, "utf-8")

    def _test(self, tests: Sequence[str], verdict: str) -> tuple[str, str]:
        """Run tests; return the verdict and the first that failed, empty texts if all passed."""
        if not tests:
            return "", ""
        # The environment's path comes before that of the editable installation; child processes inherit it.
        # Byte code of one mutant would serve the next, since Python compares only the seconds and the size of a file:
        # none is written but that of the sound files, before the first mutant.
        process = subprocess.Popen(  # noqa: S603 - our own tests
            [*PYTEST, *tests],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(self._source), "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            process_group=0,
        )
        try:
            output, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return "timed out", f"the tests took more than {SECONDS:.0f} s"
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        if process.returncode == 0:
            return "", ""
        failed = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return verdict, (failed or output.splitlines() or ["no output"])[0][:200]


_COMPARISONS: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">="),
    ast.LtE: ("<", ">"),
    ast.Gt: (">=", "<="),
    ast.GtE: (">", "<"),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
}
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.FloorDiv: "*",
    ast.Div: "*",
    ast.Mod: "+",
    ast.BitOr: "&",
    ast.BitAnd: "|",
}
_SWAPPED_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
_SKIPPED_CALLS = {"debug", "info", "warning", "exception", "log", "getLogger", "TypeVar", "TypeAdapter", "Field"}


@dataclass(frozen=True)
class Edit:
    """One mutation: what it puts in the place of which bytes of the file."""

    begin: int
    end: int
    text: str
    line: int
    change: str

    def apply(self, source: str) -> str:
        """Return the file with the mutation."""
        data = source.encode()
        mutated = (data[: self.begin] + self.text.encode() + data[self.end :]).decode()
        ast.parse(mutated)
        return mutated


def find_edits(source: str) -> list[Edit]:
    """Return all mutations of a file."""
    return list(_Finder(source).find(ast.parse(source)))


class _Finder:
    """Walks a file's tree and yields the mutations of each node."""

    def __init__(self, source: str) -> None:
        self._data = source.encode()
        self._starts = [0]
        for line in source.encode().splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def find(self, node: ast.AST) -> Iterator[Edit]:
        """Yield the mutations of a node and of all below it."""
        if _is_skipped(node):
            return
        yield from self._mutate(node)
        for name, value in ast.iter_fields(node):
            if name in {"annotation", "returns", "decorator_list", "type_params", "bases"}:
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from self.find(child)

    def _mutate(self, node: ast.AST) -> Iterator[Edit]:  # noqa: C901, PLR0912 - one case for each kind of node
        match node:
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                for text in _COMPARISONS.get(type(operator), ()):
                    yield self._between(left, right, text)
            case ast.BoolOp(op=operator, values=values):
                for first, second in pairwise(values):
                    yield self._between(first, second, "or" if isinstance(operator, ast.And) else "and")
                for value in values:
                    yield self._replace(value, "True" if isinstance(operator, ast.And) else "False")
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield self._replace(node, f"({self._text(operand)})")
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
                if not _has_text(left) and not _has_text(right):
                    yield self._between(left, right, _OPERATORS[type(operator)])
            case ast.Constant(value=bool() as value):
                yield self._replace(node, str(not value))
            case ast.Constant(value=int() | float() as value):
                yield self._replace(node, repr(value + 1))
            case ast.If(test=test) | ast.While(test=test):
                if not isinstance(test, ast.Constant):
                    yield self._replace(test, f"not ({self._text(test)})")
            case ast.IfExp(test=test):
                yield self._replace(test, f"not ({self._text(test)})")
            case ast.Call(func=ast.Name(id=name)) if name in _SWAPPED_CALLS:
                yield self._replace(node.func, _SWAPPED_CALLS[name])
            case ast.Call(func=ast.Name(id="sorted"), args=[first, *_]):
                yield self._replace(node, f"list({self._text(first)})")
            case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
                yield self._replace(value, "None")
            case ast.Expr(value=ast.Call()):
                yield self._replace(node, "pass")
            case ast.Continue():
                yield self._replace(node, "break")
            case ast.Break():
                yield self._replace(node, "continue")

    def _between(self, left: ast.expr, right: ast.expr, text: str) -> Edit:
        """Replace the operator between two operands, and keep the brackets around them."""
        begin, end = self._offset(left.end_lineno, left.end_col_offset), self._offset(right.lineno, right.col_offset)
        gap = self._data[begin:end].decode()
        closing = gap[: len(gap) - len(gap.lstrip(") \n"))]
        opening = gap[len(gap.rstrip("( \n")) :]
        return self._edit(begin, end, f"{closing.rstrip(' ')} {text} {opening.lstrip(' ')}", left.end_lineno or 0)

    def _replace(self, node: ast.stmt | ast.expr, text: str) -> Edit:
        begin = self._offset(node.lineno, node.col_offset)
        return self._edit(begin, self._offset(node.end_lineno, node.end_col_offset), text, node.lineno)

    def _edit(self, begin: int, end: int, text: str, line: int) -> Edit:
        before = self._data[begin:end].decode()
        return Edit(begin, end, text, line, f"{' '.join(before.split())[:70]} -> {' '.join(text.split())[:70]}")

    def _text(self, node: ast.expr) -> str:
        begin = self._offset(node.lineno, node.col_offset)
        return self._data[begin : self._offset(node.end_lineno, node.end_col_offset)].decode()

    def _offset(self, line: int | None, column: int | None) -> int:
        return self._starts[(line or 1) - 1] + (column or 0)


def _is_skipped(node: ast.AST) -> bool:
    """Whether nothing of a node is mutated: what only people read, and what only type checkers do."""
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Import() | ast.ImportFrom() | ast.Raise() | ast.JoinedStr():
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return name in _SKIPPED_CALLS
        case ast.Expr(value=ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name))):
            return name in _SKIPPED_CALLS
    return False


def _has_text(node: ast.expr) -> bool:
    return any(
        isinstance(each, ast.JoinedStr) or (isinstance(each, ast.Constant) and isinstance(each.value, str))
        for each in ast.walk(node)
    )


if __name__ == "__main__":
    main()
