"""``cloudsched admin backup`` and ``restore``: copies of a data folder."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from cloudsched.cli.options import data_option


@click.command()
@data_option("The folder to copy, of `cloudsched serve` or of your app.")
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
@data_option("The folder to restore to, of `cloudsched serve` or of your app. Created if necessary.")
@click.argument("backup", type=click.Path(path_type=Path, file_okay=False))
def restore(backup: Path, *, data: Path) -> None:
    """Put a copy of BACKUP in the place of what a data folder has.

    Stop the process that is using the folder first. The backup is checked before anything is changed. The old
    files are kept in a folder within it.
    """
    from cloudsched.local.backup import restore_backup  # noqa: PLC0415 - not needed for --help

    restored = restore_backup(backup, data, now=datetime.now(UTC))
    text = f"{data}  {_in_tasks(restored.tasks)}."
    before = data / restored.folder.name
    if before.exists():
        text += f" What it had is in {before}: remove that when you can."
    click.echo(text)
