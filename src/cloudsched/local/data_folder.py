"""A data folder: the names of its files, who may read them, and the settings of a process that uses it."""

from __future__ import annotations

import dataclasses
import os
import re
import secrets
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from cloudsched.domain.own_logger import own_logger
from cloudsched.errors import Misconfigured

if TYPE_CHECKING:
    from pathlib import Path

    from cloudsched.config.settings import Settings

log: Final = own_logger(__name__)

STORE_FILE_NAME: Final = "tasks.db"
"""The store's file name in its folder."""
MARK_FILE_NAME: Final = "has-tasks"
"""The file that marks a folder that has had a store. If the store is missing, the folder is damaged, not new."""
SECRET_FILE_NAME: Final = "secret"  # noqa: S105 - a file's name
"""The file with the secret of a folder whose settings name none."""
STOPPED_FILE_NAME: Final = "stopped"
"""The file that names the last process that was asked to stop, so no handler crashed it."""
LOCK_FILE_NAME: Final = "lock"
"""The file that the process locks. It has the process's number and the names of its handlers."""
SOCKET_NAME: Final = "queue.sock"
"""The socket by which other processes hand over their dispatches."""
_OWN_NAME: Final = re.compile(
    rf"{re.escape(STORE_FILE_NAME)}(-.+)?|{MARK_FILE_NAME}(\..+)?|{SECRET_FILE_NAME}(\..+)?|{LOCK_FILE_NAME}"
    rf"|{STOPPED_FILE_NAME}|{re.escape(SOCKET_NAME)}|replaced-.+"
)
"""The names of a data folder's own files."""


def complete_settings(settings: Settings, folder: Path) -> Settings:
    """Return the settings with which a process runs the tasks of a folder, or creates some.

    Raises Misconfigured on Cloud Run.
    """
    if settings.is_deployed:
        raise Misconfigured(
            "K_SERVICE is set: this is Cloud Run, whose instances come and go and have no disk. Deploy functions "
            "instead (docs/run/deploy.md)."
        )
    return dataclasses.replace(
        settings,
        secret=settings.secret or _read_secret(folder),
        store="sqlite",
        data=folder / STORE_FILE_NAME,
        tasks_emulator=None,
        firestore_emulator=None,
        invoker=None,
        fallback=False,
    )


def make_private(folder: Path) -> None:
    """Make a data folder if necessary, and let only this user read it and its files, whatever the umask is.

    A folder that has anything else in it keeps its rights, for it may be a project's. One of another user is
    told of.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    inside = list(folder.iterdir())
    own = [each for each in inside if _OWN_NAME.fullmatch(each.name)]
    if len(own) == len(inside):
        own.append(folder)

    for path in own:
        wanted = 0o700 if path.is_dir() else 0o600
        with suppress(FileNotFoundError):  # another process has closed the store
            try:
                if stat.S_IMODE(path.stat().st_mode) != wanted:
                    path.chmod(wanted)
            except PermissionError as error:
                log.warning("other users may read %s: %s", path, error, extra={"action": "not_private"})


def open_private(path: str, flags: int) -> int:
    """Open a file, as an opener for `open`. Only this user may read a new file."""
    return os.open(path, flags, 0o600)


def _read_secret(folder: Path) -> str:
    """Return the folder's secret, made by the first process that asks.

    The links that it signs outlive the process.
    """
    path = folder / SECRET_FILE_NAME
    made = folder / f"{SECRET_FILE_NAME}.{secrets.token_hex(8)}"
    try:
        if not path.exists():
            with open(made, "x", encoding="ascii", opener=open_private) as file:
                file.write(secrets.token_urlsafe(32))
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):  # another process was first
                os.link(made, path)
            made.unlink()
        return path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise Misconfigured(f"The secret of {folder} cannot be read: {error}. Set CLOUDSCHED_SECRET.") from error
