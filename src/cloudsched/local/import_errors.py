"""Explain why a user's file or module cannot be imported, by the lines of theirs that led to it."""

from __future__ import annotations

import sysconfig
import traceback
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cloudsched import errors
from cloudsched.errors import CloudschedError, Misconfigured
from cloudsched.local.untrusted_text import to_printable

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME_HINT: Final = "Name a module, or a file that ends in .py."
_NOT_THE_USERS: Final = (
    str(Path(errors.__file__).parent),
    *{sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")},
    "<frozen",
)
"""Folders of code that is not the user's."""
_MAX_FRAMES: Final = 5
"""The number of the innermost lines of the user's code that are shown."""


@contextmanager
def explain_import_errors(name: str) -> Iterator[None]:
    """Import a user's file or module inside this context.

    An exception becomes a Misconfigured with its line.
    """
    try:
        yield
    except CloudschedError:
        raise
    except SyntaxError as error:
        raise Misconfigured(_describe_syntax_error(name, error)) from error
    except OSError as error:
        reason = str(error)
        if error.filename:
            reason = f"{_to_relative_path(str(error.filename))} cannot be read: {error.strerror}."
        raise Misconfigured(_with_user_frames(f"{name} cannot be imported: {reason}", error)) from error
    except ModuleNotFoundError as error:
        hint = NAME_HINT if error.name == name else "Is it installed?"
        raise Misconfigured(_with_user_frames(f"{name} cannot be imported: {error}. {hint}", error)) from error
    except (Exception, SystemExit) as error:
        reason = ": ".join(filter(None, (type(error).__name__, to_printable(str(error)))))
        raise Misconfigured(_with_user_frames(f"{name} cannot be imported: {reason}", error)) from error


def _describe_syntax_error(name: str, error: SyntaxError) -> str:
    """Say where Python stopped parsing.

    An error about null bytes has no line, and in some versions no file.
    """
    is_file = error.filename and not error.filename.startswith("<")
    place = _to_relative_path(str(error.filename)) if is_file else name
    if error.lineno:
        place += f", line {error.lineno}"
    return f"{place}: {to_printable(error.msg)}"


def _with_user_frames(message: str, error: BaseException) -> str:
    """Append the user's own lines that led to an error, one each, as in a traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    user_frames = [frame for frame in frames if not frame.filename.startswith(_NOT_THE_USERS)]
    lines = [
        f"  {_to_relative_path(frame.filename)}, line {frame.lineno}: {frame.line}"
        for frame in user_frames[-_MAX_FRAMES:]
    ]
    return "\n".join([message, *lines])


def _to_relative_path(file: str) -> str:
    """Return a path relative to the working directory if it lies below that."""
    path = Path(file)
    if path.is_relative_to(Path.cwd()):
        return str(path.relative_to(Path.cwd()))
    return file
