"""Look for damage in a data folder, and copy it while a process is using it.

A backup is a data folder itself: to restore it is to put a copy of it in the place of the folder.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from cloudsched.adapters.blobs import results_of
from cloudsched.errors import Misconfigured, StoreUnavailable
from cloudsched.local.folder_lock import MARK_FILE_NAME, SECRET_FILE_NAME, STORE_FILE_NAME, FolderLock

_NAME: Final = re.compile(r"\d{8}T\d{6}Z")
"""The name of a backup: the UTC instant at which it was begun."""
_UNFINISHED: Final = ".part"
_SHOWN: Final = 3
"""The number of damaged places that an error names."""


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup that was made."""

    folder: Path
    tasks: int
    """The number of tasks that it has."""
    size: int
    """The bytes of all its files."""


def require_own_file(folder: Path) -> None:
    """Check, before the store's file of a folder is opened, that it is there if it ever was, and in no other folder.

    Raises Misconfigured if it is missing or empty, or has a second name, whose lock another process may have.
    """
    path, mark = folder / STORE_FILE_NAME, folder / MARK_FILE_NAME
    try:
        found = path.stat()
    except FileNotFoundError:
        found = None
    except OSError as error:
        raise StoreUnavailable(f"The file {path}", str(error)) from error
    if mark.exists() and (found is None or not found.st_size):
        raise Misconfigured(
            f"{path} is {'missing' if found is None else 'empty'}, and this folder has had tasks. Put the file back, "
            f"such as from a backup (docs/run/operate.md); or remove {mark}, if there are to be none."
        )
    if found is not None and found.st_nlink > 1:
        raise Misconfigured(
            f"{path} has another name (a hard link), by which another process could run the same tasks. Remove that "
            "name, or make a copy of the file."
        )


def require_sound_folder(lock: FolderLock) -> None:
    """Look for damage in the file of a folder that the process before has not released."""
    path = lock.folder / STORE_FILE_NAME
    if lock.was_left_open and path.exists():
        _require_sound(path)


def write_backup(data: Path, place: Path, *, now: datetime, keep: int | None = None) -> Backup:
    """Copy a data folder to a new folder, also while a process is using it.

    The copy is the state of one instant, without free pages, and is synced and read back. It contains the secret that
    signs links, so only this user may read it. The place is created if necessary, and keeps the latest `keep` backups,
    with the new one, or all. Raises Misconfigured for a missing or damaged file, and for a second backup in one second.
    """
    source = data / STORE_FILE_NAME
    if not source.is_file():
        raise Misconfigured(f"There is no {source}: name the folder that `cloudsched serve --data`, or your app, uses.")
    target = place / f"{now:%Y%m%dT%H%M%SZ}"
    beside = target.with_name(f"{target.name}{_UNFINISHED}")
    if target.exists() or beside.exists():
        raise Misconfigured(f"There is a backup of this second: {target}.")
    try:
        place.mkdir(parents=True, exist_ok=True)
        beside.mkdir(mode=0o700)
        try:
            tasks = _copy_folder(source, beside)
            beside.rename(target)
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise
        _sync(place)
        if keep is not None:
            for old in sorted(each for each in place.iterdir() if _NAME.fullmatch(each.name))[:-keep]:
                shutil.rmtree(old)
    except (sqlite3.Error, OSError) as error:
        raise StoreUnavailable(f"The folder {data}", f"it cannot be copied to {target}: {error}") from error
    return Backup(target, tasks, sum(each.stat().st_size for each in target.rglob("*") if each.is_file()))


def _copy_folder(source: Path, folder: Path) -> int:
    """Copy a store's file first, then what its documents refer to, so that all of that is there."""
    target = folder / STORE_FILE_NAME
    with closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None)) as database:
        database.execute("VACUUM INTO ?", (str(target),))  # sqlite.org/lang_vacuum.html
    _require_sound(target)
    _sync(target)
    secret = source.with_name(SECRET_FILE_NAME)
    if secret.exists():
        shutil.copy2(secret, folder)
    _copy_results(results_of(source), results_of(target))
    _sync(folder)
    with closing(sqlite3.connect(target)) as copy:
        (count,) = copy.execute("SELECT count(*) FROM tasks").fetchone()
    return int(count)


def _copy_results(source: Path, target: Path) -> None:
    """Copy results. They never change, so what disappears meanwhile belongs to executions that have expired."""
    for place in sorted(source.rglob("*")):
        copied = target / place.relative_to(source)
        with suppress(FileNotFoundError):
            if place.is_dir():
                copied.mkdir(parents=True, exist_ok=True)
            else:
                shutil.copy2(place, copied)
                _sync(copied)


def _require_sound(path: Path) -> None:
    """Raise Misconfigured if a file is damaged. It reads all of it (sqlite.org/pragma.html#pragma_quick_check)."""
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            found = [str(line) for (line,) in database.execute(f"PRAGMA quick_check({_SHOWN})")]
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode not in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
            raise StoreUnavailable(f"The database {path}", str(error)) from error
        found = [str(error)]
    if found != ["ok"]:
        places = " ".join("; ".join(found).split())
        raise Misconfigured(
            f"The database {path} is damaged ({places}). Put a copy of a backup in the folder's place, or "
            "save what can be read with `.recover` of sqlite3 (docs/run/serve.md, Backup)."
        )


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
