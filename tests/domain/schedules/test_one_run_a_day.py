"""Clock changes and calendars together give no day a second run, and lose none."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

from tests.cases import try_each
from tests.domain.schedules.test_calendar_recurrence import CalendarParts, is_taken, read_wall, walk_day
from tests.engine.harness import DAY

from cloudsched.domain.recurrence.time_zones import in_use, load_tzinfo, load_zone
from cloudsched.domain.schedules.calendar_days import format_days
from cloudsched.domain.schedules.calendar_rule import CalendarRule
from cloudsched.domain.schedules.schedule import Schedule

ON = ("SKIP", "BEFORE", "AFTER")


def clock_changes(zone: str, chance: random.Random) -> list[int]:
    """Return some of a zone's clock changes since 1970: the latest, those that last longest, and a random one."""
    table = load_zone(zone).table_for(0)
    known = [
        (abs(table.offsets[at + 1] - table.offsets[at]), change)
        for at, change in enumerate(table.changes)
        if 0 < change < datetime(2037, 1, 1, tzinfo=UTC).timestamp()
    ]
    changes = [change for _, change in known]
    return (
        list(dict.fromkeys([*changes[-2:], *(at for _, at in sorted(known)[-1:]), chance.choice(changes)]))
        if known
        else []
    )


@try_each("zone", [each for each in in_use.names if "/" in each and not each.startswith("Etc/")])
def test_no_day_gets_a_second_run_and_none_is_lost(zone: str) -> None:
    """Rules with one time a day, in every zone, around clock changes, weekends and holidays, whatever they do.

    A day has one run at most, but where it would have two without calendars. No run is on one of their days. Whatever
    they do not leave out has a run on the day to which it moves.
    """
    chance = random.Random(zone)  # noqa: S311 - the same choices on each run
    tzinfo = load_tzinfo(zone)
    for change in clock_changes(zone, chance):
        at = datetime.fromtimestamp(change, UTC)
        holiday = at.date() + timedelta(chance.randint(-2, 2))
        some: list[CalendarParts] = [
            (chance.choice(ON), set(chance.choice((("SA", "SU"), ("FR", "SA"), ("SU",), ("SA",)))), []),
            (chance.choice(ON), set(), [(holiday, holiday + timedelta(chance.randint(0, 2)), "Holiday")]),
        ]
        wall = at.astimezone(tzinfo) + timedelta(minutes=chance.randint(-90, 90))
        plain = Schedule(
            rrule=chance.choice(("FREQ=DAILY", "FREQ=WEEKLY;BYDAY=FR,SA,SU,MO", "FREQ=DAILY;INTERVAL=2")),
            dtstart=(wall.replace(tzinfo=None) - 20 * DAY).isoformat(timespec="minutes"),
            timezone=zone,
            gap=chance.choice(("SHIFT", "SHIFT", "SKIP")),
            fold=chance.choice(("FIRST", "LAST")),
        )
        rules = [
            CalendarRule(id=f"c{n}", on=on).with_content(format_days(w, spans)) for n, (on, w, spans) in enumerate(some)
        ]
        begin, end = at - 12 * DAY, at + 12 * DAY
        found = [
            each.astimezone(tzinfo).date() for each in plain.model_copy(update={"calendars": rules}).between(begin, end)
        ]
        without = [each.astimezone(tzinfo).date() for each in plain.between(begin, end)]
        case = (zone, plain, some)
        assert not [day for day in found if any(is_taken(day, each) for each in some)], case
        assert not [day for day in found if found.count(day) > max(1, without.count(day))], case
        inner = plain.between(begin + 4 * DAY, end - 4 * DAY)
        targets = {day for each in inner if (day := walk_day(each, some, None, tzinfo)) is not None}
        if plain.gap == "SKIP":  # the other day may not have that time
            targets = {day for day in targets if read_wall(datetime.combine(day, wall.time()), tzinfo, "skip", "first")}
        assert targets <= {*found}, case
