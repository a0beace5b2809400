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

from cloudsched.adapters.quickjs.sandbox import enter_sandbox

STACK_BYTES = 512 * 1024
READY = b"ready\n"
READY_UNFILTERED = b"ready, system calls are not filtered\n"
TIME_EXCEEDED = b'{"limit":"time"}\n'
MEMORY_EXCEEDED = b'{"limit":"memory"}\n'
STACK_EXCEEDED = b'{"limit":"stack"}\n'
OUTPUT_EXCEEDED = b'{"limit":"output"}\n'
GLUE_BROKEN = b'{"limit":"sense"}\n'
"""The script has broken what surrounds it."""
GLUE_FIRST_LINE = 100_000
"""The glue's first line, so that the lines in an error are the script's if they are before it."""
_CHUNK_SIZE = 1 << 16


class _ScriptRuntime:
    """One script's interpreter."""

    def __init__(self, glue: str, memory: int, seconds: float, output: int) -> None:
        self._context = _quickjs.Context()
        self._context.set_max_stack_size(STACK_BYTES)
        self._context.set_memory_limit(memory)
        self._exchange = self._context.eval("\n" * GLUE_FIRST_LINE + glue)
        self._seconds = seconds
        self._started_at = time.process_time()
        self._output = output

    def exchange(self, message: str) -> bytes:
        """Hand a message to the script, let it run until nothing is due, and return what it says."""
        try:
            self._apply_time_limit()
            self._exchange(message)
            self._apply_time_limit()
            while self._context.execute_pending_job():
                self._apply_time_limit()
            said: str = self._exchange()
        except _quickjs.StackOverflow:
            return STACK_EXCEEDED
        except _quickjs.JSException as error:
            why = str(error)[:60]
            return TIME_EXCEEDED if "interrupted" in why else MEMORY_EXCEEDED if "out of memory" in why else GLUE_BROKEN
        except TimeoutError:
            return TIME_EXCEEDED
        except MemoryError:
            return MEMORY_EXCEEDED
        except (TypeError, ValueError):  # it is no text
            return GLUE_BROKEN
        line = said.encode("utf-8", "replace") + b"\n"
        self._output -= len(line)
        return OUTPUT_EXCEEDED if self._output < 0 else line

    def _apply_time_limit(self) -> None:
        """Let what comes next run for as long as is left."""
        left = self._seconds - (time.process_time() - self._started_at)
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
        script = _ScriptRuntime(file.read(), int(memory), float(seconds), int(output))
    is_filtered = enter_sandbox(int(memory), float(seconds))
    write(1, READY if is_filtered else READY_UNFILTERED)
    held = bytearray()
    while piece := read(0, _CHUNK_SIZE):
        held += piece
        if piece.endswith(b"\n"):  # the next message comes after the answer to this one
            _write_line(script.exchange(held.decode()))
            held.clear()


def _write_line(line: bytes) -> None:
    while line:
        line = line[write(1, line) :]
