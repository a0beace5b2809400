"""Fixed shards: each process of a run has files of its own, the same in each run, in the same order.

`-n 3 --dist each` starts three processes, one more than there are cores, as tests wait a third of their time. Each
imports only its own files, and speed never decides which tests share a process. Files are dealt by how many seconds
they take (seconds.json, written by `pytest --all --record`).
"""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.run.tiers import TESTS, is_left_out, list_rows

ROOT = TESTS.parent
TABLE = Path(__file__).with_name("seconds.json")
SHORT = 0.5
"""The seconds of a file that the table does not name."""
MOST = 90.0
"""How many seconds of tests `--changed` chooses: they run in less than a minute."""
BESIDE = {
    "src/cloudsched/engine/ports": "contract",
    "src/cloudsched/adapters": "contract",
    "src/cloudsched/app.py": "doors",
    "docs": "docs",
    "README.md": "docs",
    "infra": "deployables",
    "functions": "deployables",
    "clients": "clients",
}
"""Where tests of a part are, besides the folder of the same name in `tests`."""
_OWN = pytest.StashKey[set[Path]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("cloudsched")
    group.addoption("--record", action="store_true", help="note how many seconds each file takes, for later shards")
    text = "run the tests of what differs from main, those nearest to a change first, about a minute of them"
    group.addoption("--changed", action="store_true", help=text)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Start no processes for a single file."""
    if config.option.numprocesses == 0 or len(list_files(config)) < 2:
        config.option.numprocesses, config.option.dist, config.option.tx = 0, "no", []


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:  # noqa: ANN401 - xdist has no types
    """Tell a process that is about to start whether it has files of its own, or takes what it is given."""
    node.workerinput["shards"] = node.config.option.dist == "each"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out, without importing it, what another process runs."""
    if config.stash.get(_OWN, None) is None:
        own = set(list_files(config))
        worker: dict[str, Any] = getattr(config, "workerinput", {})
        if worker.get("shards"):
            own = deal(own, int(worker["workercount"]))[int(worker["workerid"].removeprefix("gw"))]
        config.stash[_OWN] = own
    is_file = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    return True if is_file and collection_path not in config.stash[_OWN] else None


def list_files(config: pytest.Config) -> list[Path]:
    """Return the files that the whole run consists of, before any is imported."""
    named = [Path(each.partition("[")[0].partition("::")[0]).resolve() for each in config.args]
    found = {file for each in named for file in ([each] if each.suffix == ".py" else each.rglob("test_*.py"))}
    rows = list_rows(config)
    files = sorted(file for file in found if not is_left_out(file, rows))
    return choose_changed(files) if config.getoption("--changed") else files


def deal(files: Iterable[Path], count: int) -> list[set[Path]]:
    """Deal files to processes, the longest first, each to the process that has the least to do."""
    seconds = read_table()
    shards: list[set[Path]] = [set() for _ in range(count)]
    load = [0.0] * count
    for file in sorted(files, key=lambda each: (-seconds[each], each)):
        least = load.index(min(load))
        shards[least].add(file)
        load[least] += seconds[file]
    return shards


def choose_changed(files: list[Path]) -> list[Path]:
    """Return the tests that belong to what differs from main: the nearest first, as many as a minute allows."""
    seconds, chosen, left = read_table(), list[Path](), MOST
    for place in dict.fromkeys(_list_places()):
        for file in files:
            if file.is_relative_to(place) and file not in chosen and left > seconds[file]:
                chosen.append(file)
                left -= seconds[file]
    return sorted(chosen)


def _list_places() -> Iterator[Path]:
    """Yield where tests of changes are: changed tests, the mirrored ones, their rooms, and what stands beside."""
    base = _git("merge-base", "HEAD", "main") or _git("merge-base", "HEAD", "origin/main") or ["HEAD"]
    changes = [
        Path(each) for each in (*_git("diff", "--name-only", *base), *_git("ls-files", "-o", "--exclude-standard"))
    ]
    inner = [each.relative_to("src/cloudsched") for each in changes if each.is_relative_to("src/cloudsched")]
    yield from (ROOT / each for each in changes if each.name.startswith("test_"))
    yield from (TESTS / each.with_name(f"test_{each.name}") for each in inner)
    rooms = [TESTS / each.parent for each in inner]
    rooms += [ROOT / each.parent for each in changes if each.is_relative_to("tests")]
    yield from (room for room in rooms if room != TESTS)
    yield from (TESTS / beside for each in changes for start, beside in BESIDE.items() if each.is_relative_to(start))


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603, S607
    return done.stdout.splitlines() if done.returncode == 0 else []


def read_table() -> defaultdict[Path, float]:
    """Return how many seconds each file takes."""
    known = json.loads(TABLE.read_text("utf-8"))
    return defaultdict(lambda: SHORT, {TESTS / name: seconds for name, seconds in known.items()})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Write down how long each file took."""
    if not config.getoption("--record"):
        return
    table = read_table()
    reports = [each for some in terminalreporter.stats.values() for each in some if isinstance(each, pytest.TestReport)]
    table.update(dict.fromkeys({ROOT / each.location[0] for each in reports}, 0.0))
    for each in reports:
        table[ROOT / each.location[0]] += each.duration
    kept = {file: seconds for file, seconds in sorted(table.items()) if seconds > SHORT and file.exists()}
    rows = {file.relative_to(TESTS).as_posix(): round(seconds, 1) for file, seconds in kept.items()}
    TABLE.write_text(json.dumps(rows, indent=0) + "\n", "utf-8")
