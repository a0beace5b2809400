"""``cloudsched keys``: make an API key, of which only a hash is kept."""

from __future__ import annotations

import click


@click.group()
def keys() -> None:
    """Make an API key for a server."""


@keys.command()
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["user", "reader", "viewer", "admin", "worker"]),
    required=True,
    help="What it may do.",
)
@click.option("--owner", help="Whose key it is, for user and reader; whose tasks alone it works on, for worker.")
@click.option("--queue", "queues", multiple=True, help="A queue that a worker works on, again for each; else all.")
def new(name: str, role: str, owner: str | None, queues: tuple[str, ...]) -> None:
    """Make a key.

    The key is printed once, on standard error, to be given to its server. What is to be kept is printed on standard
    output: add it to the list in CLOUDSCHED_API_KEYS.
    """
    from cloudsched.web.auth.api_keys import create_key  # noqa: PLC0415 - --help needs none of it
    from cloudsched.web.auth.roles import Role  # noqa: PLC0415 - the same

    key, kept = create_key(name, Role(role), owner, queues)
    click.echo(f"The key, which is shown only now: {key}", err=True)
    click.echo(str(kept))
