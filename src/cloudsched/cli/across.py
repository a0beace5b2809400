"""``cloudsched tasks executions`` and ``occurrences``: what ran, runs and is going to run, of all tasks."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import click

from cloudsched.cli.api_group import pass_client
from cloudsched.cli.choices import CATEGORY, EXECUTION_STATUS
from cloudsched.cli.instants import parse_instant
from cloudsched.local.untrusted_text import to_json_line, to_printable

if TYPE_CHECKING:
    from cloudsched.client.client import Client


@click.command()
@click.option("--owner")
@click.option("--status", type=EXECUTION_STATUS, help="List only these.")
@click.option("--handler", help="List only executions of this handler.")
@click.option("--label", metavar="KEY=VALUE", help="List only executions whose task had this label.")
@click.option(
    "--category",
    type=CATEGORY,
    help="List only executions whose task had this category. One of --handler, --label and --category at most.",
)
@click.option("--from", "since", metavar="INSTANT", help="List only those scheduled for then or later.")
@click.option("--until", metavar="INSTANT", help="List only those scheduled for earlier than that.")
@click.option("--timezone", "--tz", metavar="ZONE", help="The zone of --from and --until, if they have no offset.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="The most executions to list.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@pass_client
def executions(
    client: Client,
    /,
    *,
    since: str | None,
    until: str | None,
    timezone: str | None,
    limit: int,
    as_json: bool,
    **filters: str | None,
) -> None:
    """List executions of all tasks: those that failed first, then those that run, then all others."""
    found = client.find_executions(
        **filters,
        since=None if since is None else parse_instant(since, timezone, "--from"),
        until=None if until is None else parse_instant(until, timezone, "--until"),
    )
    is_empty = True
    for each in islice(found, limit):
        is_empty = False
        if as_json:
            click.echo(to_json_line(each.to_wire()))
            continue
        reason = each.message or "" if each.error is None else f"{each.error.type}: {each.error.message}"
        shown = f"{each.scheduled_for:%Y-%m-%d %H:%M:%S}", each.status, each.task_id, each.title or "", reason
        click.echo("  ".join(filter(None, map(to_printable, shown))))
    if is_empty and not as_json:
        click.echo("No executions.")


@click.command()
@click.argument("until")
@click.option("--from", "since", metavar="INSTANT", help="List only those at that instant or later.")
@click.option("--timezone", "--tz", metavar="ZONE", help="The zone of UNTIL and --from, if they have no offset.")
@click.option("--owner")
@click.option("--handler")
@click.option("--label", metavar="KEY=VALUE", help="List only those of tasks with this label.")
@click.option("--category", type=CATEGORY, help="List only those of such tasks.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="The most occurrences to list.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@pass_client
def occurrences(
    client: Client,
    /,
    *,
    until: str,
    since: str | None,
    timezone: str | None,
    limit: int,
    as_json: bool,
    **filters: str | None,
) -> None:
    """List what is going to run before UNTIL, of all tasks, the soonest first."""
    start = None if since is None else parse_instant(since, timezone, "--from")
    found = client.occurrences(parse_instant(until, timezone, "UNTIL"), since=start, **filters)
    is_empty = True
    for each in islice(found, limit):
        is_empty = False
        if as_json:
            click.echo(to_json_line(each.to_wire()))
        else:
            shown = f"{each.local:%a %Y-%m-%d %H:%M:%S %z}", each.task_id, each.title
            click.echo("  ".join(map(to_printable, shown)))
    if is_empty and not as_json:
        click.echo("Nothing runs until then.")
