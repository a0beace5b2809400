"""Every page's Python is run by a test.

Python runs: on the pages of `RUN_ELSEWHERE` by the test that is named there, on all others by ``test_page_code.py``.
``tests/docs`` says who reads the other blocks, and types all commands.
"""

from __future__ import annotations

from pathlib import Path

from tests.architecture import test_page_code
from tests.cases import try_each
from tests.doc_blocks import read_blocks

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCKS = [block for page in PAGES for block in read_blocks(page)]
RUN_ELSEWHERE = {
    **dict.fromkeys(("README.md", "quickstart.md"), "stories/test_tutorial.py"),
    "tasks.md": "architecture/test_durable_doc.py",
    "handlers.md": "architecture/test_async_doc.py",
    "workers.md": "stories/test_workers_guide.py",
    "schedules.md": "language/test_language_doc.py",
    "migrate.md": "recipes/test_moving.py",
    "web-frameworks.md": "recipes/test_web_frameworks.py",
    "agent-schedules.md": "recipes/test_agent_schedules.py",
    "transactions.md": "stories/test_own_transactions.py",
    **{page.name: "stories/test_tutorial.py" for page in (ROOT / "docs" / "tutorial").glob("*.md")},
}
"""Who runs a page's Python."""


@try_each("page", sorted({block.page for block in BLOCKS if block.language == "python"}))
def test_the_python_of_every_page_is_run(page: str) -> None:
    """By a test that names the page, which somebody who adds a page has to write."""
    if page in RUN_ELSEWHERE:
        text = (ROOT / "tests" / RUN_ELSEWHERE[page]).read_text("utf-8")
        assert page in text or "tutorial" in RUN_ELSEWHERE[page]
    else:
        assert page in test_page_code.PAGES, f"{page} has Python that no test runs"
