"""The local stack imports what it runs, and nothing that only some deployments, tokens or callers need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from tests.harness import run_to_end
from tests.installs import find_declared

SERVER: Final = {
    *("click", "markupsafe", "pydantic", "rich", "typing-extensions", "tzdata", "waitress", "werkzeug"),
}
"""What serves the API over a file, of the libraries that some install declares."""
CLOUD_TASKS: Final = {*("aiohttp", "grpcio", "h2", "hyperframe", "protobuf", "yarl")}
"""What the local Cloud Tasks and its client need besides."""
STOPPED: Final = """
import os
import click
echo = click.echo
click.echo = lambda text, **options: (echo(text, **options), text.startswith("Ready") and os.kill(os.getpid(), 2))
from cloudsched.cli.main import main
main()
"""
"""The command of the arguments, which gets Ctrl-C once it says that it is ready."""

DEV: Final = ["-m", "cloudsched", *"dev --store sqlite --port 0 --tasks-port 0 -- true".split()]  # noqa: SIM905 - as typed
SERVE: Final = ["-c", STOPPED, *"serve --data data --port 0 --handlers app.py".split()]  # noqa: SIM905 - as typed


@pytest.mark.parametrize(
    ("start", "allowed"), [(DEV, {*SERVER, *CLOUD_TASKS}), (SERVE, {*SERVER})], ids=["dev", "serve"]
)
def test_no_library_is_imported_that_is_not_needed_yet(start: list[str], allowed: set[str], tmp_path: Path) -> None:
    """Neither tokens, nor a client, nor Google's libraries, until something needs them."""
    (tmp_path / "app.py").write_text("from cloudsched import App\napp = App()\n", "utf-8")
    done = run_to_end(
        [sys.executable, "-X", "importtime", *start],
        cwd=tmp_path,
        env={**os.environ, "CLOUDSCHED_OPEN": "on"},
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")]
    assert "cloudsched.local.wsgi_server" in lines
    assert find_declared(lines) - allowed == set(), "import these where they are needed"
