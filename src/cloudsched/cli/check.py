"""``cloudsched check``: find the stored work that would fail with this code, before you deploy it."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from cloudsched.cli.main import ExitCode
from cloudsched.cli.options import connection_options, explain_errors, handlers_option, json_option
from cloudsched.local.untrusted_text import to_json_line, to_printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.engine.code_check.compare import CodeReport, DifferenceGroup
    from cloudsched.runtime.container import Container


@click.command()
@connection_options
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Look into this data folder, of `cloudsched serve` or of your app, in place of an API.",
)
@handlers_option("The app whose handlers are to run the tasks.")
@json_option
def check(*, url: str, data: Path | None, handlers: str | None, as_json: bool, **credentials: Any) -> None:
    """List the tasks and open runs that would fail with this code. Nothing is changed.

    Looks at all tasks that may still run, of a deployment's API with the key of a viewer or an admin, or in a data
    folder, also while a process uses it: handlers that are gone, payloads and events that a model refuses, and the
    journals of open runs, which are replayed until they end. No step runs. It says what it could not look at.

    Exits with 1 if anything would fail. With --json, prints a line of JSON for each cause, and a summary.
    """
    from cloudsched.adapters.clocks import SystemClock  # noqa: PLC0415 - not needed for --help
    from cloudsched.cli.stored_work import read_api, read_folder  # noqa: PLC0415 - likewise
    from cloudsched.client.client import Client  # noqa: PLC0415 - likewise
    from cloudsched.engine.code_check.effects import RefusedParts  # noqa: PLC0415 - likewise
    from cloudsched.engine.code_check.replays import Comparison  # noqa: PLC0415 - likewise
    from cloudsched.local.app_loader import load_app  # noqa: PLC0415 - likewise

    app = load_app(handlers).app
    comparison = Comparison(app.container.registry, SystemClock())
    app.container = cast("Container", RefusedParts())  # so that no handler's code can reach its store and queue
    if data is not None:
        for each in read_folder(data, comparison.report):
            comparison.look(each)
    else:
        with explain_errors({"url": url, **credentials}), Client(url, **credentials) as client:
            for each in read_api(client):
                comparison.look(each)
    if as_json:
        _print_json(comparison.report)
    else:
        click.echo("\n".join(describe(comparison.report)))
    sys.exit(ExitCode.NO if comparison.report.fails else ExitCode.DONE)


def _print_json(report: CodeReport) -> None:
    from cloudsched.engine.code_check.compare import CURES  # noqa: PLC0415 - not needed for --help

    for difference, group in report.differences.items():
        cause = difference.cause
        about = {"cause": cause, "fails": cause.fails, **asdict(difference), "cure": CURES[cause], **_to_json(group)}
        click.echo(to_json_line(about))
    unknown = [{"what": what, **_to_json(group)} for what, group in report.unknown.items()]
    seen = {"tasks": report.tasks, "openRuns": report.runs}
    click.echo(to_json_line({**seen, "fails": report.fails, "isComplete": not unknown, "notLookedAt": unknown}))


def _to_json(group: DifferenceGroup) -> dict[str, Any]:
    places = [{"taskId": each.task_id, "owner": each.owner, "executionId": each.execution_id} for each in group.first]
    return {"count": group.count, "first": places}


def describe(report: CodeReport) -> list[str]:
    """Return what a comparison has found, as lines for people. The last is the result."""
    from cloudsched.engine.code_check.compare import CURES  # noqa: PLC0415 - not needed for --help

    lines: list[str] = []
    failing = 0
    for difference, group in sorted(report.differences.items(), key=lambda each: not each[0].cause.fails):
        fails = difference.cause.fails
        failing += group.count if fails else 0
        sign = "fails  " if fails else "differs"
        lines += [f"{sign}  {_count(group)} of {difference.handler!r} ({difference.cause}): {difference.problem}"]
        lines += [*_list_places(group), f"         {CURES[difference.cause]}"]
    for what, group in report.unknown.items():
        lines += [f"unknown  {_count(group)}: {what}", *_list_places(group)]
    if failing:
        end = f"{failing:,} would fail, or not go on."
    elif report.unknown:
        end = "Nothing of that would fail; what is unknown is above."
    else:
        end = "Nothing would fail."
    lines += [f"Looked at tasks that may still run: {report.tasks:,}; at open runs: {report.runs:,}. {end}"]
    return [*map(to_printable, lines)]  # handlers' errors and ids may hold anything


def _list_places(group: DifferenceGroup) -> Iterator[str]:
    for place in group.first:
        run = "" if place.execution_id is None else f", execution {place.execution_id}"
        yield f"           {place.task_id} of {place.owner}{run}"
    if group.count > len(group.first) > 0:
        yield f"           … and {group.count - len(group.first):,} more"


def _count(group: DifferenceGroup) -> str:
    return f"{group.count:,} {'time' if group.count == 1 else 'times'}"
