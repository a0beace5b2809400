"""The blocks of code in a page, in their order, and what their output is compared with."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(
    r"(?:^[ ]*<!-- (?P<mark>[^\n]*?) -->\n+)?"
    r"^(?P<indent>[ ]*)(?P<fence>```+|~~~+)(?P<language>[\w-]*)[^\n]*\n(?P<text>.*?)^(?P=indent)(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
FENCE = re.compile(r"^[ ]*(?:```|~~~)", re.MULTILINE)
"""A line that begins or ends a block."""


@dataclass(frozen=True)
class Block:
    """A block of code; `line` is that of its first line in the page, `mark` the comment above it."""

    page: str
    language: str
    text: str
    line: int
    mark: str = ""
    section: int = 0
    """How many headings stand above it."""

    def __str__(self) -> str:
        """Say where it is: what a failing test prints."""
        return f"{self.page}:{self.line}"


def read_section(page: Path, heading: str) -> str:
    """Return a page's text from a heading, which may have any level, up to the next one of its level or above."""
    text = page.read_text("utf-8")
    plain = re.sub(r"^```.*?^```", lambda block: re.sub("#", "-", block[0]), text, flags=re.MULTILINE | re.DOTALL)
    found = re.search(rf"^(#+) {re.escape(heading)}$", plain, re.MULTILINE)
    if found is None:
        raise LookupError(f"{page.name} has no heading {heading!r}")
    end = re.compile(rf"^#{{1,{len(found[1])}}} ", re.MULTILINE).search(plain, found.end())
    return text[found.start() : end.start() if end else None]


def read_blocks(page: Path) -> Iterator[Block]:
    text = page.read_text("utf-8")
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("text")) + 1
        section = len(re.findall(r"^## ", text[: found.start()], re.MULTILINE))
        yield Block(page.name, found["language"], textwrap.dedent(found["text"]), line, found["mark"] or "", section)


def matches(shown: str, printed: str) -> bool:
    """Return whether a page shows what was printed.

    ``…`` is any text, alone in a line any lines; spaces at the end of a line do not count.
    """
    lines = [
        "(?:.*\n)*?" if line.strip() == "…" else ".*".join(map(re.escape, line.rstrip().split("…"))) + " *\n"
        for line in shown.strip().split("\n")
    ]
    pattern = "".join(lines)
    return re.fullmatch(pattern, printed.strip() + "\n") is not None


def without_figures(text: str) -> str:
    """Return an output without its numbers, dates and the width of its columns, for what differs with every run."""
    return re.sub(r"[ ─]+", " ", re.sub(r"\d[\d,.:]*", "0", re.sub(r"\d{4}-\d\d-\d\d", "0", text)))
