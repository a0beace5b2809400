"""Explain to its author in a line or two why a file cannot be imported, and where the error is."""

from __future__ import annotations

import sysconfig
import traceback
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cloudsched import errors
from cloudsched.errors import CloudschedError, Misconfigured
from cloudsched.local.untrusted_text import to_printable

if TYPE_CHECKING:
    from collections.abc import Iterator

_PACKAGE_FOLDER = str(Path(errors.__file__).parent)
_NON_USER_PATHS = (
    _PACKAGE_FOLDER,
    *{sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")},
    "<frozen",
)
"""Folders of code that is not the user's."""
_NULL_BYTES = "source code string cannot contain null bytes"
"""A SyntaxError from Python 3.11.4 on, and a ValueError before (github.com/python/cpython/issues/96670)."""
_MAX_FRAMES = 5
"""How many of the innermost lines of the user's code are shown."""


@contextmanager
def explain_import_errors(name: str) -> Iterator[None]:
    """Import a user's file or module inside this context; an exception becomes an explanation.

    Raises:
        Misconfigured: It cannot be imported. The message says why, and on which line of the user's code.
    """
    try:
        yield
    except CloudschedError:
        raise
    except SyntaxError as error:
        raise Misconfigured(_describe_syntax_error(name, error)) from error
    except OSError as error:
        reason = (
            f"{_to_relative_path(str(error.filename))} cannot be read: {error.strerror}."
            if error.filename
            else str(error)
        )
        raise Misconfigured(_with_user_frames(f"{name} cannot be imported: {reason}", error)) from error
    except ModuleNotFoundError as error:
        hint = "Name a module, or a file that ends in .py." if error.name == name else "Is it installed?"
        raise Misconfigured(_with_user_frames(f"{name} cannot be imported: {error}. {hint}", error)) from error
    except (Exception, SystemExit) as error:
        text = to_printable(str(error))
        kind = type(error).__name__
        message = f"{name} cannot be imported: {kind}{f': {text}' if text else ''}"
        if text == _NULL_BYTES:
            message = f"{name}: {text}"
        raise Misconfigured(_with_user_frames(message, error)) from error


def _describe_syntax_error(name: str, error: SyntaxError) -> str:
    """Say where Python stopped parsing. An error about null bytes has no line, and in some versions no file."""
    file = _to_relative_path(error.filename) if error.filename and not error.filename.startswith("<") else name
    line = f", line {error.lineno}" if error.lineno else ""
    return f"{file}{line}: {to_printable(error.msg)}"


def _with_user_frames(message: str, error: BaseException) -> str:
    """Append the user's own lines that led to an error, one each, as in a traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    user_frames = [frame for frame in frames if not frame.filename.startswith(_NON_USER_PATHS)]
    lines = [
        f"  {_to_relative_path(frame.filename)}, line {frame.lineno}: {frame.line}"
        for frame in user_frames[-_MAX_FRAMES:]
    ]
    return "\n".join([message, *lines])


def _to_relative_path(file: str) -> str:
    """Return a path relative to the working directory if it lies below that."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file
