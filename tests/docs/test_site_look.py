"""The look at the site in a browser finds what is wrong with a page, and nothing else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.harness import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PAGES = {
    "good": "<p>x</p>",
    "wide": '<div style="width: 600px">x</div>',
    "broken": "<script>console.error('broken')</script>",
    "elsewhere": "<script>fetch('https://example.com/x').catch(() => {})</script>",
}


def test_the_look_finds_faults(tmp_path: Path) -> None:
    """Pages that are wider than a phone, that write an error, and that ask another server for anything."""
    if not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))):
        (pytest.fail if os.environ.get("CI") else pytest.skip)("There is no Chromium. On Debian: apt install chromium.")
    for name, body in PAGES.items():
        (tmp_path / f"{name}.html").write_text(f"<!doctype html><body style='margin: 0'>{body}")
    command = [sys.executable, str(ROOT / ".ci" / "site" / "browse.py"), str(tmp_path)]
    looked = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)  # noqa: S603 - our own
    assert looked.returncode == 1, looked.stdout + looked.stderr
    assert re.search(r"^wide\.html \(360 px, light\): is 6\d\d px wide$", looked.stdout, re.MULTILINE)
    assert "wide.html (1280 px" not in looked.stdout
    assert looked.stdout.count("broken.html") == 4
    assert looked.stdout.count("asks for https://example.com/x") == 4
    assert "good.html" not in looked.stdout
