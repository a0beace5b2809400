"""``cloudsched tasks``: look at tasks and change them, through the API.

Tables are for people; ``--json`` prints what the API says, a page's items one a line, for programs.
"""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from cloudsched.client import Client
from cloudsched.tree_command import send, tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cloudsched.client import TaskView
    from cloudsched.domain.execution import Execution, ExecutionStatus

POLL_SECONDS = 1.0
"""How often ``logs --follow`` looks."""
_COLOURS = {
    "ACTIVE": "green",
    "SUCCEEDED": "green",
    "COMPLETED": "green",
    "PAUSED": "yellow",
    "RETRYING": "yellow",
    "RUNNING": "cyan",
    "FAILED": "red",
    "TIMED_OUT": "red",
}


class _Printer:
    """Says things to people, or to programs."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._console = Console(highlight=False)

    def task(self, task: TaskView) -> None:
        """Print one task whole."""
        content = _plain(task)
        if self._as_json:
            click.echo(json.dumps(content, ensure_ascii=False))
            return
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        for name, value in content.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            table.add_row(f"[bold]{name}[/]", _coloured(text))
        self._console.print(table)

    def tasks(self, tasks: Iterable[TaskView]) -> None:
        """Print a list of tasks."""
        if self._as_json:
            for task in tasks:
                click.echo(json.dumps(_plain(task), ensure_ascii=False))
            return
        table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
        for name in ("ID", "OWNER", "TITLE", "HANDLER", "STATUS", "NEXT", "RUNS"):
            table.add_column(name, overflow="fold")
        for task in tasks:
            cells = (task.id, task.owner, task.title, task.handler, task.status, _at(task.next_execution_time))
            table.add_row(*map(_coloured, cells), str(task.run_count))
        self._console.print(table if table.row_count else "No tasks.")

    def execution(self, execution: Execution) -> None:
        """Print one execution as a line of a log."""
        if self._as_json:
            click.echo(json.dumps(execution.to_wire(), ensure_ascii=False))
            return
        attempts = f"attempt {len(execution.attempts)}" if execution.attempts else ""
        said = execution.error.message if execution.error else execution.message
        what = said or ("" if execution.content is None else json.dumps(execution.content, ensure_ascii=False))
        line = Table.grid(padding=(0, 2, 0, 0))
        line.add_row(_at(execution.scheduled_for), _coloured(execution.status), attempts, _coloured(what))
        self._console.print(line)


_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
_task_id = click.argument("task_id", metavar="ID")


@click.group()
@click.option(
    "--url", envvar="CLOUDSCHED_URL", default="http://127.0.0.1:8080", show_default=True, help="The API's address."
)
@click.option("--key", envvar="CLOUDSCHED_KEY", help="An API key. [env: CLOUDSCHED_KEY]")
@click.option("--token", envvar="CLOUDSCHED_TOKEN", help="A Firebase or Google token. [env: CLOUDSCHED_TOKEN]")
@click.option("--platform-token", envvar="CLOUDSCHED_PLATFORM_TOKEN", help="A token for Cloud Run's own check.")
@click.pass_context
def tasks(context: click.Context, url: str, key: str | None, token: str | None, platform_token: str | None) -> None:
    """Look at tasks and change them, through the API."""
    client = Client(url, key=key, token=token, platform_token=platform_token)
    context.obj = client
    context.call_on_close(client.close)


tasks.add_command(tree)
tasks.add_command(send)


@tasks.command("list")
@click.option("--owner")
@click.option("--status", help="ACTIVE, PAUSED, COMPLETED, FAILED, CANCELLED or EXPIRED.")
@click.option("--handler")
@click.option("--soonest", is_flag=True, help="Those that run next come first; without it, the newest do.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="How many at most.")
@_json
@click.pass_obj
def list_(client: Client, *, owner: str, status: str, handler: str, soonest: bool, limit: int, as_json: bool) -> None:
    """List tasks."""
    order = "nextExecutionTime" if soonest else None
    size = min(limit, 500)
    found = client.tasks(owner=owner, status=status, handler=handler, order_by=order, page_size=size)
    _Printer(as_json=as_json).tasks(task for _, task in zip(range(limit), found, strict=False))


@tasks.command()
@_task_id
@_json
@click.pass_obj
def get(client: Client, task_id: str, *, as_json: bool) -> None:
    """Show a task."""
    _Printer(as_json=as_json).task(client.get(task_id))


@tasks.command()
@click.argument("title")
@click.option("--handler", required=True, help="The registered function to run.")
@click.option("--owner", help="Whose it is; you, if you are a user.")
@click.option("--id", "task_id", help="A stable id of your own: creating it again edits it.")
@click.option("--payload", default="{}", help="What the handler is given, as JSON.")
@click.option("--rrule", help="When it runs: an RFC 5545 rule, such as FREQ=DAILY;BYHOUR=9.")
@click.option("--at", help="When it runs once: an instant, such as 2027-01-01T09:00:00Z.")
@click.option("--timezone", default="UTC", show_default=True, help="The zone of the rule.")
@click.option("--set", "more", multiple=True, metavar="FIELD=JSON", help="Any other field, by its name in the API.")
@_json
@click.pass_obj
def create(client: Client, /, title: str, *, as_json: bool, **options: Any) -> None:
    """Create a task; without --rrule and --at it runs once, in five minutes."""
    schedule = _schedule(options["rrule"], options["at"], options["timezone"])
    fields = {
        "title": title,
        "handler": options["handler"],
        "payload": _parsed("--payload", options["payload"]),
        **_given(owner=options["owner"], id=options["task_id"], schedule=schedule),
        **_fields(options["more"]),
    }
    _Printer(as_json=as_json).task(client.create(**fields))


@tasks.command()
@_task_id
@click.option("--title")
@click.option("--payload", help="What the handler is given, as JSON.")
@click.option("--rrule", help="When it runs: an RFC 5545 rule.")
@click.option("--at", help="When it runs once.")
@click.option("--timezone", default="UTC", show_default=True, help="The zone of the rule.")
@click.option("--set", "more", multiple=True, metavar="FIELD=JSON", help="Any other field; null puts its default back.")
@_json
@click.pass_obj
def update(client: Client, /, task_id: str, *, as_json: bool, **options: Any) -> None:
    """Change some of a task's fields; refused if somebody else changes it at the same moment."""
    payload = None if options["payload"] is None else _parsed("--payload", options["payload"])
    schedule = _schedule(options["rrule"], options["at"], options["timezone"])
    changes = {**_given(title=options["title"], payload=payload, schedule=schedule), **_fields(options["more"])}
    if not changes:
        raise click.UsageError("Say what to change.")
    _Printer(as_json=as_json).task(client.update(task_id, etag=client.get(task_id).etag, **changes))


def _verb(name: str, about: str) -> None:
    @tasks.command(name, help=about)
    @_task_id
    @_json
    @click.pass_obj
    def command(client: Client, task_id: str, *, as_json: bool) -> None:
        _Printer(as_json=as_json).task(getattr(client, name)(task_id))


_verb("pause", "Hold a task until it is resumed.")
_verb("resume", "Let a paused task go on from now.")
_verb("cancel", "End a task; its record stays.")
_verb("trigger", "Run a task now, without moving its plan.")


@tasks.command()
@_task_id
@click.argument("execution_id", required=False)
@_json
@click.pass_obj
def retry(client: Client, task_id: str, execution_id: str | None, *, as_json: bool) -> None:
    """Give an execution one more attempt; the last one, if none is named."""
    _Printer(as_json=as_json).task(client.retry(task_id, execution_id))


@tasks.command()
@_task_id
@click.option("--follow", "-f", is_flag=True, help="Go on as executions begin and end, until Ctrl-C.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="How many to begin with.")
@_json
@click.pass_obj
def logs(client: Client, task_id: str, *, follow: bool, limit: int, as_json: bool) -> None:
    """Show a task's executions, the earliest first."""
    printer = _Printer(as_json=as_json)
    for execution in follow_executions(client, task_id, limit, ends=not follow):
        printer.execution(execution)


def follow_executions(client: Client, task_id: str, limit: int, *, ends: bool) -> Iterator[Execution]:
    """Yield a task's executions, the earliest first, and again each time that one has changed.

    Args:
        client: Who to ask.
        task_id: Whose executions.
        limit: How many of the latest are looked at.
        ends: Whether to stop after what is there now.
    """
    known: dict[str, tuple[ExecutionStatus, int]] = {}
    while True:
        latest = [execution for _, execution in zip(range(limit), client.executions(task_id), strict=False)]
        for execution in reversed(latest):
            state = execution.status, len(execution.attempts)
            if known.get(execution.id) != state:
                known[execution.id] = state
                yield execution
        if ends:
            return
        time.sleep(POLL_SECONDS)


def _schedule(rrule: str | None, at: str | None, timezone: str) -> dict[str, str] | None:
    if rrule and at:
        raise click.UsageError("Give --rrule or --at, not both.")
    if rrule:
        return {"rrule": rrule, "timezone": timezone}
    return {"at": at, "timezone": timezone} if at else None


def _given(**fields: object) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}


def _fields(more: Iterable[str]) -> dict[str, Any]:
    """Read ``field=JSON``; what is no JSON is text."""
    found: dict[str, Any] = {}
    for each in more:
        name, equals, text = each.partition("=")
        if not equals:
            raise click.UsageError(f"--set {each}: write FIELD=VALUE.")
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
    return found


def _parsed(option: str, text: str) -> Any:  # noqa: ANN401 - any JSON
    try:
        return json.loads(text)
    except ValueError as error:
        raise click.UsageError(f"{option} is not JSON: {error}") from error


def _plain(task: TaskView) -> dict[str, Any]:
    return task.model_dump(mode="json", by_alias=True, exclude_none=True)


def _at(instant: datetime | None) -> str:
    return "-" if instant is None else f"{instant.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def _coloured(text: object) -> str:
    """Return text for a table: a status in its colour, and nothing of it taken for markup."""
    from rich.markup import escape  # noqa: PLC0415 - the rest of rich is there already

    colour = _COLOURS.get(str(text))
    # Control characters would move the cursor of whoever looks.
    shown = escape("".join(letter if letter.isprintable() else " " for letter in str(text)))
    return f"[{colour}]{shown}[/]" if colour else shown
