"""``cloudsched check``: find the stored work that would fail with this code, before you deploy it."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from cloudsched.cli.main import ExitCode
from cloudsched.cli.options import connection_options, explain_errors, handlers_option, json_option
from cloudsched.local.untrusted_text import to_json_line, to_printable

if TYPE_CHECKING:
    from cloudsched.app import App
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
    journals of open runs, which are replayed until they end. No step runs. Tasks that the code declares are checked,
    too. It says what it could not look at.

    Exits with 1 if anything would fail. With --json, prints a line of JSON for each cause, and a summary.
    """
    from cloudsched.adapters.clocks import SystemClock  # noqa: PLC0415 - not needed for --help
    from cloudsched.cli.stored_work import read_api, read_folder  # noqa: PLC0415 - likewise
    from cloudsched.client.client import Client  # noqa: PLC0415 - likewise
    from cloudsched.engine.code_check.compare import describe  # noqa: PLC0415 - likewise
    from cloudsched.engine.code_check.effects import RefusedParts  # noqa: PLC0415 - likewise
    from cloudsched.engine.code_check.replays import Comparison  # noqa: PLC0415 - likewise
    from cloudsched.local.app_loader import load_app  # noqa: PLC0415 - likewise

    app = load_app(handlers).app
    comparison = Comparison(app.container.registry, SystemClock())
    report = comparison.report
    container = app.container
    app.container = cast("Container", RefusedParts())  # so that no handler's code can reach its store and queue
    if data is not None:
        for each in read_folder(data, report):
            comparison.look(each)
    else:
        with explain_errors({"url": url, **credentials}), Client(url, **credentials) as client:
            for each in read_api(client):
                comparison.look(each)
    app.container = container
    _check_declarations(app, report, data)
    if as_json:
        _print_json(report)
    else:
        click.echo("\n".join(map(to_printable, describe(report))))  # errors and ids may hold anything
    sys.exit(ExitCode.NO if report.fails else ExitCode.DONE)


def _check_declarations(app: App, report: CodeReport, data: Path | None) -> None:
    """Compare the declared tasks with a folder's tasks and calendars, or with none, as `serve` does when it starts."""
    from cloudsched.adapters.sqlite.store import SqliteStore  # noqa: PLC0415 - not needed for --help
    from cloudsched.config.settings import Settings  # noqa: PLC0415 - likewise
    from cloudsched.engine.code_check.compare import Difference, Mismatch  # noqa: PLC0415 - likewise
    from cloudsched.engine.code_check.effects import RefusedParts, refuse_effects  # noqa: PLC0415 - likewise
    from cloudsched.errors import InvalidInput  # noqa: PLC0415 - likewise
    from cloudsched.local.data_folder import STORE_FILE_NAME  # noqa: PLC0415 - likewise

    file = None if data is None else data / STORE_FILE_NAME
    queue: Any = RefusedParts()
    settings = Settings(secret="that signs nothing here")  # noqa: S106 - no dispatch is sent
    with (
        closing(SqliteStore(file, is_read_only=file is not None)) as store,
        app.override(settings, store=store, dispatcher=queue),
    ):
        store.load("")  # connects before that is refused
        for each in app.container.registry.registrations.declarations.values():
            try:
                with refuse_effects() as refused:  # a payload's validators are user code
                    app.declared_tasks().compare([each], gone=None)
            except InvalidInput as error:
                if refused or (file is None and "calendars." in error.field):
                    report.note_unknown(f"here: {error}")
                else:
                    report.add(Difference(Mismatch.DECLARATION, each.handler, f"{error}"))


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
