"""Feeds and task calendars over HTTP: who may have them, and what another program reads in them."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
import recurring_ical_events  # type: ignore[import-untyped]  # it has no stubs
from icalendar import Calendar
from tests.web.callers import RoleHarness
from tests.web.conftest import Call

from cloudsched.adapters.operation_counts import Counts
from cloudsched.engine.authority import OWN_CODE
from cloudsched.people import feeds
from cloudsched.people.wiring import PeopleWiring
from cloudsched.testing import START, Simulation

pytestmark = pytest.mark.filterwarnings("ignore")  # those libraries' own
WEEKDAYS = {"rrule": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9", "timezone": "Europe/Paris"}


def read_events(text: str) -> list[dict[str, Any]]:
    """Return the events that another program reads, by time."""
    events = recurring_ical_events.of(Calendar.from_ical(text)).between(
        datetime(2000, 1, 1, tzinfo=UTC), START + timedelta(days=120)
    )
    return sorted((dict(each) for each in events), key=lambda each: each["DTSTART"].dt)


def new_feed(call: Call, **body: object) -> str:
    """Create a feed; return the path of its address."""
    made = call("POST", "/v1/feeds", {"owner": "ada", **body})
    return str(urlsplit(made.get_json()["url"]).path)


def test_a_feed_shows_what_was_and_what_will_be(call: Call, sim: Simulation, greeting: dict[str, Any]) -> None:
    """Past occurrences with their outcomes, coming ones until 90 days ahead; an occurrence keeps its UID."""
    call("POST", "/v1/tasks", {**greeting, "id": "t", "title": "Hällo; wörld, \\ \r\nX-EVIL:1", "schedule": WEEKDAYS})
    call("POST", "/v1/tasks", {**greeting, "owner": "bob", "title": "Bob's", "schedule": WEEKDAYS})
    path = new_feed(call)
    before = read_events(call("GET", path).text)
    sim.advance(timedelta(days=10))
    answer = call("GET", path)
    assert answer.content_type == "text/calendar; charset=utf-8"
    events = read_events(answer.text)
    assert {str(each["SUMMARY"]) for each in events} == {"Hällo; wörld, \\ \nX-EVIL:1"}
    ran = [execution.scheduled_for for execution in reversed(sim.executions("t"))]
    upcoming = sim.app.upcoming("t", 200)
    assert [each["DTSTART"].dt for each in events] == [
        *sorted(ran),
        *(at for at in upcoming if at <= sim.now + timedelta(days=90)),
    ]
    assert ["Succeeded" in str(each.get("DESCRIPTION", "")) for each in events] == [True] * len(ran) + [False] * (
        len(events) - len(ran)
    )
    uids = {each["DTSTART"].dt: str(each["UID"]) for each in before}
    assert all(uids.get(each["DTSTART"].dt, str(each["UID"])) == str(each["UID"]) for each in events)
    assert len({str(each["UID"]) for each in events}) == len(events)


def test_programs_move_the_events_of_a_changed_task(call: Call, sim: Simulation, greeting: dict[str, Any]) -> None:
    """An event that stays where it was keeps its UID, and its SEQUENCE is the task's revision, which has grown.

    304 for the ETag, until something changes; programs may keep it for a while, and nobody else.
    """
    call("POST", "/v1/tasks", {**greeting, "id": "t", "schedule": WEEKDAYS})
    path = new_feed(call)
    seen = []
    for title in ("Old", "New"):
        revision = call("PATCH", "/v1/tasks/t", {"title": title}).get_json()["revision"]
        events = read_events(call("GET", path).text)
        assert {(str(each["SUMMARY"]), each["SEQUENCE"]) for each in events} == {(title, revision)}
        seen.append((revision, [str(each["UID"]) for each in events]))
    (old, uids), (new, again) = seen
    assert new > old
    assert uids == again
    first = call("GET", path)
    assert first.headers["Cache-Control"] == "private, max-age=900"
    tag = {"If-None-Match": first.headers["ETag"]}
    sim.advance(timedelta(minutes=30))
    assert call("GET", path, headers=tag).status_code == 304
    call("PATCH", "/v1/tasks/t", {"title": "Newest"})
    assert call("GET", path, headers=tag).status_code == 200


def test_a_feed_is_text_as_calendar_programs_want_it(call: Call, greeting: dict[str, Any]) -> None:
    """It says in both ways when to ask again, and its lines end with CRLF and have 75 octets at most."""
    call("POST", "/v1/tasks", {**greeting, "title": "é" * 150, "schedule": WEEKDAYS})
    data = call("GET", new_feed(call)).get_data()
    lines = data.split(b"\r\n")
    assert {b"REFRESH-INTERVAL;VALUE=DURATION:PT1H", b"X-PUBLISHED-TTL:PT1H"} <= {*lines}
    assert lines[-1] == b""
    assert max(map(len, lines)) <= 75
    assert b"\n" not in data.replace(b"\r\n", b"")
    assert {str(each["SUMMARY"]) for each in read_events(data.decode())} == {"é" * 150}


def test_one_document_is_read_to_find_a_feed(call: Call, sim: Simulation) -> None:
    """An address that is none costs one read and no query; so does one that was revoked."""
    for path in (f"/v1/feeds/{'x' * 43}.ics", new_feed(call)):
        for feed in PeopleWiring.of(sim.app.container).feeds.list("ada"):
            PeopleWiring.of(sim.app.container).feeds.revoke(feed.id, by=OWN_CODE)
        before = sim.counts.copy()
        assert call("GET", path).status_code == 404
        assert sim.counts.since(before) == Counts(reads=1)


@pytest.mark.parametrize(
    ("filters", "shown"),
    [({"labels": ["b=1", "a=1"]}, ["Both"]), ({"categories": ["REPORT"]}, ["One"]), ({}, ["Both", "None", "One"])],
    ids=str,
)
def test_a_feed_has_what_it_is_for(
    call: Call, greeting: dict[str, Any], filters: dict[str, list[str]], shown: list[str]
) -> None:
    """Tasks with all of its labels, however many more they have, and with one of its categories."""
    tasks: dict[str, dict[str, Any]] = {
        "Both": {"labels": ["a=1", "b=1", "c=1"]},
        "One": {"labels": ["a=1"], "category": "REPORT"},
        "None": {},
    }
    for title, fields in tasks.items():
        call("POST", "/v1/tasks", {**greeting, "title": title, "schedule": WEEKDAYS, **fields})
    events = read_events(call("GET", new_feed(call, **filters)).text)
    assert sorted({str(each["SUMMARY"]) for each in events}) == shown


def test_a_feed_of_large_records_says_that_it_leaves_some_out(
    call: Call, sim: Simulation, greeting: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it has read so many bytes it reads no more past occurrences; the tasks and what is to come are all there."""
    for number in range(3):
        fields = {"title": f"T{number}", "schedule": {"rrule": "FREQ=DAILY", "timezone": "UTC"}}
        call("POST", "/v1/tasks", {**greeting, **fields})
    sim.advance(timedelta(days=2, hours=1))
    path = new_feed(call)
    whole = read_events(call("GET", path).text)
    monkeypatch.setattr(feeds, "MAX_BYTES", 1)
    text = call("GET", path).text
    assert "It does not show all past occurrences." in str(Calendar.from_ical(text)["X-WR-CALDESC"])
    shown = read_events(text)
    assert {str(each["SUMMARY"]) for each in shown} == {"T0", "T1", "T2"}
    assert 200 < len(shown) < len(whole)


def test_who_may_have_a_feed(roles: RoleHarness) -> None:
    """The secret alone opens one; a stranger cannot tell one that there is."""
    roles.task("ada", title="Ada's")
    made = roles.ask("ada", "POST", "/v1/feeds", {}).get_json()
    listed = roles.ask("ada", "GET", "/v1/feeds").get_json()["feeds"]
    assert [each["id"] for each in listed] == [made["id"]]
    assert "url" not in listed[0]
    path = urlsplit(made["url"]).path
    assert "Ada's" in roles.ask(None, "GET", path).text
    stranger = roles.ask("bob", "DELETE", f"/v1/feeds/{made['id']}")
    nothing = roles.ask("bob", "DELETE", f"/v1/feeds/{'0' * 64}")
    assert stranger.status_code == nothing.status_code == 404
    assert roles.ask("ada", "DELETE", f"/v1/feeds/{made['id']}").status_code == 204
    assert roles.ask(None, "GET", path).status_code == 404
    assert roles.ask(None, "GET", f"/v1/feeds/{made['id']}.ics").status_code == 404


def test_the_secret_is_nowhere_but_in_the_address(
    call: Call, sim: Simulation, caplog: pytest.LogCaptureFixture, greeting: dict[str, Any]
) -> None:
    """What is stored and what is logged hold only its hash."""
    caplog.set_level(logging.DEBUG)
    call("POST", "/v1/tasks", {**greeting, "schedule": WEEKDAYS})
    path = new_feed(call)
    secret = path.rpartition("/")[2].removesuffix(".ics")
    assert len(secret) == 43
    call("GET", path)
    (feed,) = PeopleWiring.of(sim.app.container).feeds.list("ada")
    assert secret not in feed.to_stored_json()
    assert secret not in caplog.text
    assert secret not in call("GET", path[:-5] + "x.ics").text


def test_an_owner_has_twenty_feeds(call: Call) -> None:
    """One more is refused, with what to do."""
    for _ in range(20):
        new_feed(call)
    refused = call("POST", "/v1/feeds", {"owner": "ada"})
    assert refused.status_code == 400
    assert "Delete one" in refused.get_json()["hint"]


def test_a_task_to_add_to_a_calendar(roles: RoleHarness) -> None:
    """It has its rule where every program reads it alike, else its occurrences."""
    plain = roles.task("ada", schedule=WEEKDAYS)
    text = roles.ask("ada", "GET", f"/v1/tasks/{plain}.ics").text
    assert "RRULE:FREQ=WEEKLY" in text
    assert "BEGIN:VTIMEZONE" in text
    upcoming = [at for at in roles.sim.app.upcoming(plain, 100) if at <= START + timedelta(days=90)]
    found = [each["DTSTART"].dt.astimezone(UTC) for each in read_events(text)]
    assert [at for at in found if at <= START + timedelta(days=90)] == upcoming
    for schedule in (
        {"rrule": "FREQ=HOURLY;BYHOUR=9,14", "timezone": "Europe/Paris"},
        {"rrule": "FREQ=MONTHLY;BYMONTHDAY=31;SKIP=BACKWARD;BYHOUR=9", "timezone": "Europe/Paris"},
    ):
        other = roles.task("ada", schedule=schedule)
        text = roles.ask("ada", "GET", f"/v1/tasks/{other}.ics").text
        assert "RRULE" not in text
        upcoming = [at for at in roles.sim.app.upcoming(other, 200) if at <= START + timedelta(days=90)]
        *events, more = read_events(text)
        assert [each["DTSTART"].dt for each in events] == upcoming
        assert "more follows" in more["SUMMARY"]
