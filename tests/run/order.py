"""The order of the tests: that of their files or, with `--order SEED`, any, as the seed says.

It is our own because a module's tests stay together, whose servers and browsers are then started once, and because
every process of a run must come to the same order. Nothing else is seeded: dice that a test forgot to seed stay random.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from random import Random

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--order`."""
    text = "run the modules, and the tests of each, in the order of this seed; normally it is that of their files"
    parser.getgroup("cloudsched").addoption("--order", type=int, metavar="SEED", help=text)


def pytest_report_header(config: pytest.Config) -> str:
    """Say which order it is, so that it can be repeated."""
    return f"order: {describe_order(config)}"


def describe_order(config: pytest.Config) -> str:
    seed = config.getoption("--order")
    return "that of the files" if seed is None else f"--order {seed}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Shuffle, if a seed was given."""
    seed = config.getoption("--order")
    if seed is not None:
        items[:] = shuffle(items, seed)


def shuffle(items: list[pytest.Item], seed: int) -> list[pytest.Item]:
    """Return the tests in another order: modules, and the tests of each."""
    random = Random(seed)  # noqa: S311 - an order is to be repeatable
    found: dict[Path, list[pytest.Item]] = defaultdict(list)
    for item in items:
        found[item.path].append(item)
    modules = list(found.values())
    random.shuffle(modules)
    for each in modules:
        random.shuffle(each)
    return [item for each in modules for item in each]
