"""The Node clients.

Opt-in, because they have to be installed first::

npm install --prefix ./node @google-cloud/tasks firebase-admin
CLOUDSCHED_NODE_MODULES=$PWD/node pytest tests/emulator/api/test_node_clients.py
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.emulator.conftest import Target

from cloudsched.emulator import CloudTasksEmulator

SCRIPT = Path(__file__).with_name("node_clients.mjs")


@pytest.mark.skipif("CLOUDSCHED_NODE_MODULES" not in os.environ, reason="CLOUDSCHED_NODE_MODULES names no npm folder")
def test_tasks_of_the_node_clients_are_delivered(emulator: CloudTasksEmulator, target: Target) -> None:
    """The clients are @google-cloud/tasks over gRPC and REST, and firebase-admin."""
    command = ["node", str(SCRIPT), emulator.address, target.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)  # noqa: S603 - node is found by PATH
    assert done.returncode == 0, done.stderr
    emulator.run_until_idle()
    assert sorted(target.paths) == ["/firebase", "/node-grpc", "/node-rest"]
