"""``serve``, ``dashboard``, ``admin backup`` and ``restore``: one process over one file, the page alone, and copies."""

from __future__ import annotations

import shlex
import subprocess
import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from cloudsched.cli.exit import LEFT_SECONDS, exit_within
from cloudsched.cli.main import ExitCode
from cloudsched.cli.options import connection_options, handlers_option
from cloudsched.cli.signals import Stopped, raise_on_signal, wait_for_signal
from cloudsched.config.imports import pause_collection
from cloudsched.domain.own_logger import own_logger

log = own_logger(__name__)

PORT = 8080
DASHBOARD_PORT = 8090
CHECK_SECONDS = 10.0
"""The longest time of the comparison before it serves: what is due after a crash must not wait for it."""


@click.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="The directory of the store's file. Created if necessary. One process at a time may use it.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0 for a free one.")
@click.option(
    "--threads",
    type=click.IntRange(1, 1000),
    default=64,
    show_default=True,
    help="The most handlers that run at the same time.",
)
@click.option(
    "--root-path", metavar="PATH", default="", help="The path that a proxy removes, such as /jobs. Links begin with it."
)
@handlers_option("The app whose handlers run.")
def serve(*, data: Path, host: str, port: int, threads: int, root_path: str, handlers: str | None) -> None:
    """Serve the API and run tasks, in one process over one file: for a laptop or one small server.

    The store, the queue and the sweep are inside. There is no emulator, and the clock is the system's. Settings come
    from the environment. Callers authenticate as in the cloud, or CLOUDSCHED_OPEN=on admits requests from this machine.
    First it says in its log which stored tasks would fail with this code, as `cloudsched check` does, and serves.
    SIGTERM or Ctrl-C stops it. systemd is told when it is ready, alive and stopping.
    """
    with pause_collection(keeps_all=True):
        from cloudsched.adapters.clocks import SystemClock  # noqa: PLC0415 - not needed for --help
        from cloudsched.cli.dev import configure_logging  # noqa: PLC0415 - likewise
        from cloudsched.config.settings import Settings  # noqa: PLC0415 - likewise
        from cloudsched.config.supervisor import Supervisor  # noqa: PLC0415 - likewise
        from cloudsched.local import runner  # noqa: PLC0415 - likewise
        from cloudsched.local.app_loader import load_app  # noqa: PLC0415 - likewise
        from cloudsched.local.service import run_service  # noqa: PLC0415 - likewise

    loaded = load_app(handlers, or_examples=False)
    configure_logging(SystemClock())
    supervisor = Supervisor()
    with raise_on_signal():
        try:
            checked = _check_code(data, loaded.target)
            with run_service(
                loaded.app,
                Settings.from_environment(),
                data=data,
                host=host,
                port=port,
                threads=threads,
                root_path=root_path,
            ) as service:
                names = ", ".join(sorted(handler.name for handler in loaded.app.container.registry)) or "none"
                click.echo(f"store     {service.settings.data}")
                click.echo(f"handlers  {names} ({loaded.origin})")
                click.echo(f"API       {service.url}/v1/tasks")
                is_closed = service.settings.access.is_configured
                access = (
                    "for callers who authenticate" if is_closed else "every request from this machine is an admin's"
                )
                click.echo(f"access    {access}")
                click.echo(f"check     {checked}")
                click.echo("Ready. Ctrl-C stops it.")
                supervisor.tell("READY=1", f"STATUS=Serving {service.url}")
                try:
                    supervisor.wait(service.url, service.find_trouble)
                finally:
                    supervisor.tell("STOPPING=1")
                    exit_within(runner.GRACE.total_seconds() + LEFT_SECONDS, ExitCode.DONE, "serve")
        except Stopped:
            click.echo("Stopped.")
            exit_within(LEFT_SECONDS, ExitCode.DONE, "serve")


def _check_code(data: Path, handlers: str | None) -> str:
    """Log what would fail with these handlers, and return the result. It stops nobody from serving.

    One old task must not keep all others from running, after a crash least of all. The comparison has a process of its
    own, because it refuses what the handlers' code may do here.
    """
    from cloudsched.local.data_folder import STORE_FILE_NAME  # noqa: PLC0415 - not needed for --help

    if handlers is None or not (data / STORE_FILE_NAME).exists():
        return "Nothing is stored yet."
    words = ("check", "--data", str(data), "--handlers", handlers)
    again = f"Try it: cloudsched {shlex.join(words)}"
    try:
        done = subprocess.run(  # noqa: S603 - this command
            [sys.executable, "-m", "cloudsched", *words],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=CHECK_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        log.warning("what is stored was not compared with the code: %s", error, extra={"action": "check_failed"})
        return f"What is stored was not compared with the code. {again}"
    lines = [line for line in done.stdout.splitlines() if line]
    if done.returncode not in {ExitCode.DONE, ExitCode.NO} or not lines:
        reason = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        log.warning("what is stored was not compared with the code: %s", *reason, extra={"action": "check_failed"})
        return f"What is stored was not compared with the code. {again}"
    for line in lines[:-1]:
        log.warning("%s", line, extra={"action": "check"})
    return lines[-1]


@click.command()
@connection_options
@click.option(
    "--port", type=click.IntRange(0, 65535), default=DASHBOARD_PORT, show_default=True, help="Its port. 0 takes any."
)
def dashboard(url: str, port: int, **credentials: Any) -> None:
    """Show the dashboard of a deployment, on this machine only.

    It acts with your credentials, so nothing is made public, and it offers only what they allow. Ctrl-C stops it.
    """
    from cloudsched.client.client import Client  # noqa: PLC0415 - not needed for --help
    from cloudsched.dashboard.application import Dashboard  # noqa: PLC0415 - likewise
    from cloudsched.local.wsgi_server import WebServer  # noqa: PLC0415 - likewise

    with raise_on_signal():
        try:
            with ExitStack() as parts:
                client = parts.enter_context(Client(url, **credentials))
                application = Dashboard(client, place=f"of {urlsplit(url).netloc}")
                server = parts.enter_context(WebServer(application, port=port))
                server.serve()
                click.echo(f"http://{server.address}/ shows {url}. Ctrl-C stops it.")
                wait_for_signal()
        except Stopped:
            sys.exit(0)


@click.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="The folder to copy, of `cloudsched serve` or of your app.",
)
@click.option("--keep", type=click.IntRange(1), metavar="N", help="Remove the oldest backups beyond so many.")
@click.argument("place", type=click.Path(path_type=Path, file_okay=False))
def backup(place: Path, *, data: Path, keep: int | None) -> None:
    """Copy a data folder to a new folder in PLACE, named by the time, while a process is using it.

    The copy is of one instant, and is read back. `cloudsched admin restore` puts it back.
    """
    from cloudsched.local.backup import write_backup  # noqa: PLC0415 - not needed for --help

    made = write_backup(data, place, now=datetime.now(UTC), keep=keep)
    click.echo(f"{made.folder}  {_in_tasks(made.tasks)}, {made.size / 1e6:,.1f} MB")


def _in_tasks(count: int) -> str:
    return f"{count:,} task{'' if count == 1 else 's'}"


@click.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="The folder to restore to, of `cloudsched serve` or of your app. Created if necessary.",
)
@click.argument("backup", type=click.Path(path_type=Path, file_okay=False))
def restore(backup: Path, *, data: Path) -> None:
    """Put a copy of BACKUP in the place of what a data folder has. Stop the process that is using the folder first.

    The backup is checked before anything is changed. The old files are kept in a folder within it.
    """
    from cloudsched.local.backup import restore_backup  # noqa: PLC0415 - not needed for --help

    restored = restore_backup(backup, data, now=datetime.now(UTC))
    before = data / restored.folder.name
    kept = f" What it had is in {before}: remove that when you can." if before.exists() else ""
    click.echo(f"{data}  {_in_tasks(restored.tasks)}.{kept}")
