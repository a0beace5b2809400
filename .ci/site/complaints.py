"""The tables of docs/guides/agent-schedules.md, from the promises and complaints that tests/agents plays.

``python .ci/site/complaints.py`` writes them into the page.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from marks import put_parts, write

if TYPE_CHECKING:
    from tests.agents.complaints.world import Complaint

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guides" / "agent-schedules.md"


def put(text: str) -> str:
    """Return the page with the promises and complaints as the tests play them."""
    sys.path.append(str(ROOT))
    from tests.agents.complaints.table import list_chapters  # noqa: PLC0415 - it is found from here on
    from tests.agents.frameworks.test_promises import write_table  # noqa: PLC0415 - the same

    chapters = "\n\n".join(_write_chapter(*each) for each in list_chapters().items())
    return put_parts(text, {"complaints": lambda _: chapters, "promises": lambda _: write_table()})


def _write_chapter(title: str, complaints: list[Complaint]) -> str:
    rows = [f"| {each.words} | {_link(each.thread)} | {each.here} |" for each in complaints]
    return "\n".join([f"### {title}", "", "| elsewhere | thread | here |", "|---|---|---|", *rows])


def _link(thread: str) -> str:
    """Return a link to a thread. The address of an issue leads to a pull request of that number, too."""
    repository, _, number = thread.partition("#")
    return f"[{thread}](https://github.com/{repository}/issues/{number})"


if __name__ == "__main__":
    write(PAGE, put)
