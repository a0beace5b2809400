"""The parts of a page that follow from the code: what stands between two marks is written by a script.

A part begins with ``<!-- NAME: WORDS -->`` and ends with ``<!-- end -->``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_PART = re.compile(r"^(<!-- ([\w-]+): (.+?) -->\n).*?^(<!-- end -->)$", re.MULTILINE | re.DOTALL)


def put_parts(text: str, writers: dict[str, Callable[[str], str]]) -> str:
    """Return a page with each part as its writer, who is given the words of its mark, writes it now.

    A part of another script stays.
    """

    def write(part: re.Match[str]) -> str:
        writer = writers.get(part[2])
        return part[0] if writer is None else f"{part[1]}\n{writer(part[3]).strip()}\n\n{part[4]}"

    return _PART.sub(write, text)


def list_parts(text: str, name: str) -> list[str]:
    """Return the words of a page's marks of one name."""
    return [part[3] for part in _PART.finditer(text) if part[2] == name]


def write(page: Path, put: Callable[[str], str], find_missing: Callable[[str], list[str]] = lambda _: []) -> None:
    """Write the parts of a page anew; then end with an error if it lacks what it should have."""
    text = put(page.read_text("utf-8"))
    page.write_text(text, "utf-8")
    if missing := find_missing(text):
        raise SystemExit(f"{page.name} lacks: {' '.join(missing)}")
