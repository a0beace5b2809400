"""A real PostgreSQL server of Debian's package, in a temporary folder, on a free port of loopback."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.harness import free_port

SECONDS = 60
"""How long the server may take to start."""


def find_binaries() -> Path | None:
    """Return the folder of PostgreSQL's programs; None if they are not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    on_path = shutil.which("initdb")
    return found[-1] if found else None if on_path is None else Path(on_path).resolve().parent


@contextmanager
def run_server(*, synced: bool = False) -> Iterator[str]:
    """Run a server, and yield its address as ``host:port``; skip where there is none, but fail in CI.

    Args:
        synced: Whether each commit is on the disk before it is answered, which tests do without.
    """
    binaries = find_binaries()
    if binaries is None:
        missing = "No PostgreSQL: on Debian, apt install postgresql."
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)
    user = "postgres" if os.geteuid() == 0 else None  # it refuses to run as root
    place = None if user is None else "/tmp"  # noqa: S108 - a folder of its own in it; the run's own is root's alone
    folder = Path(tempfile.mkdtemp(prefix="cloudsched-postgres-", dir=place))
    try:
        if user is not None:
            os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
        data = folder / "data"
        make = [str(binaries / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run(make, user=user, cwd=folder, check=True, capture_output=True)  # noqa: S603 - ours
        port = free_port()
        options = {"listen_addresses": "127.0.0.1", "unix_socket_directories": folder, "port": port}
        options |= {"fsync": "on" if synced else "off"}
        command = [str(binaries / "postgres"), "-D", str(data)]
        command += [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        with (
            (folder / "log").open("w") as log,
            subprocess.Popen(  # noqa: S603 - ours
                command, user=user, cwd=folder, stderr=log
            ) as server,
        ):
            try:
                _wait_for(binaries / "pg_isready", port, server, folder / "log")
                yield f"127.0.0.1:{port}"
            finally:
                server.send_signal(signal.SIGINT)  # "fast": it ends its connections
                server.wait(SECONDS)
    finally:
        shutil.rmtree(folder)


def _wait_for(is_ready: Path, port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + SECONDS
    while subprocess.run([is_ready, "-q", "-h", "127.0.0.1", "-p", str(port)], check=False).returncode:  # noqa: S603
        if server.poll() is not None or time.monotonic() > deadline:
            pytest.fail(f"PostgreSQL did not start: {log.read_text()}")
        time.sleep(0.05)
