"""What an owner does who travels: changes the time zone, several times a day, while tasks follow."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tests.engine.harness import HOUR, MINUTE, SECOND
from tests.zone_data import AMMAN, CAIRO, MEXICO

from cloudsched import App, Overlap, RetryPolicy, Schedule, TaskDraft
from cloudsched.domain.documents.person import Person, PersonSpec
from cloudsched.domain.documents.policy import CatchUp, CatchUpMode
from cloudsched.engine.authority import OWN_CODE
from cloudsched.people.wiring import PeopleWiring

if TYPE_CHECKING:
    from tests.simulation.world import World


TRAVELLER = "ada"
JOURNEY_SHARE = 0.75
"""The probability that a change is one of the owner's zone."""
ZONES = (
    *("Pacific/Honolulu", "America/New_York", "UTC", "Europe/London", "Europe/Berlin", "Asia/Kolkata"),
    *("Asia/Tokyo", "Pacific/Auckland", "Pacific/Kiritimati"),
)
CHANGED_ZONES = (MEXICO, CAIRO, AMMAN, "America/New_York")
"""Between two releases of the time zone data, governments have changed the clocks of three of these."""
RULES = (
    *("FREQ=DAILY;BYHOUR=9", "FREQ=DAILY;BYHOUR=2;BYMINUTE=30", "FREQ=DAILY;BYHOUR=0,7,12,23"),
    *("FREQ=WEEKLY;BYDAY=SU,MO,WE,TH;BYHOUR=18", "FREQ=HOURLY;INTERVAL=5", "FREQ=DAILY;BYHOUR=20;COUNT=4"),
)


def add_traveller(world: World) -> None:
    """Store the owner of all tasks, in some zone."""
    known = {"id": TRAVELLER, "owner": TRAVELLER, "createdAt": world.now, "updatedAt": world.now}
    zone = _choose_zone(world)
    world.real_store.records.write(Person.model_validate({**known, "timezone": zone}), None)


def _choose_zone(world: World) -> str:
    return world.random.choice(CHANGED_ZONES if world.fault_profile.has_two_releases else ZONES)


def travel(world: World, app: App) -> None:
    zone = _choose_zone(world)
    world.log(f"travels to {zone}")
    PeopleWiring.of(app.container).people.put(TRAVELLER, PersonSpec(timezone=zone), by=OWN_CODE)


def draft_follower(world: World, task_id: str) -> TaskDraft:
    """Return a task that follows the owner.

    It runs all that is missed, so that each local time runs, and nothing that is three hours late, which nothing is.
    """
    choose = world.random.choice
    rule, days = choose(RULES), choose([0, 0, 30])
    if world.fault_profile.has_two_releases and rule.startswith("FREQ=HOURLY"):
        days = 2300  # when both releases had the same clocks: elapsed hours count from an instant
    start = (world.now - timedelta(days=days)).replace(tzinfo=None, microsecond=0, second=0, minute=0)
    late: dict[str, Any] = choose([{}, {"expiration": 3 * HOUR}])
    return TaskDraft.of(
        id=task_id,
        owner=TRAVELLER,
        title="Follow",
        handler="work",
        schedule=Schedule(rrule=rule, dtstart=start.isoformat(), timezone="owner"),
        overlap=choose([Overlap.ALLOW, Overlap.BUFFER]),
        catch_up=CatchUp(mode=CatchUpMode.ALL, window=choose([None, 3 * HOUR])),
        jitter=choose([timedelta(0), timedelta(0), 3 * MINUTE]),
        retry=RetryPolicy(max_retries=3, base=5 * SECOND),
        **late,
    )
