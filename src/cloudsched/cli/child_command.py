"""Run the user's command as a child process, and end it with all processes that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Final

import click

from cloudsched.cli.signals import Stopped, defer_signals

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_NOT_FOUND: Final = 127
"""The exit code of shells if there is no such command."""
_TERMINATE_SECONDS: Final = 10
"""How long a command may take to end after the signal."""


def run_command(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command, and return the exit code that a shell would.

    It gets its own process group, so that everything it leaves behind can be killed. With a terminal it stays
    in ours, because it has to read from the terminal and to receive its Ctrl-C.
    """
    has_terminal = sys.stdin is not None and sys.stdin.isatty()
    with ExitStack() as cleanup:
        try:
            with defer_signals():
                process = subprocess.Popen(  # noqa: S603 - the user's own command
                    command,
                    env=environment,
                    process_group=None if has_terminal else 0,
                )
                cleanup.enter_context(_terminate_at_exit(process, has_terminal=has_terminal))
        except OSError as error:
            click.echo(f"cloudsched dev: {command[0]} cannot be run: {error.strerror or error}", err=True)
            return _NOT_FOUND

        # A signal that another thread gets does not end a longer wait.
        while (code := process.poll()) is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(1.0)
    if code < 0:
        return 128 - code
    return code


@contextmanager
def _terminate_at_exit(process: subprocess.Popen[bytes], *, has_terminal: bool) -> Iterator[None]:
    """Forward a termination signal to the command, wait a while, and kill the rest of its processes."""
    try:
        yield
    except Stopped as stopped:
        if not (has_terminal and stopped.signum == signal.SIGINT):
            process.send_signal(stopped.signum)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_TERMINATE_SECONDS)
        raise
    finally:
        if not has_terminal:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()
