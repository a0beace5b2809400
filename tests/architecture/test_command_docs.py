"""What the pages say that can be typed and asked for is there, and all that can be asked for is said."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from cloudsched.web.api.operations import OPERATIONS
from cloudsched.web.api.verb_operations import VERB_OPERATIONS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("script", ["commands", "python_names"])
def test_the_references_of_commands_and_python_are_current(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`python .ci/site/SCRIPT.py` writes them from the code; no public name is missing."""
    monkeypatch.syspath_prepend(str(ROOT / ".ci" / "site"))
    writer = import_module(script)
    page = writer.PAGE.read_text("utf-8")
    assert writer.put(page) == page
    assert script == "commands" or writer.find_missing(page) == []


def test_every_route_is_in_the_table() -> None:
    """The table of docs/reference/http.md names each path of the API, but for verbs: the generated one has them all."""
    page = (ROOT / "docs" / "reference" / "http.md").read_text("utf-8")
    table = "\n".join(
        line for line in page.splitlines() if line.startswith(("| `POST", "| `GET", "| `PATCH", "| `DELETE"))
    )
    for path in {each.path for each in OPERATIONS if each.path.startswith("/v1/") and each not in VERB_OPERATIONS}:
        last = path.rpartition("/")[2].partition(":")[2] or path.rpartition("/")[2]
        assert last in table.replace("{id}", "{taskId}"), path
