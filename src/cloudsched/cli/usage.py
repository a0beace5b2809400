"""``cloudsched usage``: shows what was used in a month."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cloudsched.cli.api_group import ApiCommand, client_options, json_option
from cloudsched.local.untrusted_text import to_json_line, to_printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.client.client import Client
    from cloudsched.domain.documents.overview_responses import UsageRow

_HEADER = ("OWNER", "HANDLER", "EXECUTIONS", "QUERIES", "TOKENS", "READS", "WRITES", "QUEUE", "USD")


@click.command("usage", cls=ApiCommand)
@click.option("--month", metavar="YYYY-MM", help="The month, in UTC. [default: the current one]")
@click.option("--owner", help="Show only this owner's.")
@click.option("--handler", help="Show only this handler's.")
@json_option
@client_options
def usage(client: Client, *, month: str | None, owner: str | None, handler: str | None, as_json: bool) -> None:
    """Show what was used in a month, by owner and handler, and what it costs by the deployment's prices."""
    rows: list[UsageRow] = []
    position, is_complete = "", True
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
