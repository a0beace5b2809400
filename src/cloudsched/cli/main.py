"""The command line: ``cloudsched dev | demo | emulator | next | worker``.

Each command lives in a module of its own, which is imported when the command is used.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.metadata import version

import click

from cloudsched.errors import CloudschedError

_COMMANDS = {
    "demo": ("cloudsched.cli.demo:demo", "Watch a year of tasks go by in seconds."),
    "dev": ("cloudsched.cli.dev:dev", "Run the local stack: API, executor, sweep, Cloud Tasks and a store."),
    "emulator": ("cloudsched.emulator.cli:emulator", "Run a local Cloud Tasks alone."),
    "keys": ("cloudsched.cli.keys:keys", "Make an API key for a server."),
    "next": ("cloudsched.cli.next:next_command", "Show when a schedule fires."),
    "tasks": ("cloudsched.cli.tasks:tasks", "Look at tasks and change them, through the API."),
    "worker": ("cloudsched.cli.worker:worker", "Run the tasks of a queue on this machine."),
}
"""Where each command is, and what it is for: all that ``--help`` needs."""

NO_CREDENTIALS = (
    "{place} lets nobody in without a proof: give --key (or CLOUDSCHED_KEY), or --token (or CLOUDSCHED_TOKEN)."
)
"""What is said to whom the API does not know, and who has given nothing to be known by."""


class _Commands(click.Group):
    """A group that imports a command when it is used."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name][0].partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)  # noqa: S101 - as the table above says
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in sorted(_COMMANDS.items())])


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("cloudsched"), prog_name="cloudsched")
def cloudsched() -> None:
    """Durable scheduled tasks for Google Cloud; here, everything that runs on your own machine."""


def main() -> None:
    """Run a command; what goes wrong on purpose is told in one line, with exit code 2."""
    try:
        cloudsched(prog_name="cloudsched")
    except CloudschedError as error:
        click.echo(f"cloudsched: {error}", err=True)
        sys.exit(2)
