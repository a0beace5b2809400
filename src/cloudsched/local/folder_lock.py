"""The lock on a data folder, which lets one process at a time execute the tasks of its store."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import IO, TYPE_CHECKING

from cloudsched.errors import Misconfigured

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOCK_FILE_NAME = "lock"
"""The file, in the folder, that the process locks. It names the process."""


class FolderLock:
    """The lock of a folder, held by this process until it is released or the process ends, however it ends.

    Args:
        folder: The folder; created if necessary.

    Raises:
        Misconfigured: The folder cannot be created or written to.
    """

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = (folder / LOCK_FILE_NAME).open("a+", encoding="ascii")
        except OSError as error:
            raise Misconfigured(f"The folder {folder} cannot be used: {error}. Name another one.") from error
        self.folder = folder.resolve()
        self.excludes_others = False
        """Whether it is held, on a system where that keeps other processes out."""

    def acquire(self) -> bool:
        """Lock the folder and return True; return False if another process has locked it."""
        can_lock = _lock(self._file)
        if can_lock is not False:
            self.excludes_others = can_lock is True
            self._file.truncate(0)
            self._file.write(f"{os.getpid()}\n")
            self._file.flush()
        return can_lock is not False

    def require(self) -> None:
        """Lock the folder.

        Raises:
            Misconfigured: Another process has locked it.
        """
        if not self.acquire():
            owner = self.find_owner() or "another one"
            self._file.close()
            raise Misconfigured(
                f"The folder {self.folder} is in use by process {owner}. Stop it, or name another folder."
            )

    def find_owner(self) -> str:
        """Return the number of the process that has locked the folder; empty if it is not known."""
        self._file.seek(0)
        return self._file.read().strip()

    def release(self) -> None:
        """Release the lock."""
        with suppress(OSError):
            self._file.truncate(0)
        self._file.close()

    def release_after(self, work: Callable[[], object]) -> None:
        """Release the lock when a function has returned; a daemon thread calls it."""

        def wait() -> None:
            work()
            self.release()

        threading.Thread(target=wait, name="cloudsched-folder-lock", daemon=True).start()


def _lock(file: IO[str]) -> bool | None:
    """Lock a file; return False if another process has locked it, and None where files cannot be locked like this."""
    try:
        import fcntl  # noqa: PLC0415 - POSIX only
    except ImportError:  # pragma: no cover - on Windows SQLite alone protects the file
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
