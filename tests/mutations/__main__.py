"""Break one rule after another, each in a copy of the project, and see whether its test goes red.

    python -m tests.mutations                   each row of the table
    python -m tests.mutations lock lease        the rows whose names have one of these in them
    python -m tests.mutations lock --whole      list all that goes red in the folder of the row's test
    python -m tests.mutations lock --whole tests/engine tests/contract    or in these

It exits with 1 unless each row's test passes as the code is, and fails in time when it is broken.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from tests.mutations.table import MUTATIONS, ROOT, Mutation

RED = "red, as it must be"
BOUND = 60.0
"""How many seconds a test may take, broken or not."""
WHOLE_BOUND = 1800.0
_NO_FAILURE = ("SyntaxError", "IndentationError", "ImportError", "ModuleNotFoundError", "NameError")
"""A test that ends so has not seen the broken rule, but code that cannot run."""


class Result(NamedTuple):
    """What pytest said of some tests."""

    is_late: bool
    passed: list[str]
    failed: list[str]
    output: str


class Copy:
    """A copy of the project, in which tests run. Nothing else is ever changed."""

    def __init__(self, folder: Path) -> None:
        self._tree = folder / "tree"
        self._temporary = folder / "tmp"
        self._temporary.mkdir()
        listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        found = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True)  # noqa: S603 - our own
        for name in found.stdout.split("\0"):
            if name and (ROOT / name).is_file():
                (self._tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self._tree / name)

    @contextmanager
    def broken(self, row: Mutation) -> Iterator[None]:
        """Break a rule in the block."""
        file = self._tree / row.path
        whole = file.read_text(encoding="utf-8")
        file.write_text(whole.replace(row.text, row.by), encoding="utf-8")
        try:
            yield
        finally:
            file.write_text(whole, encoding="utf-8")

    def can_import(self, row: Mutation) -> bool:
        """Return whether the file of a row can be imported."""
        module = ".".join(Path(row.path).with_suffix("").parts[1:])
        return self._run(["-c", f"import {module}"], BOUND)[0] == 0

    def test(self, nodes: Sequence[str], seconds: float) -> Result:
        """Run tests. Those that have not ended in time are killed, with all that they have started."""
        options = ["-q", "-rA", "--tb=no", "--show-capture=no", "-n", "0", "-p", "no:cacheprovider"]
        code, output = self._run(["-m", "pytest", *options, *nodes], seconds)
        failed = [line for line in output.splitlines() if line.startswith("FAILED ")]
        real = [line for line in failed if not line.partition(" - ")[2].startswith(_NO_FAILURE)]
        return Result(code is None, re.findall(r"(?m)^PASSED (.*)", output), real, output)

    def _run(self, arguments: list[str], seconds: float) -> tuple[int | None, str]:
        own = {"PYTHONPATH": str(self._tree / "src"), "TMPDIR": str(self._temporary), "COLUMNS": "1000"}
        kept = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("PYTEST_")}
        with subprocess.Popen(  # noqa: S603 - our own
            [sys.executable, *arguments],
            cwd=self._tree,
            env=kept | own,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                return None, ""
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        return process.returncode, output


@contextmanager
def copy_project() -> Iterator[Copy]:
    """Copy the project for the block."""
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        yield Copy(Path(folder))


def judge(copy: Copy, row: Mutation) -> str:
    """Return what became of a row: `RED`, or what is wrong."""
    if not row.is_found:
        return "THE TEXT TO REPLACE IS NOT FOUND EXACTLY ONCE"
    before = copy.test([row.test], BOUND)
    if before.is_late or before.failed or not before.passed:
        return f"ITS TEST DOES NOT PASS UNBROKEN\n{before.output[-2000:]}"
    with copy.broken(row):
        if not copy.can_import(row):
            return "BROKEN, IT CANNOT BE IMPORTED"
        after = copy.test([row.test], BOUND)
    if after.is_late:
        return f"OUT OF TIME: a test that hangs says nothing in its {BOUND:.0f} seconds"
    return RED if after.failed else f"STILL GREEN\n{after.output[-2000:]}"


def list_red(copy: Copy, row: Mutation, folders: Sequence[str]) -> Iterator[str]:
    """Yield what goes red in some folders when a rule is broken, and not before."""
    if not row.is_found:
        yield "THE TEXT TO REPLACE IS NOT FOUND EXACTLY ONCE"
        return
    nodes = folders or [str(Path(row.test.partition("::")[0]).parent)]
    before = {line.split(" - ")[0] for line in copy.test(nodes, WHOLE_BOUND).failed}
    with copy.broken(row):
        after = copy.test(nodes, WHOLE_BOUND)
    red = [line for line in after.failed if line.split(" - ")[0] not in before]
    yield (
        f"OUT OF TIME: {WHOLE_BOUND:.0f} seconds" if after.is_late else f"{len(red)} of {len(after.passed) + len(red)}"
    )
    yield from red


def main() -> int:
    """Try the rows that the command line names."""
    parser = argparse.ArgumentParser(description="Break one rule after another, and see whether its test goes red.")
    parser.add_argument("names", nargs="*", help="the rows whose names have one of these in them")
    parser.add_argument("--whole", nargs="*", metavar="FOLDER", help="list all that goes red, there or beside the test")
    options = parser.parse_args()
    rows = [row for row in MUTATIONS if not options.names or any(name in row.name for name in options.names)]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the copy and its processes go

    wrong = not rows
    with copy_project() as copy:
        for row in rows:
            if options.whole is None:
                said = judge(copy, row)
                wrong |= said != RED
            else:
                said = "\n    ".join(list_red(copy, row, options.whole))
            print(f"{row.name} ({row.breaks}): {said}", flush=True)  # noqa: T201 - a command's output
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
