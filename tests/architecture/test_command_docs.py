"""What the pages say that can be typed and asked for is there, and all that can be asked for is said."""

from __future__ import annotations

import re
from pathlib import Path

import click

from cloudsched.cli.main import cloudsched
from cloudsched.domain.documents.verbs import Verb
from cloudsched.web.api.operations import OPERATIONS
from cloudsched.web.api.verb_operations import VERB_OPERATIONS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_every_group_of_commands_is_said_whole() -> None:
    """Each command below `cloudsched tasks` is on some page, but for verbs: the reference of commands has them all."""
    pages = "\n".join(page.read_text("utf-8") for page in PAGES)
    group = cloudsched.get_command(click.Context(cloudsched), "tasks")
    assert isinstance(group, click.Group)
    listed = {name for names in re.findall(r"cloudsched tasks ([a-z|]+)", pages) for name in names.split("|")}
    assert set(group.commands) <= listed | {each.word for each in Verb}


def test_every_route_is_in_the_table() -> None:
    """The table of docs/reference/http.md names each path of the API, but for verbs: the generated one has them all."""
    page = (ROOT / "docs" / "reference" / "http.md").read_text("utf-8")
    table = "\n".join(
        line for line in page.splitlines() if line.startswith(("| `POST", "| `GET", "| `PATCH", "| `DELETE"))
    )
    for path in {each.path for each in OPERATIONS if each.path.startswith("/v1/") and each not in VERB_OPERATIONS}:
        last = path.rpartition("/")[2].partition(":")[2] or path.rpartition("/")[2]
        assert last in table.replace("{id}", "{taskId}"), path
