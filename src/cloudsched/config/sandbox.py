"""The limits of one script: a part of `Settings`.

A script is a user's code in place of a handler; see ``docs/sandbox.md``. One that exceeds a limit fails.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.errors import Misconfigured

if TYPE_CHECKING:
    from collections.abc import Mapping

_MIB = 1024 * 1024
_KIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """The limits of one execution of a script.

    Attributes:
        memory: The memory of its interpreter, in bytes.
        time: How long it may run in total; waiting for tools and sleeping are not counted.
        output: The most bytes of its result, its log and its arguments to tools, together.
        calls: The most tool calls and sleeps.
        requires_filter: Whether scripts run only where the kernel can filter their system calls.
    """

    memory: int = 64 * _MIB
    time: timedelta = timedelta(seconds=5)
    output: int = 256 * _KIB
    calls: int = 100
    requires_filter: bool = True

    @classmethod
    def from_environment(cls, env: Mapping[str, str]) -> Sandbox:
        """Read the limits from variables; those not set keep their defaults.

        Raises:
            Misconfigured: A variable cannot be understood. The message names it.
        """
        defaults = cls()
        return cls(
            memory=_parse_integer(env, "memory", defaults.memory // _MIB, 4096) * _MIB,
            time=timedelta(seconds=_parse_seconds(env, VARIABLES["time"], defaults.time.total_seconds())),
            output=_parse_integer(env, "output", defaults.output // _KIB, 32 * 1024) * _KIB,
            calls=_parse_integer(env, "calls", defaults.calls, 2000),
            requires_filter=_parse_filter(env),
        )

    def to_variables(self) -> dict[str, str | None]:
        """Return the variables from which `from_environment` reads the same limits."""
        return {
            VARIABLES["memory"]: str(self.memory // _MIB),
            VARIABLES["time"]: f"{self.time.total_seconds():g}",
            VARIABLES["output"]: str(self.output // _KIB),
            VARIABLES["calls"]: str(self.calls),
            VARIABLES["filter"]: "required" if self.requires_filter else "best-effort",
        }


VARIABLES: Final[Mapping[str, str]] = {
    "memory": "CLOUDSCHED_SANDBOX_MEMORY_MIB",
    "time": "CLOUDSCHED_SANDBOX_SECONDS",
    "output": "CLOUDSCHED_SANDBOX_OUTPUT_KIB",
    "calls": "CLOUDSCHED_SANDBOX_CALLS",
    "filter": "CLOUDSCHED_SANDBOX_FILTER",
}


def _parse_filter(env: Mapping[str, str]) -> bool:
    variable = VARIABLES["filter"]
    text = env.get(variable, "").strip() or "required"
    if text not in {"required", "best-effort"}:
        raise Misconfigured(f"{variable} is {text!r}; it must be required or best-effort.")
    if text == "best-effort" and "K_SERVICE" in env:
        raise Misconfigured(f"{variable}=best-effort is for machines without secrets; in the cloud it is required.")
    return text == "required"


def _parse_integer(env: Mapping[str, str], name: str, default: int, maximum: int) -> int:
    variable = VARIABLES[name]
    text = env.get(variable, "").strip() or str(default)
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(maximum))) or not 1 <= int(text) <= maximum:
        raise Misconfigured(f"{variable} is {text!r}; it must be a whole number from 1 to {maximum}.")
    return int(text)


def _parse_seconds(env: Mapping[str, str], variable: str, default: float) -> float:
    text = env.get(variable, "").strip() or str(default)
    try:
        value = float(text) if text.isascii() else math.nan
    except ValueError:
        value = math.nan
    if not 0.01 <= value <= 3600:  # noqa: PLR2004 - no function runs longer, no interpreter starts quicker
        raise Misconfigured(f"{variable} is {text!r}; it must be a number of seconds from 0.01 to 3600.")
    return value
