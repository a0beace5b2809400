"""Text that users, their handlers or a server wrote, as it may be shown on a terminal.

Control characters could move the terminal's cursor, change its colours or title, or turn the direction of the
text, and lone surrogates cannot be written at all. Every command prints such text through this module.
"""

from __future__ import annotations

import codecs
import json
import os
import sys
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_LINE_LENGTH = 4_000


def to_printable(text: str) -> str:
    """Return text on one line, with a space in place of each control character.

    The end of a very long one is cut.
    """
    if len(text) > _MAX_LINE_LENGTH:
        text = f"{text[:_MAX_LINE_LENGTH]} …"
    return "".join(each if each.isprintable() else " " for each in text)


def to_json_line(value: Any) -> str:  # noqa: ANN401 - any JSON
    """Return JSON on one line, whole, with control characters as escapes, which parse to the same value."""
    text = json.dumps(value, ensure_ascii=False)
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escape(each) for each in text)


def _escape(text: str) -> str:
    return json.dumps(text)[1:-1]


def _escape_unencodable(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return _escape(error.object[error.start : error.end]), error.end


codecs.register_error("cloudsched.escape", _escape_unencodable)


@contextmanager
def safe_output() -> Iterator[None]:
    """Let a command print to any standard output.

    A character that its encoding does not have becomes an escape, as JSON has it. If the output cannot be
    written, such as to a full disk, the process ends with 1, and one line on standard error says why. A
    closed pipe needs no line.
    """
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="cloudsched.escape")
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except OSError as error:
        try:
            sys.stdout.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing fails at the exit again
            with suppress(OSError):
                if not isinstance(error, BrokenPipeError):
                    print_error(f"The output cannot be written: {error.strerror}.")
            sys.exit(1)
        raise


def print_error(error: object) -> None:
    """Print an error of a command on standard error, with the command's name before it."""
    click.echo("\n".join(map(to_printable, f"cloudsched: {error}".split("\n"))), err=True)
