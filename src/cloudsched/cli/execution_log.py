"""Print what an execution has logged, and what it logs while it runs."""

from __future__ import annotations

import time
from datetime import UTC
from typing import TYPE_CHECKING

import click

from cloudsched.errors import Forbidden, NotFound
from cloudsched.local.untrusted_text import to_json_line, to_printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cloudsched.client.client import Client
    from cloudsched.domain.documents.log_lines import LogLine

_COLOURS = {"WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}


def print_execution_log(
    client: Client, task_id: str, execution_id: str, *, follow: bool, as_json: bool, poll_seconds: float
) -> None:
    """Print the lines of one execution; with `follow` also those that come, until it has ended."""
    printed = 0
    while True:
        is_over = client.execution(task_id, execution_id).status.is_final  # before the lines, so that none is missed
        found = client.logs(task_id, execution_id)
        total = found.left_out + len(found.lines)
        if not printed and found.left_out and not as_json:
            click.echo(f"({found.left_out} earlier lines are not kept)")
        new = total - max(printed, found.left_out)
        print_lines(found.lines[len(found.lines) - new :], as_json=as_json)
        printed = total
        if is_over or not follow:
            break
        time.sleep(poll_seconds)
    if not printed and not as_json:
        click.echo("It has logged nothing." if not found.is_unreadable else "Its log cannot be read any more.")


def print_log_of(client: Client, task_id: str, execution_id: str) -> None:
    """Print the lines of an execution below it, if there are any and the caller may see them."""
    try:
        print_lines(client.logs(task_id, execution_id).lines, as_json=False, indent="  ")
    except (Forbidden, NotFound):  # an older API has none
        return


def print_lines(lines: Iterable[LogLine], *, as_json: bool, indent: str = "") -> None:
    """Print lines, without control characters."""
    for line in lines:
        if as_json:
            click.echo(to_json_line(line.to_wire()))
            continue
        first, *more = line.text.splitlines() or [""]
        level = "" if line.level == "INFO" else f"{click.style(line.level, fg=_COLOURS.get(line.level))} "
        at = click.style(f"{line.at.astimezone(UTC):%Y-%m-%d %H:%M:%S}", dim=True)
        click.echo(f"{indent}{at}  {level}{to_printable(first)}")
        for each in more:
            click.echo(f"{indent}    {to_printable(each)}")
