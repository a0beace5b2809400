"""The blocks of code in a page, in their order, and what their output is compared with."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BLOCK = re.compile(r"^```([\w-]*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A block of code; `line` is that of its first line in the page."""

    page: str
    language: str
    text: str
    line: int

    def __str__(self) -> str:
        """Say where it is: what a failing test prints."""
        return f"{self.page}:{self.line}"


def read_blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page."""
    text = page.read_text("utf-8")
    for found in _BLOCK.finditer(text):
        yield Block(page.name, found[1], found[2], text.count("\n", 0, found.start()) + 2)


def matches(shown: str, printed: str) -> bool:
    """Return whether a page shows what was printed; ``…`` is any text, and spaces at the end of a line do not count."""
    lines = [
        ".*".join(re.escape(part) for part in line.rstrip().split("…")) + " *\n" for line in shown.strip().split("\n")
    ]
    pattern = "".join("(?:.*\n)*?" if line == ".* *\n" else line for line in lines)
    return re.fullmatch(pattern, printed.strip() + "\n") is not None
