"""What people complain of in other schedulers for agents, played here: 0 false promises.

Each complaint is judged from outside: by what handlers have noted, by what a mail server took, and by instants that
the test works out itself. `world.py` has the judge.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime

import pytest
from tests.agents.complaints.table import list_chapters
from tests.agents.complaints.walk import Walk
from tests.agents.complaints.world import COMPLAINTS, Complaint, World
from tests.agents.conftest import ENTRIES, KEYS, Caller
from tests.cli.conftest import serve_api_of

from cloudsched import App
from cloudsched.config.access import Access
from cloudsched.testing import START


def connect(app: App, parts: ExitStack) -> dict[str, Caller]:
    """Serve an app's API, and return the agents of Ada and of Bob."""
    url = parts.enter_context(serve_api_of(app))
    return {who: Caller(url, KEYS[who]) for who in ("ada", "bob", "reader", "admin")}


@pytest.fixture
def world() -> Iterator[World]:
    """A world that has not begun."""
    made = World(connect, Access(api_keys=ENTRIES))
    yield made
    made.end()


@pytest.mark.parametrize("complaint", COMPLAINTS, ids=lambda each: each.play.__name__)
def test_nobody_can_complain_of_it_here(complaint: Complaint, world: World) -> None:
    """Nothing is promised that does not happen, nothing happens twice, and nothing is left out in silence."""
    world.begin(**complaint.settings)
    complaint.play(world)
    world.judge()


@pytest.mark.parametrize("seed", [1, 2, 9, 24, 25, 26, 30, 33])
def test_whatever_an_agent_does_its_answers_are_true(seed: int, world: World) -> None:
    """In random orders of tools, sleeps, restarts, lost dispatches and lost mail; half of them over a clock change."""
    world.begin(start=datetime(2027, 3, 20, tzinfo=UTC) if seed % 2 else START)
    Walk(world, seed).go(60)
    world.judge()


def test_every_complaint_is_on_the_page() -> None:
    """Each belongs to a chapter, and there are at least forty, each with its thread."""
    chapters = list_chapters()
    assert sum(map(len, chapters.values())) == len(COMPLAINTS) >= 40
    assert len({each.thread for each in COMPLAINTS}) == len(COMPLAINTS)
