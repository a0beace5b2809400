"""``cloudsched keys``: makes an API key, of which only a hash is stored."""

from __future__ import annotations

import click

from cloudsched.cli.api_group import json_option
from cloudsched.cli.choices import ROLE
from cloudsched.local.untrusted_text import to_json_line


@click.group()
def keys() -> None:
    """Make an API key for a server."""


@keys.command()
@click.argument("name")
@click.option(
    "--role",
    type=ROLE,
    required=True,
    help="What it may do.",
)
@click.option("--owner", help="The owner whose tasks a user or reader sees, or to whose tasks a worker is limited.")
@click.option("--queue", "queues", multiple=True, help="A queue that a worker may work on; repeatable. [default: all]")
@json_option
def new(name: str, role: str, owner: str | None, queues: tuple[str, ...], *, as_json: bool) -> None:
    """Make a key.

    The key is printed once, on standard error: give it to its server. The entry to store is printed on standard output:
    add it to the list in CLOUDSCHED_API_KEYS. With --json, both are printed on standard output, as `key` and `entry`.
    """
    from cloudsched.web.auth.api_keys import create_key  # noqa: PLC0415 - not needed for --help
    from cloudsched.web.auth.roles import Role  # noqa: PLC0415 - likewise

    key, entry = create_key(name, Role(role), owner, queues)
    if as_json:
        click.echo(to_json_line({"key": key, "entry": str(entry)}))
        return
    click.echo(f"The key, which is shown only once: {key}", err=True)
    click.echo(str(entry))
