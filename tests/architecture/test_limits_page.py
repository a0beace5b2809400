"""docs/reference/limits.md says what the code enforces."""

from __future__ import annotations

import re
from datetime import timedelta
from importlib import import_module
from pathlib import Path

from tests.cases import try_each

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "limits.md").read_text("utf-8")
ROWS = re.findall(r"^\| [^|]+ \| ([\d,]+)(?: (\w+))?[^|]* \| `([\w.]+)\.([A-Z_]+)` \|$", PAGE, re.MULTILINE)
BYTES = {"KiB": 1024, "MiB": 1024 * 1024}
TIMES = {"seconds": timedelta(seconds=1), "hour": timedelta(hours=1), "days": timedelta(days=1)}


def test_every_row_is_read() -> None:
    """Each row but the one that says that there is no limit names its constant."""
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| what |")]
    assert len(ROWS) == len(rows) - 1


@try_each("number, unit, module, constant", ROWS)
def test_each_limit_is_that_of_the_code(number: str, unit: str, module: str, constant: str) -> None:
    """In its unit; words such as "characters" count one each."""
    count = int(number.replace(",", ""))
    limit = count * TIMES[unit] if unit in TIMES else count * BYTES.get(unit, 1)
    assert getattr(import_module(f"cloudsched.{module}"), constant) == limit
