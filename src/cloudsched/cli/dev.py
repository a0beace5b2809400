"""``cloudsched dev``: the local stack as a program, alone or around a command."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, get_args

import click

from cloudsched.cli.child_command import run_command
from cloudsched.cli.exit import LEFT_SECONDS, exit_within
from cloudsched.cli.log_output import configure_stack_logging
from cloudsched.cli.options import data_option
from cloudsched.cli.signals import Stopped, raise_on_signal, wait_for_signal
from cloudsched.config.imports import pause_collection
from cloudsched.config.settings import StoreChoice, name_own_command
from cloudsched.emulator.cli import freeze_option

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from cloudsched.local.app_loader import LoadedApp
    from cloudsched.local.stack import Stack

PORT: Final = 8080
TASKS_PORT: Final = 8123
_PORT_TYPE: Final = click.IntRange(0, 65535)
_FREE_PORT_NOTE: Final = "or a free one with a COMMAND"


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "--port",
    type=_PORT_TYPE,
    help=f"Port of the API and the executor. [default: {PORT}, {_FREE_PORT_NOTE}]",
)
@click.option(
    "--tasks-port",
    type=_PORT_TYPE,
    help=f"Port of the local Cloud Tasks. [default: {TASKS_PORT}, {_FREE_PORT_NOTE}]",
)
@click.option(
    "--store",
    type=click.Choice(get_args(StoreChoice)),
    default="auto",
    show_default=True,
    help="The store: embedded, or Google's Firestore emulator. auto takes the emulator if it is there.",
)
@data_option("Keep the embedded store in this directory.", required=False)
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

    With a COMMAND (after --) the stack runs as long as the command, which finds it through environment
    variables, and cloudsched exits with the command's exit code. Without one, the stack runs until Ctrl-C. A
    task that is created without a time runs at once.
    """
    if print_env:
        from cloudsched.local.environment_file import read_environment  # noqa: PLC0415 - not needed for --help

        click.echo(read_environment(_choose_port(port, PORT, ())), nl=False)
        return

    with pause_collection(keeps_all=True):
        from cloudsched.config.settings import Settings  # noqa: PLC0415 - not needed for --help
        from cloudsched.emulator.runtime.clock import MovableClock  # noqa: PLC0415 - likewise
        from cloudsched.local.app_loader import load_app  # noqa: PLC0415 - likewise
        from cloudsched.local.environment_file import publish_environment  # noqa: PLC0415 - likewise
        from cloudsched.local.handler_watch import HandlerWatch  # noqa: PLC0415 - likewise
        from cloudsched.local.stack import run_stack  # noqa: PLC0415 - likewise
        from cloudsched.local.warm_up import warm_up_soon  # noqa: PLC0415 - likewise

    if reload:
        sys.dont_write_bytecode = True  # a file that changes within a second would be taken from its bytecode
    loaded = load_app(handlers, or_examples=True)
    clock = MovableClock(freeze, frozen=freeze is not None)
    configure_stack_logging(clock)
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
                        port=_choose_port(port, PORT, command),
                        tasks_port=_choose_port(tasks_port, TASKS_PORT, command),
                    )
                )
                if loaded.target is not None:
                    parts.enter_context(HandlerWatch(loaded.app, loaded.target, loaded.folder, reloads=reload))
                parts.enter_context(
                    publish_environment(stack.port, stack.to_environment(), stack.settings.unset_variables)
                )

                if command:
                    click.echo(f"cloudsched dev: the store is {stack.store.reason}", err=True)
                    code = run_command(command, stack.settings.to_child_environment(CLOUDSCHED_URL=stack.url))
                else:
                    warm_up_soon(stack.app)
                    click.echo(_startup_text(stack, loaded))
                    wait_for_signal()
        except Stopped as stopped:
            if command:
                code = stopped.exit_code
            exit_within(LEFT_SECONDS, code, "dev")
    sys.exit(code)


def _choose_port(port: int | None, default: int, command: tuple[str, ...]) -> int:
    """Return the port to listen on: the default where people type it, any free one under a command."""
    if port is not None:
        return port
    return 0 if command else default


def _startup_text(stack: Stack, loaded: LoadedApp) -> str:
    access = "open: every caller is an admin and may name every handler"
    move = f"curl -X POST {stack.url}/dev/clock -d"
    if stack.settings.access.is_configured:
        access = "for callers who authenticate"
        move = f'curl -X POST -H "X-Api-Key: $KEY" {stack.url}/dev/clock -d'
    join = f"{name_own_command()} dev --print-env"
    if stack.port != PORT:
        join += f" --port {stack.port}"

    lines = [
        f"store        {stack.store.reason}",
        f"handlers     {loaded.handler_names} ({loaded.origin})",
        f"API          {stack.url}/v1/tasks (its description: {stack.url}/openapi.json)",
        f"dashboard    {stack.url}/ui/",
        f"access       {access}",
        f"mailbox      {stack.url}/dev/mailbox (mail, pushes and webhooks)",
        f"Cloud Tasks  {stack.emulator.address} (gRPC and REST)",
        f"clock        {stack.clock.now().isoformat(timespec='seconds')}, {stack.clock.mode}. To move it:",
        f"""             {move} '{{"freeze": true}}'""",
        f"""             {move} '{{"advance": "P30D"}}'""",
        f'terminals    to join from another one: eval "$({join})"',
    ]
    return "\n".join([*lines, *_example_lines(stack, loaded), "Ready. Ctrl-C stops it."])


def _example_lines(stack: Stack, loaded: LoadedApp) -> list[str]:
    """Return how to create a first task, of a handler that needs no more than its name."""
    registry = loaded.app.container.registry
    if any(handler.name == "remind" for handler in registry):
        body = '{"owner": "ada", "title": "Tea", "handler": "remind", "payload": {"text": "It is ready."}}'
        return [
            f"a task       curl -X POST {stack.url}/v1/tasks -d '{body}'",
            "             It runs at once: the log below says so, and its message is in",
            f"             curl {stack.url}/v1/inboxes/ada/messages",
        ]

    plain = [handler.name for handler in registry if handler.payload is None and handler.workers is None]
    if not plain:
        return []
    create = f"{name_own_command()} tasks --url {stack.url} create Try --owner ada --handler {plain[0]}"
    return [f"a task       {create}", "             It runs at once: the log below says so."]
