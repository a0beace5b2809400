"""What other schedulers' users write is refused with the nearest form that is valid here."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import try_each

from cloudsched import Schedule
from cloudsched.domain.recurrence.parse import is_foreign, is_notation, recognize
from cloudsched.errors import InvalidSchedule

NOW = datetime(2027, 1, 1, tzinfo=UTC)

SUGGESTIONS = {
    "0 0 9 * * 1-5": "0 9 * * 1-5",
    "*/10 * * * * *": "FREQ=SECONDLY;INTERVAL=10",
    "0 0 9 ? * 2-6": "0 9 * * MON-FRI",
    "0 0 9 ? * 2-6 *": "0 9 * * MON-FRI",
    "0 15 10 ? * 6L": "15 10 * * FRIL",
    "0 9 * *": "0 9 * * *",
    "cron(0 9 ? * MON-FRI *)": "0 9 * * MON-FRI",
    "cron(0 9 ? * 2#1 *)": "0 9 * * MON#1",
    "cron(0 9 * * 1-5)": "0 9 * * 1-5",
    "rate(5 minutes)": "FREQ=MINUTELY;INTERVAL=5",
    "rate(7 days)": "FREQ=WEEKLY",
    "@every 1h30m": "FREQ=MINUTELY;INTERVAL=90",
    "R/P1M": "FREQ=MONTHLY",
    "R/P2Y": "FREQ=YEARLY;INTERVAL=2",
    "R5/2027-01-01T09:00:00Z/P1D": "FREQ=DAILY;COUNT=5 with dtstart 2027-01-01T09:00:00",
}


@try_each("text, suggestion", SUGGESTIONS.items())
def test_the_nearest_valid_form_is_suggested(text: str, suggestion: str) -> None:
    """The suggestion is in the error's hint, and is itself accepted."""
    assert is_notation(text)
    with pytest.raises(InvalidSchedule) as refused:
        Schedule.parse(text, now=NOW)
    assert refused.value.hint == f"write {suggestion}"
    rule, _, start = suggestion.partition(" with dtstart ")
    proposed = Schedule(rrule=rule, dtstart=start) if start else Schedule.parse(rule, now=NOW)
    assert proposed.next_after(NOW)


@try_each(
    "text", ["@reboot", "@every", "@every soon", "rate(5)", "rate()", "cron()", "cron(99 99 ? * * *)", "R/", "R/PT0S"]
)
def test_what_has_no_nearest_form_is_refused_with_the_valid_ones(text: str) -> None:
    """It is recognized all the same, and not taken for words."""
    with pytest.raises(InvalidSchedule, match=r"write an RRULE \(FREQ=DAILY\), an iCalendar block, cron"):
        Schedule.parse(text)


@pytest.mark.parametrize(
    "text",
    ["0 9 * * 1-5", "@daily", "every 5 minutes", "remind me at 9", "Monday to Friday", "R u there at 9", "rate my day"],
)
def test_what_is_valid_here_or_words_is_not_foreign(text: str) -> None:
    """A notation that there is, and words, keep their meaning."""
    assert recognize(text) is None or text == "@daily"
    assert not is_foreign(text) or text == "@daily"


@given(st.text("0123456789*/?-,#LW @RPTDMHSYabcron()everyratmonWED", max_size=40))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    """Nothing makes the parser raise another error; a suggestion, if there is one, is valid."""
    found = recognize(text)
    if found is not None and found.suggestion is not None:
        rule = found.suggestion.partition(" with dtstart ")[0]
        Schedule.parse(rule, now=NOW)
    with suppress(InvalidSchedule):
        Schedule.parse(text, now=NOW)
