"""``cloudsched outbox``: hand over what transactions have written, and look after what was refused."""

from __future__ import annotations

import signal
import threading
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from cloudsched.cli.signals import SIGNALS, signal_handlers, wait_for_signal
from cloudsched.config.imports import pause_collection
from cloudsched.local.untrusted_text import to_printable

if TYPE_CHECKING:
    from types import FrameType

    from cloudsched.outbox.outbox import Outbox

_TARGET = click.argument("target", metavar="FILE|MODULE[:NAME]")
_ROWS = click.argument("rows", nargs=-1, metavar="[ROW]…")
_ALL = click.option("--all", "takes_all", is_flag=True, help="Take all rows that were refused.")
_PAGE = 1000


@click.group()
def outbox() -> None:
    """Hand over what transactions have written, and look after what was refused.

    Each command takes the file or the module that has your outbox, with its name if there are several.
    """


@outbox.command()
@_TARGET
@click.option(
    "--poll",
    type=click.FloatRange(0.05, 3600),
    metavar="SECONDS",
    default=1,
    show_default=True,
    help="How often to look for rows.",
)
@click.option("--once", is_flag=True, help="Hand over what is due now, then exit.")
def relay(target: str, *, poll: float, once: bool) -> None:
    """Hand rows over in a process of its own, until SIGTERM or Ctrl-C.

    It is a relay like those of your web processes (`outbox.relay()`), and may run beside them.
    """
    from cloudsched.cli.log_output import configure_line_logging  # noqa: PLC0415 - not needed for --help

    found = _load(target)
    configure_line_logging(lambda: "outbox:")
    if once:
        click.echo(f"{found.hand_over()} handed over.")
        return
    is_stopped = threading.Event()

    def stop(_signum: int, _frame: FrameType | None) -> None:
        is_stopped.set()

    handled = [each for each in SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
    with signal_handlers(stop, handled), found.relay(poll=timedelta(seconds=poll)):
        click.echo(f"Hands over the rows of {target}, and looks for them every {poll:g} s. Ctrl-C stops it.")
        wait_for_signal(is_stopped)


@outbox.command()
@_TARGET
def failed(target: str) -> None:
    """List the rows that were refused, each with its task and why."""
    for entry in _load(target).rows(limit=_PAGE):
        written = f"{entry.written_at:%Y-%m-%dT%H:%M:%SZ}"
        line = f"{entry.id}  {entry.action}  {entry.task_id}  {written}  {entry.error}"
        click.echo(to_printable(line))


@outbox.command()
@_TARGET
@_ROWS
@_ALL
def retry(target: str, rows: tuple[str, ...], *, takes_all: bool) -> None:
    """Let rows that were refused be handed over again."""
    found = _load(target)
    for row in _choose(found, rows, takes_all=takes_all):
        found.retry(row)
        click.echo(f"{row} is handed over again.")


@outbox.command()
@_TARGET
@_ROWS
@_ALL
def discard(target: str, rows: tuple[str, ...], *, takes_all: bool) -> None:
    """Delete rows that were refused."""
    found = _load(target)
    for row in _choose(found, rows, takes_all=takes_all):
        found.discard(row)
        click.echo(f"{row} is deleted.")


def _choose(found: Outbox, rows: tuple[str, ...], *, takes_all: bool) -> tuple[str, ...]:
    if takes_all == bool(rows):
        raise click.UsageError("Name rows, or give --all.")
    return tuple(entry.id for entry in found.rows(limit=_PAGE)) if takes_all else rows


def _load(target: str) -> Outbox:
    with pause_collection(keeps_all=True):
        from cloudsched.local.app_loader import load_instance  # noqa: PLC0415 - not needed for --help
        from cloudsched.outbox.outbox import Outbox  # noqa: PLC0415 - likewise

    hint = '"outbox = SqlalchemyOutbox(engine, app)", or a DjangoOutbox'
    return load_instance(target, Outbox, "outbox", hint)
