"""Store the sessions of a page in a folder that the processes of a server share.

A session's file is named by the hash of what the browser keeps, and the key in it is sealed with that:
neither alone is worth anything.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from cloudsched.dashboard.sign_in import SESSION_SECONDS, SESSIONS
from cloudsched.local.fair_limit import iterate_superfluous

if TYPE_CHECKING:
    from pathlib import Path

    from cloudsched.dashboard.application import Dashboard
    from cloudsched.local.own_pages import Pages


class FolderSessions:
    """The sessions of signed-in users, one file each, shared by the processes of a server."""

    def __init__(self, folder: Path, pages: Pages) -> None:
        self._folder = folder
        self._pages = pages

    def start(self, key: str) -> str:
        """Start a session, and return the token for the browser.

        Raises CloudschedError if the API refuses the key.
        """
        caller = _hash(json.dumps(self._pages.identify(key)))[:16]
        token = f"{secrets.token_urlsafe(32)}.{caller}"
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._forget_the_oldest()
        file = self._find_file(token)
        new = file.with_suffix(".new")
        new.touch(mode=0o600)
        new.write_bytes(_seal(key.encode("ascii"), token))
        now = time.time()
        os.utime(new, (now, now))  # our clock's: that of a file system in the network may be another
        new.replace(file)  # whole, or not there
        return token

    def find(self, token: str) -> Dashboard | None:
        """Return the page of a session, None if there is none, or it has ended."""
        file = self._find_file(token)
        try:
            if time.time() - file.stat().st_mtime > SESSION_SECONDS:
                file.unlink(missing_ok=True)
                return None
            key = _seal(file.read_bytes(), token).decode("ascii")
        except (OSError, UnicodeError):
            return None
        return self._pages.get(key)

    def end(self, token: str) -> None:
        """End a session, in all processes."""
        with suppress(OSError):
            self._find_file(token).unlink()

    def _find_file(self, token: str) -> Path:
        """Return the file of a session. Those of one caller begin alike."""
        return self._folder / f"{_hash(token[-16:])[:16]}{_hash(token)}"

    def _forget_the_oldest(self) -> None:
        """Delete the expired sessions, and the oldest ones beyond the limit."""
        found = []
        for file in self._folder.iterdir():
            with suppress(OSError):  # another process has deleted it
                found.append((file.stat().st_mtime, file))
        found.sort()
        ended = [file for begun, file in found if time.time() - begun > SESSION_SECONDS]
        left = [(file.name[:16], file) for _, file in found[len(ended) :]]
        for file in (*ended, *iterate_superfluous(left, SESSIONS - 1)):
            file.unlink(missing_ok=True)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _seal(text: bytes, token: str) -> bytes:
    """Encrypt or decrypt a key with the browser's token. Each token is random, and used for one key."""
    pad = hashlib.shake_256(b"cloudsched page\0" + token.encode("utf-8", "surrogatepass")).digest(len(text))
    return bytes(one ^ other for one, other in zip(text, pad, strict=True))
