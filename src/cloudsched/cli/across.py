"""``cloudsched tasks executions``, ``occurrences`` and ``batch``: the commands for many tasks."""

from __future__ import annotations

from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from cloudsched.cli.options import (
    BATCH_ACTION,
    CATEGORY,
    EXECUTION_STATUS,
    TASK_STATUS,
    confirm,
    json_option,
    parse_instant,
    pass_client,
    yes_option,
)
from cloudsched.local.untrusted_text import to_json_line, to_printable

if TYPE_CHECKING:
    from cloudsched.client.client import Client


_HOUR = 3600


@click.command()
@click.argument("action", type=BATCH_ACTION)
@click.option("--owner")
@click.option("--status", type=TASK_STATUS, help="Only these.")
@click.option("--handler")
@click.option("--label", metavar="KEY=VALUE", help="Only tasks with this label; goes with --owner and --status only.")
@click.option("--due-from", metavar="INSTANT", help="Only tasks that run next at that instant or later.")
@click.option("--due-until", metavar="INSTANT", help="Only tasks that run next before that instant.")
@click.option("--timezone", "--tz", metavar="ZONE", help="The zone of --due-from and --due-until without an offset.")
@click.option("--id", "ids", multiple=True, metavar="ID", help="Only this task; may be given up to 500 times.")
@click.option("--dry-run", is_flag=True, help="Only count the tasks.")
@yes_option
@click.option("--key", metavar="KEY", help="An idempotency key: repeating the command with it changes nothing more.")
@click.option("--wait", type=click.IntRange(0), default=_HOUR, show_default=True, help="The most seconds to wait.")
@json_option
@pass_client
def batch(  # noqa: PLR0913 - each is an option of its own
    client: Client,
    /,
    *,
    action: str,
    due_from: str | None,
    due_until: str | None,
    timezone: str | None,
    ids: tuple[str, ...],
    dry_run: bool,
    is_sure: bool,
    key: str | None,
    wait: int,
    as_json: bool,
    **filters: Any,
) -> None:
    """Pause, resume, cancel, retry or delete all tasks that match.

    Says how many there are and asks, unless with --yes. Then it waits until that is done. Interrupting does not stop
    it: cancel its task.
    """
    from cloudsched.domain.documents.batch_change import BatchAction  # noqa: PLC0415 - not needed for --help

    change = BatchAction[action.upper().replace("-", "_")]
    filters = {
        **filters,
        "due_from": None if due_from is None else parse_instant(due_from, timezone, "--due-from"),
        "due_until": None if due_until is None else parse_instant(due_until, timezone, "--due-until"),
        "ids": ids or None,
    }
    chosen = {name: value for name, value in filters.items() if value is not None}
    if dry_run or not is_sure:
        count = client.count_matching(change, **chosen)
        if dry_run:
            more = {"isAtLeast": True} if count.is_at_least else {}
            words = f"{'At least ' if count.is_at_least else ''}{count} tasks match."
            click.echo(to_json_line({"count": int(count), **more}) if as_json else words)
            return
        named = f"{'at least ' if count.is_at_least else ''}{count} tasks"
        confirm(f"{action.capitalize()} {named}?", is_sure=is_sure)
    task = client.batch_change(change, idempotency_key=key, **chosen)
    click.echo(f"Started as task {to_printable(task.id)}.", err=True)
    if not wait:
        return
    execution = client.wait(task.id, timedelta(seconds=wait))
    if as_json:
        click.echo(to_json_line(execution.to_wire()))
        return
    result = execution.content if isinstance(execution.content, dict) else {}
    if not result:
        raise click.ClickException(f"The batch change ended as {execution.status}: see cloudsched tasks logs {task.id}")
    click.echo(", ".join(f"{result.get(name)} {name}" for name in ("changed", "skipped", "refused")))
    for each in result.get("refusals", ()):
        click.echo(f"  {to_printable(each['taskId'])}: {to_printable(each['problem'])}")


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
@json_option
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
@json_option
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
