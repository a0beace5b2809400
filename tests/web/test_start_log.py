"""A deployed function says once with which time zone data it plans: its image decides, not its caller."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import pytest

from cloudsched.domain.recurrence import time_zones

PROGRAM = """
import sys
from werkzeug.test import Client
from werkzeug.wrappers import Request
from cloudsched import App, Settings
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.web import functions
app = App(Settings.from_environment(), store=SqliteStore())
serve = getattr(functions, sys.argv[1])
client = Client(Request.application(lambda request: serve(app, request)))
for _ in range(2):
    client.post("/", data=b"{}")
"""


@pytest.mark.parametrize("function", ["serve_api", "serve_links", "serve_execute"])
def test_a_function_logs_its_time_zone_data_once(function: str) -> None:
    """In the first request of its process, whatever that is answered."""
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", PROGRAM, function],
        env={
            "K_SERVICE": "function",
            "CLOUDSCHED_SECRET": "s" * 16,
            "CLOUDSCHED_EXECUTOR_URL": "https://executor.example",
            "PYTHONPATH": ":".join(sys.path),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    entries = [json.loads(line) for line in (done.stdout + done.stderr).splitlines() if line.startswith("{")]
    said = Counter(each["message"] for each in entries if "time zone data" in each["message"])
    assert said == {f"time zone data {time_zones.version()}": 1}, done.stderr
