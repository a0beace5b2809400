"""The lock on a data folder, which lets one process at a time execute its tasks, and the socket to that process.

Other processes hand their dispatches to it: datagrams through a socket in the folder. No dispatch is lost. A process
that begins to run the tasks listens first and reads the store afterwards, so it finds what was committed before. The
next such process finds a dispatch that nobody hears.
"""

from __future__ import annotations

import json
import os
import re
import socket
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from cloudsched.domain.documents.policy import Priority
from cloudsched.domain.own_logger import own_logger
from cloudsched.engine.concurrency.service_threads import ServiceThread
from cloudsched.errors import CloudschedError, Misconfigured, QueueUnavailable

if TYPE_CHECKING:
    from cloudsched.engine.ports.queue import Dispatcher, QueueMessage

try:
    import fcntl
except ImportError:  # pragma: no cover - on Windows SQLite alone protects the file
    fcntl = None  # type: ignore[assignment]

log = own_logger(__name__)

STORE_FILE_NAME = "tasks.db"
"""The store's file name in its folder."""
MARK_FILE_NAME = "has-tasks"
"""The empty file that says that a folder has had a store: one without its file is damaged then, and not new."""
SECRET_FILE_NAME = "secret"  # noqa: S105 - a file's name
"""The file with the secret of a folder whose settings name none."""
STOPPED_FILE_NAME = "stopped"
"""The file with the name of the last process that was told to stop: what it ran then did not end it."""
LOCK_FILE_NAME = "lock"
"""The file, in the folder, that the process locks. It has the number of the process, and the names of its handlers."""


_OWN_NAME: Final = re.compile(
    rf"{re.escape(STORE_FILE_NAME)}(-.+)?|{MARK_FILE_NAME}(\..+)?|{SECRET_FILE_NAME}(\..+)?|{LOCK_FILE_NAME}"
    rf"|{STOPPED_FILE_NAME}|queue\.sock|replaced-.+"
)
"""The names of a data folder's own files."""


def make_private(folder: Path) -> None:
    """Make a data folder if necessary, and let nobody but this user read it and its own files, whatever the umask is.

    A folder that has anything else in it keeps its rights, for it may be a project's. One of another user is told of.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    inside = list(folder.iterdir())
    own = [each for each in inside if _OWN_NAME.fullmatch(each.name)]
    for path in [*own, folder] if len(own) == len(inside) else own:
        wanted = 0o700 if path.is_dir() else 0o600
        with suppress(FileNotFoundError):  # another process has closed the store
            try:
                if stat.S_IMODE(path.stat().st_mode) != wanted:
                    path.chmod(wanted)
            except PermissionError as error:
                log.warning("other users may read %s: %s", path, error, extra={"action": "not_private"})


def open_private(path: str, flags: int) -> int:
    """Open a file, as `open` has it opened. Nobody but this user may read a new one."""
    return os.open(path, flags, 0o600)


class FolderLock:
    """The lock of a folder, held by this process until it is released or the process ends, however it ends."""

    def __init__(self, folder: Path, handlers: Iterable[str] = ()) -> None:
        self._handlers = sorted(handlers)
        try:
            make_private(folder)
            self._file = open(folder / LOCK_FILE_NAME, "a+", encoding="utf-8", opener=open_private)  # noqa: SIM115 - a Path takes no opener
        except OSError as error:
            raise Misconfigured(f"The folder {folder} cannot be used: {error}. Name another one.") from error
        self.folder = folder.resolve()
        self.excludes_others = fcntl is not None
        """True if the lock keeps other processes out. On Windows it does not."""
        self.was_left_open = False
        """True if the last holder did not release the lock: it was killed, or the machine stopped."""
        self._is_held = False
        _opened.add(self)

    def acquire(self) -> bool:
        """Lock the folder and return True. Return False if another process has locked it."""
        if fcntl is not None:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return False
        self._is_held = True
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
        """Return the number of the process that has locked the folder, empty if it is not known."""
        return self._read()[0]

    def _read(self) -> list[str]:
        """Return the lines of the file, at least one."""
        self._file.seek(0)
        return self._file.read().split("\n")

    def require_same_app(self) -> None:
        """Check that the process that has locked the folder could run what this one creates, as its handlers tell.

        During a deployment, one of them may have some that the other lacks. Raises Misconfigured if it has none.
        """
        owner, *rest = self._read()
        theirs = json.loads(rest[0]) if rest and rest[0] else []  # or it is about to write them
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
        if not self._is_held:
            return
        self._is_held = False
        with suppress(OSError):
            self._file.truncate(0)
            if fcntl is not None:
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def forget(self) -> None:
        """Let go of it in a process that was forked: the lock stays with its parent, and ends with that."""
        self._is_held = False
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

SOCKET_NAME: Final = "queue.sock"
_MAX_PATH: Final = 100
"""The longest path of a socket: systems accept 104 bytes, some a few more."""
_SEND_SECONDS: Final = 1.0
"""The seconds in which the process that runs the tasks must make room for a dispatch."""
_LISTEN_SECONDS: Final = 1.0
"""The seconds for which one turn of the thread listens."""
_STOP: Final = b"stop"


class HandOverDispatcher:
    """A `Dispatcher` of a folder's process: it queues what this process runs, and hands over what another one does."""

    def __init__(self, folder: Path, queue: Dispatcher) -> None:
        self._folder = folder
        self._queue = queue
        self._runner: int | None = None

    @property
    def is_running(self) -> bool:
        """Whether this process runs the tasks. One that it has forked does not."""
        return self._runner == os.getpid()

    @is_running.setter
    def is_running(self, value: bool) -> None:
        self._runner = os.getpid() if value else None

    def create(self, message: QueueMessage) -> None:
        """Queue a dispatch, or hand it over. If nobody runs the tasks now, the next who does finds it in the store."""
        if self.is_running:
            self._queue.create(message)
            return
        fields = {"name": message.name, "at": message.at.isoformat(), "priority": message.priority.value}
        data = json.dumps({**fields, "body": message.body.decode()}).encode()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.settimeout(_SEND_SECONDS)
            try:
                with _SocketPath(self._folder) as path:
                    sender.sendto(data, path)
            except (FileNotFoundError, ConnectionRefusedError):
                return
            except OSError as error:
                raise QueueUnavailable("The process that runs this folder's tasks", str(error)) from error

    def close(self) -> None:
        """Close this process's queue."""
        self._queue.close()


class HandOverListener:
    """Takes what other processes hand over, in a thread of its own."""

    def __init__(self, folder: Path, accept: Callable[[str, bytes, datetime, Priority], None]) -> None:
        self._folder = folder
        self._accept = accept
        self._socket: socket.socket | None = None
        self._thread: ServiceThread | None = None

    def start(self) -> None:
        """Listen. Raises Misconfigured if the folder's path is too long for a socket, or allows none."""
        found = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            with suppress(FileNotFoundError):  # of a process that was killed
                (self._folder / SOCKET_NAME).unlink()
            with _SocketPath(self._folder) as path:
                found.bind(path)
            (self._folder / SOCKET_NAME).chmod(0o600)
        except OSError as error:
            found.close()
            raise Misconfigured(f"No socket can be made in {self._folder}: {error}. Name another folder.") from error
        self._socket = found
        found.settimeout(_LISTEN_SECONDS)
        self._thread = ServiceThread("cloudsched-hand-over", partial(self._take, found), at_end=found.close)
        self._thread.start()

    def stop(self) -> None:
        """Stop listening. From now on, nobody hears what is handed over."""
        found, self._socket = self._socket, None
        if found is None or self._thread is None:
            return
        self._thread.stop()
        with (
            suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender,
            _SocketPath(self._folder) as path,
        ):
            sender.settimeout(_SEND_SECONDS)
            sender.sendto(_STOP, path)
        with suppress(OSError):
            (self._folder / SOCKET_NAME).unlink()

    def _take(self, found: socket.socket) -> float | None:
        """Take one dispatch. The sweep sends one again that is not taken."""
        try:
            data = found.recv(1 << 18)
        except TimeoutError:
            return 0.0
        if data == _STOP:
            return None
        try:
            fields: dict[str, Any] = json.loads(data)
            at, priority = datetime.fromisoformat(fields["at"]), Priority(fields["priority"])
            self._accept(fields["name"], fields["body"].encode(), at, priority)
        except (CloudschedError, ValueError, KeyError, TypeError) as error:
            log.warning("a dispatch that was handed over is ignored: %s", error)
        return 0.0


class _SocketPath:
    """A context with the path of a folder's socket, as short as a system accepts it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor: int | None = None

    def __enter__(self) -> str:
        path = str(self._folder / SOCKET_NAME)
        if len(os.fsencode(path)) <= _MAX_PATH or not Path("/proc/self/fd").is_dir():
            return path
        self._descriptor = os.open(self._folder, os.O_RDONLY)
        return f"/proc/self/fd/{self._descriptor}/{SOCKET_NAME}"

    def __exit__(self, *_error: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
