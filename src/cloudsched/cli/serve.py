"""``cloudsched serve``: one process over one file."""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import click

from cloudsched.cli.exit import LEFT_SECONDS, exit_within
from cloudsched.cli.log_output import configure_stack_logging
from cloudsched.cli.main import ExitCode
from cloudsched.cli.options import data_option, handlers_option
from cloudsched.cli.signals import Stopped, raise_on_signal
from cloudsched.config.imports import pause_collection
from cloudsched.domain.own_logger import own_logger

if TYPE_CHECKING:
    from pathlib import Path

    from cloudsched.local.app_loader import LoadedApp
    from cloudsched.local.service import Service

log: Final = own_logger(__name__)

PORT: Final = 8080
CHECK_SECONDS = 10.0
"""How long the check may take before it serves. Work that is due after a crash must not wait for it."""


@click.command()
@data_option("The directory of the store's file. Created if necessary. One process at a time may use it.")
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
    "--root-path",
    metavar="PATH",
    default="",
    help="The path that a proxy removes, such as /jobs. Links begin with it.",
)
@handlers_option("The app whose handlers run.")
def serve(*, data: Path, host: str, port: int, threads: int, root_path: str, handlers: str | None) -> None:
    """Serve the API and the page, and run tasks, in one process over one file: for a laptop or a small server.

    The store, the queue and the sweep are inside. There is no emulator, and the clock is the system's.
    Settings come from the environment. Callers authenticate as in the cloud, or CLOUDSCHED_OPEN=on admits
    requests from this machine. First it says in its log which stored tasks would fail with this code, as
    `cloudsched check` does, and serves. SIGTERM or Ctrl-C stops it. systemd is told when it is ready, alive
    and stopping.
    """
    with pause_collection(keeps_all=True):
        from cloudsched.adapters.clocks import SystemClock  # noqa: PLC0415 - not needed for --help
        from cloudsched.config.settings import Settings  # noqa: PLC0415 - likewise
        from cloudsched.config.supervisor import Supervisor  # noqa: PLC0415 - likewise
        from cloudsched.local import runner  # noqa: PLC0415 - likewise
        from cloudsched.local.app_loader import load_app  # noqa: PLC0415 - likewise
        from cloudsched.local.service import run_service  # noqa: PLC0415 - likewise
        from cloudsched.local.warm_up import warm_up_soon  # noqa: PLC0415 - likewise

    loaded = load_app(handlers, or_examples=False)
    configure_stack_logging(SystemClock())
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
                for line in _startup_lines(service, loaded, checked):
                    click.echo(line)
                supervisor.tell("READY=1", f"STATUS=Serving {service.url}")
                warm_up_soon(service.app)
                try:
                    supervisor.wait(service.url, service.find_trouble)
                finally:
                    supervisor.tell("STOPPING=1")
                    exit_within(runner.GRACE.total_seconds() + LEFT_SECONDS, ExitCode.DONE, "serve")
        except Stopped:
            click.echo("Stopped.")
            exit_within(LEFT_SECONDS, ExitCode.DONE, "serve")


def _startup_lines(service: Service, loaded: LoadedApp, checked: str) -> list[str]:
    access = "every request from this machine is an admin's"
    if service.settings.access.is_configured:
        access = "for callers who authenticate"
    return [
        f"store     {service.settings.data}",
        f"handlers  {loaded.handler_names} ({loaded.origin})",
        f"API       {service.url}/v1/tasks",
        f"page      {service.url}/ui/",
        f"access    {access}",
        f"check     {checked}",
        "Ready. Ctrl-C stops it.",
    ]


def _check_code(data: Path, handlers: str | None) -> str:
    """Log what would fail with these handlers, and return the result. It never keeps the process from serving.

    One old task must not keep all others from running, after a crash least of all. The comparison has a
    process of its own, because it refuses what the handlers' code may do here.
    """
    from cloudsched.local.data_folder import STORE_FILE_NAME  # noqa: PLC0415 - not needed for --help

    if handlers is None or not (data / STORE_FILE_NAME).exists():
        return "Nothing is stored yet."
    words = ("check", "--data", str(data), "--handlers", handlers)
    failure = ""
    lines: list[str] = []
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
        failure = str(error)
    else:
        lines = [line for line in done.stdout.splitlines() if line]
        if done.returncode not in {ExitCode.DONE, ExitCode.NO} or not lines:
            failure = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]

    if failure:
        log.warning("what is stored was not compared with the code: %s", failure, extra={"action": "check_failed"})
        return f"What is stored was not compared with the code. Try it: cloudsched {shlex.join(words)}"
    for line in lines[:-1]:
        log.warning("%s", line, extra={"action": "check"})
    return lines[-1]
