"""`help(cloudsched)` begins with what a user calls, and is short: each class has a help of its own."""

from __future__ import annotations

import pydoc
import re
import textwrap

import pytest

import cloudsched
from cloudsched import App, Context
from cloudsched.testing import Simulation

SCREEN = 50
"""The lines of a screen."""
WIDTH = 80
"""The columns of a narrow one, which wraps longer lines."""
CALLED = {"app": App, "ctx": Context, "sim": Simulation}
"""What the names of the map's examples are."""


@pytest.fixture(name="shown", params=["before", "after"])
def show_help(request: pytest.FixtureRequest) -> list[str]:
    """Return the help's lines, also where all names have been used and are no longer lazy."""
    if request.param == "after":
        for name in cloudsched.__all__:
            getattr(cloudsched, name)
    text = pydoc.plain(pydoc.render_doc(cloudsched))
    return [row for line in text.splitlines() for row in textwrap.wrap(line, WIDTH, drop_whitespace=False) or [""]]


def test_it_fits_four_screens(shown: list[str]) -> None:
    assert len(shown) <= 4 * SCREEN


def test_the_first_screen_has_what_a_user_calls(shown: list[str]) -> None:
    """One finds each door, and a first program."""
    first = "\n".join(shown[:SCREEN])
    wanted = {
        "App(",
        "@app.handler",
        "app.create",
        "Context",
        "Schedule",
        "Client(",
        "Simulation(",
        "cloudsched.errors",
    }
    assert {each for each in wanted if each not in first} == set()
    assert ">>> from cloudsched import" in first


def test_its_map_names_what_there_is() -> None:
    """A method that is renamed or removed is not left in it."""
    rows = re.findall(
        r"^ +@?(app|ctx|sim)\.(\w+(?:, \w+)*).*?(?:\. (\w+(?:(?:, | and )\w+)*))?$", cloudsched.__doc__, re.MULTILINE
    )
    named = [(face, name) for face, first, more in rows for name in re.findall(r"\w+", f"{first} {more}")]
    assert {face for face, _ in named} == set(CALLED)
    assert [(face, name) for face, name in named if name != "and" and not hasattr(CALLED[face], name)] == []


def test_a_shell_still_completes_all_names() -> None:
    assert set(dir(cloudsched)) >= set(cloudsched.__all__)
