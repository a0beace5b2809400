"""What is wrong with a file that cannot be imported, told to whoever has written it: where, in a line or two."""

from __future__ import annotations

import sysconfig
import traceback
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cloudsched import errors
from cloudsched.errors import CloudschedError, Misconfigured

if TYPE_CHECKING:
    from collections.abc import Iterator

_PACKAGE_FOLDER = str(Path(errors.__file__).parent)
_NON_USER_PATHS = (
    _PACKAGE_FOLDER,
    *{sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")},
    "<frozen",
)
"""Where code lies that they have not written."""
_NULL_BYTES = "source code string cannot contain null bytes"
"""A SyntaxError from Python 3.11.4 on, and a ValueError before (github.com/python/cpython/issues/96670)."""
_MAX_FRAMES = 5
"""How many lines of theirs are shown, the last ones."""


@contextmanager
def explain_import_errors(what: str) -> Iterator[None]:
    """Import something of theirs inside this; what it raises is told in their terms.

    Raises:
        Misconfigured: It cannot be imported. The message says why, and in which line of theirs.
    """
    try:
        yield
    except CloudschedError:
        raise
    except SyntaxError as error:
        raise Misconfigured(_describe_syntax_error(what, error)) from error
    except OSError as error:
        why = (
            f"{_to_relative_path(str(error.filename))} cannot be read: {error.strerror}."
            if error.filename
            else str(error)
        )
        raise Misconfigured(_with_user_frames(f"{what} cannot be imported: {why}", error)) from error
    except ModuleNotFoundError as error:
        hint = "Name a module, or a file that ends in .py." if error.name == what else "Is it installed?"
        raise Misconfigured(_with_user_frames(f"{what} cannot be imported: {error}. {hint}", error)) from error
    except (Exception, SystemExit) as error:
        said = _to_printable(str(error))
        kind = type(error).__name__
        message = f"{what} cannot be imported: {kind}{f': {said}' if said else ''}"
        if said == _NULL_BYTES:
            message = f"{what}: {said}"
        raise Misconfigured(_with_user_frames(message, error)) from error


def _describe_syntax_error(what: str, error: SyntaxError) -> str:
    """Say where Python stopped reading; null bytes have no line, and in some versions no file."""
    place = _to_relative_path(error.filename) if error.filename and not error.filename.startswith("<") else what
    line = f", line {error.lineno}" if error.lineno else ""
    return f"{place}{line}: {_to_printable(error.msg)}"


def _with_user_frames(message: str, error: BaseException) -> str:
    """Put the lines of theirs below it that led to an error: a line each, as in a traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith(_NON_USER_PATHS)]
    lines = [
        f"  {_to_relative_path(frame.filename)}, line {frame.lineno}: {frame.line}" for frame in theirs[-_MAX_FRAMES:]
    ]
    return "\n".join([message, *lines])


def _to_relative_path(file: str) -> str:
    """Return a path as short as it can be said from here."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


def _to_printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)
