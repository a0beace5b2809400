"""With what a command exits, and how it tells an error to a person or, with ``--json``, to a program."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

import click

from cloudsched.errors import (
    CloudschedError,
    Forbidden,
    InvalidInput,
    Misconfigured,
    NotFound,
    Unauthenticated,
    Unavailable,
    WorkflowError,
)
from cloudsched.local.untrusted_text import print_error, to_json_line


class ExitCode(IntEnum):
    """With what ``cloudsched`` exits."""

    DONE = 0
    NO = 1
    """What was looked at has faults, or differs; what was run has failed; somebody said no."""
    USAGE = 2
    """The command is mistyped, or a setting or a package is missing."""
    REFUSED = 3
    """What was given is invalid, or cannot be done in this state; a limit is reached."""
    NOT_FOUND = 4
    UNAUTHORISED = 5
    """The credential is missing or wrong, or may not do this."""
    UNREACHABLE = 6
    """There was no answer, or none but overload: try again later."""
    TIMED_OUT = 7
    """It did not end in the time that it was given."""


_CODES: Final[tuple[tuple[type[BaseException], ExitCode], ...]] = (
    (NotFound, ExitCode.NOT_FOUND),
    (Unauthenticated, ExitCode.UNAUTHORISED),
    (Forbidden, ExitCode.UNAUTHORISED),
    (Unavailable, ExitCode.UNREACHABLE),
    (TimeoutError, ExitCode.TIMED_OUT),
    (Misconfigured, ExitCode.USAGE),
    (click.UsageError, ExitCode.USAGE),
    (WorkflowError, ExitCode.NO),
    (click.ClickException, ExitCode.NO),
    (CloudschedError, ExitCode.REFUSED),
)


def find_exit_code(error: BaseException) -> ExitCode:
    """Return with what a command exits that has failed with this error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.NO)


def report_error(error: Exception, *, as_json: bool) -> ExitCode:
    """Print an error on standard error, and return the exit code."""
    code = find_exit_code(error)
    if as_json:
        click.echo(to_json_line({"error": _to_json(error, code)}), err=True)
    elif isinstance(error, click.ClickException):
        error.show()
    else:
        print_error(error)
    return code


def _to_json(error: Exception, code: ExitCode) -> dict[str, Any]:
    message = error.format_message() if isinstance(error, click.ClickException) else f"{error}"
    shown: dict[str, Any] = {"kind": code.name.lower(), "exitCode": int(code), "message": message}
    if isinstance(error, InvalidInput):
        faults = [{"field": each.field, "problem": each.problem, "hint": each.hint} for each in error.faults]
        shown["faults"] = faults
    return shown
