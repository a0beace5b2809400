"""The lock on a data folder, which lets one process at a time execute the tasks of its store."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from cloudsched.engine.ports.service_threads import ServiceThread
from cloudsched.errors import Misconfigured

try:
    import fcntl
except ImportError:  # pragma: no cover - on Windows SQLite alone protects the file
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

_NONE: Final[Mapping[str, str]] = {}
LOCK_FILE_NAME = "lock"
"""The file, in the folder, that the process locks. It names the process, and the handlers that it has with the files
that they are in, a line each."""


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
            self._file = (folder / LOCK_FILE_NAME).open("a+", encoding="utf-8")
        except OSError as error:
            raise Misconfigured(f"The folder {folder} cannot be used: {error}. Name another one.") from error
        self.folder = folder.resolve()
        self.excludes_others = fcntl is not None
        """Whether the lock keeps other processes out: on Windows it does not."""
        self.was_left_open = False
        """Whether the process that held the lock last did not release it: it was killed, or the machine stopped."""
        self._is_held = False

    def acquire(self, handlers: Mapping[str, str] = _NONE) -> bool:
        """Lock the folder and return True; return False if another process has locked it.

        Args:
            handlers: The handlers that this process has, each with the file that it is in, for others to know.
        """
        if fcntl is not None:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return False
        self._is_held = True
        self.was_left_open = bool(self.find_owner())
        self._file.truncate(0)
        self._file.write("".join(f"{each}\n" for each in (os.getpid(), *map("\t".join, handlers.items()))))
        self._file.flush()
        return True

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
        return next(iter(self._read_lines()), "")

    def find_handlers(self) -> dict[str, str]:
        """Return the handlers of the process that has locked the folder, with their files, if they are known."""
        return {name: file for name, _, file in (each.partition("\t") for each in self._read_lines()[1:])}

    def _read_lines(self) -> list[str]:
        self._file.seek(0)
        return self._file.read().splitlines()

    def release(self) -> None:
        """Release the lock, if this process has it."""
        self.yield_to_others()
        self._file.close()

    def yield_to_others(self) -> None:
        """Release the lock; it can be acquired again."""
        if not self._is_held:
            return
        self._is_held = False
        with suppress(OSError):
            self._file.truncate(0)
            if fcntl is not None:
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def forget(self) -> None:
        """Let go of it in a process that was forked: the lock stays with its parent, and ends with that."""
        self._file.close()

    def release_after(self, work: Callable[[], object]) -> None:
        """Release the lock when a function has returned; a thread calls it, again if it raises."""

        def wait() -> None:
            work()
            self.release()

        ServiceThread("cloudsched-folder-lock", wait).start()
