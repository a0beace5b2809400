"""The lock on a data folder, which lets one process at a time execute its tasks."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from cloudsched.domain.own_logger import own_logger
from cloudsched.engine.concurrency.service_threads import ServiceThread
from cloudsched.errors import Misconfigured
from cloudsched.local.data_folder import LOCK_FILE_NAME, make_private, open_private

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover - on Windows SQLite alone protects the file
    fcntl = None  # type: ignore[assignment]

log: Final = own_logger(__name__)


class FolderLock:
    """The lock of a folder. This process holds it until it releases it or ends, however it ends."""

    def __init__(self, folder: Path, handlers: Iterable[str] = ()) -> None:
        self._handlers = sorted(handlers)
        try:
            make_private(folder)
            self._file = open(folder / LOCK_FILE_NAME, "a+", encoding="utf-8", opener=open_private)  # noqa: SIM115 - a Path takes no opener
        except OSError as error:
            raise Misconfigured(f"The folder {folder} cannot be used: {error}. Name another one.") from error
        self.folder: Path = folder.resolve()
        self.excludes_others: bool = fcntl is not None
        """True if the lock keeps other processes out. On Windows it does not."""
        self.was_left_open: bool = False
        """True if the last holder did not release the lock: it was killed, or the machine stopped.

        As long as this is True, a release leaves the file as it is, so that the next holder is told as well.
        """
        self.is_held: bool = False
        _opened.add(self)

    def acquire(self) -> bool:
        """Lock the folder and return True. Return False if another process has locked it."""
        if fcntl is not None:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return False
        self.is_held = True
        self.was_left_open = bool(self.find_owner())
        self._file.truncate(0)
        self._file.write(f"{os.getpid()}\n{json.dumps(self._handlers)}\n")
        self._file.flush()
        return True

    def require(self) -> None:
        """Lock the folder. Raises Misconfigured if another process has locked it."""
        if not self.acquire():
            owner = self.find_owner() or "another one"
            self._file.close()
            raise Misconfigured(
                f"The folder {self.folder} is in use by process {owner}. Stop it, or name another folder."
            )

    def find_owner(self) -> str:
        """Return the id of the process that has locked the folder. Empty if the file does not name it."""
        return self._read()[0]

    def _read(self) -> list[str]:
        """Return the lines of the file, at least one."""
        self._file.seek(0)
        return self._file.read().split("\n")

    def require_same_app(self) -> None:
        """Check by its handlers that the process that has locked the folder could run what this one creates.

        During a deployment, one of them may have some that the other lacks. Raises Misconfigured if it has
        none.
        """
        owner, *rest = self._read()
        if not rest or not rest[0]:  # it is about to write them
            return
        theirs = json.loads(rest[0])
        missing = sorted({*self._handlers} - {*theirs})
        if not missing or not theirs:
            return

        about = f"Process {owner} runs the tasks of {self.folder}, and has no handler {', '.join(missing)}"
        if len(missing) == len(self._handlers):
            raise Misconfigured(f"{about}: it is another app, with {', '.join(theirs)}. Give each app its own folder.")
        log.warning("%s. Tasks of these fail there until it is restarted with this code.", about)

    def release(self) -> None:
        """Release the lock, if this process has it."""
        self.yield_to_others()
        self._file.close()

    def yield_to_others(self) -> None:
        """Release the lock. It can be acquired again."""
        if not self.is_held:
            return
        self.is_held = False
        with suppress(OSError):
            if not self.was_left_open:
                self._file.truncate(0)
            if fcntl is not None:
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def forget(self) -> None:
        """Drop the lock in a forked process: it belongs to the parent, and ends with that."""
        self.is_held = False
        self._file.close()

    def release_after(self, work: Callable[[], object]) -> None:
        """Release the lock when a function has returned. A thread calls the function, again if it raises."""

        def wait() -> None:
            work()
            self.release()

        ServiceThread("cloudsched-folder-lock", wait).start()


_opened: Final[WeakSet[FolderLock]] = WeakSet()


def _forget_locks() -> None:
    for each in tuple(_opened):
        each.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_locks)
