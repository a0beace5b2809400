"""``cloudsched tasks draw``: a task's life, what a run did, or a week of all tasks, as a picture to send to others."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

import click

from cloudsched.cli.api_group import pass_client
from cloudsched.cli.instants import parse_date

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from cloudsched.client.client import Client


@click.command()
@click.argument("task_id", metavar="[ID]", required=False)
@click.option("--execution", metavar="ID", help="Draw what this execution of the task did.")
@click.option("--week", metavar="DATE", help="Draw the week of this day, of all tasks.")
@click.option("--timezone", "--tz", metavar="ZONE", help="The zone of the times. [default: the task's own, or UTC]")
@click.option("-o", "--output", type=click.File("w", encoding="utf-8"), default="-", help="The file; - is the output.")
@pass_client
def draw(
    client: Client,
    task_id: str | None,
    *,
    execution: str | None,
    week: str | None,
    timezone: str | None,
    output: IO[str],
) -> None:
    """Draw a task's life as SVG; with --execution what that did, with --week a week of all tasks.

    It shows what you may see, as it is now, and links to nothing.
    """
    if (task_id is None) == (week is None):
        raise click.UsageError("Give the id of a task, or --week.")
    if execution is not None and task_id is None:
        raise click.UsageError("--execution goes with the id of its task.")
    query = {} if week is None else {"week": parse_date(week, "--week").isoformat()}
    from cloudsched.dashboard import pictures  # noqa: PLC0415 - not needed for --help
    from cloudsched.dashboard.api import Api  # noqa: PLC0415 - likewise
    from cloudsched.dashboard.visit import look  # noqa: PLC0415 - likewise

    api = Api(client)
    visit = look(api.get("/v1/caller"), query, _find_zone(timezone))
    if task_id is None:
        text = pictures.draw_calendar(api, visit)
    elif execution is None:
        text = pictures.draw_task(api, visit, task_id)
    else:
        text = pictures.draw_execution(api, visit, task_id, execution)
    output.write(text)


def _find_zone(name: str | None) -> ZoneInfo | None:
    if name is None:
        return None
    from cloudsched.dashboard.times import find_zone  # noqa: PLC0415 - likewise

    zone = find_zone(name)
    if zone is None:
        raise click.UsageError(f"--timezone: there is no time zone {name[:40]!r}.")
    return zone
