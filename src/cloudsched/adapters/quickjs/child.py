"""The process in which one script runs: QuickJS, inside a sandbox that is entered before the script is read.

`interpreter.py` starts it with an empty environment. It reads messages from its standard input, one per line, answers
each with one line, and ends when its input does. It imports only what it needs, since every script pays for the start.
The parent does not trust its output.
"""

from __future__ import annotations

import sys
import time
from posix import putenv, read, write

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
"""The script has broken the code that surrounds it."""
GLUE_FIRST_LINE = 100_000
"""The number of the glue's first line: in an error, smaller line numbers are the script's."""
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
        """Pass a message to the script, run it until no job is left, and return its output."""
        try:
            self._apply_time_limit()
            self._exchange(message)
            self._apply_time_limit()
            while self._context.execute_pending_job():
                self._apply_time_limit()
            output: str = self._exchange()
        except _quickjs.StackOverflow:
            return STACK_EXCEEDED
        except _quickjs.JSException as error:
            reason = str(error)[:60]
            limit = MEMORY_EXCEEDED if "out of memory" in reason else GLUE_BROKEN
            return TIME_EXCEEDED if "interrupted" in reason else limit
        except TimeoutError:
            return TIME_EXCEEDED
        except MemoryError:
            return MEMORY_EXCEEDED
        except (TypeError, ValueError):  # not a string
            return GLUE_BROKEN
        line = output.encode("utf-8", "replace") + b"\n"
        self._output -= len(line)
        return OUTPUT_EXCEEDED if self._output < 0 else line

    def _apply_time_limit(self) -> None:
        """Limit the next call to the time that is left."""
        left = self._seconds - (time.process_time() - self._started_at)
        if left <= 0:
            raise TimeoutError
        self._context.set_time_limit(left)


def main(glue: str, memory: str, seconds: str, output: str) -> None:
    """Serve one script.

    Args:
        glue: The file with the JavaScript that surrounds the script.
        memory: How many bytes of memory it may use.
        seconds: How much processor time it may use.
        output: How many bytes it may output.
    """
    sys.stdin.close()
    putenv("TZ", "UTC0")  # without it, dates would be in this machine's time zone
    time.tzset()
    with open(glue, encoding="utf-8") as file:  # noqa: PTH123 - pathlib is a third of the start
        script = _ScriptRuntime(file.read(), int(memory), float(seconds), int(output))
    is_filtered = enter_sandbox(int(memory), float(seconds))
    write(1, READY if is_filtered else READY_UNFILTERED)
    message = bytearray()
    while piece := read(0, _CHUNK_SIZE):
        message += piece
        if piece.endswith(b"\n"):  # the next message comes after the response to this one
            _write_line(script.exchange(message.decode()))
            message.clear()


def _write_line(line: bytes) -> None:
    while line:
        line = line[write(1, line) :]
