"""What browsers keep, and how answers are sent: compressed, at addresses that never change their content."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator
from urllib.parse import urljoin

import pytest
from tests.dashboard.conftest import get
from werkzeug.test import Client as Browser
from werkzeug.wrappers import Request, Response

from cloudsched.dashboard import static_files
from cloudsched.dashboard.compression import compress
from cloudsched.dashboard.static_files import bundle, find_folder, read_files, serve_file

ZIP = {"Accept-Encoding": "gzip"}


@pytest.fixture
def ask() -> Callable[..., Response]:
    """What serves the files alone, below ``static/``."""

    def ask(path: str, **headers: str) -> Response:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        browser = Browser(Request.application(lambda request: serve_file(request.path.lstrip("/"), request)))
        return browser.get(path, headers=given)

    return ask


def test_what_a_page_loads_is_kept_for_ever(ui: str) -> None:
    """Each file of a page is immutable, and there are three: icon, stylesheet, script; four at first."""
    page = get(f"{ui}/tasks")
    found = re.findall(r'(?:href|src)="([^"]*static/[^"]+)"', page.text)
    assert len(found) == 4
    for each in found:
        file = get(urljoin(page.url, each))
        assert file.status_code == 200
        assert file.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert file.headers["Content-Encoding"] == "gzip"
        assert "default-src 'none'" in file.headers["Content-Security-Policy"]


def test_an_address_of_another_release_leads_to_this_ones(ask: Callable[..., Response]) -> None:
    """And keeps nothing. What is no file is not found, wherever it points."""
    version = find_folder().split("/")[1]
    for path in ("/page.css", "/0123456789ab/page.css"):
        moved = ask(path)
        assert moved.status_code == 302
        assert moved.headers["Cache-Control"] == "no-store"
        assert urljoin(f"http://x/static{path}", moved.headers["Location"]) == f"http://x/static/{version}/page.css"
    for path in (
        "/",
        f"/{version}/",
        f"/{version}/none",
        "/../api.py",
        f"/a/{version}/page.css",
    ):
        assert ask(path).status_code == 404


def test_another_content_has_another_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that no browser shows a page with an older release's script."""
    before = find_folder()
    changed = {**read_files(), "page.css": b"changed"}
    monkeypatch.setattr(static_files, "read_files", lambda: changed)
    assert find_folder.__wrapped__() != before


def test_the_script_is_whole() -> None:
    """No module is left to be loaded, and each comes before those that use it."""
    script = read_files()["page.js"].decode()
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)
    for used in re.finditer(r"\} = (\$\w+);", script):
        assert 0 <= script.find(f"const {used[1]} = (") < used.start()
    small = bundle({"a": 'import { b } from "./b.js";\nb();\n', "b": "export function b() {}\n"}, "a")
    assert small == (
        "const $b = (() => {\nfunction b() {}\nreturn { b };\n})();\n"
        "const $a = (() => {\nconst { b } = $b;\nb();\nreturn {  };\n})();\n"
    )


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
