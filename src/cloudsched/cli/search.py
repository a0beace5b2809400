"""``cloudsched search``: find what has a text in its name, through the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cloudsched.cli.options import client_options, json_option
from cloudsched.domain.documents.name_words import NameMatch
from cloudsched.local.untrusted_text import to_json_line, to_printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.client.client import Client
    from cloudsched.domain.responses.overview_responses import SearchResults


@click.command("search")
@click.argument("text")
@click.option("--owner", help="Find only what this owner has.")
@click.option("--limit", type=click.IntRange(1, 50), default=10, show_default=True, help="The most of each kind.")
@json_option
@client_options
def search(client: Client, *, text: str, owner: str | None, limit: int, as_json: bool) -> None:
    """Find tasks, people, handlers and labels that have TEXT in their names, or the task whose id it is."""
    found = client.search_names(text, owner, page_size=limit)
    if as_json:
        click.echo(to_json_line(found.to_wire()))
        return
    for line in _list_found(found):
        click.echo(to_printable(line))
    if found.matched_by is NameMatch.BEGINNINGS:
        click.echo(
            "Tasks are found by the beginnings of words, if they were written since the index of names is on.", err=True
        )
    elif not found.is_complete:
        click.echo("Not everything was looked at: type more of the name, or the whole id.", err=True)


def _list_found(found: SearchResults) -> Iterator[str]:
    """Yield a line for each, with its kind first."""
    if found.execution is not None:
        yield f"execution  {found.execution.task_id}/{found.execution.execution_id}  {found.execution.title}"
    tasks = {each.id: each for each in (found.task, *found.tasks) if each is not None}
    for each in tasks.values():
        yield f"task  {each.id}  {each.title}  {each.status.lower()}  {each.handler}  of {each.owner}"
    for kind, names in (("person", found.owners), ("handler", found.handlers), ("label", found.labels)):
        for name in names:
            yield f"{kind}  {name}"
    if not (tasks or found.execution or found.owners or found.handlers or found.labels):
        yield "Nothing has that in its name."
