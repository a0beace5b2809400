"""``cloudsched run``: calls a handler here and now, as an attempt of a task that exists only in this process."""

from __future__ import annotations

import dataclasses
import json
import secrets
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloudsched.cli.options import handlers_option
from cloudsched.cli.signals import Stopped, raise_on_signal
from cloudsched.config.imports import pause_collection
from cloudsched.local.untrusted_text import to_json_line, to_printable

if TYPE_CHECKING:
    from cloudsched.app import App
    from cloudsched.config.settings import Settings
    from cloudsched.domain.documents.execution import Execution
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.queue import QueueMessage

POLL_SECONDS = 0.1
"""The polling interval of a durable run, in seconds."""


@click.command()
@click.argument("handler")
@click.option("--payload", metavar="JSON|@FILE|-", help="The payload: JSON, a file that has it, or standard input.")
@click.option("--owner", default="system", show_default=True, help="The owner that the handler sees.")
@handlers_option("The app with the handler.")
@click.option(
    "--durable",
    is_flag=True,
    help="Run it to its end with the local stack: its retries, sleeps, calls and events, too.",
)
@click.option("--skip-waits", is_flag=True, help="With --durable: move the clock ahead instead of waiting.")
def run(
    *, handler: str, payload: str | None, owner: str, handlers: str | None, durable: bool, skip_waits: bool
) -> None:
    """Call HANDLER once, here and now, with a context of its own.

    Nothing outside is touched but by the handler itself: its task is in memory, and what it sends to the inbox is
    printed. The result is printed as JSON on standard output, all else on standard error. Exits with 0 if the handler
    succeeded, with 1 if it did not.
    """
    if skip_waits and not durable:
        raise click.UsageError("--skip-waits is for --durable.")
    content = _read_payload(payload)
    with pause_collection(keeps_all=True):
        from cloudsched.cli.log_output import configure_line_logging  # noqa: PLC0415 - not needed for --help
        from cloudsched.local.app_loader import load_app  # noqa: PLC0415 - likewise

    app = load_app(handlers).app
    configure_line_logging(
        lambda: f"{datetime.now(UTC):%H:%M:%S}", lambda record: getattr(record, "action", "") != "swept"
    )
    try:
        if durable:
            execution = _run_durably(app, handler, content, owner, skips_waits=skip_waits)
        else:
            execution = _run_once(app, handler, content, owner)
    except Stopped as stopped:
        sys.exit(stopped.exit_code)
    sys.exit(_report(execution, is_durable=durable))


def _read_payload(text: str | None) -> Any:  # noqa: ANN401 - any JSON
    if text is None:
        return None
    try:
        if text == "-":
            text = sys.stdin.read()
        elif text.startswith("@"):
            text = Path(text[1:]).read_text("utf-8")
        return json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise click.UsageError(f"--payload is not JSON: {error}") from error


def _run_once(app: App, handler: str, payload: Any, owner: str) -> Execution | None:  # noqa: ANN401 - any JSON
    """Deliver one dispatch to the app, which has a store in memory and a queue that delivers nothing."""
    from cloudsched.adapters.clocks import SystemClock  # noqa: PLC0415 - not needed for --help
    from cloudsched.adapters.sqlite.store import SqliteStore  # noqa: PLC0415 - likewise

    queue = _KeptDispatches()
    store = SqliteStore()
    try:
        with app.override(_local_settings(), store=store, dispatcher=queue, clock=SystemClock()):
            task = _create(app, handler, payload, owner)
            app.deliver(queue.messages[0].body, queue.messages[0].token)
            return _look(app, task)
    finally:
        store.close()


def _run_durably(
    app: App,
    handler: str,
    payload: Any,  # noqa: ANN401 - any JSON
    owner: str,
    *,
    skips_waits: bool,
) -> Execution | None:
    from cloudsched.config.settings import Settings  # noqa: PLC0415 - not needed for --help
    from cloudsched.emulator.runtime.clock import MovableClock  # noqa: PLC0415 - likewise
    from cloudsched.local.stack import run_stack  # noqa: PLC0415 - likewise

    base = Settings.from_environment()
    clock = MovableClock(frozen=skips_waits)
    app.container.registry.registrations.declarations.clear()  # only this task is to run
    with raise_on_signal(), run_stack(app, base=base, store="sqlite", clock=clock) as stack:
        task = _create(app, handler, payload, owner)
        click.echo(
            f"task {task.id}; to send it events: cloudsched tasks --url {stack.url} send {task.id} EVENT", err=True
        )
        if skips_waits:
            stack.emulator.run_until_idle()
        else:
            while not app.get(task.id).has_ended:
                time.sleep(POLL_SECONDS)
        return _look(app, task)


def _create(app: App, handler: str, payload: Any, owner: str) -> Task:  # noqa: ANN401 - any JSON
    return app.run_now(handler, payload, owner=owner, pull=None)  # here, whichever worker would fetch it


def _look(app: App, task: Task) -> Execution | None:
    for message in reversed(app.inbox(task.owner).items):
        click.echo(to_printable(f"inbox of {task.owner}: {message.title}: {message.body}"), err=True)
    found = app.executions(task.id).items
    return app.execution(task.id, found[0].id) if found else None


def _report(execution: Execution | None, *, is_durable: bool) -> int:
    from cloudsched.cli.output import detail_lines  # noqa: PLC0415 - not needed for --help
    from cloudsched.domain.documents.execution import ExecutionStatus  # noqa: PLC0415 - likewise

    if execution is None:
        click.echo("It did not run.", err=True)
        return 1
    for line in detail_lines(execution):
        click.echo(line.plain, err=True)
    if execution.status is ExecutionStatus.SUCCEEDED:
        click.echo(to_json_line(execution.content))
        return 0
    hint = "" if is_durable else " (--durable runs it to its end)"
    is_open = not execution.status.is_final
    message = f": {execution.message}" if execution.message else ""
    click.echo(to_printable(f"{execution.status}{message}{hint if is_open else ''}"), err=True)
    return 1


def _local_settings() -> Settings:
    from cloudsched.config.settings import Settings  # noqa: PLC0415 - not needed for --help

    base = Settings.from_environment()
    access = dataclasses.replace(base.access, open=True)
    return dataclasses.replace(
        base, store="sqlite", data=None, secret=secrets.token_urlsafe(32), is_deployed=False, access=access
    )


class _KeptDispatches:
    def __init__(self) -> None:
        self.messages: list[QueueMessage] = []

    def create(self, message: QueueMessage) -> None:
        self.messages.append(message)

    def close(self) -> None:
        """Do nothing: there is nothing to close."""
