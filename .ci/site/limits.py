"""The figures of docs/reference/tasks.md: each row names its constant in a comment, which readers do not see.

The site has them from the code as it is. ``python .ci/site/limits.py`` writes them into the page, too.
"""

from __future__ import annotations

import re
from datetime import timedelta
from importlib import import_module
from pathlib import Path

from marks import write

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "tasks.md"
ROW = re.compile(r"^(\| [^|]+ \| )[\d,]+((?: (\w+))?[^|]* <!-- ([\w.]+)\.([A-Z_]+) --> \|)$", re.MULTILINE)
_UNITS = {
    "KiB": 1024,
    "MiB": 1024 * 1024,
    "seconds": timedelta(seconds=1),
    "hour": timedelta(hours=1),
    "days": timedelta(days=1),
}


def put(text: str) -> str:
    """Return the page with each limit as the code has it, in the unit of its row; words such as "levels" count ones."""
    return ROW.sub(_put_limit, text)


def _put_limit(row: re.Match[str]) -> str:
    limit = getattr(import_module(f"cloudsched.{row[4]}"), row[5])
    count, rest = divmod(limit, _UNITS.get(row[3], 1))
    if rest:
        raise SystemExit(f"{row[4]}.{row[5]} is {limit}, which is no whole number of {row[3]}")
    return f"{row[1]}{count:,}{row[2]}"


if __name__ == "__main__":
    write(PAGE, put)
