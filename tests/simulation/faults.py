"""What sort of world a history lives in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class FaultProfile:
    """What sort of world a history lives in."""

    name: str
    fault: float = 0.0
    """How likely a call to a port fails, before or after it took effect, or is made twice."""
    kill: float = 0.0
    """How likely a call is the last thing that its process does."""
    linger: float = 0.0
    """How likely time passes while something is under way."""
    drift: timedelta = timedelta(0)
    """How far a process's clock may be from the true time, either way."""
    purge: float = 0.0
    """How likely the queue forgets everything, at each change by a client."""
    changes: int = 12
    """How many things clients do."""
    length: timedelta = timedelta(hours=6)
    """How long they do it."""
    is_crowded: bool = False
    """Whether all tasks want the same lock at the same time, and their runs take long."""
    is_long: bool = False
    """Whether tasks are days and months apart rather than minutes."""
    is_durable: bool = False
    """Whether most handlers are durable ones, and are told things."""
    has_workers: bool = False
    """Whether many tasks are for workers, who come and fetch them."""

    @property
    def is_fault_free(self) -> bool:
        """Whether nothing goes wrong at all, so that everything happens on its instant."""
        return not (self.fault or self.kill or self.linger or self.purge)


PROFILES = (
    FaultProfile("calm"),
    FaultProfile("slow", linger=0.2),
    FaultProfile("faults", fault=0.08, linger=0.05),
    FaultProfile("deaths", kill=0.05, linger=0.1),
    FaultProfile("storm", fault=0.1, kill=0.04, linger=0.15, purge=0.1, drift=timedelta(seconds=2)),
    FaultProfile("crowd", fault=0.02, kill=0.01, linger=0.4, is_crowded=True),
    FaultProfile("years", fault=0.05, kill=0.02, purge=0.05, changes=8, length=timedelta(days=70), is_long=True),
    FaultProfile("calm years", changes=8, length=timedelta(days=70), is_long=True),
)

_HOURS = timedelta(hours=3)
DURABLE_PROFILES = (
    FaultProfile("durable calm", changes=24, length=_HOURS, is_durable=True),
    FaultProfile("durable slow", linger=0.5, changes=24, length=_HOURS, is_durable=True),
    FaultProfile("durable faults", fault=0.04, linger=0.05, changes=24, length=_HOURS, is_durable=True),
    FaultProfile("durable deaths", kill=0.025, linger=0.1, changes=24, length=_HOURS, is_durable=True),
    FaultProfile(
        "durable storm",
        fault=0.05,
        kill=0.02,
        linger=0.15,
        purge=0.1,
        drift=timedelta(seconds=2),
        changes=24,
        length=_HOURS,
        is_durable=True,
    ),
    FaultProfile(
        "durable years", fault=0.03, kill=0.01, purge=0.05, length=timedelta(days=70), is_long=True, is_durable=True
    ),
)

WORKER_PROFILES = (
    FaultProfile("workers calm", changes=24, length=_HOURS, has_workers=True),
    FaultProfile("workers slow", linger=0.3, changes=24, length=_HOURS, has_workers=True),
    FaultProfile("workers faults", fault=0.06, linger=0.05, changes=24, length=_HOURS, has_workers=True),
    FaultProfile("workers deaths", kill=0.04, linger=0.1, changes=24, length=_HOURS, has_workers=True),
    FaultProfile(
        "workers storm",
        fault=0.06,
        kill=0.03,
        linger=0.15,
        purge=0.1,
        drift=timedelta(seconds=1),
        changes=24,
        length=_HOURS,
        has_workers=True,
    ),
    FaultProfile(
        "workers crowd",
        fault=0.02,
        kill=0.01,
        linger=0.3,
        changes=8,
        length=_HOURS / 2,
        is_crowded=True,
        has_workers=True,
    ),
    FaultProfile(
        "workers years", fault=0.04, kill=0.02, purge=0.05, length=timedelta(days=70), is_long=True, has_workers=True
    ),
    FaultProfile(
        "workers durable",
        fault=0.03,
        kill=0.015,
        linger=0.1,
        changes=24,
        length=_HOURS,
        is_durable=True,
        has_workers=True,
    ),
)
