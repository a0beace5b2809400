"""``cloudsched tasks batch``: change all tasks that match a filter."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from cloudsched.cli.api_group import pass_client
from cloudsched.cli.choices import BATCH_ACTION, TASK_STATUS
from cloudsched.cli.instants import parse_instant
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
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--key", metavar="KEY", help="An idempotency key: repeating the command with it changes nothing more.")
@click.option("--wait", type=click.IntRange(0), default=_HOUR, show_default=True, help="The most seconds to wait.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
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
    yes: bool,
    key: str | None,
    wait: int,
    as_json: bool,
    **filters: Any,
) -> None:
    """Pause, resume, cancel, retry or delete all tasks that match.

    Says how many there are and asks, unless with --yes; then waits until it is done. Interrupting does not stop it:
    cancel its task.
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
    if dry_run or not yes:
        count = client.count_matching(change, **chosen)
        if dry_run:
            more = {"isAtLeast": True} if count.is_at_least else {}
            words = f"{'At least ' if count.is_at_least else ''}{count} tasks match."
            click.echo(to_json_line({"count": int(count), **more}) if as_json else words)
            return
        named = f"{'at least ' if count.is_at_least else ''}{count} tasks"
        click.confirm(f"{action.capitalize()} {named}?", abort=True, err=True)
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
