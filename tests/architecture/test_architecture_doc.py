"""The pictures of packages and rooms speak of the code as it is."""

from __future__ import annotations

import re

from tests.architecture.picture import PAGE, SOURCE, replace_picture


def test_the_picture_is_drawn_from_the_imports() -> None:
    """Draw it again with ``python -m tests.architecture.picture``."""
    page = PAGE.read_text("utf-8")
    assert replace_picture(page) == page


def test_every_room_is_described() -> None:
    """The table has a row for each room, and none for one that is gone."""
    rooms = {path.parent.relative_to(SOURCE).as_posix() for path in SOURCE.glob("*/*/__init__.py")}
    assert set(re.findall(r"^\| `(\w+/\w+)` \|", PAGE.read_text("utf-8"), re.MULTILINE)) == rooms
