#!/usr/bin/env python3
"""Print a version's section of CHANGELOG.md, without its heading: the notes of a release.

Usage: .ci/read_changes.py VERSION
"""

import re
import sys
from pathlib import Path

CHANGES = Path(__file__).resolve().parents[1] / "CHANGELOG.md"


def read_section(text: str, version: str) -> str:
    """Return a version's changes, or nothing if it has no section or an empty one."""
    found = re.search(rf"^## {re.escape(version)}(?: [^\n]*)?\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return found[1].strip() if found else ""


if __name__ == "__main__":
    section = read_section(CHANGES.read_text("utf-8"), sys.argv[1])
    if not section:
        sys.exit(f"CHANGELOG.md says nothing about {sys.argv[1]}")
    print(section)
