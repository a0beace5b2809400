"""Calendars by URL are fetched so often for a user, and from a host; what is refused has asked nobody."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from tests import greeting_app
from tests.engine.harness import MINUTE, SECOND

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.engine.authority import OWN_CODE
from cloudsched.errors import InvalidInput, QuotaExceeded
from cloudsched.features.calendars.calendars import MAX_FOR_OWNER, MAX_FROM_HOST, Calendars
from cloudsched.features.calendars.documents import Calendar
from cloudsched.features.calendars.wiring import CalendarsWiring
from cloudsched.testing import Simulation

ICS = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20270714\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"


@pytest.fixture
def sim() -> Iterator[Simulation]:
    with Simulation(greeting_app.app) as made:
        yield made


@pytest.fixture
def fetched(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    urls: list[str] = []

    def fetch(url: str, _: str | None) -> tuple[str, str | None]:
        urls.append(url)
        return ICS, None

    monkeypatch.setattr(calendars(sim)._source, "fetch", fetch)  # noqa: SLF001 - the network
    return urls


def calendars(sim: Simulation) -> Calendars:
    return CalendarsWiring.of(sim.app.container).calendars


def test_a_user_has_so_many_calendars_fetched_a_day(sim: Simulation, fetched: list[str]) -> None:
    """300 PUTs made 300 fetches. The next one is refused with when there is room; an admin is not limited so."""
    for number in range(MAX_FOR_OWNER):
        calendars(sim).put("a", "ada", url=f"https://host{number}.example/a.ics", by=OWN_CODE)
    with pytest.raises(QuotaExceeded, match="in a day") as refused:
        calendars(sim).put("a", "ada", url="https://other.example/a.ics", by=OWN_CODE)
    assert refused.value.retry_after == timedelta(days=1).total_seconds()
    calendars(sim).put("a", "eve", url="https://other.example/a.ics", by=OWN_CODE)
    for number in range(MAX_FOR_OWNER + 1):
        calendars(sim).put("all", SYSTEM_OWNER, url=f"https://host{number}.example/a.ics", by=OWN_CODE)
    assert len(fetched) == 2 * MAX_FOR_OWNER + 2
    sim.advance(timedelta(hours=23, minutes=59))
    with pytest.raises(QuotaExceeded, match="in a day"):
        calendars(sim).put("a", "ada", url="https://other.example/a.ics", by=OWN_CODE)
    sim.advance(2 * MINUTE)
    calendars(sim).put("a", "ada", url="https://other.example/a.ics", by=OWN_CODE)


def test_a_host_is_asked_so_often_a_minute(sim: Simulation, fetched: list[str]) -> None:
    """By all users together, however its name is written."""
    for number in range(MAX_FROM_HOST):
        host = "Victim.example" if number % 2 else "victim.EXAMPLE"
        calendars(sim).put("a", f"user-{number}", url=f"https://{host}/{number}", by=OWN_CODE)
    with pytest.raises(QuotaExceeded, match="in a minute"):
        calendars(sim).put("a", "one-more", url="https://victim.example/", by=OWN_CODE)
    assert len(fetched) == MAX_FROM_HOST
    sim.advance(59 * SECOND)
    with pytest.raises(QuotaExceeded, match="in a minute"):
        calendars(sim).put("a", "one-more", url="https://victim.example/", by=OWN_CODE)
    sim.advance(SECOND)
    calendars(sim).put("a", "one-more", url="https://victim.example/", by=OWN_CODE)


def test_nothing_is_fetched_for_a_calendar_for_which_there_is_no_room(sim: Simulation, fetched: list[str]) -> None:
    """The quota comes first; a calendar that is there may still be replaced."""
    for number in range(Calendar.max_per_owner):
        calendars(sim).put(f"c{number}", "ada", weekdays=["MO"], by=OWN_CODE)
    with pytest.raises(InvalidInput, match="as many as one may have"):
        calendars(sim).put("more", "ada", url="https://host.example/", by=OWN_CODE)
    assert not fetched
    calendars(sim).put("c0", "ada", url="https://host.example/", by=OWN_CODE)
    assert len(fetched) == 1


def test_an_address_that_is_none_is_refused(sim: Simulation, fetched: list[str]) -> None:
    """Also one that cannot be parsed."""
    for url in ("https://[::1", "ftp://host.example/", "https:///a", "https://ada:secret@host.example/"):
        with pytest.raises(InvalidInput, match="not the address"):
            calendars(sim).put("a", "ada", url=url, by=OWN_CODE)
    assert not fetched
