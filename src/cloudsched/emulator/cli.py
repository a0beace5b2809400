"""`cloudsched emulator`: the command-line program."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any, Final

import click

from cloudsched.emulator.model.faults import Faults
from cloudsched.emulator.model.names import parse_instant

if TYPE_CHECKING:
    from datetime import datetime

TOKEN_MODES: Final = ("valid", "wrongAudience", "expired", "missing")
_FAULT_HELP: Final = (
    "Inject a fault with a probability: duplicate, outOfOrder, late, dropAnswer or timeOut. "
    "lateBy and shuffleWithin take a duration, seed a number. Repeatable."
)


def read_instant(value: str) -> datetime:
    """Return the instant that an option gives: the type of such an option."""
    try:
        return parse_instant(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


freeze_option = click.option(
    "--freeze", type=read_instant, metavar="INSTANT", help="Start with the clock frozen at this instant."
)
"""The option of every command that starts a clock."""


def _parse_faults(_context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> Faults:
    pairs = [value.partition("=") for value in values]
    if not all(text for _, _, text in pairs):
        raise click.BadParameter("Write a fault as NAME=VALUE, for example duplicate=0.1.")
    try:
        return Faults.from_json({name: _parse_number(text) for name, _, text in pairs})
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _parse_number(text: str) -> int | float | str:
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError:
        return text


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    default=8123,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="0 chooses a free port.",
)
@click.option(
    "--queue",
    "names",
    multiple=True,
    metavar="NAME",
    help="The full name of a queue to create. Repeatable.",
)
@click.option(
    "--auto-create-queues",
    is_flag=True,
    help="Create a missing queue when a task is created in it.",
)
@freeze_option
@click.option(
    "--functions-url",
    metavar="TEMPLATE",
    help="The URL of Firebase functions, with {project}, {location} and {function}.",
)
@click.option(
    "--tokens",
    type=click.Choice(TOKEN_MODES),
    default="valid",
    help="Issue valid OIDC and OAuth tokens, or invalid ones for tests.",
)
@click.option(
    "--control-key",
    default="",
    metavar="KEY",
    envvar="CLOUDSCHED_EMULATOR_KEY",
    help="Require this key, as X-Api-Key, for the control API: clock, attempts, faults. [env: CLOUDSCHED_EMULATOR_KEY]",
)
@click.option(
    "--fault",
    "faults",
    callback=_parse_faults,
    multiple=True,
    metavar="NAME=VALUE",
    help=_FAULT_HELP,
)
def emulator(
    *,
    names: tuple[str, ...],
    freeze: datetime | None,
    functions_url: str | None,
    **settings: Any,
) -> None:
    """Run a local Cloud Tasks. gRPC, REST and the control API share one port."""
    from cloudsched.emulator import CloudTasksEmulator  # noqa: PLC0415 - --help needs none of it
    from cloudsched.emulator.http.rest import DEFAULT_FUNCTIONS_URL  # noqa: PLC0415
    from cloudsched.emulator.model.queues import BadQueue  # noqa: PLC0415
    from cloudsched.emulator.runtime.clock import MovableClock  # noqa: PLC0415

    stopped = threading.Event()
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, lambda *_: stopped.set())
    try:
        server = CloudTasksEmulator(
            clock=MovableClock(freeze, frozen=freeze is not None),
            queues=names,
            functions_url=functions_url or DEFAULT_FUNCTIONS_URL,
            **settings,
        )
        server.start()
    except OSError as error:
        place = f"{settings['host']}, port {settings['port']}"
        raise click.UsageError(
            f"Cannot listen on {place}: {error}. Choose another port, or 0 for a free one."
        ) from None
    except BadQueue as error:
        raise click.UsageError(str(error)) from None
    click.echo(f"Cloud Tasks emulator ready on {server.address}")
    while not stopped.wait(1.0):  # a signal that the system gives to another thread does not wake this one
        pass
    server.stop()
