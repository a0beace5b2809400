"""Debian's Chromium, for the tests that look at pages: each one started has a folder for its temporary files."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


def find_chromium() -> str:
    """Return Chromium's executable. Without one the test is skipped; in CI, which always has it, it fails."""
    names = ("chromium", "chromium-browser", "google-chrome")
    if (path := next(filter(None, map(shutil.which, names)), None)) is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(
            "There is no Chromium, which tests of pages need. On Debian: apt install chromium."
        )
    return path


@contextmanager
def make_browser_environment() -> Iterator[dict[str, str]]:
    """Give an environment in which a browser's temporary files have a folder of their own, removed at the end.

    Chromium removes most of them itself, but not all: what is left depends on the moment at which it is told to end.
    """
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as folder:
        yield {**os.environ, "TMPDIR": folder}
