"""Fixed shards: each process of a run has files of its own, the same in each run, in the same order.

`-n 3 --dist each` starts three processes, one more than there are cores, as tests wait a third of their time. Each
collects only its own files. Which test shares a process with which, and what ran before it, is therefore never decided
by speed, and `--shard 1/3` repeats what the first of three processes did. Files are dealt by how many seconds they take
(seconds.json, written by `pytest --all --record`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
TABLE = Path(__file__).with_name("seconds.json")
SHORT = 0.5
"""The seconds of a file that the table does not name."""
_OWN = pytest.StashKey[set[Path]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("cloudsched")
    group.addoption("--shard", metavar="K/N", help="run what the K-th of N processes of a run does")
    group.addoption("--record", action="store_true", help="note how many seconds each file takes, for later shards")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Start no processes for a shard, or for a single file."""
    if config.getoption("--shard") or len(list_files(config)) < 2:
        config.option.numprocesses, config.option.dist, config.option.tx = 0, "no", []


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:  # noqa: ANN401 - xdist has no types
    """Tell a process that is about to start whether it has files of its own, or takes what it is given."""
    node.workerinput["shards"] = node.config.option.dist == "each"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out, without importing it, what another process runs."""
    if config.stash.get(_OWN, None) is None:
        shard = find_shard(config)
        config.stash[_OWN] = deal(list_files(config), shard[1])[shard[0] - 1] if shard else set(list_files(config))
    is_file = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    return True if is_file and collection_path not in config.stash[_OWN] else None


def find_shard(config: pytest.Config) -> tuple[int, int] | None:
    """Return which shard of how many this process is."""
    own: dict[str, object] | None = getattr(config, "workerinput", None)
    if own is not None and own.get("shards"):
        return int(str(own["workerid"]).removeprefix("gw")) + 1, int(str(own["workercount"]))
    if said := config.getoption("--shard"):
        number, _, count = str(said).partition("/")
        return int(number), int(count)
    return None


def list_files(config: pytest.Config) -> list[Path]:
    """Return the files that the whole run consists of, before any is imported."""
    from tests.run.changed import find_changed  # noqa: PLC0415 - it asks this module
    from tests.run.tiers import is_left_out  # noqa: PLC0415 - found now that its folder is on the path

    named = [Path(each.partition("::")[0]).resolve() for each in config.args]
    found = {file for each in named for file in ([each] if each.suffix == ".py" else each.rglob("test_*.py"))}
    chosen = find_changed(config)
    return sorted(file for file in found if not is_left_out(file, config) and (chosen is None or file in chosen))


def deal(files: Iterable[Path], count: int) -> list[set[Path]]:
    """Deal files to processes, the longest first, each to the process that has the least to do."""
    shards: list[set[Path]] = [set() for _ in range(count)]
    load = [0.0] * count
    for file in sorted(files, key=lambda each: (-seconds_of(each), each)):
        least = load.index(min(load))
        shards[least].add(file)
        load[least] += seconds_of(file)
    return shards


def seconds_of(file: Path) -> float:
    """Return how long a file takes, by the table."""
    name = file.relative_to(TESTS).as_posix() if file.is_relative_to(TESTS) else ""
    return _read_table().get(name, SHORT)


@cache
def _read_table() -> dict[str, float]:
    return dict(json.loads(TABLE.read_text("utf-8"))) if TABLE.exists() else {}


def write_table(taken: dict[str, float]) -> None:
    """Write the table, of the tests' ids and their seconds."""
    files: dict[str, float] = {}
    for nodeid, seconds in taken.items():
        name = nodeid.partition("::")[0].removeprefix("tests/")
        files[name] = files.get(name, 0.0) + seconds
    kept = _read_table() | {name: round(seconds, 1) for name, seconds in files.items()}
    rows = {name: seconds for name, seconds in sorted(kept.items()) if seconds > SHORT and (TESTS / name).exists()}
    TABLE.write_text(json.dumps(rows, indent=0) + "\n", "utf-8")
