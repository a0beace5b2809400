"""A task's page answers why it ran or did not run on a day."""

from __future__ import annotations

import pytest
from tests.dashboard.conftest import get


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (
            {"on": "2027-03-21"},
            "every weekday at 09:00) has no occurrence on Sun 21 Mar 2027",
        ),
        (
            {"on": "2027-03-22", "tz": "Asia/Tokyo"},
            "The occurrence of Mon 22 Mar 2027 at 17:00 succeeded",
        ),
        ({"on": "2027-03-19"}, "The task was created only on Sat 20 Mar 2027"),
        ({"on": "2027-03-28"}, "The clocks in Europe/Paris go forward by 1 h that day"),
        ({"on": "friday"}, "friday is not a day"),
        ({"on": "2027-03-22", "clock": "noon"}, "2027-03-22 noon is not a day"),
        ({"on": "9999-12-31"}, "9999-12-31 is not a day"),
    ],
)
def test_a_day_is_asked_about(ui: str, query: dict[str, str], words: str) -> None:
    """By the address alone, so it can be sent to somebody; what is not a day is said, and the page stays."""
    page = get(f"{ui}/tasks/weekday-report", **query)
    assert words in page.text.replace("&#39;", "'")
    assert 'name="on" type="date" required value="' + query["on"] in page.text
