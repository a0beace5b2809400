"""``cloudsched backup``: a copy of a data folder, while it is in use."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click


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

    The copy is of one instant, and is read back. It is a data folder itself: to restore it, stop the process, and put a
    copy of it in the place of the old one.
    """
    from cloudsched.local.backup import write_backup  # noqa: PLC0415 - not needed for --help

    made = write_backup(data, place, now=datetime.now(UTC), keep=keep)
    click.echo(f"{made.folder}  {made.tasks:,} tasks, {made.size / 1e6:,.1f} MB")
