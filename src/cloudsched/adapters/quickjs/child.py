"""The process in which one script runs: QuickJS, with the walls around it closed before the script is seen.

It is started by `interpreter.py` with an empty environment, reads one message a line from its standard
input, answers each with one line, and ends when its input does. It imports nothing that it does not need: every script
pays for it. Nothing that it says is trusted.
"""

from __future__ import annotations

import sys
import time
from posix import read, write

import _quickjs  # type: ignore[import-not-found]  # it ships no types

from cloudsched.adapters.quickjs.sandbox import close_walls

STACK_BYTES = 512 * 1024
READY = b"ready\n"
READY_UNFILTERED = b"ready, system calls are not filtered\n"
TOO_LONG = b'{"limit":"time"}\n'
TOO_LARGE = b'{"limit":"memory"}\n'
TOO_DEEP = b'{"limit":"stack"}\n'
TOO_MUCH = b'{"limit":"output"}\n'
BROKEN = b'{"limit":"sense"}\n'
"""The script has broken what surrounds it."""
OURS = 100_000
"""The glue's first line, so that the lines in an error are the script's if they are before it."""
_PIECE = 1 << 16


class _Script:
    """One script's interpreter."""

    def __init__(self, glue: str, memory: int, seconds: float, output: int) -> None:
        self._context = _quickjs.Context()
        self._context.set_max_stack_size(STACK_BYTES)
        self._context.set_memory_limit(memory)
        self._exchange = self._context.eval("\n" * OURS + glue)
        self._seconds = seconds
        self._began = time.process_time()
        self._output = output

    def answered(self, message: str) -> bytes:
        """Hand a message to the script, let it run until nothing is due, and return what it says."""
        try:
            self._hurry()
            self._exchange(message)
            self._hurry()
            while self._context.execute_pending_job():
                self._hurry()
            said: str = self._exchange()
        except _quickjs.StackOverflow:
            return TOO_DEEP
        except _quickjs.JSException as error:
            why = str(error)[:60]
            return TOO_LONG if "interrupted" in why else TOO_LARGE if "out of memory" in why else BROKEN
        except TimeoutError:
            return TOO_LONG
        except MemoryError:
            return TOO_LARGE
        except (TypeError, ValueError):  # it is no text
            return BROKEN
        line = said.encode("utf-8", "replace") + b"\n"
        self._output -= len(line)
        return TOO_MUCH if self._output < 0 else line

    def _hurry(self) -> None:
        """Let what comes next run for as long as is left."""
        left = self._seconds - (time.process_time() - self._began)
        if left <= 0:
            raise TimeoutError
        self._context.set_time_limit(left)


def main(glue: str, memory: str, seconds: str, output: str) -> None:
    """Serve one script.

    Args:
        glue: The file with what surrounds the script.
        memory: How many bytes it may have.
        seconds: How much of the processor's time.
        output: How many bytes it may say.
    """
    sys.stdin.close()
    with open(glue, encoding="utf-8") as file:  # noqa: PTH123 - pathlib is a third of the start
        script = _Script(file.read(), int(memory), float(seconds), int(output))
    is_filtered = close_walls(int(memory), float(seconds))
    write(1, READY if is_filtered else READY_UNFILTERED)
    held = bytearray()
    while piece := read(0, _PIECE):
        held += piece
        if piece.endswith(b"\n"):  # the next message comes after the answer to this one
            _say(script.answered(held.decode()))
            held.clear()


def _say(line: bytes) -> None:
    while line:
        line = line[write(1, line) :]
