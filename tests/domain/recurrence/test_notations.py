"""What other schedulers' users write is refused with the form that is valid here."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import try_each

from cloudsched import Schedule
from cloudsched.domain.recurrence.notations import is_notation, recognize
from cloudsched.errors import InvalidSchedule

NOW = datetime(2027, 1, 1, tzinfo=UTC)

HINTS = {
    "0 0 9 * * 1-5": "leave out seconds",
    "0 0 9 ? * 2-6 *": "leave out seconds",
    "0 37 3 1 6 1": "leave out seconds",
    "0 0 9 1 jan mon 2027": "leave out seconds",
    "0 9 * *": "leave out seconds",
    "0 9 LW * *": "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
    "0 9 1W * *": "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=1",
    "0 9 15W * *": "FREQ=MONTHLY;BYMONTHDAY=15;BYDAY=MO,TU,WE,TH,FR and FREQ=MONTHLY;BYMONTHDAY=14;BYDAY=FR and",
    "0 9 * * L": "FREQ=MONTHLY;BYMONTHDAY=-1",
    "0 9 * * tues#1": "FREQ=MONTHLY;BYDAY=1TU",
    "0 9 * * Thursday#4": "FREQ=MONTHLY;BYDAY=4TH",
    "0 9 5#3 * *": "FREQ=MONTHLY;BYDAY=3FR",
    "0 9 * * sundayL": "FREQ=MONTHLY;BYDAY=-1SU",
    "0 9 L-3W * *": "FREQ=MONTHLY;BYMONTHDAY=-1",
    "0 9 31W * *": "FREQ=MONTHLY;BYDAY=-1FR",
    "0 9 * * 5#6": "FREQ=MONTHLY;BYDAY=3FR",
    "cron(0 9 ? * MON-FRI *)": "its first five fields",
    "rate(5 minutes)": "FREQ=MINUTELY;INTERVAL=5",
    "@every 1h30m": "FREQ=MINUTELY;INTERVAL=5",
    "@reboot": "@hourly, @daily",
    "R5/2027-01-01T09:00:00Z/P1D": "FREQ=HOURLY;COUNT=5",
}


@try_each("text, hint", HINTS.items())
def test_the_form_that_is_valid_here_is_in_the_hint(text: str, hint: str) -> None:
    """It is recognized, and not taken for words."""
    assert is_notation(text)
    with pytest.raises(InvalidSchedule) as refused:
        Schedule.parse(text, now=NOW)
    assert hint in (refused.value.hint or "")


@try_each("day", range(2, 28))
def test_the_rules_of_the_nearest_weekday_are_right(day: int) -> None:
    """Those in the hint run on the day, or on the Friday before a Saturday, or on the Monday after a Sunday."""
    with pytest.raises(InvalidSchedule) as refused:
        Schedule.parse(f"0 9 {day}W * *", now=NOW)
    rules = re.findall(r"FREQ=\S+", refused.value.hint or "")
    schedule = Schedule(rrule=rules, dtstart="2027-01-01T09:00:00")
    expected = [date(2027, month, day) for month in range(1, 13)]
    near = {5: -1, 6: 1}
    expected = [each + timedelta(days=near.get(each.weekday(), 0)) for each in expected]
    assert [at.date() for at in schedule.between(NOW, NOW + timedelta(days=365))] == expected


@try_each("text, rule", [("0 9 L * *", "BYMONTHDAY=-1"), ("0 9 * * 5#3", "BYDAY=3FR"), ("0 9 * * friL", "BYDAY=-1FR")])
def test_common_forms_of_l_and_numbers_are_read(text: str, rule: str) -> None:
    """They are no part of crontab(5), and mean the same everywhere."""
    assert rule in str(Schedule.parse(text, now=NOW).rrule)


@try_each("text", ["0 9 * JULY *", "0 9 * * WEDNESDAY", "0 9 * APRIL *"])
def test_a_long_name_is_no_extension(text: str) -> None:
    """An L or W within a name gets the hint about names."""
    with pytest.raises(InvalidSchedule) as refused:
        Schedule.parse(text, now=NOW)
    assert "FREQ" not in (refused.value.hint or "")


@pytest.mark.parametrize(
    "text",
    [
        "0 9 * * 1-5",
        "@daily",
        "every 5 minutes",
        "remind me at 9",
        "9 10 11 12",
        "Monday to Friday",
        "R u there at 9",
        "rate my day",
    ],
)
def test_what_is_valid_here_or_words_is_not_foreign(text: str) -> None:
    """A notation that there is, and words, keep their meaning."""
    assert recognize(text) is None or text == "@daily"


@given(st.text("0123456789*/?-,#LW @RPTDMHSYabcron()everyratmonWED", max_size=40))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    """Nothing makes the parser raise another error."""
    with suppress(InvalidSchedule):
        Schedule.parse(text, now=NOW)
