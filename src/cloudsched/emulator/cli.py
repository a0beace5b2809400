"""`cloudsched emulator`: the emulator as a program."""

from __future__ import annotations

import signal
import threading
from datetime import UTC, datetime

import click


def _instant(_context: click.Context, _option: click.Parameter, value: str | None) -> datetime | None:
    if value is None:
        return None
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not an instant such as 2027-01-01T00:00:00Z.") from None
    if at.tzinfo is None:
        raise click.BadParameter(f"{value!r} has no time zone; end it with Z for UTC.")
    return at.astimezone(UTC)


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=8123, show_default=True, type=click.IntRange(0, 65535), help="0 picks a free one.")
@click.option("--queue", "names", multiple=True, metavar="NAME", help="A queue to create; its full name. Repeatable.")
@click.option("--auto-create-queues", is_flag=True, help="A task for a missing queue creates the queue.")
@click.option("--freeze", callback=_instant, metavar="INSTANT", help="Begin with the clock standing still there.")
@click.option("--app-engine", default="", metavar="URL", help="Where App Engine targets are found.")
@click.option("--functions-url", metavar="TEMPLATE", help="Where Firebase functions are found.")
@click.option("--seed", type=int, help="Makes the ids of unnamed tasks the same from run to run.")
def emulator(  # noqa: PLR0913 - one for each option
    *,
    host: str,
    port: int,
    names: tuple[str, ...],
    freeze: datetime | None,
    app_engine: str,
    functions_url: str | None,
    seed: int | None,
    auto_create_queues: bool,
) -> None:
    """Run a local Cloud Tasks; gRPC, REST and the control interface share one port."""
    from cloudsched.emulator.clock import MovableClock  # noqa: PLC0415 - --help needs none of it
    from cloudsched.emulator.refusal import Refused  # noqa: PLC0415
    from cloudsched.emulator.rest import DEFAULT_FUNCTIONS_URL  # noqa: PLC0415
    from cloudsched.emulator.server import CloudTasksEmulator  # noqa: PLC0415

    stopped = threading.Event()
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, lambda *_: stopped.set())
    server = CloudTasksEmulator(
        host,
        port,
        MovableClock(freeze, frozen=freeze is not None),
        names,
        auto_create_queues=auto_create_queues,
        app_engine=app_engine,
        functions_url=functions_url or DEFAULT_FUNCTIONS_URL,
        seed=seed,
    )
    try:
        server.start()
    except (OSError, Refused) as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"Cloud Tasks emulator ready on {server.address}")
    stopped.wait()
    server.stop()
