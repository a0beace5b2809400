"""A calendar offers to show a part of its time, and the page that it leads to says which."""

from __future__ import annotations

import re
from html import unescape

from tests.dashboard.conftest import get


def test_a_week_shows_a_part_of_itself(ui: str) -> None:
    """The link leads to a page that says which part it shows."""
    page = get(f"{ui}/calendar?week=2027-03-22&tz=UTC")
    (link,) = re.findall(r'<a href="([^"]*)" data-press="\+"', page.text)
    shown = get(f"{ui}/calendar{unescape(link)}")
    assert "Saturday 27 March 2027" in shown.text
    assert 'aria-label="Zoom out"' in shown.text
    assert shown.text != page.text
