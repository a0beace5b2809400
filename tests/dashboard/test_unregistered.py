"""A task whose handler is not registered comes due, and nothing does its work: lists that promise a run say so."""

from __future__ import annotations

import re

import pytest
from tests.dashboard.role_pages import Pages
from tests.web.callers import HOUR

from cloudsched import App, Schedule


@pytest.fixture
def app(app: App) -> App:
    for name in ("gone", "there"):
        app.handler(name, access="users")(lambda: None)
    return app


def test_no_list_promises_a_run_that_nothing_would_do(pages: Pages, app: App) -> None:
    """Home says it of the task, the lists of tasks and of what is due above them, and so does the task's page."""
    for name in ("gone", "there"):
        app.create(id=name, title=name, handler=name, owner="ada", schedule=Schedule.every(HOUR))
    app.container.registry.registrations.handlers.pop("gone")
    for who in ("admin", "ada"):
        for path in ("/tasks", "/due"):
            assert "Not registered: gone" in pages.words(path, who).partition("<h1")[2].partition("<table")[0], path
        assert "Not registered" not in pages.words("/tasks?handler=there", who)
        home = pages.words("/", who)
        rows = dict(re.findall(r'<tr data-key="(gone|there)"(.*?)</tr>', home, re.DOTALL))
        assert {name: "Not registered: gone" in row for name, row in rows.items()} == {"gone": True, "there": False}
        assert "Next: gone" not in home
        page = pages.read("/tasks/gone", who).partition("Upcoming")
        assert "Not registered: gone" in page[0][-400:]
        assert "Not registered" not in pages.read("/tasks/there", who)
