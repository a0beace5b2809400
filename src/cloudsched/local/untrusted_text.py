"""Text that users, their handlers or a server wrote, as it may be shown on a terminal.

Control characters could move the terminal's cursor, change its colours or title, or turn the direction of the text, and
lone surrogates cannot be written at all. Every command prints such text through this module.
"""

from __future__ import annotations

import json
from typing import Any

import click

_MAX_LINE_LENGTH = 4_000


def to_printable(text: str) -> str:
    """Return text on one line, with a space in place of each control character. The end of a very long one is cut."""
    text = text if len(text) <= _MAX_LINE_LENGTH else text[:_MAX_LINE_LENGTH] + " …"
    return "".join(each if each.isprintable() else " " for each in text)


def to_json_line(value: Any) -> str:  # noqa: ANN401 - any JSON
    """Return JSON on one line, whole, with control characters as escapes, which parse to the same value."""
    text = json.dumps(value, ensure_ascii=False)
    return (
        text if text.isprintable() else "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)
    )


def print_error(error: object) -> None:
    """Print an error of a command on standard error, with the command's name before it."""
    click.echo("\n".join(map(to_printable, f"cloudsched: {error}".split("\n"))), err=True)
