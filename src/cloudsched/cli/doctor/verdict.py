"""What the doctor found: one line for each thing that it looked at."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How a thing is."""

    OK = "ok"
    WRONG = "wrong"
    UNKNOWN = "unknown"
    """It could not be looked at."""
    SKIPPED = "skipped"
    """It was not asked for, or does not apply here."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        area: What it belongs to, such as ``queues``.
        verdict: How it is.
        what: What was found, in words.
        mend: The command that mends it; empty if nothing is wrong.
    """

    area: str
    verdict: Verdict
    what: str
    mend: str = ""

    @property
    def is_well(self) -> bool:
        """Whether nothing has to be done about it."""
        return self.verdict in {Verdict.OK, Verdict.SKIPPED}


def ok(area: str, what: str) -> Finding:
    """Return that all is well."""
    return Finding(area, Verdict.OK, what)


def wrong(area: str, what: str, mend: str) -> Finding:
    """Return that something is wrong, and the command that mends it."""
    return Finding(area, Verdict.WRONG, what, mend)


def unknown(area: str, what: str, mend: str) -> Finding:
    """Return that something could not be looked at, and what lets the caller look at it."""
    return Finding(area, Verdict.UNKNOWN, what, mend)


def skipped(area: str, what: str) -> Finding:
    """Return that something was not looked at, on purpose."""
    return Finding(area, Verdict.SKIPPED, what)
