"""A file for each running stack, with the environment variables by which a second terminal finds it.

The file holds the secret that signs dispatches, so it is in a folder that only this user can enter.
"""

from __future__ import annotations

import os
import shlex
import stat
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cloudsched.errors import Misconfigured

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PREFIX: Final = "dev-"
_SUFFIX: Final = ".env"


@contextmanager
def publish_environment(port: int, variables: Mapping[str, str], unset: tuple[str, ...] = ()) -> Iterator[None]:
    """Publish these variables for `read_environment` while the context lasts."""
    lines = [f"export {name}={shlex.quote(value)}" for name, value in sorted(variables.items())]
    lines += [f"unset {name}" for name in sorted(unset)]
    try:
        file = _folder() / f"{_PREFIX}{port}{_SUFFIX}"
        draft = file.with_suffix(f".{os.getpid()}")
        draft.touch(mode=0o600)
        draft.write_text("\n".join([f"# {os.getpid()}", *lines, ""]), "utf-8")
        draft.replace(file)
    except OSError:
        yield  # the stack runs all the same; only --print-env does not find it
        return
    try:
        yield
    finally:
        with suppress(OSError):
            file.unlink()


def read_environment(port: int) -> str:
    """Return the shell commands that set the variables of the port's stack.

    Raises Misconfigured if none runs.
    """
    found = dict(_running())
    if port in found:
        return found[port]
    hint = "Start it in another terminal: cloudsched dev."
    if found:
        others = " or ".join(f"--port {each}" for each in sorted(found))
        hint = f"Give {others} for the one that runs."
    raise Misconfigured(f"No cloudsched dev runs on port {port}. {hint}")


def _running() -> Iterator[tuple[int, str]]:
    for file in _folder().glob(f"{_PREFIX}*{_SUFFIX}"):
        with suppress(OSError, ValueError):
            first, _, commands = file.read_text("utf-8").partition("\n")
            if _is_alive(int(first.removeprefix("# "))):
                yield int(file.name.removeprefix(_PREFIX).removesuffix(_SUFFIX)), commands
            else:
                file.unlink()  # it was killed


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _folder() -> Path:
    """Return this user's folder, which no other user can read or write."""
    user = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir()) / f"cloudsched-dev-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    is_mine = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    if not stat.S_ISDIR(found.st_mode) or not is_mine or (hasattr(os, "getuid") and found.st_mode & 0o077):
        raise Misconfigured(f"{folder} is not a folder that only you can read; remove it.")
    return folder
