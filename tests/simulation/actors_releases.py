"""Processes with time zone data of two releases, of which those with the older one are replaced while tasks run.

The data differ for Mexico City, Cairo and Amman, among which the owner travels, too. W1 to W3 of the journeys judge by
names, and so hold whatever the data say. Besides:

R1  In the end each task that waits is planned by the newer data: its next occurrence is at its local time.
"""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from tests.simulation.invariants_runs import fail
from tests.zone_data import load_release

from cloudsched import App
from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.recurrence.iso8601 import utc_seconds
from cloudsched.domain.recurrence.time_zones import ZoneData

if TYPE_CHECKING:
    from tests.simulation.world import World


_OLD, _NEW = "2022a", "2023c"


class Releases:
    """Which process has which data, and when each gets the newer ones."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._data: dict[App, ZoneData] = {}
        self._moments: deque[datetime] = deque()
        if world.fault_profile.has_two_releases:
            self._data = {app: load_release(_OLD) for app in world.apps}
            length = world.fault_profile.length
            self._moments += sorted(world.now + length * world.random.random() * 0.9 for _ in world.apps)

    def data_of(self, app: App) -> ZoneData:
        return self._data.get(app, time_zones.in_use)

    def next_at(self) -> datetime | None:
        """Return when the next process is replaced; None if none is."""
        return self._moments[0] if self._moments else None

    def act(self) -> None:
        """Replace a process with one that has the newer data; what it is doing, it does to its end."""
        self._moments.popleft()
        apps = self._world.apps
        number = self._world.random.choice([at for at, app in enumerate(apps) if self._data[app].release == _OLD])
        apps[number] = self._world.start_app(timedelta(0))
        self._data[apps[number]] = load_release(_NEW)
        self._world.log(f"process {number} has {_NEW}")

    def check_end_state(self) -> None:
        """Check that every waiting task is at its local time."""
        if not self._world.fault_profile.has_two_releases:
            return
        with time_zones.use(load_release(_NEW)):
            for task in self._world.tasks():
                at, plan = task.next_execution_time, task.zone_plan
                if at is None or not task.is_active or plan is None or not task.schedule.has_clock:
                    continue
                offset = time_zones.load_zone(task.timezone).offset_at(utc_seconds(at))
                if plan.is_stale or not task.schedule.occurs(at) or plan.offset_at(utc_seconds(at)) != offset:
                    fail(f"R1: {task.id} is planned at {at} with {plan}")
