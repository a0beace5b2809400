"""What the pages say that can be typed and asked for is there, and all that can be asked for is said."""

from __future__ import annotations

import re
from pathlib import Path

import click
from tests.cases import try_each

from cloudsched.cli.main import cloudsched
from cloudsched.web.api.operations import OPERATIONS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@try_each("page", PAGES)
def test_every_command_of_a_page_is_there(page: Path) -> None:
    """Also below a group: `cloudsched tasks tree`, not `cloudsched tree`."""
    text = page.read_text("utf-8")
    typed = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL) + re.findall(r"`(cloudsched [^`]*)`", text))
    for first, second in re.findall(r"(?:^|=\S+ )cloudsched ([a-z]+)(?: ([a-z][a-z-]*))?", typed, re.MULTILINE):
        context = click.Context(cloudsched)
        command = cloudsched.get_command(context, first)
        assert command is not None, f"{page.name}: cloudsched {first}"
        if isinstance(command, click.Group) and second:
            assert command.get_command(context, second) is not None, f"{page.name}: cloudsched {first} {second}"


def test_every_group_of_commands_is_said_whole() -> None:
    """Each command that looks at tasks or changes them is on some page, by its name behind `cloudsched tasks`."""
    pages = "\n".join(page.read_text("utf-8") for page in PAGES)
    group = cloudsched.get_command(click.Context(cloudsched), "tasks")
    assert isinstance(group, click.Group)
    listed = {name for names in re.findall(r"cloudsched tasks ([a-z|]+)", pages) for name in names.split("|")}
    assert set(group.commands) <= listed


def test_every_route_is_in_the_table() -> None:
    """The table of docs/reference/api.md names each path of the API, and the verbs of those that end in one."""
    page = (ROOT / "docs" / "reference" / "api.md").read_text("utf-8")
    table = "\n".join(
        line for line in page.splitlines() if line.startswith(("| `POST", "| `GET", "| `PATCH", "| `DELETE"))
    )
    for operation in (each for each in OPERATIONS if each.path.startswith("/v1/")):
        last = operation.path.rpartition("/")[2].partition(":")[2] or operation.path.rpartition("/")[2]
        assert last in table.replace("{id}", "{taskId}"), operation.path
