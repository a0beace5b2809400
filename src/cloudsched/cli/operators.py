"""``cloudsched admin``'s ``keys``, ``queues``, ``shards`` and ``usage``: for those who operate a deployment."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import click

from cloudsched.cli.options import (
    ROLE,
    ApiGroup,
    api_options,
    client_options,
    confirm,
    json_option,
    pass_client,
    yes_option,
)
from cloudsched.errors import Misconfigured
from cloudsched.local.untrusted_text import to_json_line, to_printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.adapters.firestore.store import FirestoreStore
    from cloudsched.client.client import Client
    from cloudsched.domain.responses.overview_responses import DispatchQueue, UsageRow


@click.group()
def keys() -> None:
    """Make an API key for a server."""


@keys.command()
@click.argument("name")
@click.option("--role", type=ROLE, required=True, help="What it may do.")
@click.option("--owner", help="The owner whose tasks a user or reader sees, or to whose tasks a worker is limited.")
@click.option("--queue", "queues", multiple=True, help="A queue that a worker may work on. Repeatable. [default: all]")
@json_option
def new(name: str, role: str, owner: str | None, queues: tuple[str, ...], *, as_json: bool) -> None:
    """Make a key.

    The key is printed once, on standard error: give it to its server. The entry to store is printed on standard output:
    add it to the list in CLOUDSCHED_API_KEYS. With --json, both are printed on standard output, as `key` and `entry`.
    """
    from cloudsched.web.auth.authentication import create_key  # noqa: PLC0415 - not needed for --help
    from cloudsched.web.auth.roles import Role  # noqa: PLC0415 - likewise

    key, entry = create_key(name, Role(role), owner, queues)
    if as_json:
        click.echo(to_json_line({"key": key, "entry": str(entry)}))
        return
    click.echo(f"The key, which is shown only once: {key}", err=True)
    click.echo(str(entry))


@click.group(cls=ApiGroup)
@api_options
def queues() -> None:
    """Show and change the queues in Cloud Tasks that wake your tasks up, with an admin's key."""


_queue_argument = click.argument("queue")


@queues.command("list")
@json_option
@pass_client
def list_queues(client: Client, *, as_json: bool) -> None:
    """List the queues with their states, rates and numbers of waiting calls."""
    _print_queues(client.dispatch_queues(), as_json=as_json)


@queues.command()
@_queue_argument
@json_option
@pass_client
def pause(client: Client, queue: str, *, as_json: bool) -> None:
    """Pause a queue. It keeps its calls, and tasks run late until you resume it."""
    _print_queues([client.update_dispatch_queue(queue, state="PAUSED")], as_json=as_json)


@queues.command()
@_queue_argument
@json_option
@pass_client
def resume(client: Client, queue: str, *, as_json: bool) -> None:
    """Resume a queue."""
    _print_queues([client.update_dispatch_queue(queue, state="RUNNING")], as_json=as_json)


@queues.command()
@_queue_argument
@yes_option
@json_option
@pass_client
def purge(client: Client, queue: str, *, is_sure: bool, as_json: bool) -> None:
    """Delete all calls that wait in a queue. The sweep sends again what is still to run, when it is due."""
    question = f"Delete all calls in {to_printable(queue)}? The sweep sends again what is to run, a little late."
    confirm(question, is_sure=is_sure)
    _print_queues([client.purge_dispatch_queue(queue)], as_json=as_json)


@queues.command()
@_queue_argument
@click.option("--per-second", type=float, help="The most calls a second, up to 500.")
@click.option("--concurrent", type=int, help="The most calls at the same time, up to 5000.")
@json_option
@pass_client
def rate(client: Client, queue: str, *, per_second: float | None, concurrent: int | None, as_json: bool) -> None:
    """Change how fast a queue delivers."""
    if per_second is None and concurrent is None:
        raise click.UsageError("Give --per-second, --concurrent, or both.")
    changed = client.update_dispatch_queue(queue, per_second=per_second, concurrent=concurrent)
    _print_queues([changed], as_json=as_json)


def _print_queues(found: Sequence[DispatchQueue], *, as_json: bool) -> None:
    width = max((len(each.queue) for each in found), default=0)
    for each in found:
        if as_json:
            click.echo(to_json_line(each.to_wire()))
            continue
        rates = f"{each.max_dispatches_per_second:g} a second, {each.max_concurrent_dispatches:,} at once"
        click.echo(f"{to_printable(each.queue).ljust(width)}  {each.state:<8}  {rates}, {each.depth:,} in it")


@click.group()
def shards() -> None:
    """Show and raise the number of shards of a deployment's Firestore database.

    The database is that of the settings in the environment: GOOGLE_CLOUD_PROJECT, CLOUDSCHED_DATABASE, and
    CLOUDSCHED_STORE=firestore.
    """


@shards.command()
@json_option
def show(*, as_json: bool) -> None:
    """Show the number of shards, and the progress of a change."""
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

    It may be stopped, repeated and run several times at once. It continues where it stopped. Deploy the indexes and the
    functions with the new number first. Lists rely on the shards about a minute after this has ended. Until then they
    find everything by the indexes without shards, or in the shards that there were.
    """
    with closing(_open_store()) as store:
        walk = store.grow(count, lambda walk: click.echo(f"{walk.seen} seen, {walk.moved} moved", err=True))
    words = f"Every task and offer has its place in one of {count} shards ({walk.moved} of {walk.seen} moved)."
    click.echo(to_json_line({"count": count, "seen": walk.seen, "moved": walk.moved}) if as_json else words)


def _open_store() -> FirestoreStore:
    from cloudsched.config.settings import Settings  # noqa: PLC0415 - not needed for --help
    from cloudsched.runtime.factories import open_firestore_store  # noqa: PLC0415 - likewise

    settings = Settings.from_environment()
    if settings.require_store() != "firestore":
        raise Misconfigured("Only Firestore has shards; CLOUDSCHED_STORE names another store.")
    return open_firestore_store(settings)


_HEADER = ("OWNER", "HANDLER", "EXECUTIONS", "QUERIES", "TOKENS", "READS", "WRITES", "QUEUE", "USD")


@click.command("usage")
@click.option("--month", metavar="YYYY-MM", help="The month, in UTC. [default: the current one]")
@click.option("--owner", help="Show only this owner's.")
@click.option("--handler", help="Show only this handler's.")
@json_option
@client_options
def usage(client: Client, *, month: str | None, owner: str | None, handler: str | None, as_json: bool) -> None:
    """Show what was used in a month, by owner and handler, and what it costs by the deployment's prices."""
    rows: list[UsageRow] = []
    position = ""
    is_complete = True
    while True:
        page = client.usage(month, owner=owner, handler=handler, page_size=500, page_token=position or None)
        rows += page.usage
        is_complete = is_complete and page.is_complete
        if page.next_page_token is None:
            break
        position = page.next_page_token
    if as_json:
        for row in rows:
            click.echo(to_json_line(row.model_dump(mode="json", by_alias=True)))
    else:
        _print_rows(rows)
    if not is_complete:
        click.echo("More has changed than is read at once: run this again.", err=True)


def _print_rows(rows: Sequence[UsageRow]) -> None:
    if not rows:
        click.echo("Nothing was used.")
        return
    lines = [_HEADER, *(_format_row(each) for each in rows)]
    if len(rows) > 1:
        total = sum(each.dollars for each in rows)
        lines.append(("", "together", *("",) * (len(_HEADER) - 3), f"{total:,.4f}"))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = [
            text.ljust(width) if column < 2 else text.rjust(width)  # noqa: PLR2004 - two texts, then numbers
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        click.echo("  ".join(padded).rstrip())


def _format_row(row: UsageRow) -> tuple[str, ...]:
    counts = (row.executions, row.queries, row.tokens, row.reads, row.writes, row.queue_operations)
    names = to_printable(row.owner), to_printable(row.handler)
    return (*names, *(f"{each:,}" for each in counts), f"{row.dollars:,.4f}")
