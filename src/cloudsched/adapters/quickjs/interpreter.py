"""The `Interpreter` over QuickJS (the optional package ``quickjs-ng``), each script in a process of its own.

QuickJS is written in C, and some of its built-ins heed no time limit: ``Array(2**32 - 1).join()`` runs for minutes. So
a script runs in a process that can be killed, that has none of this one's memory, variables and files, and that
`seccomp` shuts in. This process never imports QuickJS, and takes nothing that the other one says for granted.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from cloudsched.adapters.quickjs.process import Process
from cloudsched.adapters.quickjs.protocol import Limits, answers_message, brief_message, check_message, failure, reached
from cloudsched.errors import InvalidInput, Misconfigured, ScriptFailed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime, timedelta

    from cloudsched.engine.ports.interpreter import Answer, Brief, Round

_HOME = Path(__file__).parent
_CODE = """
import sys
package = type(sys)("cloudsched")
package.__path__ = [sys.argv[1]]
sys.modules["cloudsched"] = package
sys.path.append(sys.argv[2])
from cloudsched.adapters.quickjs.child import main
main(*sys.argv[3:])
"""
"""What the process begins with. The package's own ``__init__`` is left out: it would be a third of the start."""
_BINDING = "_quickjs"
_LINE = 1024
"""How many bytes the child's own words may have, beyond what the script says."""


class QuickJs:
    """Starts a process for each script.

    Args:
        memory: How many bytes a script may have.
        time: How long it may run: so much of the processor's time, and on the clock twice that and a second.
        output: How many bytes it may say.

    Raises:
        Misconfigured: The package is not installed.
    """

    def __init__(self, *, memory: int, time: timedelta, output: int) -> None:
        binding = find_spec(_BINDING)
        if binding is None or binding.origin is None:
            raise Misconfigured("Scripts need QuickJS: pip install 'cloudsched[sandbox]'")
        self._limits = Limits(memory, time.total_seconds(), output)
        paths = (str(_HOME.parents[1]), str(Path(binding.origin).parent), str(_HOME / "glue.js"))
        limits = (str(memory), str(time.total_seconds()), str(output))
        self._command = (sys.executable, "-I", "-S", "-c", _CODE, *paths, *limits)

    def check(self, source: str) -> None:
        """Compile a script in a process of its own."""
        with self._process() as process:
            try:
                reached(process.exchange(check_message(source)), source, self._limits)
            except ScriptFailed as error:
                where = "" if error.line is None else f"line {error.line}: "
                hint = "It has to be the body of an async function, in JavaScript."
                raise InvalidInput("source", f"{where}{error.problem}", hint) from error

    @contextmanager
    def run(self, brief: Brief) -> Iterator[_Script]:
        """Start a process for a script, and end it."""
        with self._process() as process:
            yield _Script(process, brief, self._limits)

    @contextmanager
    def _process(self) -> Iterator[Process]:
        process = Process(self._command, self._limits.seconds * 2 + 1, self._limits.output + _LINE)
        try:
            process.wait_until_ready()
            yield process
        finally:
            process.end()


class _Script:
    """One script under way."""

    def __init__(self, process: Process, brief: Brief, limits: Limits) -> None:
        self._process = process
        self._brief = brief
        self._limits = limits
        self._has_begun = False

    def go_on(self, answers: Sequence[Answer], now: datetime) -> Round:
        """Let it run until it has ended, or waits for what it asked for."""
        begins = not self._has_begun
        self._has_begun = True
        message = brief_message(self._brief, now, self._limits) if begins else answers_message(answers, now)
        found = reached(self._process.exchange(message), self._brief.source, self._limits)
        if not found.asks and not found.has_ended:
            raise failure("It waits for something that can never come: a promise that nothing settles.")
        return found
