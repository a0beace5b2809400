"""``cloudsched audit``: who did what, over all tasks, budgets and queues, through the API."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from cloudsched.cli.options import MemberChoice, client_options, drop_none, json_option, parse_instant
from cloudsched.local.untrusted_text import to_json_line

if TYPE_CHECKING:
    from cloudsched.client.client import Client


@click.command("audit")
@click.option("--owner", help="Only what was done to this owner's tasks and budget.")
@click.option("--by", metavar="NAME", help="Only what somebody with this in their name did, or 'scheduler'.")
@click.option("--action", type=MemberChoice("domain.documents.verbs:Action"), help="Only this.")
@click.option("--from", "since", metavar="INSTANT", help="Only from this instant on.")
@click.option("--until", metavar="INSTANT", help="Only before this instant.")
@click.option("--timezone", "--tz", metavar="ZONE", help="The zone of --from and --until, if they have no offset.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="The most to show.")
@json_option
@client_options
def audit(
    client: Client,
    *,
    since: str | None,
    until: str | None,
    timezone: str | None,
    limit: int,
    as_json: bool,
    **filters: Any,
) -> None:
    """Show who did what to tasks, budgets and queues, the latest first."""
    from cloudsched.cli.tasks import describe_entry  # noqa: PLC0415 - not needed for --help

    bounds = {
        name: None if text is None else parse_instant(text, timezone, option)
        for name, text, option in (("since", since, "--from"), ("until", until, "--until"))
    }
    entries = client.audit(**drop_none(**filters, **bounds), page_size=min(limit, 500))
    shown = 0
    for entry in islice(entries, limit):
        shown += 1
        if as_json:
            click.echo(to_json_line(entry.to_wire()))
            continue
        for line in describe_entry(entry, entry.task_id or entry.queue, entry.title, f"of {entry.owner}"):
            click.echo(line)
    if not shown and not as_json:
        click.echo("Nobody has done anything that matches.")
