"""Time zones come from the package's data, whatever the system has."""

from __future__ import annotations

import random
import subprocess
import sys
import zoneinfo
from datetime import timedelta

import pytest

from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.recurrence.time_zones import parse_footer
from cloudsched.errors import InvalidSchedule

FAR = 20_000_000_000  # the year 2603


def test_every_zone_agrees_with_zoneinfo() -> None:
    """At every clock change, a second around it, and at random instants from 1811 to 2603."""
    chance = random.Random(3)  # noqa: S311 -- reproducible examples, no secret
    asked = 0
    for name in time_zones.in_use.names:
        of, shown = time_zones.load_zone(name), time_zones.load_tzinfo(name)
        instants = [change + beside for change in of.table_for(0).changes for beside in (-1, 0, 1)]
        instants += [chance.randrange(-5_000_000_000, FAR) for _ in range(20)]
        for instant in instants:
            offset = (time_zones.EPOCH + timedelta(seconds=instant)).astimezone(shown).utcoffset()
            assert timedelta(seconds=of.offset_at(instant)) == offset, (name, instant)
        asked += len(instants)
    assert asked > 150_000


def test_the_data_of_the_package_is_used_not_that_of_the_system() -> None:
    """The data is the same if the system has its own, and its release is visible."""
    program = (
        "import zoneinfo; zoneinfo.reset_tzpath(['/nowhere']);"
        "from cloudsched.domain.recurrence import time_zones;"
        "print(time_zones.load_zone('America/Vancouver').table_for(0).changes)"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout  # noqa: S603 -- our own program
    assert printed.strip() == str(time_zones.load_zone("America/Vancouver").table_for(0).changes)
    assert time_zones.load_tzinfo("Europe/Paris") is not zoneinfo.ZoneInfo("Europe/Paris")
    assert time_zones.in_use.release[:4].isdigit()


@pytest.mark.parametrize(
    "name", ["Europe/Pariss", "europe/paris", "", "../../etc/passwd", "/etc/localtime", "x" * 9999]
)
def test_an_unknown_zone_is_refused_with_a_hint(name: str) -> None:
    for ask in (time_zones.load_zone, time_zones.load_tzinfo):
        with pytest.raises(InvalidSchedule, match="timezone"):
            ask(name)


@pytest.mark.parametrize(
    ("footer", "changes"),
    [
        ("UTC0", []),
        ("EST5EDT,M3.2.0,M11.1.0", [(1_805_007_600, -14_400), (1_825_567_200, -18_000)]),
        ("IST-1GMT0,M10.5.0,M3.5.0/1", [(1_806_195_600, 3600), (1_824_944_400, 0)]),
        ("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", [(1_806_195_600, -3600), (1_824_944_400, -7200)]),
        ("A0B,J60,J300", [(1_803_866_400, 3600), (1_824_598_800, 0)]),
        ("A0B,59,299/25", [(1_803_866_400, 3600), (1_824_681_600, 0)]),
    ],
)
def test_the_rule_that_continues_the_listed_changes(footer: str, changes: list[tuple[int, int]]) -> None:
    """The POSIX forms of RFC 8536: weekday of a month, day with and without 29 February, negative and long times."""
    assert parse_footer(footer).changes(2027) == changes


def test_a_broken_rule_is_refused() -> None:
    with pytest.raises(ValueError, match="POSIX"):
        parse_footer("EST5EDT,M3.2.0")
