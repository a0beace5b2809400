"""What docs/run/costs.md says a task costs is what is sent to Firestore, counted on Google's emulator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks import costs as counted

ROOT = Path(__file__).parents[3]


def test_the_page_has_what_is_counted_on_the_emulator(firestore_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row of the page is counted, and nobody reads an ended one-time task to remove it."""
    monkeypatch.syspath_prepend(str(ROOT / ".ci" / "site"))
    import costs  # type: ignore[import-not-found]  # noqa: PLC0415 - a module of the site's own folder

    found = counted.measure(firestore_address)
    rows: dict[str, Any] = costs.COUNTED
    for name, expected in rows.items():
        each = found[name]
        sent = (each.reads, each.writes, each.deletes + each.expired, each.dispatches)
        assert sent == (expected.reads, expected.writes, expected.deletes, expected.dispatches), name
    once = found["remove a one-time task"]
    assert (once.reads, once.commits) == (0, 0), "nothing but Firestore's own TTL removes it"
