"""The output of ``cloudsched tasks``: tables, trees and logs for people, JSON for programs."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree as Drawing

from cloudsched.cli.options import pick
from cloudsched.domain.documents.document import complete_table
from cloudsched.domain.documents.execution import FAILURE_STATUSES, Execution, ExecutionStatus
from cloudsched.domain.documents.journal import StepKind, StepRecord, StepStatus
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.domain.schedules.planned_words import describe_planned
from cloudsched.errors import Forbidden, NotFound
from cloudsched.local.untrusted_text import to_json_line, to_printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cloudsched.client.client import Client
    from cloudsched.client.views import ExplanationView, TaskView, TreeView
    from cloudsched.domain.documents.log_lines import LogLine


def tell_findings(explanation: ExplanationView) -> Iterator[str]:
    """Yield the lines that explain a task: its state and the main reason, then all others."""
    summary, *others = (to_printable(finding.sentence) for finding in explanation.findings)
    yield f"{explanation.status}: {summary}"
    yield from (f"  - {sentence}" for sentence in others)


_STEP_STYLES = complete_table(
    StepStatus,
    {
        StepStatus.WAITING: "cyan",
        StepStatus.SUCCEEDED: "green",
        StepStatus.FAILED: "red",
        StepStatus.TIMED_OUT: "",
        StepStatus.CANCELLED: "",
    },
)
_MAX_RESULT_LENGTH = 60
ERROR_STATUSES = FAILURE_STATUSES | {ExecutionStatus.RETRYING}
"""The statuses of an execution that an error explains."""


def detail_lines(execution: Execution) -> Iterator[Text]:
    """Yield a line for each progress note and each step, then those of the traceback."""
    for note in execution.progress:
        yield Text.assemble((f"{_clock(note.at)}  ", "dim"), to_printable(note.text))
    for step in execution.steps:
        yield _step_line(step)
    error = execution.error
    if execution.status in ERROR_STATUSES and error is not None and error.traceback:
        yield from (Text(to_printable(line), "dim red") for line in error.traceback.splitlines())


def _step_line(step: StepRecord) -> Text:
    head = f"{step.number}. {step.kind.value.lower()}"
    if step.name:
        head += f" {to_printable(step.name)}"
    if step.attempts > 1:
        head += f" (attempt {step.attempts})"

    line = Text.assemble(
        (f"{_clock(step.started_at)}  ", "dim"),
        f"{head}  ",
        (step.status.value, _STEP_STYLES[step.status]),
    )
    if end := _describe_end(step):
        line.append(f"  {to_printable(end)}")
    return line


def _describe_end(step: StepRecord) -> str:
    """Return how a step ended, or until when it waits. Empty if neither is known."""
    if step.error is not None:
        return f"{step.error.type}: {step.error.message}".removeprefix(": ")
    if step.kind is StepKind.RACE:
        return f"won by {step.result['winner']}" if "winner" in step.result else ""
    if step.status is StepStatus.SUCCEEDED and step.result is not None:
        text = json.dumps(step.result, ensure_ascii=False)
        return text if len(text) <= _MAX_RESULT_LENGTH else text[:_MAX_RESULT_LENGTH] + " …"
    if step.status is StepStatus.WAITING and step.due_at is not None and step.kind is not StepKind.CALL:
        return f"until {_clock(step.due_at)}"
    return ""


def _clock(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


_COLOURS = {
    **complete_table(
        TaskStatus,
        {
            TaskStatus.ACTIVE: "cyan",
            TaskStatus.PAUSED: "yellow",
            TaskStatus.COMPLETED: "green",
            TaskStatus.FAILED: "red",
            TaskStatus.CANCELLED: "",
            TaskStatus.EXPIRED: "",
        },
    ),
    **complete_table(
        ExecutionStatus,
        {
            ExecutionStatus.RUNNING: "cyan",
            ExecutionStatus.RETRYING: "yellow",
            ExecutionStatus.SUSPENDED: "",
            ExecutionStatus.SUCCEEDED: "green",
            ExecutionStatus.FAILED: "red",
            ExecutionStatus.TIMED_OUT: "red",
            ExecutionStatus.CANCELLED: "",
            ExecutionStatus.EXPIRED: "",
            ExecutionStatus.SKIPPED: "",
        },
    ),
}
_COLUMNS = {"ID": 2, "OWNER": 6, "TITLE": 8, "HANDLER": 7, "STATUS": 9, "NEXT": 19, "RUNS": 4}
"""The columns of a list, and the least width of each."""
_NO_WRAP_COLUMNS = {"ID", "STATUS", "NEXT"}
"""Columns that never wrap, so that their values can be copied."""
_PADDING = 2
_UNLIMITED_WIDTH = 10_000
"""The width of output that does not go to a terminal."""


def make_console() -> Console:
    """Return a console as wide as the terminal. Without a terminal, lines are not wrapped."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _UNLIMITED_WIDTH
    return console


class Printer:
    """Prints for people or, as JSON, for programs."""

    def __init__(self, *, as_json: bool | tuple[str, ...]) -> None:
        self._as_json = as_json
        self._console = make_console()

    def print_task(self, task: TaskView) -> None:
        """Print all fields of one task, and to stderr what may keep it from running."""
        content = _to_json(task)
        if self._as_json:
            self._print_json(content)
            return

        content.pop("receipt", None)
        content |= _list_read_back(task)
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        for name, value in content.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            table.add_row(f"[bold]{name}[/]", _format_cell(text))
        self._console.print(table)
        for doubt in _list_doubts(task):
            click.echo(f"But: {to_printable(doubt)}", err=True)

    def print_tasks(self, tasks: Iterable[TaskView]) -> None:
        """Print a list of tasks."""
        if self._as_json:
            for task in tasks:
                self._print_json(_to_json(task))
            return

        rows = [*tasks]
        table = Table(box=None, header_style="bold", padding=(0, _PADDING, 0, 0))
        for name, min_width in _COLUMNS.items():
            table.add_column(name, min_width=min_width, overflow="fold", no_wrap=name in _NO_WRAP_COLUMNS)
        for task in rows:
            cells = (
                task.id,
                task.owner,
                task.title,
                task.handler,
                task.status,
                _format_instant(task.next_execution_time),
            )
            table.add_row(*map(_format_cell, cells), str(task.run_count))

        longest = max((len(task.id) for task in rows), default=0)
        min_width = longest + sum(width + _PADDING for width in _COLUMNS.values())
        self._console.width = max(self._console.width, min_width)
        self._console.print(table if rows else "No tasks.")

    def _print_json(self, content: dict[str, Any]) -> None:
        click.echo(to_json_line(pick(content, self._as_json)))

    def print_view(
        self, task: TaskView, coming: Sequence[datetime], explanation: ExplanationView, executions: Sequence[Execution]
    ) -> None:
        """Print a task on one screen, with its next instants, the reasons of its state and its last executions."""
        zone = load_tzinfo(task.timezone)
        times = [at.astimezone(zone) for at in coming]
        if self._as_json:
            parts = {
                "next": [at.isoformat() for at in times],
                "explanation": explanation.model_dump(mode="json", by_alias=True, exclude_none=True),
                "executions": [each.to_wire() for each in executions],
            }
            self._print_json(_to_json(task) | parts)
            return

        about = {
            "id": task.id,
            "owner": task.owner,
            "handler": task.handler,
            "payload": json.dumps(task.payload, ensure_ascii=False) if task.payload else "",
            "schedule": describe_planned(task.schedule, next(iter(coming), None)).text,
            "labels": ", ".join(task.labels),
            "channels": ", ".join(task.delivery_channels),
            "runs": str(task.run_count) if task.max_runs is None else f"{task.run_count} of {task.max_runs}",
        }
        click.secho(to_printable(task.title), bold=True)
        for name, text in about.items():
            if text:
                click.echo(f"  {name:<9} {to_printable(text)}")
        click.echo()
        for line in tell_findings(explanation):
            click.echo(line)

        if times:
            click.echo("\nNext")
        for at in times:
            click.echo(f"  {at:%a %Y-%m-%d %H:%M:%S %z}")
        if executions:
            click.echo("\nLast, in UTC")
        for each in executions:
            self.print_execution(each)

    def print_execution(self, execution: Execution) -> None:
        """Print one execution on one line."""
        if self._as_json:
            self._print_json(execution.to_wire())
            return

        attempts = f"attempt {execution.attempt_count}" if execution.attempts else ""
        cells = (_format_instant(execution.scheduled_for), _format_cell(execution.status), attempts)
        head = Text.from_markup("  ".join(filter(None, cells)))
        detail = _status_reason(execution)
        if not detail and execution.content is not None:
            detail = json.dumps(execution.content, ensure_ascii=False)

        if detail:
            table = Table.grid(padding=(0, _PADDING, 0, 0))
            table.add_column(no_wrap=True)
            table.add_row(head, _format_cell(detail))
            self._console.print(table)
        else:
            self._console.print(head, soft_wrap=True)

        for line in detail_lines(execution):
            self._console.print(Padding(line, (0, 0, 0, _PADDING), expand=False))


def _to_json(task: TaskView) -> dict[str, Any]:
    return task.model_dump(mode="json", by_alias=True, exclude_none=True, warnings=False)


def _list_read_back(task: TaskView) -> dict[str, str]:
    told = task.read_back
    if told is None:
        return {}
    times = ", ".join(f"{at:%a} {at.isoformat(timespec='minutes')}" for at in told.next)
    rows = {"readBack": told.description, "next": times, "assumed": " ".join(told.assumed)}
    return {name: text for name, text in rows.items() if text}


def _list_doubts(task: TaskView) -> list[str]:
    """Return why a task may not run, but for its status, which is shown."""
    if task.receipt is None or task.status is not TaskStatus.ACTIVE:
        return []
    return [each.sentence for each in task.receipt.doubts]


def _status_reason(execution: Execution) -> str:
    """Return why an execution has its status: its error if it has failed, else its message."""
    if execution.error is not None and execution.status in ERROR_STATUSES:
        return f"{execution.error.type}: {execution.error.message}"
    return execution.message or ""


def _format_instant(instant: datetime | None) -> str:
    return "-" if instant is None else _clock(instant)


def _format_cell(text: object) -> str:
    from rich.markup import escape  # noqa: PLC0415 - not needed for JSON

    colour = _COLOURS.get(str(text))
    shown = escape(to_printable(str(text)))
    return f"[{colour}]{shown}[/]" if colour else shown


MAX_TASKS_WITH_DETAILS = 50
"""The number of tasks of a tree that are drawn with progress and steps."""


def draw_tree(client: Client, view: TreeView, execution: str | None) -> Drawing:
    """Return the drawing of a tree, with the details of its first tasks, which take two requests each.

    Its first calls are those of the execution, or all.
    """
    left = MAX_TASKS_WITH_DETAILS

    def label(task: TaskView, execution_id: str | None = None) -> RenderableType:
        nonlocal left
        head = Text.assemble(
            (f"{task.status:<9}", _COLOURS[task.status]),
            f" {to_printable(task.handler)}  ",
            (to_printable(task.id), "dim"),
        )
        left -= 1
        shown = _load_latest(client, task.id, execution_id) if left >= 0 else None
        lines = () if shown is None else detail_lines(shown)
        return Group(head, *(Padding(line, (0, 0, 0, 2), expand=False) for line in lines))

    def draw(tree: TreeView, drawing: Drawing, hint: str) -> None:
        for child in tree.children:
            draw(child, drawing.add(label(child.task)), f"cloudsched tasks tree {child.task.id}")
        if tree.omitted_children:
            drawing.add(Text(f"… {tree.omitted_children} more{hint and f', see {hint}'}", "dim"))

    drawing = Drawing(label(view.task, execution))
    draw(view, drawing, "" if execution else f"cloudsched tasks tree {view.task.id} --execution ID")
    return drawing


def _load_latest(client: Client, task_id: str, execution_id: str | None) -> Execution | None:
    with suppress(NotFound):  # removed meanwhile
        if execution_id is None:
            execution_id = next((each.id for each in client.executions(task_id)), None)
        return None if execution_id is None else client.execution(task_id, execution_id)
    return None


_LEVEL_COLOURS = {"WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}


def print_log_of(client: Client, task_id: str, execution_id: str) -> None:
    """Print an execution's log lines below it, if the caller may see them."""
    with suppress(Forbidden, NotFound):  # an older API has none
        for line in client.logs(task_id, execution_id).lines:
            _print_line(line)


def _print_line(line: LogLine) -> None:
    first, *more = line.text.splitlines() or [""]
    text = to_printable(first)
    if line.level != "INFO":
        text = f"{click.style(line.level, fg=_LEVEL_COLOURS.get(line.level))} {text}"
    click.echo(f"  {click.style(_clock(line.at), dim=True)}  {text}")
    for each in more:
        click.echo(f"      {to_printable(each)}")
