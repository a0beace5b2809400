"""The folder of an embedded store that one process owns."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING

from cloudsched.errors import Misconfigured

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOCK_FILE_NAME = "lock"
"""The file, in the folder, that the process locks. It names the process."""


@contextmanager
def lock_data_folder(folder: Path) -> Iterator[Path]:
    """Create a folder if necessary, and keep other processes from using it for as long as the context lasts.

    The lock ends with the process, however it ends.

    Raises:
        Misconfigured: The folder cannot be created, or another process uses it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK_FILE_NAME).open("a+", encoding="ascii")
    except OSError as error:
        raise Misconfigured(f"The folder {folder} cannot be used: {error}. Name another one.") from error
    with file:
        if not _lock(file):
            file.seek(0)
            owner = file.read().strip() or "another one"
            raise Misconfigured(f"The folder {folder} is in use by process {owner}. Stop it, or name another folder.")
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield folder.resolve()
        with suppress(OSError):
            file.truncate(0)


def _lock(file: IO[str]) -> bool:
    """Lock a file; return False if another process has locked it."""
    try:
        import fcntl  # noqa: PLC0415 - POSIX only
    except ImportError:  # pragma: no cover - on Windows SQLite alone protects the file
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
