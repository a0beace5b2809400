"""``cloudsched scripts``: shows and changes through the API the scripts that tasks run by name."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

import click

from cloudsched.cli.options import (
    RECORD_SYNONYMS,
    ApiGroup,
    api_options,
    confirm,
    json_option,
    pass_client,
    yes_option,
)
from cloudsched.local.untrusted_text import to_json_line, to_printable, to_printable_lines

if TYPE_CHECKING:
    from cloudsched.client.client import Client
    from cloudsched.client.views import ScriptView


@click.group(cls=ApiGroup, synonyms=RECORD_SYNONYMS)
@api_options
def scripts() -> None:
    """Show and change stored scripts, which tasks run by their names."""


_name_argument = click.argument("name", metavar="NAME")
_owner_option = click.option("--owner", help="Whose script it is. Default: your own; for servers, system.")


@scripts.command("set")
@_name_argument
@click.argument("file", type=click.File(encoding="utf-8"))
@_owner_option
@click.option("--description", default="", help="What it does, for people.")
@click.option(
    "--tool", "tools", multiple=True, metavar="HANDLER", help="A handler that it may call. Default: all tools."
)
@json_option
@pass_client
def set_(
    client: Client,
    /,
    name: str,
    file: IO[str],
    *,
    owner: str | None,
    description: str,
    tools: tuple[str, ...],
    as_json: bool,
) -> None:
    """Create or replace the script NAME with the JavaScript in FILE. What runs already goes on as it began."""
    try:
        source = file.read()
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{file.name} is not UTF-8: {error.reason} at byte {error.start}.") from None
    script = client.put_script(name, source, owner=owner, description=description, tools=tools or None)
    _print_script(script, as_json=as_json)


@scripts.command()
@_name_argument
@_owner_option
@json_option
@pass_client
def show(client: Client, name: str, owner: str | None, *, as_json: bool) -> None:
    """Show a script with its source."""
    script = client.script(name, owner)
    _print_script(script, as_json=as_json)
    if not as_json:
        click.echo(to_printable_lines((script.source or "").removesuffix("\n")))


@scripts.command("list")
@_owner_option
@json_option
@pass_client
def list_(client: Client, owner: str | None, *, as_json: bool) -> None:
    """List an owner's scripts."""
    for script in client.scripts(owner):
        _print_script(script, as_json=as_json)


@scripts.command()
@_name_argument
@_owner_option
@yes_option
@json_option
@pass_client
def delete(client: Client, name: str, owner: str | None, *, is_sure: bool, as_json: bool) -> None:
    """Delete a script; what runs already goes on, what begins later fails."""
    confirm(f"Delete the script {to_printable(name)}?", is_sure=is_sure)
    client.delete_script(name, owner)
    click.echo(to_json_line({"deleted": name}) if as_json else f"deleted {to_printable(name)}")


def _print_script(script: ScriptView, *, as_json: bool) -> None:
    if as_json:
        click.echo(to_json_line(script.model_dump(mode="json", by_alias=True, exclude_none=True)))
        return
    click.echo(f"{to_printable(script.name)}  version {script.version}  {to_printable(script.description)}".rstrip())
