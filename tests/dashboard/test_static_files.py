"""What browsers keep, and how answers are sent: compressed, at addresses that never change their content."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import pytest
from tests.dashboard.conftest import get
from werkzeug.wrappers import Request, Response

from cloudsched.dashboard import static_files
from cloudsched.dashboard.static_files import compress, find_folder

ZIP = {"Accept-Encoding": "gzip"}


def test_what_a_page_loads_is_kept_for_ever(ui: str) -> None:
    """Each file of a page is immutable, and compressed unless it is small."""
    page = get(f"{ui}/tasks")
    found = re.findall(r'(?:href|src)="([^"]*static/[^"]+)"', page.text)
    assert found
    for each in found:
        file = get(urljoin(page.url, each))
        assert file.status_code == 200
        assert file.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert file.headers.get("Content-Encoding") == "gzip" or len(file.content) < 1000
        assert "default-src 'none'" in file.headers["Content-Security-Policy"]


def test_an_address_of_another_release_has_this_ones_files_and_keeps_nothing(ui: str) -> None:
    """A page of the release before may still ask. What is no file is not found, wherever it points."""
    version = find_folder().split("/")[1]
    for path in ("page.css", "0123456789ab/page.css"):
        answer = get(f"{ui}/static/{path}")
        assert answer.text == get(f"{ui}/{find_folder()}page.css").text
        assert answer.headers["Cache-Control"] == "no-store"
    for path in ("", f"{version}/", f"{version}/none", "..%2Fapi.py", f"a/{version}/page.css"):
        assert get(f"{ui}/static/{path}").status_code == 404


def test_another_content_has_another_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that no browser shows a page with an older release's script."""
    monkeypatch.setattr(static_files, "_FOLDER", tmp_path)
    found = set()
    for content in ("a", "b"):
        (tmp_path / "page.css").write_text(content)
        found.add(find_folder.__wrapped__())
    assert len(found) == 2


@pytest.mark.parametrize(
    ("headers", "encoding"),
    [
        (ZIP, "gzip"),
        ({}, None),
        ({"Accept-Encoding": "gzip;q=0, br"}, None),
        ({**ZIP, "Sec-Fetch-Site": "same-origin"}, "gzip"),
        ({**ZIP, "Sec-Fetch-Site": "none"}, "gzip"),
        ({**ZIP, "Sec-Fetch-Site": "cross-site"}, None),
        ({**ZIP, "Sec-Fetch-Site": "same-site"}, None),
    ],
)
def test_who_asks_decides_whether_an_answer_is_compressed(headers: dict[str, str], encoding: str | None) -> None:
    """A browser that takes it, and no other site, which could find out by lengths what a page contains (BREACH)."""
    request = Request.from_values(headers=headers)
    content = "row,of,a,list\n" * 1000

    def parts() -> Iterator[bytes]:
        for line in content.splitlines(keepends=True):
            yield line.encode()

    for response in (Response(content, mimetype="text/csv"), Response(parts(), mimetype="text/csv")):
        sent = compress(request, response)
        assert sent.headers["Vary"] == "Accept-Encoding"
        assert sent.headers.get("Content-Encoding") == encoding
        text = sent.get_data()
        assert (gzip.decompress(text) if encoding else text).decode() == content
        assert sent.headers.get("Content-Length") in {None, str(len(text))}


def test_what_is_small_or_no_text_is_sent_as_it_is(ui: str) -> None:
    """Pages and lists are compressed, an answer of some letters is not."""
    assert get(f"{ui}/").headers["Content-Encoding"] == "gzip"
    small = get(f"{ui}/changes", at="/tasks")
    assert "Content-Encoding" not in small.headers
    assert json.loads(small.text)["cursor"]
    assert (
        compress(Request.from_values(headers=ZIP), Response(b"x" * 9999, mimetype="image/png")).content_length == 9999
    )
