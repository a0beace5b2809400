"""``cloudsched completion``: prints what a shell needs to complete commands, options and the ids of tasks."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion of commands, options and tasks' ids for a SHELL.

    Evaluate it in the shell's start file. A task's ID is completed from the newest 50 tasks that the API shows you.
    """
    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 - as the choice says
    root = context.find_root()
    click.echo(kind(root.command, {}, "cloudsched", "_CLOUDSCHED_COMPLETE").source())
