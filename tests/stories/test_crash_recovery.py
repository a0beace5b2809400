"""Any process may die at any moment and nothing is lost: the benchmark that kills the stack, a few times."""

import json
import os
import sys
from typing import Any

import pytest
from tests.harness import ROOT, run_to_end

from cloudsched.adapters.firestore.emulator import EmulatorNotFound, find_emulator

KILLS = 8
"""How many executors die, while work comes due and while it is caught up on."""


def measure(env: dict[str, str], *options: str) -> dict[str, Any]:
    """Run the benchmark, and return its counts."""
    command = (sys.executable, "-m", "benchmarks.crash_and_recover", *options)
    done = run_to_end(command, env=env, cwd=ROOT)
    assert done.stdout, done.stderr
    counts: dict[str, Any] = json.loads(done.stdout)
    return counts


def test_killed_executors_and_sweeps_lose_nothing_and_repeat_no_success(request: pytest.FixtureRequest) -> None:
    """Under SIGKILL and faults of the queue, each occurrence that came due ends with one success."""
    store, env = "sqlite", dict(os.environ)
    if os.environ.get("CI") or not isinstance(
        find_emulator(os.environ.get("FIRESTORE_EMULATOR_HOST")), EmulatorNotFound
    ):
        store, env["FIRESTORE_EMULATOR_HOST"] = "firestore", request.getfixturevalue("firestore_address")
    counts = measure(env, "--seconds", "3", "--kills", str(KILLS), "--store", store)
    assert counts["executors killed"] == KILLS
    assert counts["due"] > 0
    assert (counts["lost"], counts["duplicated"], counts["succeeded"]) == (0, 0, counts["due"])


def test_killed_buyers_leave_each_order_with_its_task(firestore_address: str) -> None:
    """Where tasks join the transactions of orders: neither without the other, and each is run once in the end."""
    counts = measure(dict(os.environ, FIRESTORE_EMULATOR_HOST=firestore_address), "--joined", "200", "--kills", "5")
    assert (counts["kills"], counts["broken"]) == (5, [])
    assert counts["orders"] < counts["run once"] + counts["cancelled"] == counts["tasks"]
    assert min(counts[name] for name in ("edited", "cancelled")) > 0
