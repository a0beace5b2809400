"""The port for the interpreter of users' scripts: a script's input, its requests, the responses, and its result."""

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
    """A script and its input. The script can reach nothing else."""

    source: str
    """The body of an async function, in JavaScript."""
    input: Any
    task: Mapping[str, str]
    """The fields of its task that it may read."""
    tools: Sequence[str]
    """The names of the tools that it may call."""
    seed: int
    """The seed of its random numbers, below 2^32."""
    now: datetime


@dataclass(frozen=True, slots=True)
class ScriptRequest:
    """A request that a script waits for: the result of a tool or of another script, or the end of a sleep."""

    number: int
    """Identifies the request: the script counts its requests from 1."""
    tool: str | None = None
    payload: Any = None
    """The input of the tool or the script: any JSON."""
    seconds: float = 0
    """The duration of the sleep, if there is neither a tool nor a script."""
    script: str | None = None
    """The name of the stored script to run, if there is no tool."""

    @property
    def is_call(self) -> bool:
        """Return whether it calls something."""
        return self.tool is not None or self.script is not None


@dataclass(frozen=True, slots=True)
class ScriptResponse:
    """The response to a `ScriptRequest`."""

    number: int
    value: Any = None
    failure: Mapping[str, str] | None = None
    """The name, message and status of the error that is thrown in the script instead of returning a value."""


@dataclass(frozen=True, slots=True)
class Round:
    """The outcome of a run of a script until it stopped: it waits for responses, or has returned or thrown."""

    asks: Sequence[ScriptRequest] = ()
    """The requests that it made in this round, in order."""
    log: Sequence[str] = ()
    has_ended: bool = False
    result: Any = None
    failure: ScriptFailed | None = None
    """The error that it threw, if that ended it. Requests that it made before still count."""


class RunningScript(Protocol):
    """A running script."""

    def resume(self, responses: Sequence[ScriptResponse], now: datetime) -> Round:
        """Run it until it ends, or can only wait for responses.

        Args:
            responses: The responses to its requests, none at first.
            now: The time on the script's clock in this round. The clock stands still while the script runs.

        Raises:
            ScriptFailed: It waits for something that no response can resolve, or it broke the code that surrounds it.
            LimitExceeded: It used more memory, time or output than it is allowed.
            InterpreterUnavailable: Its interpreter did not start, or died.
        """
        ...


class Interpreter(Protocol):
    """Runs the scripts of tasks.

    * A script can reach only its `ScriptInput` and what it requests: no file, no network, no process, no clock, no
      environment variable, no memory of this process, no memory of another script.
    * With the same input and the same responses, a script does the same.
    * A script is stopped at its limits, whatever it does.
    """

    def check(self, source: str) -> None:
        """Compile a script without running it.

        Raises:
            InvalidInput: It is not JavaScript. The field is `source`. The problem names the line.
        """
        ...

    def run(self, script_input: ScriptInput) -> AbstractContextManager[RunningScript]:
        """Start a script in its own interpreter, which ends with the ``with`` block."""
        ...
