"""The `Interpreter` over QuickJS (the optional package ``quickjs-ng``), each script in a process of its own.

QuickJS is written in C, and some of its built-ins ignore time limits: ``Array(2**32 - 1).join()`` runs for
minutes. So a script runs in a process that can be killed, that shares no memory, variables or files with this
one, and that `seccomp` confines. This process never imports QuickJS, and trusts nothing that the other one
outputs.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from cloudsched.errors import (
    InvalidInput,
    MissingExtra,
    ScriptFailed,
)
from cloudsched.scripts.quickjs.process import ScriptProcess
from cloudsched.scripts.quickjs.protocol import ScriptLimits, encode_input, encode_line, encode_responses, parse_round

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime, timedelta

    from cloudsched.engine.ports.interpreter import Round, ScriptInput, ScriptResponse

_HOME = Path(__file__).parent
CHILD_CODE = """
import sys
package = type(sys)("cloudsched")
package.__path__ = [sys.argv[1]]
sys.modules["cloudsched"] = package
sys.path.append(sys.argv[2])
from cloudsched.scripts.quickjs.child import main
main(*sys.argv[3:])
"""
"""The process's first code. It skips the package's ``__init__``, which would take a third of the start."""
_BINDING = "_quickjs"
_PROTOCOL_OVERHEAD_BYTES = 1024
"""The bytes that the child's own protocol may take in addition to the script's output."""


class QuickJs:
    """Starts a process for each script.

    The limits are in bytes, and `time` is the processor's. By the clock, a script gets twice that and a second.
    """

    def __init__(self, *, memory: int, time: timedelta, output: int, requires_filter: bool = True) -> None:
        binding = find_spec(_BINDING)
        if binding is None or binding.origin is None:
            raise MissingExtra("A script", "quickjs-ng", "sandbox")
        self._requires_filter = requires_filter
        self._limits = ScriptLimits(memory, time.total_seconds(), output)
        paths = (str(_HOME.parents[1]), str(Path(binding.origin).parent), str(_HOME / "glue.js"))
        limits = (str(memory), str(time.total_seconds()), str(output))
        self._command = (sys.executable, "-I", "-S", "-c", CHILD_CODE, *paths, *limits)

    def check(self, source: str) -> None:
        """Compile a script in a process of its own."""
        with self._start_process() as process:
            line = process.exchange(encode_line({"source": source, "tools": None}))
            try:
                parse_round(line, source, self._limits)
            except ScriptFailed as error:
                where = "" if error.line is None else f"line {error.line}: "
                hint = "It has to be the body of an async function, in JavaScript."
                raise InvalidInput("source", f"{where}{error.problem}", hint) from error

    @contextmanager
    def run(self, script_input: ScriptInput) -> Iterator[_RunningScript]:
        """Start a process for a script, and end it with the context."""
        with self._start_process() as process:
            yield _RunningScript(process, script_input, self._limits)

    @contextmanager
    def _start_process(self) -> Iterator[ScriptProcess]:
        seconds = self._limits.seconds * 2 + 1
        output = self._limits.output + _PROTOCOL_OVERHEAD_BYTES
        process = ScriptProcess(self._command, seconds, output)
        try:
            process.wait_until_ready(requires_filter=self._requires_filter)
            yield process
        finally:
            process.close()


class _RunningScript:
    def __init__(self, process: ScriptProcess, script_input: ScriptInput, limits: ScriptLimits) -> None:
        self._process = process
        self._input = script_input
        self._limits = limits
        self._has_started = False

    def resume(self, responses: Sequence[ScriptResponse], now: datetime) -> Round:
        if self._has_started:
            message = encode_responses(responses, now)
        else:
            message = encode_input(self._input, now, self._limits)
            self._has_started = True
        outcome = parse_round(self._process.exchange(message), self._input.source, self._limits)
        if not outcome.asks and not outcome.has_ended:
            raise ScriptFailed("It waits for something that can never come: a promise that nothing settles.")
        return outcome
