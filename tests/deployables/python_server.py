"""A `python3` for the scripts of ``infra/`` that starts no interpreter: it is a copy of one that waits.

A deployment asks Python twenty times, mostly to read one field of a JSON document; starting an interpreter for that
costs more than all else that the script does. The program on the PATH only tells the one that waits its own process
number. A copy of that takes over the arguments, environment, folder, input and output, and runs the code.
"""

# The interpreter that waits runs this file itself, so it imports what the scripts import and nothing else.
from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import importlib
import json
import os
import pathlib
import re
import select
import socket
import sys
import traceback
import typing

if typing.TYPE_CHECKING:
    import types

PRELOADED = (hashlib, json, pathlib, re, typing)
"""What the scripts import. The command's arguments name further modules."""

CLIENT = """#!/bin/bash -p
[[ "$1" == -c || "$1" == *.py ]] || exec {python} -S "$@"
exec 5<&0 6>&1 7>&2 9<>/dev/tcp/127.0.0.1/{port} || exit 99 # printf exchanges 1 for a moment
printf '%s\\n' "$$" >&9
read -r -u 9 status
exit "$status"
"""
"""The program on the PATH as python3; only a module (``-m``) gets an interpreter of its own."""


def serve() -> None:
    """Print the port, and copy this process for each request until its input ends, which is when the tests' do."""
    for module in sys.argv[1:]:
        importlib.import_module(module)
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    gc.freeze()
    while select.select([listener, sys.stdin], [], [])[0] == [listener]:
        connection, _ = listener.accept()
        process = pathlib.Path("/proc", connection.makefile().readline().strip())
        with contextlib.suppress(OSError, SyntaxError):  # the copy says what is wrong
            _compile(*_find_code(process, _read_arguments(process)))  # once, for all copies to come
        if os.fork() == 0:
            listener.close()
            _answer(connection, process)
        connection.close()
        _bury_the_dead()


def _bury_the_dead() -> None:
    """Let the system forget the copies that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _read_arguments(process: pathlib.Path) -> list[str]:
    return (process / "cmdline").read_bytes().decode().split("\0")[3:-1]  # after bash, -p and its file


def _find_code(process: pathlib.Path, arguments: list[str]) -> tuple[str, str]:
    """Return the code after ``-c``, or that of a file, and the name of where it is."""
    if arguments[0] == "-c":
        return arguments[1], "-c"
    return (process / "cwd" / arguments[0]).read_text("utf-8"), arguments[0]


@functools.cache
def _compile(code: str, name: str) -> types.CodeType:
    return compile(code, name, "exec", dont_inherit=True)


def _answer(connection: socket.socket, process: pathlib.Path) -> typing.NoReturn:
    """Become the process that has called, run its code, and tell it the exit status."""
    os.chdir(process / "cwd")
    arguments = _read_arguments(process)
    variables = (process / "environ").read_bytes().decode().split("\0")[:-1]
    os.environ.clear()
    os.environ.update(pair.partition("=")[::2] for pair in variables)
    for number, kept, flags in ((0, 5, os.O_RDONLY), (1, 6, os.O_WRONLY), (2, 7, os.O_WRONLY)):
        os.dup2(os.open(process / "fd" / str(kept), flags), number)
    status = 0
    try:
        _run(_compile(*_find_code(process, arguments)), arguments)
        sys.stdout.flush()
    except SystemExit as end:
        status = int(end.code) if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            sys.stderr.write(end.code + "\n")
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001 - as an interpreter does
        traceback.print_exc()
        status = 1
    os.close(1)  # whoever reads it sees its end before the status
    connection.sendall(f"{status}\n".encode())
    os._exit(0)


def _run(code: types.CodeType, arguments: list[str]) -> None:
    sys.argv = ["-c", *arguments[2:]] if arguments[0] == "-c" else arguments
    module = type(sys)("__main__")
    module.__file__ = sys.argv[0]
    sys.modules["__main__"] = module
    exec(code, module.__dict__)  # noqa: S102 - it is an interpreter


if __name__ == "__main__":
    serve()
