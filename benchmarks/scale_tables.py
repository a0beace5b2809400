"""The tables of ``docs/run/capacity.md``, as they stand in the page between their marks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

PAGE: Final = Path(__file__).parents[1] / "docs" / "run" / "capacity.md"
_MINUTES_FROM: Final = 600
"""From so many seconds on a duration is shown in minutes."""


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

    def to_table(self) -> Table:
        """Return the table that people read in a terminal."""
        table = Table(title=self.name.replace("-", " "))
        for heading in self.headings:
            table.add_column(heading)
        for row in self.rows:
            table.add_row(*(re.sub(r"[*`]", "", cell) for cell in row))
        return table


def put(text: str, sheets: Iterable[Sheet]) -> str:
    """Return a page with each table in its place. Raises ValueError if a place is missing."""
    for sheet in sheets:
        place = re.compile(rf"^<!-- {sheet.name} -->$.*?^<!-- /{sheet.name} -->$", re.DOTALL | re.MULTILINE)
        text, count = place.subn(sheet.to_markdown().replace("\\", r"\\"), text)
        if count != 1:
            raise ValueError(f"the page has {count} places for {sheet.name}, not one")
    return text


def make_sizes_sheet(rows: Sequence[Mapping[str, Any]]) -> Sheet:
    """Return what the simulation says of each size, first of those that fall behind."""
    headings = (
        "tasks", "runs a second", "shards", "queues", "served a second", "late, p50 and p99", "busiest range",
        "after a purge", "after an outage", "USD a month", "nearest limit",
    )  # fmt: skip
    ordered = sorted(rows, key=lambda each: not each["isSaturated"])
    return Sheet("sizes", headings, tuple(_list_size_cells(row) for row in ordered))


def _list_size_cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        f"{row['tasks']:,}",
        f"{row['occurrencesPerSecond']:,}",
        f"{row['shards']:,}",
        f"{row['queues']:,}",
        f"{row['servedPerSecond']:,.0f}",
        _show_lateness(row),
        f"{row['hottestRangeWritesPerSecond']:,.0f}/s",
        _show_duration(row["recoveryAfterPurgeSeconds"]),
        _show_duration(row["recoveryAfterOutageSeconds"]),
        "—" if row["isSaturated"] else f"{row['dollarsPerMonth']:,.0f}",
        _show_limit(row),
    )


def make_loads_sheet(rows: Sequence[Mapping[str, Any]]) -> Sheet:
    """Return what becomes of a rate with other owners, ids and schedules, first of what falls behind."""
    headings = (
        "tasks of", "that", "runs a second", "`SHARDS`", "served a second", "late, p50 and p99", "writes of a run",
        "nearest limit",
    )  # fmt: skip
    ordered = sorted(rows, key=lambda each: not each["isSaturated"])
    return Sheet("loads", headings, tuple(_list_load_cells(row) for row in ordered), 2)


def _list_load_cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    owners = "a server" if row["owners"] == 1 else f"{row['owners']:,} owners"
    return (
        owners,
        show_load(is_one_time=row["isOneTime"], has_rising_ids=row["hasRisingIds"]),
        f"{row['occurrencesPerSecond']:,}",
        f"{row['shards']:,}",
        f"{row['servedPerSecond']:,.0f}",
        _show_lateness(row),
        f"{row['writesPerOccurrence']:.1f}",
        _show_limit(row),
    )


def show_load(*, is_one_time: bool, has_rising_ids: bool) -> str:
    """Return what tasks do."""
    kind = "are created and run once" if is_one_time else "recur"
    return f"{kind}, with rising ids" if has_rising_ids else kind


def _show_lateness(row: Mapping[str, Any]) -> str:
    late = f"{row['latenessMedianSeconds']:.2f} s, {row['latenessP99Seconds']:.2f} s"
    return f"**{late}**, growing" if row["isSaturated"] else late


def _show_limit(row: Mapping[str, Any]) -> str:
    return f"{row['nearestLimit']}, {row['nearestLimitUse']:.0%}"


def _show_duration(seconds: float | None) -> str:
    if seconds is None:
        return "—"
    return f"{seconds:,.0f} s" if seconds < _MINUTES_FROM else f"{seconds / 60:,.0f} min"
