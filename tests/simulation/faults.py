"""Fault profiles: how often what goes wrong in a history, and what its workload is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import Any

HEAD_START = timedelta(seconds=1)
"""How early a run may be claimed in a history, as its clocks differ by so much."""


@dataclass(frozen=True)
class FaultProfile:
    """How often what goes wrong in a history, and what its workload is."""

    name: str
    fault: float = 0.0
    """The probability that a call to a port fails, before or after it took effect, or is made twice."""
    kill: float = 0.0
    """The probability that a process crashes at a call."""
    linger: float = 0.0
    """The probability that time passes while processes are running."""
    drift: timedelta = timedelta(0)
    """The largest difference between a process's clock and the true time, either way."""
    steps: float = 0.0
    """The probability, each time a process reads its clock, that this is set anew within `drift`, back or forward."""
    yields: float = 0.0
    """The probability that other processes run between the effect of a call and its caller's next line."""
    rivals: tuple[int, ...] = (1,)
    """How many clients act on the same task at the same time; one of these numbers each time."""
    purge: float = 0.0
    """The probability, at each change by a client, that the queue loses everything."""
    wrong_clock: timedelta = timedelta(0)
    """By how much the clock of one executor is wrong, which also sweeps."""
    changes: int = 12
    """How many changes clients make."""
    length: timedelta = timedelta(hours=6)
    """The period in which they make them, and in which faults happen."""
    is_crowded: bool = False
    """Whether all tasks want the same lock at the same time, and their runs take long."""
    moves_locks: bool = False
    """Whether clients act above all on tasks whose occurrences wait at a lock, and move them to other locks."""
    is_long: bool = False
    """Whether occurrences are days and months apart rather than minutes."""
    is_durable: bool = False
    """Whether most handlers are durable and receive events."""
    has_workers: bool = False
    """Whether many tasks are for workers, which poll for them."""
    has_calendars: bool = False
    """Whether tasks respect calendars, whose days clients change."""
    has_journeys: bool = False
    """Whether the owner of the tasks travels, and their schedules follow."""
    has_two_releases: bool = False
    """Whether processes have time zone data of two releases, and those with the older one are replaced."""
    starts_after: timedelta = timedelta(0)
    """How much later than others it starts."""
    has_channels: bool = False
    """Whether results are delivered to a person, who changes preferences."""
    is_sharded: bool = False
    """Whether the store gets more shards, twice."""
    has_budgets: bool = False
    """Whether owners have budgets, which are used up, looked at and raised."""
    loses_answers: bool = False
    """Whether programs call the API, and send each request again until they get its answer."""
    redefines: float = 0.0
    """The probability that a change by a client is an edit of what a task runs."""
    restarts: int = 0
    """How often the executors, which are one process, are killed and started again; 0 if they are many processes."""

    def pick_kind(self, random: Random) -> str:
        if self.is_durable:
            return random.choice(["flow", "flow", "children", "work"])
        return random.choice(["work", "work", "chore"]) if self.has_workers else "work"

    @property
    def is_fault_free(self) -> bool:
        """Whether nothing goes wrong, so that everything happens exactly when it is due."""
        return not (self.fault or self.kill or self.linger or self.purge or self.restarts)


_SECONDS = timedelta(seconds=2)

PROFILES = (
    FaultProfile("fault-free"),
    FaultProfile("slow", linger=0.2),
    FaultProfile("crashes", kill=0.05, linger=0.1),
    FaultProfile("all faults", fault=0.1, kill=0.04, linger=0.15, purge=0.1, drift=timedelta(seconds=2)),
    FaultProfile("crowd", fault=0.02, kill=0.01, linger=0.4, is_crowded=True),
    FaultProfile("rivals", yields=0.3, linger=0.1, changes=20, rivals=(2, 3, 5)),
    FaultProfile("rivals with faults", fault=0.06, kill=0.02, yields=0.3, linger=0.1, changes=20, rivals=(1, 2, 3, 5)),
    FaultProfile(
        "clocks that go back",
        fault=0.05,
        kill=0.02,
        linger=0.1,
        yields=0.2,
        drift=timedelta(seconds=2),
        steps=0.1,
        rivals=(1, 2),
    ),
    *(
        FaultProfile(f"a clock that is {name}", fault=0.03, kill=0.02, linger=0.1, drift=_SECONDS, wrong_clock=wrong)
        for name, wrong in (("ahead", timedelta(minutes=4)), ("behind", timedelta(minutes=-4)))
    ),
    FaultProfile("edits at locks", linger=0.4, yields=0.2, rivals=(1, 1, 3), is_crowded=True, moves_locks=True),
    FaultProfile(
        "edits at locks with faults",
        fault=0.04,
        kill=0.02,
        linger=0.4,
        yields=0.2,
        drift=timedelta(seconds=1),
        steps=0.05,
        rivals=(1, 1, 3),
        is_crowded=True,
        moves_locks=True,
    ),
    FaultProfile("years", fault=0.05, kill=0.02, purge=0.05, changes=8, length=timedelta(days=70), is_long=True),
    FaultProfile("fault-free years", changes=8, length=timedelta(days=70), is_long=True),
)

_HOURS = timedelta(hours=3)
_NIGHT = timedelta(hours=4)
_DAYS = timedelta(days=7)
_SEASON = timedelta(days=70)


def _make_profiles(base: FaultProfile, changes: dict[str, dict[str, Any]]) -> tuple[FaultProfile, ...]:
    """Return the profiles of one workload: those of its base, each with its own faults, by their names."""
    return tuple(replace(base, name=f"{base.name} {name}", **more) for name, more in changes.items())


_RIVALS: dict[str, Any] = {
    "fault": 0.04,
    "kill": 0.02,
    "linger": 0.1,
    "drift": timedelta(seconds=1),
    "yields": 0.3,
    "rivals": (1, 2, 3),
}
"""Several clients at the same task at once, with everything that goes wrong beside."""
_STEPPING: dict[str, Any] = {**_RIVALS, "steps": 0.05}
_EDITS: dict[str, Any] = {
    "fault": 0.04,
    "kill": 0.02,
    "linger": 0.15,
    "yields": 0.2,
    "rivals": (1, 1, 3),
    "changes": 30,
    "redefines": 0.4,
}
_YEARS: dict[str, Any] = {
    "fault": 0.04,
    "kill": 0.02,
    "purge": 0.05,
    "changes": 12,
    "length": _SEASON,
    "is_long": True,
}
_ALL: dict[str, Any] = {"fault": 0.06, "kill": 0.03, "linger": 0.15, "drift": timedelta(seconds=1), "purge": 0.1}

DURABLE_PROFILES = _make_profiles(
    FaultProfile("durable", changes=24, length=_HOURS, is_durable=True),
    {
        "fault-free": {},
        "edits": {"changes": 30, "redefines": 0.4},
        "edits with faults": _EDITS,
        "slow": {"linger": 0.5},
        "crashes": {"kill": 0.025, "linger": 0.1},
        "all faults": {**_ALL, "kill": 0.02},
        "rivals": {**_STEPPING, "fault": 0.03, "kill": 0.01},
        "years": _YEARS,
    },
)

WORKER_PROFILES = _make_profiles(
    FaultProfile("workers", changes=24, length=_HOURS, has_workers=True),
    {
        "fault-free": {},
        "edits with faults": _EDITS,
        "slow": {"linger": 0.3},
        "crashes": {"kill": 0.04, "linger": 0.1},
        "all faults": _ALL,
        "crowd": {"fault": 0.02, "kill": 0.01, "linger": 0.3, "changes": 8, "length": _HOURS / 2, "is_crowded": True},
        "rivals": _STEPPING,
        "edits at locks": {
            "fault": 0.02,
            "kill": 0.01,
            "linger": 0.3,
            "yields": 0.2,
            "rivals": (1, 1, 3),
            "changes": 16,
            "length": _HOURS / 2,
            "is_crowded": True,
            "moves_locks": True,
        },
        "years": _YEARS,
        "durable": {"fault": 0.03, "kill": 0.015, "linger": 0.1, "is_durable": True},
    },
)

CALENDAR_PROFILES = _make_profiles(
    FaultProfile("calendars", changes=24, length=_DAYS, has_calendars=True),
    {
        "fault-free": {},
        "all faults": _ALL,
        "rivals": {**_RIVALS, "purge": 0.05},
    },
)

JOURNEY_PROFILES = _make_profiles(
    FaultProfile("journeys", changes=50, length=_DAYS, has_journeys=True),
    {
        "fault-free": {},
        "rivals": {**_RIVALS, "purge": 0.05},
    },
)

RELEASE_PROFILES = _make_profiles(
    FaultProfile(
        "releases",
        changes=50,
        length=_DAYS,
        has_journeys=True,
        has_two_releases=True,
        starts_after=timedelta(days=30),  # when the clocks of the two releases differ
    ),
    {"fault-free": {}, "rivals": {**_RIVALS, "purge": 0.05}},
)

CHANNEL_PROFILES = _make_profiles(
    FaultProfile("channels", changes=24, has_channels=True),
    {
        "fault-free": {},
        "all faults": {**_ALL, "fault": 0.08, "yields": 0.3, "rivals": (1, 2)},
    },
)

BUDGET_PROFILES = _make_profiles(
    FaultProfile("budgets", changes=30, has_budgets=True),
    {
        "fault-free": {},
        "all faults": {**_ALL, "yields": 0.3, "rivals": (1, 2, 3)},
        "workers": {"linger": 0.2, "yields": 0.2, "has_workers": True},
        "durable": {"linger": 0.2, "yields": 0.2, "length": _HOURS, "is_durable": True},
    },
)

REQUEST_PROFILES = _make_profiles(
    FaultProfile("requests", changes=4, length=_NIGHT, loses_answers=True),
    {
        "fault-free": {},
        "all faults": {**_ALL, "kill": 0.02, "steps": 0.05, "yields": 0.3, "rivals": (1, 2), "changes": 8},
    },
)

SHARD_PROFILES = _make_profiles(
    FaultProfile("shards", changes=24, length=_HOURS, is_sharded=True),
    {
        "fault-free": {},
        "all faults": {**_ALL, "yields": 0.2, "rivals": (1, 2), "purge": 0.2},
    },
)

RESTART_PROFILES = _make_profiles(
    FaultProfile("restarts", linger=0.3, changes=24, length=_HOURS, restarts=20),
    {
        "slow": {"linger": 0.4},
        "crowd": {"linger": 0.4, "changes": 12, "is_crowded": True},
        "all faults": {**_ALL, "linger": 0.3, "purge": 0.0, "yields": 0.2, "rivals": (1, 2)},
        "durable": {"is_durable": True},
        "durable with faults": {"fault": 0.04, "kill": 0.02, "yields": 0.2, "rivals": (1, 2), "is_durable": True},
        "workers": {"fault": 0.03, "has_workers": True},
    },
)

ALL_PROFILES = (
    *(*PROFILES, *DURABLE_PROFILES, *WORKER_PROFILES),
    *(*JOURNEY_PROFILES, *RELEASE_PROFILES),
    *(*CALENDAR_PROFILES, *CHANNEL_PROFILES, *SHARD_PROFILES, *BUDGET_PROFILES),
    *(*REQUEST_PROFILES, *RESTART_PROFILES),
)
