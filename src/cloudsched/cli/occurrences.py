"""``cloudsched tasks backfill``, ``upcoming`` and ``why``: occurrences of the past again, the next ones, and why."""

from __future__ import annotations

import json
from datetime import UTC
from typing import TYPE_CHECKING

import click

from cloudsched.cli.api_group import key_option, pass_client
from cloudsched.cli.instants import parse_instant
from cloudsched.errors import InvalidSchedule
from cloudsched.local.untrusted_text import to_json_line, to_printable

if TYPE_CHECKING:
    from cloudsched.client.client import Client


@click.command()
@click.argument("task_id", metavar="ID")
@click.argument("start")
@click.argument("end")
@click.option("--timezone", "--tz", metavar="ZONE", help="The zone of START and END, if they have no offset.")
@key_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@pass_client
def backfill(
    client: Client, task_id: str, start: str, end: str, *, timezone: str | None, key: str | None, as_json: bool
) -> None:
    """Run the past occurrences from START to END (both included), one after the other.

    Both are instants, such as 2027-01-01T09:00:00Z.
    """
    from cloudsched.cli.output import Printer  # noqa: PLC0415 - not needed for --help

    first, last = parse_instant(start, timezone, "START"), parse_instant(end, timezone, "END")
    Printer(as_json=as_json).print_task(client.backfill(task_id, first, last, idempotency_key=key))


@click.command()
@click.argument("task_id", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@pass_client
def why(client: Client, task_id: str, *, as_json: bool) -> None:
    """Say why a task runs when it does, or does not run."""
    explanation = client.explain(task_id)
    if as_json:
        click.echo(to_json_line(explanation.model_dump(mode="json", by_alias=True, exclude_none=True)))
        return
    summary, *others = (to_printable(finding.sentence) for finding in explanation.findings)
    click.echo(f"{explanation.status}: {summary}")
    for sentence in others:
        click.echo(f"  - {sentence}")


@click.command()
@click.argument("task_id", metavar="ID")
@click.option("-n", "count", type=click.IntRange(1, 1000), default=10, show_default=True, help="How many to show.")
@click.option("--timezone", "--tz", metavar="ZONE", help="The zone to show them in. [default: the task's own]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@pass_client
def upcoming(client: Client, task_id: str, *, count: int, timezone: str | None, as_json: bool) -> None:
    """Show when a task runs next, in its time zone and in UTC."""
    occurrences = client.upcoming(task_id, count)
    if as_json:
        click.echo(json.dumps([at.astimezone(UTC).isoformat().replace("+00:00", "Z") for at in occurrences]))
        return
    if not occurrences:
        click.echo("It does not run again.")
        return
    from cloudsched.cli.output import make_console  # noqa: PLC0415 - not needed for JSON
    from cloudsched.domain.recurrence.time_zones import load_tzinfo  # noqa: PLC0415 - not needed for JSON

    try:
        zone = load_tzinfo(timezone or client.get(task_id).timezone)
    except InvalidSchedule as error:
        raise click.UsageError(f"--timezone: {error.problem} ({error.hint}).") from None
    is_narrow = make_console().width < len("Mon 2027-01-04 09:00:00 +0100  2027-01-04 08:00:00 UTC")
    for at in occurrences:
        gap = "\n  " if is_narrow else "  "
        click.echo(f"{at.astimezone(zone):%a %Y-%m-%d %H:%M:%S %z}{gap}{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC")
