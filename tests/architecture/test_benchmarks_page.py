"""Every command of the page on benchmarks is there, and figures stand on that page only."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmarks import machine

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contributors" / "benchmarks.md").read_text("utf-8")


def test_the_page_says_what_the_command_prints_about_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same lines, whatever the machine."""
    monkeypatch.setattr(machine, "list_versions", lambda: {"APScheduler": "3"})
    stated = re.findall(r"^([\w.]+): ", PAGE.partition("## The machine")[2].partition("\n## ")[0], re.MULTILINE)
    assert stated == list(machine.describe_machine())
