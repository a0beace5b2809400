"""The tables of ``docs/run/capacity.md``, as they stand in the page between their marks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

PAGE: Final = Path(__file__).parents[1] / "docs" / "run" / "capacity.md"


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table: its name in the page, and its cells as Markdown."""

    name: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    texts: int = 0
    """How many of the first columns are words, not figures."""

    def to_markdown(self) -> str:
        """Return the table between its marks."""
        columns = len(self.headings)
        ruler = f"|{'---|' * self.texts}{'---:|' * (columns - self.texts)}"
        heading, *lines = (f"| {' | '.join(cells)} |" for cells in (self.headings, *self.rows))
        return "\n".join([f"<!-- {self.name} -->", heading, ruler, *lines, f"<!-- /{self.name} -->"])


def put(text: str, sheets: Iterable[Sheet]) -> str:
    """Return a page with each table in its place. Raises ValueError if a place is missing."""
    for sheet in sheets:
        place = re.compile(rf"^<!-- {sheet.name} -->$.*?^<!-- /{sheet.name} -->$", re.DOTALL | re.MULTILINE)
        text, count = place.subn(sheet.to_markdown().replace("\\", r"\\"), text)
        if count != 1:
            raise ValueError(f"the page has {count} places for {sheet.name}, not one")
    return text


def write(sheets: Iterable[Sheet]) -> None:
    """Put the tables into the page."""
    PAGE.write_text(put(PAGE.read_text("utf-8"), sheets), "utf-8")
