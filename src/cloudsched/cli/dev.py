"""``cloudsched dev``: the local stack as a program, alone or around a command."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from cloudsched.cli.exit import LEFT_SECONDS, exit_within
from cloudsched.cli.log_output import configure_line_logging
from cloudsched.cli.signals import Stopped, defer_signals, raise_on_signal, wait_for_signal
from cloudsched.config.imports import pause_collection
from cloudsched.config.settings import StoreChoice, name_own_command
from cloudsched.emulator.cli import freeze_option

if TYPE_CHECKING:
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.local.app_loader import LoadedApp
    from cloudsched.local.stack import Stack

PORT = 8080
TASKS_PORT = 8123
_NOT_FOUND = 127
"""The exit code of shells if there is no such command."""
_TERMINATE_TIMEOUT_SECONDS = 10
"""The longest time of a command's end after the signal."""

_PORT_TYPE = click.IntRange(0, 65535)

_FREE_PORT_NOTE = "or a free one with a COMMAND"


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("--port", type=_PORT_TYPE, help=f"Port of the API and the executor. [default: {PORT}, {_FREE_PORT_NOTE}]")
@click.option(
    "--tasks-port", type=_PORT_TYPE, help=f"Port of the local Cloud Tasks. [default: {TASKS_PORT}, {_FREE_PORT_NOTE}]"
)
@click.option(
    "--store",
    type=click.Choice(get_args(StoreChoice)),
    default="auto",
    show_default=True,
    help="The store: embedded, or Google's Firestore emulator. auto takes the emulator if it is there.",
)
@click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), help="Keep the embedded store in this directory."
)
@click.option(
    "--handlers",
    metavar="FILE|MODULE[:APP]",
    help="The app whose handlers run. [default: functions/handlers.py, handlers.py, or cloudsched's own examples]",
)
@freeze_option
@click.option("--reload", is_flag=True, help="Load the handlers again when their files change.")
@click.option(
    "--print-env",
    is_flag=True,
    help="Print what lets this terminal join the stack that runs on --port, and exit. "
    'Use it as: eval "$(cloudsched dev --print-env)"',
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def dev(  # noqa: PLR0913 - one argument for each option
    *,
    port: int | None,
    tasks_port: int | None,
    store: StoreChoice,
    data: Path | None,
    handlers: str | None,
    freeze: datetime | None,
    reload: bool,
    print_env: bool,
    command: tuple[str, ...],
) -> None:
    """Run the local stack: API, executor, sweep, a local Cloud Tasks and a store.

    With a COMMAND (after --) the stack runs as long as the command, which finds it through environment variables, and
    cloudsched exits with the command's exit code. Without one, the stack runs until Ctrl-C. A task that is created
    without a time runs at once.
    """
    if print_env:
        from cloudsched.local.environment_file import read_environment  # noqa: PLC0415 - not needed for --help

        click.echo(read_environment(PORT if port is None else port), nl=False)
        return
    with pause_collection(keeps_all=True):
        from cloudsched.config.settings import Settings  # noqa: PLC0415 - not needed for --help
        from cloudsched.emulator.runtime.clock import MovableClock  # noqa: PLC0415 - likewise
        from cloudsched.local.app_loader import load_app  # noqa: PLC0415 - likewise
        from cloudsched.local.environment_file import publish_environment  # noqa: PLC0415 - likewise
        from cloudsched.local.handler_watch import HandlerWatch  # noqa: PLC0415 - likewise
        from cloudsched.local.stack import run_stack  # noqa: PLC0415 - likewise

    if reload:
        sys.dont_write_bytecode = True  # a file that changes within a second would be taken from its bytecode
    loaded = load_app(handlers)
    clock = MovableClock(freeze, frozen=freeze is not None)
    configure_logging(clock)
    code = 0
    with raise_on_signal():
        try:
            with ExitStack() as parts:
                stack = parts.enter_context(
                    run_stack(
                        loaded.app,
                        base=Settings.from_environment(),
                        store=store,
                        data=data,
                        clock=clock,
                        port=_choose_port(port, PORT, is_alone=not command),
                        tasks_port=_choose_port(tasks_port, TASKS_PORT, is_alone=not command),
                    )
                )
                if loaded.target is not None:
                    parts.enter_context(HandlerWatch(loaded.app, loaded.target, loaded.folder, reloads=reload))
                own_port = int(stack.url.rpartition(":")[2])
                parts.enter_context(
                    publish_environment(own_port, stack.to_environment(), stack.settings.unset_variables)
                )
                if command:
                    click.echo(f"cloudsched dev: the store is {stack.store.reason}", err=True)
                    code = _run(command, stack)
                else:
                    click.echo(_startup_text(stack, loaded))
                    wait_for_signal()
        except Stopped as stopped:
            code = stopped.exit_code if command else 0
            exit_within(LEFT_SECONDS, code, "dev")
    sys.exit(code)


def _choose_port(port: int | None, default: int, *, is_alone: bool) -> int:
    """Return the port to listen on: the default where people type it, any free one under a command."""
    if port is not None:
        return port
    return default if is_alone else 0


def _startup_text(stack: Stack, loaded: LoadedApp) -> str:
    tasks = stack.emulator.address
    names = sorted(handler.name for handler in loaded.app.container.registry)
    is_closed = loaded.app.container.settings.access.is_configured
    access = (
        "for callers who authenticate" if is_closed else "open: every caller is an admin and may name every handler"
    )
    key = ' -H "X-Api-Key: $KEY"' if is_closed else ""
    move = f"curl -X POST{key} {stack.url}/dev/clock -d"
    port = stack.url.rpartition(":")[2]
    own_port = "" if port == str(PORT) else f" --port {port}"
    command = name_own_command()
    lines = [
        f"store        {stack.store.reason}",
        f"handlers     {', '.join(names) or 'none'} ({loaded.origin})",
        f"API          {stack.url}/v1/tasks (its description: {stack.url}/openapi.json)",
        f"dashboard    {stack.url}/ui/",
        f"access       {access}",
        f"mailbox      {stack.url}/dev/mailbox (mail, pushes and webhooks)",
        f"Cloud Tasks  {tasks} (gRPC and REST)",
        f"clock        {stack.clock.now().isoformat(timespec='seconds')}, {stack.clock.mode}. To move it:",
        f"""             {move} '{{"freeze": true}}'""",
        f"""             {move} '{{"advance": "P30D"}}'""",
        f'terminals    to join from another one: eval "$({command} dev --print-env{own_port})"',
    ]
    if "remind" in names:
        body = '{"owner": "ada", "title": "Tea", "handler": "remind", "payload": {"text": "It is ready."}}'
        lines += [
            f"a task       curl -X POST {stack.url}/v1/tasks -d '{body}'",
            "             It runs at once: the log below says so, and its message is in",
            f"             curl {stack.url}/v1/inboxes/ada/messages",
        ]
    elif plain := [
        handler.name for handler in loaded.app.container.registry if handler.payload is None and handler.pull is None
    ]:
        lines += [f"a task       {command} tasks --url {stack.url} create Try --owner ada --handler {plain[0]}"]
        lines += ["             It runs at once: the log below says so."]
    return "\n".join([*lines, "Ready. Ctrl-C stops it."])


def _run(command: Sequence[str], stack: Stack) -> int:
    """Run a command with the stack's environment variables. Return the exit code that a shell would.

    It gets its own process group, so that everything it leaves behind can be killed. With a terminal it stays in ours,
    because it has to read from the terminal and to receive its Ctrl-C.
    """
    has_terminal = sys.stdin is not None and sys.stdin.isatty()
    with ExitStack() as cleanup:
        try:
            with defer_signals():
                process = subprocess.Popen(  # noqa: S603 - the user's own command
                    command,
                    env=stack.settings.to_child_environment(CLOUDSCHED_URL=stack.url),
                    process_group=None if has_terminal else 0,
                )
                cleanup.enter_context(_terminate_at_exit(process, has_terminal=has_terminal))
        except OSError as error:
            click.echo(f"cloudsched dev: {command[0]} cannot be run: {error.strerror or error}", err=True)
            return _NOT_FOUND
        while (code := process.poll()) is None:  # a signal that another thread gets does not end a longer wait
            with suppress(subprocess.TimeoutExpired):
                process.wait(1.0)
    return code if code >= 0 else 128 - code


@contextmanager
def _terminate_at_exit(process: subprocess.Popen[bytes], *, has_terminal: bool) -> Iterator[None]:
    """Forward a termination signal to the command, wait a while, and kill what remains of it."""
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


def _is_busy_sweep(record: logging.LogRecord) -> bool:
    """Return False for sweeps that had nothing to do: there is one a minute."""
    return getattr(record, "action", "") != "swept" or bool(getattr(record, "dispatched", 0))


def configure_logging(clock: Clock) -> None:
    """Print what the stack and its handlers log, with the time of its movable clock."""
    configure_line_logging(lambda: clock.now().isoformat(timespec="seconds").replace("+00:00", "Z"), _is_busy_sweep)
