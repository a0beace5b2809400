"""docs/reference/limits.md gets its figures from the code when the site is built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cloudsched.domain.documents.json_limits import MAX_PAYLOAD

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "limits.md").read_text("utf-8")


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401 - a module of the site's own folder
    """Return the generator."""
    monkeypatch.syspath_prepend(str(ROOT / ".ci" / "site"))
    import limits  # type: ignore[import-not-found]  # noqa: PLC0415 - the same

    return limits


def test_every_row_is_read(limits: Any) -> None:  # noqa: ANN401 - the same
    """Each row but the one that says that there is no limit names a constant that is there."""
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| what |")]
    assert len(limits.ROW.findall(limits.put(PAGE))) == len(rows) - 1


def test_a_limit_is_that_of_the_code(limits: Any) -> None:  # noqa: ANN401 - the same
    """In its row's unit; a unit that would need a fraction is refused."""
    row = "| `payload` | 7 {} | `domain.documents.json_limits.MAX_PAYLOAD` |\n"
    assert limits.put(row.format("KiB")) == row.replace("7", f"{MAX_PAYLOAD // 1024:,}").format("KiB")
    assert limits.put(row.format("bytes")) == row.replace("7", f"{MAX_PAYLOAD:,}").format("bytes")
    with pytest.raises(SystemExit, match="no whole number of MiB"):
        limits.put(row.format("MiB"))
    lease = "| a lease | 9 hour | `domain.documents.task.MAX_DURATION` |\n"
    assert limits.put(lease) == lease.replace("9", "1")
