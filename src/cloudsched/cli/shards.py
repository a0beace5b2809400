"""``cloudsched shards``: over how many ranges of Firestore's indexes tasks are spread, and how to raise that."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import click

from cloudsched.cli.api_group import json_option
from cloudsched.errors import Misconfigured
from cloudsched.local.untrusted_text import to_json_line

if TYPE_CHECKING:
    from cloudsched.adapters.firestore.placement import Walk
    from cloudsched.adapters.firestore.store import FirestoreStore


@click.group()
def shards() -> None:
    """Show and raise the number of shards of a deployment's Firestore database.

    The database is that of the settings in the environment: GOOGLE_CLOUD_PROJECT, CLOUDSCHED_DATABASE, and
    CLOUDSCHED_STORE=firestore.
    """


@shards.command()
@json_option
def show(*, as_json: bool) -> None:
    """Show how many shards every task has its place in, and how far a change of that has come."""
    with closing(_open_store()) as store:
        placement = store.load_placement()
    done = placement.after.partition("/documents/")[2] or None
    if as_json:
        click.echo(to_json_line({"count": placement.count, "growingTo": placement.growing_to or None, "after": done}))
        return
    if placement.count:
        click.echo(f"Every task and offer has its place in one of {placement.count} shards.")
    else:
        click.echo("Not every task has a shard; lists use the indexes without shards.")
    if placement.growing_to:
        click.echo(f"A change to {placement.growing_to} has begun, and has come to: {done or 'nothing yet'}.")


@shards.command()
@click.argument("count", type=click.IntRange(1, 1000))
@json_option
def grow(count: int, *, as_json: bool) -> None:
    """Give every task its place in COUNT shards, while everything else goes on.

    It may be stopped, repeated and run several times at once; it continues where it stopped. Deploy the indexes and the
    functions with the new number first. Lists rely on the shards about a minute after this has ended; until then they
    find everything by the indexes without shards, or in the shards that there were.
    """
    with closing(_open_store()) as store:
        walk = store.grow(count, _report)
    words = f"Every task and offer has its place in one of {count} shards ({walk.moved} of {walk.seen} moved)."
    click.echo(to_json_line({"count": count, "seen": walk.seen, "moved": walk.moved}) if as_json else words)


def _report(walk: Walk) -> None:
    click.echo(f"{walk.seen} seen, {walk.moved} moved", err=True)


def _open_store() -> FirestoreStore:
    from cloudsched.config.settings import Settings  # noqa: PLC0415 - not needed for --help
    from cloudsched.runtime.factories import open_firestore_store  # noqa: PLC0415 - likewise

    settings = Settings.from_environment()
    if settings.require_store() != "firestore":
        raise Misconfigured("Only Firestore has shards; CLOUDSCHED_STORE names another store.")
    return open_firestore_store(settings)
