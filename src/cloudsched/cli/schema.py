"""``cloudsched schema``: prints the schemas of handlers' payloads, for programs in other languages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cloudsched.cli.api_group import ApiCommand, client_options, quiet_option
from cloudsched.local.untrusted_text import to_json_line

if TYPE_CHECKING:
    from cloudsched.client.client import Client


@click.command("schema", cls=ApiCommand)
@click.argument("handlers", nargs=-1, metavar="[HANDLER]...")
@quiet_option
@click.option("--typescript", is_flag=True, help="Print types of TypeScript, and not JSON schemas.")
@client_options
def schema(client: Client, *, handlers: tuple[str, ...], typescript: bool) -> None:
    """Print the schemas of the payloads of all handlers that you may name, or of some.

    As one JSON object by the handlers' names; null for a handler that takes any object. The payload of an event that a
    handler has declared is there as HANDLER.EVENT.
    """
    found: dict[str, dict[str, Any] | None] = {}
    for each in client.handlers():
        found[each.name] = each.payload_schema
        found |= {f"{each.name}.{event}": schema for event, schema in (each.event_schemas or {}).items()}
    unknown = [name for name in handlers if name not in found]
    if unknown:
        raise click.UsageError(f"No handler is called {unknown[0]!r}. There are: {', '.join(sorted(found)) or 'none'}.")
    chosen = {name: found[name] for name in (handlers or found)}
    if typescript:
        from cloudsched.cli.typescript import declare_payloads  # noqa: PLC0415 - not needed for --help

        click.echo(declare_payloads(chosen), nl=False)
        return
    click.echo(to_json_line(chosen))
