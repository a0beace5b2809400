"""What other schedulers' users write is refused with the form that is valid here."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

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
    "0 9 * *": "leave out seconds",
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


@pytest.mark.parametrize(
    "text",
    ["0 9 * * 1-5", "@daily", "every 5 minutes", "remind me at 9", "Monday to Friday", "R u there at 9", "rate my day"],
)
def test_what_is_valid_here_or_words_is_not_foreign(text: str) -> None:
    """A notation that there is, and words, keep their meaning."""
    assert recognize(text) is None or text == "@daily"


@given(st.text("0123456789*/?-,#LW @RPTDMHSYabcron()everyratmonWED", max_size=40))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    """Nothing makes the parser raise another error."""
    with suppress(InvalidSchedule):
        Schedule.parse(text, now=NOW)
