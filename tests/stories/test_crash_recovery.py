"""Any process may die at any moment and nothing is lost: the benchmark that kills the stack, a few times."""

import json
import os
import subprocess
import sys

import pytest
from tests.harness import ROOT

from cloudsched.adapters.firestore.emulator import EmulatorNotFound, find_emulator

KILLS = 8
"""How many executors die, while work comes due and while it is caught up on."""


def test_killed_executors_and_sweeps_lose_nothing_and_repeat_no_success(request: pytest.FixtureRequest) -> None:
    """Under SIGKILL and faults of the queue, each occurrence that came due ends with one success."""
    store, env = "sqlite", dict(os.environ)
    if os.environ.get("CI") or not isinstance(
        find_emulator(os.environ.get("FIRESTORE_EMULATOR_HOST")), EmulatorNotFound
    ):
        store, env["FIRESTORE_EMULATOR_HOST"] = "firestore", request.getfixturevalue("firestore_address")
    script = ROOT / "benchmarks" / "crash_and_recover.py"
    command = (sys.executable, str(script), "--seconds", "3", "--kills", str(KILLS), "--store", store, "--json")
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=200, env=env)  # noqa: S603 - our own
    assert done.stdout, done.stderr
    counts = json.loads(done.stdout)
    assert counts["executors killed"] == KILLS
    assert counts["due"] > 0
    assert (counts["lost"], counts["duplicated"], counts["succeeded"]) == (0, 0, counts["due"])
