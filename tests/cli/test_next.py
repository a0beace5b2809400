"""What ``cloudsched next`` shows."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result
from tests.cases import try_each
from tests.cli.conftest import CommandResult

from cloudsched.cli.main import ExitCode
from cloudsched.cli.next import next_command
from cloudsched.domain.recurrence import time_zones


def run(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "100"}).invoke(next_command, arguments)


def test_json_for_programs() -> None:
    result = run("FREQ=DAILY", "--dtstart", "2027-03-27T02:30:00", "--tz", "Europe/Paris", "-n", "2", "--json")
    assert result.exit_code == 0
    document = json.loads(result.output)
    assert document["schedule"] == {
        "rrule": "FREQ=DAILY",
        "dtstart": "2027-03-27T02:30:00",
        "timezone": "Europe/Paris",
    }
    assert document["tzdata"] == time_zones.in_use.release
    assert document["description"] == "every day at 02:30, first on Saturday 27 March 2027, Europe/Paris"
    result = run(
        *("FREQ=DAILY", "--dtstart", "2027-01-01T02:30:00", "--tz", "Europe/Paris"),
        *("--after", "2027-03-27T12:00:00Z", "-n", "1", "--json"),
    )
    assert json.loads(result.output)["occurrences"] == [
        {"utc": "2027-03-28T01:30:00Z", "local": "2027-03-28T03:30:00+02:00", "clockChange": "shifted"}
    ]


@try_each(
    "words, locale, description",
    [
        ("werktags um 9", (), "jeden Werktag um 09:00"),
        ("every weekday at 9", (), "every weekday at 09:00"),
        ("0 9 * * 1-5", ("--locale", "de"), "jeden Werktag um 09:00"),
    ],
)
def test_it_is_told_in_the_language_of_the_words_or_in_the_one_that_is_asked_for(
    words: str, locale: tuple[str, ...], description: str
) -> None:
    assert json.loads(run(words, *locale, "--json").output)["description"].startswith(description)
    assert description in run(words, *locale).output


@pytest.mark.parametrize(
    "arguments",
    [
        ("FREQ=NEVER",),
        ("FREQ=DAILY", "--tz", "Europe/Pariss"),
        ("FREQ=DAILY", "--dtstart", "soon"),
        ("PT5M", "--dtstart", "2027-01-01"),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",),
        ("hello",),
    ],
)
def test_what_is_given_is_refused_and_the_command_is_not(
    run_command: Callable[..., CommandResult], arguments: tuple[str, ...]
) -> None:
    """As the page says: 3, one line that says what is wrong and where, and nothing about how to type commands."""
    said = run_command("next", *arguments)
    assert (said.code, said.err.startswith("cloudsched: ")) == (ExitCode.REFUSED, True), said.err
    assert "Usage" not in said.err
    assert "Traceback" not in said.err
    refused = run_command("next", *arguments, "--json")
    assert (refused.code, bool(json.loads(refused.err)["error"]["faults"])) == (ExitCode.REFUSED, True)


@pytest.mark.parametrize("after", ["foo", "PT5M", "FREQ=DAILY"])
def test_after_takes_an_instant_alone(after: str) -> None:
    """An invalid value is reported for its own option, and not as a missing schedule."""
    said = run("FREQ=DAILY", "--after", after)
    assert said.exit_code == 2
    assert f"--after: {after!r} is not an instant; write it like 2027-01-31T09:00:00Z." in said.output


@try_each(
    "schedule, first",
    [
        ("0 9 * * *", "2020-02-01T09:00:00Z"),
        ("@monthly", "2020-03-01T00:00:00Z"),
        ("FREQ=DAILY;BYHOUR=9", "2020-02-01T09:00:00Z"),
        ("FREQ=HOURLY;INTERVAL=2", "2020-02-01T07:30:00Z"),
        ("every day at 9:00", "2020-02-01T09:00:00Z"),
        ("every 3 days at 9:00", "2020-02-01T09:00:00Z"),
        ("every 90 minutes", "2020-02-01T07:00:00Z"),
        ("jeden Montag um 9:00", "2020-02-03T09:00:00Z"),
        ("tomorrow at 9:00", "2020-02-02T09:00:00Z"),
        ("PT5M", "2020-02-01T05:35:00Z"),
    ],
)
def test_after_an_instant_in_the_past_it_starts_there(schedule: str, first: str) -> None:
    """Every kind of schedule is read as of then."""
    said = run(schedule, "--after", "2020-02-01T05:30:00Z", "-n", "1", "--json")
    assert json.loads(said.output)["occurrences"][0]["utc"] == first


def test_ambiguous_words_are_answered_with_a_question(run_command: Callable[..., CommandResult]) -> None:
    """Five words have as many fields as cron, and are still read as words."""
    asked = run_command("next", "every second Tuesday at 9")
    assert asked.code == ExitCode.REFUSED
    assert "every month on the 2nd Tuesday" in asked.err
    assert "every 2 weeks on Tuesday" in asked.err
