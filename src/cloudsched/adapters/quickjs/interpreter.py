"""The `Interpreter` over QuickJS (the optional package ``quickjs-ng``), each script in a process of its own.

QuickJS is written in C, and some of its built-ins ignore time limits: ``Array(2**32 - 1).join()`` runs for minutes. So
a script runs in a process that can be killed, that shares no memory, variables or files with this one, and that
`seccomp` confines. This process never imports QuickJS and trusts nothing that the other one outputs.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from cloudsched.adapters.quickjs.process import ScriptProcess
from cloudsched.adapters.quickjs.protocol import (
    Limits,
    encode_check,
    encode_input,
    encode_responses,
    make_failure,
    parse_round,
)
from cloudsched.errors import InvalidInput, Misconfigured, ScriptFailed

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
from cloudsched.adapters.quickjs.child import main
main(*sys.argv[3:])
"""
"""The process's first code. It skips the package's ``__init__``, which would take a third of the start."""
_BINDING = "_quickjs"
_PROTOCOL_OVERHEAD_BYTES = 1024
"""How many bytes the child's own protocol may take in addition to the script's output."""


class QuickJs:
    """Starts a process for each script.

    Args:
        memory: How many bytes of memory a script may use.
        time: How much processor time it may use; by the clock it gets twice that and a second.
        output: How many bytes it may output.
        requires_filter: Whether to run no script where system calls cannot be filtered.

    Raises:
        Misconfigured: The package is not installed.
    """

    def __init__(self, *, memory: int, time: timedelta, output: int, requires_filter: bool = True) -> None:
        binding = find_spec(_BINDING)
        if binding is None or binding.origin is None:
            raise Misconfigured("Scripts need QuickJS: pip install 'cloudsched[sandbox]'")
        self._requires_filter = requires_filter
        self._limits = Limits(memory, time.total_seconds(), output)
        paths = (str(_HOME.parents[1]), str(Path(binding.origin).parent), str(_HOME / "glue.js"))
        limits = (str(memory), str(time.total_seconds()), str(output))
        self._command = (sys.executable, "-I", "-S", "-c", CHILD_CODE, *paths, *limits)

    def check(self, source: str) -> None:
        """Compile a script in a process of its own."""
        with self._start_process() as process:
            try:
                parse_round(process.exchange(encode_check(source)), source, self._limits)
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
        process = ScriptProcess(
            self._command, self._limits.seconds * 2 + 1, self._limits.output + _PROTOCOL_OVERHEAD_BYTES
        )
        try:
            process.wait_until_ready(requires_filter=self._requires_filter)
            yield process
        finally:
            process.close()


class _RunningScript:
    """A script in progress."""

    def __init__(self, process: ScriptProcess, script_input: ScriptInput, limits: Limits) -> None:
        self._process = process
        self._input = script_input
        self._limits = limits
        self._has_started = False

    def resume(self, responses: Sequence[ScriptResponse], now: datetime) -> Round:
        """Run it until it ends or waits for the responses to its requests."""
        is_first = not self._has_started
        self._has_started = True
        message = encode_input(self._input, now, self._limits) if is_first else encode_responses(responses, now)
        outcome = parse_round(self._process.exchange(message), self._input.source, self._limits)
        if not outcome.asks and not outcome.has_ended:
            raise make_failure("It waits for something that can never come: a promise that nothing settles.")
        return outcome
