"""A function imports only what it uses: heavy libraries are not imported before they are needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {
    "firebase_admin",
    "google.auth",
    "google.api_core",
    "google.protobuf",
    "opentelemetry",
    "requests",
    "rich",
    "cachecontrol",
    "jwt",
    "cryptography",
    "apprise",
    "grpc",
}
SERVE = """
from cloudsched import App, Settings
from cloudsched.config.access import Access
from cloudsched.web.functions import serve_api
from cloudsched.web.auth.authentication import create_key
from cloudsched.web.auth.roles import Role
from werkzeug.test import Client
from werkzeug.wrappers import Request
key, kept = create_key("a", Role.ADMIN)
app = App(Settings(store="sqlite", secret="x" * 32, executor_url="http://x", access=Access(api_keys=(str(kept),))))
client = Client(Request.application(lambda request: serve_api(app, request)))
assert client.get("/v1/tasks/x").status_code == 401
assert client.get("/v1/inboxes/x/messages", headers={"X-Api-Key": key}).status_code == 200
"""


@pytest.mark.parametrize(
    "script",
    ["import cloudsched.web.functions", "import cloudsched.cli.main", SERVE],
    ids=["functions", "cli", "with a key"],
)
def test_nothing_heavy_is_imported(script: str) -> None:
    """The libraries for tokens, telemetry, fetching and tables are imported on their first use."""
    report = f"{script}\nimport sys; print(sorted(set(sys.modules) & {HEAVY!r}))"
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)  # noqa: S603 - ours
    assert done.stdout.strip() == "[]"
