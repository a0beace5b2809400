"""Storage for results that are too large for a document: local files, or a Cloud Storage bucket."""

from __future__ import annotations

import os
import re
import shutil
import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from cloudsched.adapters.google.backoff import Backoff
from cloudsched.adapters.google.credentials import open_session
from cloudsched.errors import BlobsUnavailable, InvalidInput, NotFound

if TYPE_CHECKING:
    from pathlib import Path

_KEY = re.compile(r"(?!.*\.\.)[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*")
_TIMEOUT_SECONDS = 30
"""The longest time of a request, retries included."""
_RETRYABLE_STATUSES = {408, 429, 500, 502, 503, 504}
"""Overload and outages (cloud.google.com/storage/docs/retry-strategy). Repeating is safe: a result has one
name."""
_STORAGE = "https://storage.googleapis.com"
_SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"


def _validate_key(key: str) -> str:
    if not _KEY.fullmatch(key) or "." in key.split("/"):
        raise InvalidInput(
            "key",
            f"is {key!r}",
            "Letters, digits, dots, hyphens and underscores, between slashes.",
        )
    return key


class FileBlobs:
    """`Blobs` in the files of a folder, or in memory."""

    def __init__(self, folder: Path | None = None) -> None:
        """Set the folder, which is created on the first write. None keeps everything in memory."""
        self._folder = folder
        self._memory: dict[str, bytes] = {}

    def put(self, key: str, content: bytes) -> None:
        """Store a result: write a temporary file, sync it, and rename it into place."""
        if self._folder is None:
            self._memory[_validate_key(key)] = content
            return
        place = self._folder / _validate_key(key)
        beside = place.with_name(f"{place.name}.{os.getpid()}-{threading.get_ident()}")
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            place.parent.mkdir(parents=True, exist_ok=True)
            with beside.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(place)
        except OSError as error:
            raise BlobsUnavailable("The folder for results", str(error)) from error

    def get(self, key: str) -> bytes:
        """Return the result with this key."""
        try:
            if self._folder is None:
                return self._memory[_validate_key(key)]
            return (self._folder / _validate_key(key)).read_bytes()
        except (KeyError, FileNotFoundError):
            raise NotFound("result", key) from None
        except OSError as error:
            raise BlobsUnavailable("The folder for results", str(error)) from error

    def delete(self, key: str) -> None:
        """Remove the result with this key, and all results below it."""
        below = f"{_validate_key(key)}/"
        if self._folder is None:
            for each in [each for each in self._memory if f"{each}/".startswith(below)]:
                self._memory.pop(each, None)
            return
        place = self._folder / key
        try:
            shutil.rmtree(place) if place.is_dir() else place.unlink()
        except FileNotFoundError:
            return
        except OSError as error:
            raise BlobsUnavailable("The folder for results", str(error)) from error


class BucketBlobs:
    """`Blobs` in a Cloud Storage bucket, over its JSON API (cloud.google.com/storage/docs/json_api)."""

    def __init__(
        self,
        bucket: str,
        *,
        session: Any = None,  # noqa: ANN401 - untyped
        address: str = _STORAGE,
        timeout: float = _TIMEOUT_SECONDS,
    ) -> None:
        """Open a session with the environment's credentials.

        Raises Misconfigured if there are none. `timeout` is for a whole request, retries included.
        """
        self._objects = f"{address}/storage/v1/b/{quote(bucket, safe='')}/o"
        self._upload = f"{address}/upload/storage/v1/b/{quote(bucket, safe='')}/o"
        self._timeout = timeout
        if session is not None:
            self._session = session
        else:
            self._session = open_session("Cloud Storage", _SCOPE)

    def put(self, key: str, content: bytes) -> None:
        """Store a result in one upload."""
        parameters = {"uploadType": "media", "name": _validate_key(key)}
        headers = {"Content-Type": "application/json"}
        self._send("POST", self._upload, key, params=parameters, data=content, headers=headers)

    def get(self, key: str) -> bytes:
        """Return the result with this key."""
        address = f"{self._objects}/{quote(_validate_key(key), safe='')}"
        content: bytes = self._send("GET", address, key, params={"alt": "media"}).content
        return content

    def delete(self, key: str) -> None:
        """Do nothing: a bucket's lifecycle rule removes what is old, and costs no request."""
        _validate_key(key)

    def _send(self, method: str, address: str, key: str, **more: Any) -> Any:  # noqa: ANN401 - a requests.Response
        def attempt(seconds_left: float) -> Any:  # noqa: ANN401 - a requests.Response
            answer = self._session.request(method, address, timeout=max(0.001, seconds_left), **more)
            if answer.status_code in _RETRYABLE_STATUSES:
                raise _Overloaded(_describe(answer))
            return answer

        try:
            answer = Backoff(self._timeout).retry(attempt, lambda error: isinstance(error, OSError))
        except OSError as error:  # the base of all errors of requests
            raise BlobsUnavailable("Cloud Storage", str(error)) from error
        if answer.status_code == 404 and method == "GET":  # noqa: PLR2004 - not found
            raise NotFound("result", key)
        if not answer.ok:
            raise BlobsUnavailable("Cloud Storage", _describe(answer))
        return answer


class _Overloaded(OSError):
    """Cloud Storage asked for a retry."""


def _describe(answer: Any) -> str:  # noqa: ANN401 - a requests.Response
    return f"{answer.status_code}: {answer.text[:200]}"


def results_of(data: Path) -> Path:
    """Return the folder of the large results of a store's file."""
    return data.with_name(f"{data.name}-results")


def open_blobs(bucket: str | None, data: Path | None) -> FileBlobs | BucketBlobs:
    """Return the configured bucket, or a folder beside the store's file, or memory for a store in memory."""
    if bucket is not None:
        return BucketBlobs(bucket)
    return FileBlobs(None if data is None else results_of(data))
