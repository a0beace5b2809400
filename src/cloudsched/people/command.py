"""``cloudsched people``: shows people and changes some of their contacts and preferences, through the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cloudsched.cli.options import ApiGroup, api_options, json_option, parse_fields, pass_client
from cloudsched.local.untrusted_text import to_json_line, to_printable

if TYPE_CHECKING:
    from cloudsched.client.client import Client
    from cloudsched.client.views import PersonView


@click.group(cls=ApiGroup)
@api_options
def people() -> None:
    """Show people, and change how they are reached."""


_owner_argument = click.argument("owner")


@people.command()
@_owner_argument
@json_option
@pass_client
def get(client: Client, owner: str, *, as_json: bool) -> None:
    """Show a person's contacts and preferences."""
    _print_person(client.person(owner), as_json=as_json)


@people.command()
@_owner_argument
@click.option("--timezone", "--tz", metavar="ZONE", help="The zone of the schedules that follow the person.")
@click.option("--set", "more", multiple=True, metavar="FIELD=JSON", help="Any other field. null removes one.")
@json_option
@pass_client
def update(client: Client, owner: str, timezone: str | None, more: tuple[str, ...], *, as_json: bool) -> None:
    """Change some of a person's contacts and preferences. All others stay."""
    changes = parse_fields(more)
    if timezone is not None:
        changes = {"timezone": timezone, **changes}
    if not changes:
        raise click.UsageError("Name at least one field to change.")
    _print_person(client.update_person(owner, **changes), as_json=as_json)


def _print_person(person: PersonView, *, as_json: bool) -> None:
    content = person.model_dump(mode="json", by_alias=True, exclude_none=True)
    if as_json:
        click.echo(to_json_line(content))
        return
    for name, value in content.items():
        if value in ({}, [], ""):
            continue
        text = value if isinstance(value, str) else to_json_line(value)
        click.echo(f"{name:<14} {to_printable(text)}")
