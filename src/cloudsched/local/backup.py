"""Look for damage in a data folder, and copy it while a process is using it.

A backup is a data folder itself: to restore it is to put a copy of it in the place of the folder.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cloudsched.adapters.blobs import results_of
from cloudsched.errors import Misconfigured, StoreUnavailable
from cloudsched.local.data_folder import MARK_FILE_NAME, SECRET_FILE_NAME, STORE_FILE_NAME, open_private
from cloudsched.local.folder_lock import FolderLock

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from cloudsched.adapters.sqlite.store import SqliteStore

_NAME: Final = re.compile(r"\d{8}T\d{6}Z")
"""The name of a backup: the UTC instant at which it was begun."""
_VERSION: Final = "PRAGMA schema_version"
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
    """Check, before a folder's store is opened, that it is there if it ever was, and in no other folder.

    Raises Misconfigured if it is missing or empty, or has a second name, whose lock another process may have.
    """
    path = folder / STORE_FILE_NAME
    mark = folder / MARK_FILE_NAME
    try:
        found = path.stat()
    except FileNotFoundError:
        found = None
    except OSError as error:
        raise StoreUnavailable(f"The file {path}", str(error)) from error

    if mark.exists() and (found is None or not found.st_size):
        state = "missing" if found is None else "empty"
        raise Misconfigured(
            f"{path} is {state}, and this folder has had tasks. Put the file back, such as from a backup "
            f"(docs/run/operate.md); or remove {mark}, if there are to be none."
        )
    _require_own_log(path, mark)
    if found is not None and found.st_nlink > 1:
        raise Misconfigured(
            f"{path} has another name (a hard link), by which another process could run the same tasks. "
            "Remove that name, or make a copy of the file."
        )


def _require_own_log(path: Path, mark: Path) -> None:
    """Check that the write-ahead log beside the store belongs to it, and not to one that it has replaced.

    SQLite would write the log's pages into it: what was restored would be undone, or damaged.
    """
    beside = path.with_name(f"{path.name}-wal")
    while True:
        known = _read_mark(mark)
        version = _read_version(path)
        if known == _read_mark(mark):  # no other process has just renewed it
            break
    if not (known and version) or version in known or not beside.exists() or not beside.stat().st_size:
        return
    raise Misconfigured(
        f"{beside} belongs to another file than {path}, which has been put in its place, such as from a backup: "
        "what it says would overwrite that. Restore a backup with `cloudsched admin restore`, "
        f"or remove {beside} and {path.name}-shm to use {path.name} as it is. "
        f"If nobody has replaced it, empty {mark}. Then start again."
    )


def _read_mark(mark: Path) -> list[str]:
    try:
        return mark.read_text("ascii").split()
    except (OSError, UnicodeError):  # there has never been a store
        return []


def _read_version(path: Path) -> str:
    """Return the version of a file's tables, which only `renew_mark`, and SQLite in a copy, change.

    It is the file's own, whatever its log says. SQLite has to read it: if anything else in a process closes
    the file, SQLite's own locks are gone (`man fcntl`).
    """
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            return str(database.execute(_VERSION).fetchone()[0])
    except sqlite3.Error:  # missing or damaged, which is told elsewhere
        return ""


def renew_mark(store: SqliteStore, path: Path) -> None:
    """Give the store's tables a random version, and write that down for the log beside the file.

    A copy of the file that was made before has another one. SQLite counts on in each other copy: from this
    version (`VACUUM INTO`), or from that of the file which it overwrites (its backup API). On a full disk the
    file keeps its version.
    """
    mark = path.with_name(MARK_FILE_NAME)
    version = str(secrets.randbelow(2**31))
    with suppress(OSError, StoreUnavailable):
        mark.touch(mode=0o600)
        _write_mark(mark, _read_version(path), version)  # one of the two, if this process ends before the next line
        store.database.write(lambda connection: connection.execute(f"{_VERSION} = {version}"))
        store.database.read("PRAGMA wal_checkpoint")  # at once, if nobody is reading
        if _read_version(path) == version:
            _write_mark(mark, version)


def _write_mark(mark: Path, *versions: str) -> None:
    made = mark.with_name(f"{mark.name}.new")
    with open(made, "w", encoding="ascii", opener=open_private) as file:
        file.write("\n".join(versions))
        file.flush()
        os.fsync(file.fileno())
    made.replace(mark)


def require_sound_folder(lock: FolderLock) -> None:
    """Look for damage in the file of a folder that the process before has not released."""
    path = lock.folder / STORE_FILE_NAME
    if lock.was_left_open and path.exists():
        _require_sound(path)


def write_backup(data: Path, place: Path, *, now: datetime, keep: int | None = None) -> Backup:
    """Copy a data folder to a new folder, also while a process is using it.

    The copy is the state of one instant, without free pages, and is synced and read back. It contains the
    secret that signs links, so only this user may read it. The place is created if necessary, and keeps the
    latest `keep` backups, with the new one, or all. Raises Misconfigured for a missing or damaged file, and
    for a second backup in one second.
    """
    source = data / STORE_FILE_NAME
    if not source.is_file():
        raise Misconfigured(f"There is no {source}: name the folder that `cloudsched serve --data`, or your app, uses.")
    require_own_file(data)
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
    return Backup(target, tasks, _measure(target))


def restore_backup(backup: Path, data: Path, *, now: datetime) -> Backup:
    """Put a copy of a backup in the place of what a data folder has, and keep that in a folder within it.

    Nothing may be using the folder, which is created if necessary. If this is interrupted, the folder has no
    store, and nothing starts on it. Raises Misconfigured for a damaged backup, and for a folder in use.
    """
    source = backup / STORE_FILE_NAME
    if not source.is_file():
        inside = sorted(each.name for each in backup.glob("*") if _NAME.fullmatch(each.name))
        text = f"There is no {source}: name the folder that `cloudsched admin backup` has made."
        if inside:
            text += f" It has backups: name one, such as {backup / inside[-1]}, the latest."
        raise Misconfigured(text)
    _require_sound(source, "Restore an earlier one")
    lock = FolderLock(data)
    lock.require()
    try:
        before = lock.folder / f"replaced-{now:%Y%m%dT%H%M%SZ}"
        made = lock.folder / f"replaced-by{_UNFINISHED}"
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(mode=0o700)
        tasks = _copy_folder(source, made)

        before.mkdir(mode=0o700)
        _write_mark(lock.folder / MARK_FILE_NAME)  # from here on, a folder without its store is refused
        logs = [f"{STORE_FILE_NAME}-wal", f"{STORE_FILE_NAME}-shm"]
        for name in (STORE_FILE_NAME, *logs, SECRET_FILE_NAME, results_of(source).name):
            with suppress(FileNotFoundError):
                (lock.folder / name).rename(before / name)
        # The store is the last: without it, nothing starts on what was restored in part.
        for each in sorted(made.iterdir(), key=lambda each: each.name == STORE_FILE_NAME):
            each.rename(lock.folder / each.name)
        made.rmdir()
        with suppress(OSError):  # the folder had something
            before.rmdir()
        _sync(lock.folder)
    except (sqlite3.Error, OSError) as error:
        raise StoreUnavailable(f"The folder {data}", f"{backup} cannot be restored to it: {error}") from error
    finally:
        lock.release()
    return Backup(before, tasks, _measure(before))


def _copy_folder(source: Path, folder: Path) -> int:
    """Copy a store's file first, then what its documents refer to, so that all of that is there."""
    target = folder / STORE_FILE_NAME
    with closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None)) as database:
        database.execute("VACUUM INTO ?", (str(target),))  # sqlite.org/lang_vacuum.html
    target.chmod(0o600)
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
    """Copy results, which never change. What disappears meanwhile belongs to executions that have expired."""
    for place in sorted(source.rglob("*")):
        copied = target / place.relative_to(source)
        with suppress(FileNotFoundError):
            if place.is_dir():
                copied.mkdir(parents=True, exist_ok=True)
            else:
                shutil.copy2(place, copied)
                _sync(copied)


def _require_sound(path: Path, cure: str = "Put a copy of a backup in the folder's place") -> None:
    """Raise Misconfigured if a file is damaged.

    It reads all of it (sqlite.org/pragma.html#pragma_quick_check).
    """
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
            f"The database {path} is damaged ({places}). {cure}, "
            "or save what can be read with `.recover` of sqlite3 (docs/run/serve.md, Backup)."
        )


def _measure(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
