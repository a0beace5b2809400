"""``cloudsched serve``: one process over one file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from cloudsched.cli.exit import LEFT_SECONDS, exit_within
from cloudsched.cli.log_output import configure_stack_logging
from cloudsched.cli.main import ExitCode
from cloudsched.cli.options import data_option, handlers_option
from cloudsched.cli.signals import Stopped, raise_on_signal
from cloudsched.config.imports import pause_collection

if TYPE_CHECKING:
    from pathlib import Path

    from cloudsched.local.app_loader import LoadedApp
    from cloudsched.local.service import Service

PORT: Final = 8080


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
    requests from this machine. Once it serves, it says in its log which stored tasks name a handler, or lack a
    field, that this code knows or needs. `cloudsched check` finds more. SIGTERM or Ctrl-C stops it. systemd is
    told when it is ready, alive and stopping.
    """
    with pause_collection(keeps_all=True):
        from cloudsched.adapters.clocks import SystemClock  # noqa: PLC0415 - not needed for --help
        from cloudsched.config.settings import Settings  # noqa: PLC0415 - likewise
        from cloudsched.config.supervisor import Supervisor  # noqa: PLC0415 - likewise
        from cloudsched.local import runner  # noqa: PLC0415 - likewise
        from cloudsched.local.app_loader import load_app  # noqa: PLC0415 - likewise
        from cloudsched.local.service import run_service  # noqa: PLC0415 - likewise
        from cloudsched.local.warm_up import warm_up_soon  # noqa: PLC0415 - likewise

    loaded = load_app(handlers)
    configure_stack_logging(SystemClock())
    supervisor = Supervisor()
    with raise_on_signal():
        try:
            with run_service(
                loaded.app,
                Settings.from_environment(),
                data=data,
                host=host,
                port=port,
                threads=threads,
                root_path=root_path,
            ) as service:
                for line in _startup_lines(service, loaded):
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


def _startup_lines(service: Service, loaded: LoadedApp) -> list[str]:
    access = "every request from this machine is an admin's"
    if service.settings.access.is_configured:
        access = "for callers who authenticate"
    return [
        f"store     {service.settings.data}",
        f"handlers  {loaded.handler_names} ({loaded.origin})",
        f"API       {service.url}/v1/tasks",
        f"page      {service.url}/ui/",
        f"access    {access}",
        "Ready. Ctrl-C stops it.",
    ]
