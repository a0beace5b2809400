"""``cloudsched completion``: lets a shell complete commands and options."""

from __future__ import annotations

import click

_HOW = {
    "bash": 'eval "$(cloudsched completion bash)"  in ~/.bashrc (bash 4.4 or newer)',
    "zsh": 'eval "$(cloudsched completion zsh)"  in ~/.zshrc, below compinit',
    "fish": "cloudsched completion fish > ~/.config/fish/completions/cloudsched.fish",
}


@click.command(epilog="\b\n" + "\n".join(_HOW.values()))
@click.argument("shell", type=click.Choice([*_HOW]))
def completion(shell: str) -> None:
    """Print what lets SHELL complete commands, options and their values."""
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - not needed for --help

    from cloudsched.cli.main import cloudsched  # noqa: PLC0415 - it imports this

    found = get_completion_class(shell)
    assert found is not None  # noqa: S101 - the choices above are click's own
    parts = found(cloudsched, {}, "cloudsched", "_CLOUDSCHED_COMPLETE")
    click.echo(parts.source_template % parts.source_vars())
