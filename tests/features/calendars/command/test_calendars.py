"""``cloudsched admin calendars``, and ``cloudsched next --calendar``, on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from tests.cli.conftest import CommandResult

from cloudsched.cli.main import ExitCode
from cloudsched.client import Client
from cloudsched.errors import InvalidInput
from cloudsched.features.calendars.wiring import CalendarsWiring
from cloudsched.testing import Simulation

Calendars = Callable[..., CommandResult]

ICS = """BEGIN:VCALENDAR
BEGIN:VEVENT
DTSTART;VALUE=DATE:20270714
SUMMARY:Bastille Day
END:VEVENT
END:VCALENDAR
"""


@pytest.fixture
def ics(tmp_path: Path) -> str:
    path = tmp_path / "fr-holidays.ics"
    path.write_text(ICS)
    return str(path)


def test_a_calendar_is_set_shown_listed_and_deleted(calendars: Calendars) -> None:
    """What was set is shown; after its deletion it is not found."""
    days = ("--day", "2027-08-02/2027-08-20=Summer", "--day", "2027-12-24", "--weekdays", "sa,su")
    made = calendars("set", "closed", "--title", "Closed", *days, "--json")
    assert made.code == 0, made.err
    shown = json.loads(calendars("show", "closed", "--json").out)
    assert shown == json.loads(made.out)
    assert shown["days"] == [
        {"date": "2027-08-02", "until": "2027-08-20", "name": "Summer"},
        {"date": "2027-12-24", "name": ""},
    ]
    assert shown["weekdays"] == ["SA", "SU"]
    assert "2027-08-02/2027-08-20  Summer\n" in calendars("show", "closed").out
    assert calendars("list").out == "closed  Closed\n"
    assert calendars("delete", "closed", "--yes").out == "deleted closed\n"
    assert calendars("show", "closed").code == ExitCode.NOT_FOUND


def test_days_come_from_a_file_or_a_country(calendars: Calendars, ics: str) -> None:
    """From an iCalendar file, and from the package of holidays."""
    assert "2027-07-14             Bastille Day" in calendars("set", "fr", "--ics", ics).out
    bavaria = calendars("set", "by", "--holidays", "de-by", "--years", "2027", "--language", "en_US")
    assert "2027-01-06             Epiphany" in bavaria.out, bavaria.err
    assert "2028-" not in bavaria.out.partition("days")[2]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--day", "tomorrow"), "--day: 'tomorrow' is not a date; write it like 2027-08-02."),
        (("--years", "2027"), "give --holidays as well"),
        (("--holidays", "FR", "--years", "27a"), "write 2027, or 2027-2030"),
        (("--holidays", "FR", "--day", "2027-01-01"), "Give one source of days"),
        (("--ics", "nowhere.ics"), "nowhere.ics"),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused(
    calendars: Calendars, options: tuple[str, ...], problem: str
) -> None:
    """With what to write instead; nothing is stored."""
    said = calendars("set", "wrong", *options)
    assert said.code in {ExitCode.USAGE, ExitCode.REFUSED}
    assert problem in said.err
    assert calendars("list").out == ""


def upcoming(run_command: Callable[..., CommandResult], *words: str) -> list[str]:
    """Return the first days that ``cloudsched next`` prints."""
    said = run_command("next", *words, "--after", "2027-07-12T12:00:00Z", "-n", "3", "--json")
    assert said.code == 0, said.err
    return [each["local"][:10] for each in json.loads(said.out)["occurrences"]]


@pytest.mark.parametrize(
    ("words", "option", "days"),
    [
        ("every day at 9:30", "{}", ["2027-07-13", "2027-07-15", "2027-07-16"]),
        ("on business days at 9:30", "{}", ["2027-07-13", "2027-07-15", "2027-07-16"]),
        ("every Wednesday at 9:30", "{}=before", ["2027-07-13", "2027-07-21", "2027-07-28"]),
        ("every Saturday at 9:30", "weekends=after", ["2027-07-19", "2027-07-26", "2027-08-02"]),
    ],
)
def test_next_respects_calendars(
    run_command: Callable[..., CommandResult], ics: str, words: str, option: str, days: list[str]
) -> None:
    """A file's days are left out, or moved; words that mean a default calendar mean the first file."""
    assert upcoming(run_command, words, "--calendar", option.format(ics)) == days


@pytest.mark.parametrize(
    ("words", "options", "problem"),
    [
        ('every day at 9:30 except on days of "other"', (), "no calendar 'other'"),
        ("every day at 9:30", ("--calendar", "other=before"), "no calendar 'other'"),
        ("every day at 9:30", ("--calendar", "nowhere.ics"), "cannot be read"),
        ("PT5M", ("--calendar", "weekends"), "no meaning for a single instant"),
    ],
)
def test_next_says_which_days_it_does_not_know(
    run_command: Callable[..., CommandResult], url: str, words: str, options: tuple[str, ...], problem: str
) -> None:
    """A calendar that is not given is no reason to print occurrences that do not respect it."""
    said = run_command("next", "--url", url, words, *options)
    assert said.code in {ExitCode.USAGE, ExitCode.REFUSED, ExitCode.NOT_FOUND}
    assert problem in said.err


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("every day at 9:30", ("--calendar", "fr-holidays")),
        ('every day at 9:30 except on days of "fr-holidays"', ()),
    ],
)
def test_next_respects_stored_calendars(
    run_command: Callable[..., CommandResult],
    calendars: Calendars,
    url: str,
    words: str,
    option: tuple[str, ...],
) -> None:
    """What can be an id is a stored calendar, given or named by the schedule."""
    calendars("set", "fr-holidays", "--day", "2027-07-14=Bastille Day", "--weekdays", "SU")
    assert upcoming(run_command, words, "--url", url, *option) == ["2027-07-13", "2027-07-15", "2027-07-16"]


def test_a_calendar_that_was_not_refreshed_says_so_wherever_it_is_shown(
    run_command: Callable[..., CommandResult],
    calendars: Calendars,
    url: str,
    sim: Simulation,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its last good days go on, and one bad event of the new file is named with its line."""
    answer = ICS
    source = CalendarsWiring.of(sim.app.container).calendars._source  # noqa: SLF001 - the network
    monkeypatch.setattr(source, "fetch", lambda *_: (answer, None))
    assert calendars("set", "fr", "--from-url", "https://example.org/fr.ics").code == 0
    answer = ICS.replace("20270714", "20270230")
    with pytest.raises(InvalidInput):
        CalendarsWiring.of(sim.app.container).calendars.refresh("fr")
    problem = "line 3: 'Bastille Day' has the date '20270230'"
    assert problem in json.loads(calendars("show", "fr", "--json").out)["problem"]
    assert problem in json.loads(calendars("list", "--json").out)["problem"]
    assert problem in calendars("show", "fr").out
    assert "2027-07-14             Bastille Day" in calendars("show", "fr").out
    assert problem in calendars("list").out
    with Client(url) as client:
        assert problem in str(client.calendar("fr").problem)
        assert problem in str(client.calendars()[0].problem)
    asked = {"schedule": {"rrule": "FREQ=DAILY", "calendars": ["fr"]}}
    assert problem in httpx.post(f"{url}/v1/schedules/preview", json=asked).json()["assumptions"][0]
    words = ("next", "every day at 9:30", "--url", url, "--calendar", "fr", "--json")
    assert problem in run_command(*words).err


def test_a_file_of_windows_is_read(run_command: Callable[..., CommandResult], calendars: Calendars, ics: str) -> None:
    """By both commands that take a file."""
    Path(ics).write_bytes(ICS.replace("Bastille", "Fête de la Bastille").encode("cp1252"))
    assert "2027-07-14             Fête de la Bastille Day" in calendars("set", "fr", "--ics", ics).out
    assert "2027-07-14" not in upcoming(run_command, "every day at 9:30", "--calendar", ics)


def test_next_asks_the_api_only_for_stored_calendars(
    run_command: Callable[..., CommandResult], ics: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files and weekends need no API; a stored calendar says what to start where nothing answers."""
    monkeypatch.setenv("CLOUDSCHED_URL", "http://127.0.0.1:9")
    assert upcoming(run_command, "every day at 9:30", "--calendar", ics, "--calendar", "weekends")
    said = run_command("next", "every day at 9:30", "--calendar", "closed")
    assert said.code != 0
    assert "Start it in another terminal" in said.err
