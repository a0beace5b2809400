"""What every store of large results promises: files, memory, and a bucket over its real protocol."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
import requests
from tests.cases import try_each

from cloudsched.adapters.blobs import BucketBlobs, FileBlobs
from cloudsched.engine.ports.blobs import Blobs
from cloudsched.errors import BlobsUnavailable, InvalidInput, NotFound


class Bucket(BaseHTTPRequestHandler):
    """As much of Cloud Storage's JSON API as is used."""

    objects: dict[str, bytes]
    failures: list[int]
    """The statuses of the next responses, of requests that take effect nonetheless."""

    def do_POST(self) -> None:
        where = urlsplit(self.path)
        asked = parse_qs(where.query)
        assert where.path == "/upload/storage/v1/b/results/o"
        assert asked["uploadType"] == ["media"]
        self.objects[asked["name"][0]] = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(200, b"{}")

    def do_GET(self) -> None:
        where = urlsplit(self.path)
        name = unquote(where.path.removeprefix("/storage/v1/b/results/o/"))
        assert "/" not in where.path.removeprefix("/storage/v1/b/results/o/")
        assert parse_qs(where.query) == {"alt": ["media"]}
        content = self.objects.get(name)
        self._answer(404, b"no such object") if content is None else self._answer(200, content)

    def _answer(self, status: int, content: bytes) -> None:
        status = self.failures.pop(0) if self.failures else status
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@contextmanager
def bucket(failures: list[int] | None = None, timeout: float = 30) -> Iterator[BucketBlobs]:
    handler = type("Own", (Bucket,), {"objects": {}, "failures": failures if failures is not None else []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        with requests.Session() as session:
            address = f"http://127.0.0.1:{server.server_port}"
            yield BucketBlobs("results", session=session, address=address, timeout=timeout)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(params=["memory", "files", "bucket"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Blobs]:
    if request.param == "bucket":
        with bucket() as opened:
            yield opened
    else:
        yield FileBlobs(None if request.param == "memory" else tmp_path / "results")


@try_each("content", [b"", b"{}", bytes(range(256)) * 1000])
def test_stored_content_is_read_back_unchanged(blobs: Blobs, content: bytes) -> None:
    blobs.put("task-1/20270101T090000Z/3-1", content)
    blobs.put("task-1/20270101T090000Z/4-1", b"another")
    assert blobs.get("task-1/20270101T090000Z/3-1") == content


def test_a_key_can_be_overwritten(blobs: Blobs) -> None:
    """A step that is repeated after a crash stores its result again."""
    for content in (b"one", b"two"):
        blobs.put("a/b", content)
        assert blobs.get("a/b") == content


def test_a_missing_blob_is_not_found(blobs: Blobs) -> None:
    with pytest.raises(NotFound):
        blobs.get("a/b")


def test_deleting_a_prefix_leaves_other_keys(blobs: Blobs) -> None:
    """Only keys below the prefix are deleted; deleting it twice is harmless. A bucket does this by itself."""
    keys = ["a/b/1", "a/b/2", "a/bc/1", "ab/b/1"]
    for key in keys:
        blobs.put(key, b"it")
    kept: dict[str, list[str]] = {"a/b": keys[2:], "a/b/1": keys[2:], "none": keys[2:], "a": keys[3:]}
    for key, left in kept.items():
        blobs.delete(key)
        blobs.delete(key)
        assert find_existing(blobs, keys) == (keys if isinstance(blobs, BucketBlobs) else left)


def find_existing(blobs: Blobs, keys: list[str]) -> list[str]:
    left = []
    for key in keys:
        with suppress(NotFound):
            blobs.get(key)
            left.append(key)
    return left


@try_each("key", [".", "./.", "a/.", "./a", "", "/a", "a/", "../a", "a/../b", "a//b", "a b", "a\nb", "ü"])
def test_keys_cannot_escape_the_folder(blobs: Blobs, key: str) -> None:
    for use in (lambda: blobs.put(key, b""), lambda: blobs.get(key), lambda: blobs.delete(key)):
        with pytest.raises(InvalidInput):
            use()


def test_a_bucket_that_does_not_respond_is_unavailable() -> None:
    with socket.socket() as deaf, requests.Session() as session:  # it has the port, so that nobody else can
        deaf.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        blobs = BucketBlobs("results", session=session, address=address, timeout=0.3)
        for use in (lambda: blobs.put("a", b""), lambda: blobs.get("a")):
            with pytest.raises(BlobsUnavailable):
                use()


@pytest.mark.usefixtures("skipped_pauses")
@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_an_overloaded_bucket_is_asked_again(status: int) -> None:
    """A result is stored and read although requests fail that took effect; the name makes repeating them safe."""
    failures = [status, status]
    with bucket(failures) as blobs:
        blobs.put("a", b"content")
        assert not failures
        failures.append(status)
        assert blobs.get("a") == b"content"


@pytest.mark.usefixtures("skipped_pauses")
@pytest.mark.parametrize(("status", "fewest", "most"), [(503, 5, 11), (403, 1, 1)])
def test_a_bucket_is_not_asked_for_ever(status: int, fewest: int, most: int) -> None:
    """Lasting overload ends with the deadline, after few tries since the pauses double; a refusal is raised at once."""
    failures = [status] * 100
    with bucket(failures, timeout=10) as blobs, pytest.raises(BlobsUnavailable, match=str(status)):
        blobs.put("a", b"content")
    assert fewest <= 100 - len(failures) <= most


def test_a_folder_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file")
    with pytest.raises(BlobsUnavailable):
        FileBlobs(tmp_path / "results").put("a", b"")
    with pytest.raises(BlobsUnavailable):
        FileBlobs(tmp_path / "results").delete("a")
