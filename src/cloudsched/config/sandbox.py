"""The limits of one script: a part of `Settings`.

A script is a user's code in place of a handler; see ``docs/how-to/sandbox.md``. One that exceeds a limit fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from cloudsched.config.variables import Kind, SettingsSection, read_settings, seconds_between, setting, whole_number
from cloudsched.errors import Misconfigured

if TYPE_CHECKING:
    from collections.abc import Mapping

_MIB = 1024 * 1024
_KIB = 1024


def _parse_filter(text: str) -> bool:
    if text not in {"required", "best-effort"}:
        raise ValueError(f"is {text!r}; it must be required or best-effort.")
    return text == "required"


_FILTER = Kind(_parse_filter, lambda value: "required" if value else "best-effort")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox(SettingsSection):
    """The limits of one execution of a script. Sizes are in bytes.

    The documentation of each field stands beside it, and in ``docs/reference/configuration.md``.
    """

    memory: int = setting(
        "CLOUDSCHED_SANDBOX_MEMORY_MIB",
        "how many MiB of memory one script may use ([scripts](scripts.md#limits) explains this and the following "
        "settings)",
        whole_number(4096, unit=_MIB),
        default=64 * _MIB,
    )
    time: timedelta = setting(
        "CLOUDSCHED_SANDBOX_SECONDS",
        "how long one script may run; waiting does not count",
        seconds_between(0.01, 3600),
        default=timedelta(seconds=5),
    )
    output: int = setting(
        "CLOUDSCHED_SANDBOX_OUTPUT_KIB",
        "how many KiB its result, its log and what it passes to tools may have together",
        whole_number(32 * 1024, unit=_KIB),
        default=256 * _KIB,
    )
    calls: int = setting(
        "CLOUDSCHED_SANDBOX_CALLS",
        "how many calls and sleeps one execution of a script may ask for",
        whole_number(2000),
        default=100,
    )
    requires_filter: bool = setting(
        "CLOUDSCHED_SANDBOX_FILTER",
        "`required`: scripts run only where the kernel filters their system calls; `best-effort`: "
        "elsewhere as well, with a warning; refused in the cloud",
        _FILTER,
        default=True,
    )

    @classmethod
    def from_environment(cls, env: Mapping[str, str]) -> Sandbox:
        """Read the limits from variables; those not set keep their defaults.

        Raises:
            Misconfigured: A variable cannot be understood. The message names it.
        """
        sandbox = cls(**read_settings(cls, env))
        if not sandbox.requires_filter and "K_SERVICE" in env:
            raise Misconfigured(
                "CLOUDSCHED_SANDBOX_FILTER=best-effort is for machines without secrets; in the cloud it is required."
            )
        return sandbox
