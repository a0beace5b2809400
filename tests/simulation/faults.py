"""What sort of world a history lives in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class Weather:
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
    def is_calm(self) -> bool:
        """Whether nothing goes wrong at all, so that everything happens on its instant."""
        return not (self.fault or self.kill or self.linger or self.purge)


WEATHERS = (
    Weather("calm"),
    Weather("slow", linger=0.2),
    Weather("faults", fault=0.08, linger=0.05),
    Weather("deaths", kill=0.05, linger=0.1),
    Weather("storm", fault=0.1, kill=0.04, linger=0.15, purge=0.1, drift=timedelta(seconds=2)),
    Weather("crowd", fault=0.02, kill=0.01, linger=0.4, is_crowded=True),
    Weather("years", fault=0.05, kill=0.02, purge=0.05, changes=8, length=timedelta(days=70), is_long=True),
    Weather("calm years", changes=8, length=timedelta(days=70), is_long=True),
)

_HOURS = timedelta(hours=3)
DURABLE_WEATHERS = (
    Weather("durable calm", changes=24, length=_HOURS, is_durable=True),
    Weather("durable slow", linger=0.5, changes=24, length=_HOURS, is_durable=True),
    Weather("durable faults", fault=0.04, linger=0.05, changes=24, length=_HOURS, is_durable=True),
    Weather("durable deaths", kill=0.025, linger=0.1, changes=24, length=_HOURS, is_durable=True),
    Weather(
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
    Weather(
        "durable years", fault=0.03, kill=0.01, purge=0.05, length=timedelta(days=70), is_long=True, is_durable=True
    ),
)

WORKERS_WEATHERS = (
    Weather("workers calm", changes=24, length=_HOURS, has_workers=True),
    Weather("workers slow", linger=0.3, changes=24, length=_HOURS, has_workers=True),
    Weather("workers faults", fault=0.06, linger=0.05, changes=24, length=_HOURS, has_workers=True),
    Weather("workers deaths", kill=0.04, linger=0.1, changes=24, length=_HOURS, has_workers=True),
    Weather(
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
    Weather(
        "workers crowd",
        fault=0.02,
        kill=0.01,
        linger=0.3,
        changes=8,
        length=_HOURS / 2,
        is_crowded=True,
        has_workers=True,
    ),
    Weather(
        "workers years", fault=0.04, kill=0.02, purge=0.05, length=timedelta(days=70), is_long=True, has_workers=True
    ),
    Weather(
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
