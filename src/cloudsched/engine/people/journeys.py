"""Plan the tasks that follow a person again, when the person's time zone changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.documents.builtin_handlers import FOLLOW_HANDLER
from cloudsched.domain.documents.calendar import zone_key
from cloudsched.engine.handlers.calendar_tasks import ChangeToFollow
from cloudsched.engine.tasks.follow_changes import FollowChange, make_follower
from cloudsched.engine.tasks.owner_zones import FollowedPerson

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.tasks.scheduler import Scheduler


class Journeys:
    """Follows people from one time zone to another."""

    def __init__(self, store: Store, clock: Clock, scheduler: Callable[[], Scheduler], chance: Random) -> None:
        self._store = store
        self._clock = clock
        self._scheduler = scheduler
        self._chance = chance

    def begin(self, owner: str, revision: int) -> None:
        """Create the task that follows a person to another zone, before that is written with this revision."""
        key = f"{zone_key(owner).removeprefix('zone:')}-{self._chance.getrandbits(64):016x}"
        change = ChangeToFollow(key, zone_key(owner), revision, self._clock.now())
        title = f"Plan the tasks that follow {owner} again"[:200]
        payload = {**change.payload, "owner": owner}
        make_follower(f"journey-{key}", title, FOLLOW_HANDLER, payload, self._scheduler())

    def replan(self, owner: str, change: ChangeToFollow) -> bool:
        """Plan some of a person's tasks again; return whether nothing is left to do."""
        person = FollowedPerson(self._store.records, owner)
        return FollowChange(self._store, self._scheduler(), self._clock, person).run(change)
