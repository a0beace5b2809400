"""The local stack imports what it runs, and nothing that only some deployments, tokens or callers need."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from pathlib import Path

SERVER: Final = {
    "_distutils_hack": "setuptools, where it is installed",
    "_sysconfigdata__linux_x86_64-linux-gnu": "Python itself",
    "annotated_types": "pydantic",
    "backports": "jaraco",
    "cheroot": "the web server",
    "click": "the command",
    "cloudsched": "",
    "jaraco": "cheroot",
    "markupsafe": "Werkzeug",
    "more_itertools": "cheroot",
    "pydantic": "documents",
    "pydantic_core": "documents",
    "rich": "whether the terminal has colours",
    "typing_extensions": "pydantic",
    "typing_inspection": "pydantic",
    "tzdata": "time zones",
    "werkzeug": "requests",
}
"""What serves the API, over a file."""
CLOUD_TASKS: Final = {
    **dict.fromkeys(("aiodns", "aiohappyeyeballs", "aiosignal", "attr", "brotli", "brotlicffi"), "aiohttp"),
    **dict.fromkeys(("frozenlist", "idna", "multidict", "propcache", "yarl"), "aiohttp"),
    **dict.fromkeys(("grpc_health", "grpc_reflection", "grpc_tools"), "gRPC"),
    **dict.fromkeys(("hpack", "hyperframe"), "h2"),
    "aiohttp": "requests of the local Cloud Tasks",
    "circuitbreaker": "the breakers of what a deployment reaches",
    "google": "protobuf",
    "grpc": "calls to the local Cloud Tasks",
    "h2": "calls of the local Cloud Tasks",
}
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
def test_only_the_listed_libraries_are_imported(start: list[str], allowed: set[str], tmp_path: Path) -> None:
    """Neither tokens, nor a client, nor Google's libraries, until something needs them."""
    (tmp_path / "app.py").write_text("from cloudsched import App\napp = App()\n", "utf-8")
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-X", "importtime", *start],
        cwd=tmp_path,
        env={**os.environ, "CLOUDSCHED_OPEN": "on"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")]
    roots = {name.partition(".")[0] for name in lines} - {"imported package", "org", "sitecustomize"}
    assert "cloudsched.local.wsgi_server" in lines
    assert roots - {*sys.stdlib_module_names} - allowed == set(), "import these where they are needed"
