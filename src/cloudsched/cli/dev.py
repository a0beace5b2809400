"""``cloudsched dev``: the local stack as a program, alone or around a command."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloudsched.cli.signals import Stopped, defer_signals, raise_on_signal
from cloudsched.errors import CloudschedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cloudsched.app import App
    from cloudsched.emulator.runtime.clock import MovableClock
    from cloudsched.local.app_loader import LoadedApp
    from cloudsched.local.stack import Stack
    from cloudsched.local.store_choice import StoreChoice

PORT = 8080
TASKS_PORT = 8123
_NOT_FOUND = 127
"""What shells exit with if there is no such command."""
_TERMINATE_TIMEOUT_SECONDS = 10
"""How long a command may take to end after it was asked to."""
_FAILURE_ACTIONS = {"failed", "retrying", "timed_out"}
"""Lines of the log that are about an attempt with an error."""
_REASON_ATTRIBUTE = "why"
"""Where a line has that error."""
_MAX_REASON_LENGTH = 500


def _parse_instant(_context: click.Context, _option: click.Parameter, value: str | None) -> datetime | None:
    if value is None:
        return None
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not an instant such as 2027-01-01T00:00:00Z.") from None
    if at.tzinfo is None:
        raise click.BadParameter(f"{value!r} has no offset from UTC; end it with Z for UTC.")
    return at.astimezone(UTC)


_PORT_TYPE = click.IntRange(0, 65535)


_FREE_PORT_NOTE = "or a free one with a COMMAND"


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("--port", type=_PORT_TYPE, help=f"Of the API and the executor. [default: {PORT}, {_FREE_PORT_NOTE}]")
@click.option(
    "--tasks-port", type=_PORT_TYPE, help=f"Of the local Cloud Tasks. [default: {TASKS_PORT}, {_FREE_PORT_NOTE}]"
)
@click.option(
    "--store",
    type=click.Choice(["auto", "sqlite", "firestore"]),
    default="auto",
    show_default=True,
    help="Where tasks are kept: embedded, or in Google's Firestore emulator; auto takes that one if there is one.",
)
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="Keep the embedded store in this one.")
@click.option(
    "--handlers",
    metavar="FILE|MODULE[:APP]",
    help="Whose handlers run. [default: functions/handlers.py, handlers.py, or cloudsched's own examples]",
)
@click.option("--freeze", callback=_parse_instant, metavar="INSTANT", help="Begin with the clock standing still there.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def dev(
    *,
    port: int | None,
    tasks_port: int | None,
    store: StoreChoice,
    data: Path | None,
    handlers: str | None,
    freeze: datetime | None,
    command: tuple[str, ...],
) -> None:
    """Run the local stack: API, executor, sweep, a local Cloud Tasks and a store.

    With a COMMAND (behind --) the stack lives as long as that runs, finds it by its environment variables, and this
    exits with its code. Without one, it runs until Ctrl-C.
    """
    from cloudsched.config.settings import Settings  # noqa: PLC0415 - --help needs none of it
    from cloudsched.emulator.runtime.clock import MovableClock  # noqa: PLC0415 - the same
    from cloudsched.local.app_loader import load_app  # noqa: PLC0415 - the same
    from cloudsched.local.stack import run_stack  # noqa: PLC0415 - the same

    loaded = load_app(handlers)
    clock = MovableClock(freeze, frozen=freeze is not None)
    _configure_logging(clock, loaded.app, logging.WARNING if command else logging.INFO)
    code = 0
    with raise_on_signal():
        try:
            with run_stack(
                loaded.app,
                base=Settings.from_environment(),
                store=store,
                data=data,
                clock=clock,
                port=_choose_port(port, PORT, is_alone=not command),
                tasks_port=_choose_port(tasks_port, TASKS_PORT, is_alone=not command),
            ) as stack:
                if command:
                    click.echo(f"cloudsched dev: the store is {stack.store.reason}", err=True)
                    code = _run(command, stack)
                else:
                    click.echo(_startup_text(stack, loaded))
                    threading.Event().wait()
        except Stopped as stopped:
            code = stopped.exit_code if command else 0
    sys.exit(code)


def _choose_port(port: int | None, default: int, *, is_alone: bool) -> int:
    """Return a port to listen on: one that can be remembered where somebody is to type it, else any."""
    if port is not None:
        return port
    return default if is_alone else 0


def _startup_text(stack: Stack, loaded: LoadedApp) -> str:
    tasks = stack.emulator.address
    handlers = ", ".join(sorted(handler.name for handler in loaded.app.registry)) or "none"
    move = f"curl -X POST http://{tasks}/clock -d"
    lines = [
        f"store        {stack.store.reason}",
        f"handlers     {handlers} ({loaded.origin})",
        f"API          {stack.url}/v1/tasks",
        f"Cloud Tasks  {tasks} (gRPC and REST)",
        f"clock        {stack.clock.now().isoformat(timespec='seconds')}, {stack.clock.mode}. To move it:",
        f"""             {move} '{{"freeze": true}}'""",
        f"""             {move} '{{"advance": "P30D"}}'""",
    ]
    if "remind" in handlers:
        body = '{"owner": "ada", "title": "Tea", "handler": "remind", "payload": {"text": "It is ready."}}'
        lines += [f"a task       curl -X POST {stack.url}/v1/tasks -d '{body}'"]
    return "\n".join([*lines, "Ready. Ctrl-C stops it."])


def _run(command: Sequence[str], stack: Stack) -> int:
    """Run a command that finds the stack by its environment; return the exit code that a shell would.

    It is in a process group of its own, so that all that it leaves behind can be ended, unless it is to talk with a
    terminal, whose Ctrl-C it then hears by itself.
    """
    has_terminal = sys.stdin is not None and sys.stdin.isatty()
    with ExitStack() as ending:
        try:
            with defer_signals():
                process = subprocess.Popen(  # noqa: S603 - it is what the user asked for
                    command,
                    env=stack.settings.to_child_environment(CLOUDSCHED_URL=stack.url),
                    process_group=None if has_terminal else 0,
                )
                ending.enter_context(_terminate_at_exit(process, has_terminal=has_terminal))
        except OSError as error:
            click.echo(f"cloudsched dev: {command[0]} cannot be run: {error.strerror or error}", err=True)
            return _NOT_FOUND
        code = process.wait()
    return code if code >= 0 else 128 - code


@contextmanager
def _terminate_at_exit(process: subprocess.Popen[bytes], *, has_terminal: bool) -> Iterator[None]:
    """Pass a signal to stop on to a command, give it some time, and end what is left of it."""
    try:
        yield
    except Stopped as stopped:
        if not (has_terminal and stopped.signum == signal.SIGINT):
            process.send_signal(stopped.signum)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_TERMINATE_TIMEOUT_SECONDS)
        raise
    finally:
        if not has_terminal:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()


class _StackTimeFormatter(logging.Formatter):
    """Log lines with the time of the stack's clock, which is the one that matters in them."""

    def __init__(self, clock: MovableClock) -> None:
        super().__init__()
        self._clock = clock

    def format(self, record: logging.LogRecord) -> str:
        now = self._clock.now().isoformat(timespec="seconds").replace("+00:00", "Z")
        about = f" {task}" if (task := getattr(record, "taskId", None)) else ""
        why = f": {_to_printable_line(why)}" if (why := getattr(record, _REASON_ATTRIBUTE, "")) else ""
        trace = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        return f"{now}{about} {record.getMessage()}{why}{trace}"


def _is_interesting(record: logging.LogRecord) -> bool:
    """Leave out the sweeps that had nothing to do: there is one a minute."""
    return getattr(record, "action", "") != "swept" or bool(getattr(record, "dispatched", 0))


def _add_failure_reason(app: App) -> Callable[[logging.LogRecord], bool]:
    """Return a filter that looks up why an attempt has failed: what handlers raise is in the record, and in no log."""

    def look_up(record: logging.LogRecord) -> bool:
        said: dict[str, Any] = record.__dict__
        if said.get("action") in _FAILURE_ACTIONS and "executionId" in said:  # a request that failed is about none
            with suppress(CloudschedError):  # it may be deleted by now
                error = app.execution(said["taskId"], said["executionId"]).error
                setattr(record, _REASON_ATTRIBUTE, f"{error.type}: {error.message}" if error else "")
        return True

    return look_up


def _to_printable_line(text: str) -> str:
    """Return text in one line, without control characters, which would move the cursor of whoever looks."""
    text = text if len(text) <= _MAX_REASON_LENGTH else text[:_MAX_REASON_LENGTH] + " …"
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _configure_logging(clock: MovableClock, app: App, level: int) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(_StackTimeFormatter(clock))
    handler.addFilter(_is_interesting)
    handler.addFilter(_add_failure_reason(app))  # a filter, since it may wait for the store: no other line waits for it
    log = logging.getLogger("cloudsched")
    log.addHandler(handler)
    log.setLevel(level)
