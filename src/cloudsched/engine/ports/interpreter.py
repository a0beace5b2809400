"""The port behind which users' scripts run: what a script is given, what it asks for, and who runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime

    from cloudsched.errors import ScriptFailed


@dataclass(frozen=True, slots=True)
class ScriptInput:
    """A script and what it is given: there is nothing else that it could reach."""

    source: str
    """The body of an async function, in JavaScript."""
    input: Any
    task: Mapping[str, str]
    """What it is told of its task."""
    tools: Sequence[str]
    """The names of what it can ask for."""
    seed: int
    """Below 2^32: what its chance is made of."""
    now: datetime


@dataclass(frozen=True, slots=True)
class ScriptRequest:
    """What a script waits for: a tool, or that time passes."""

    number: int
    """Tells it from others: the script's own count, from 1."""
    tool: str | None = None
    payload: Any = None
    """What the tool is given: any JSON."""
    seconds: float = 0
    """How long to sleep, if it is no tool."""


@dataclass(frozen=True, slots=True)
class ScriptResponse:
    """What came of an `ScriptRequest`."""

    number: int
    value: Any = None
    failure: Mapping[str, str] | None = None
    """The name, message and status of the error that the script sees in place of a value."""


@dataclass(frozen=True, slots=True)
class Round:
    """What a script did until it could not go on: it waits for what it asked, or it has returned or thrown."""

    asks: Sequence[ScriptRequest] = ()
    """What it asked for in this round, in its order."""
    log: Sequence[str] = ()
    has_ended: bool = False
    result: Any = None
    failure: ScriptFailed | None = None
    """What it threw, if that ended it. What it asked for before is asked for all the same."""


class RunningScript(Protocol):
    """A script under way."""

    def resume(self, responses: Sequence[ScriptResponse], now: datetime) -> Round:
        """Let it run until it has ended, or waits for all that is left of what it asked for.

        Args:
            responses: To what it asked for; none at first.
            now: What its clock shows from here on. It stands still while the script runs.

        Raises:
            ScriptFailed: It waits for nothing that could come, or has broken what surrounds it.
            LimitExceeded: It asked for more memory, time or output than it may have.
            InterpreterUnavailable: Its interpreter did not start, or died.
        """
        ...


class Interpreter(Protocol):
    """What runs the scripts that tasks bring along.

    * A script reaches what its brief says and nothing else: no file, no network, no process, no clock, no variable, no
      memory of this process, no other script.
    * With the same brief and the same answers it does the same.
    * It is stopped at its limits, whatever it does.
    """

    def check(self, source: str) -> None:
        """Compile a script, without running it.

        Raises:
            InvalidInput: It is not JavaScript. The field is `source`; the problem names the line.
        """
        ...

    def run(self, script_input: ScriptInput) -> AbstractContextManager[RunningScript]:
        """Begin a script in an interpreter of its own, which is gone at the end of the ``with``."""
        ...
