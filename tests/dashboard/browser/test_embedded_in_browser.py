"""The page inside a web app, in a real browser: below a prefix, served by several processes, behind a sign-in."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.dashboard.browser.conftest import Visitor
from tests.embedded_services import SERVERS, serve
from tests.harness import request

from cloudsched.web.auth.authentication import create_key
from cloudsched.web.auth.roles import Role

KEY, KEPT = create_key("boss", Role.ADMIN)
PATHS = {"tasks": "Tasks", "calendar": "Calendar", "queues": "Queues", "usage": "Usage"}


@pytest.mark.parametrize("server", SERVERS)
def test_the_page_of_a_web_app_works_below_its_prefix(visitor: Visitor, server: str, tmp_path: Path) -> None:
    """Whoever signs in sees the tasks, opens views, pauses a task and signs out; no console complains.

    Two processes serve it, and any of them answers each request.
    """
    with serve(tmp_path, server, {"CLOUDSCHED_API_KEYS": str(KEPT)}) as (_, url):
        headers = {"X-Api-Key": KEY, "Content-Type": "application/json"}
        task = {"id": "yearly", "title": "Yearly report", "owner": "ada", "handler": "remind", "payload": {"text": "x"}}
        task["schedule"] = {"rrule": "FREQ=YEARLY", "dtstart": "2030-01-01T09:00:00", "timezone": "Europe/Paris"}
        assert request(url, "POST", "/scheduler/v1/tasks", task, headers).status == 201
        visitor.expect_complaint("401")
        page = visitor.go(f"{url}/scheduler")
        page.get_by_label("API key").fill(KEY)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"{url}/scheduler/")
        for path, heading in PATHS.items():
            for _ in range(3):
                page.goto(f"{url}/scheduler/{path}")
                assert page.locator("h1").inner_text().startswith(heading)
        page.goto(f"{url}/scheduler/tasks")
        page.get_by_role("link", name="Yearly report").first.click()
        page.wait_for_url(f"{url}/scheduler/tasks/yearly*")
        page.get_by_role("button", name="Pause").click()
        page.get_by_role("button", name="Resume").wait_for()
        assert request(url, "GET", "/scheduler/v1/tasks/yearly", None, headers).body["status"] == "PAUSED"
        (cookie,) = [each for each in page.context.cookies(f"{url}/scheduler/") if "session" in each["name"]]
        assert cookie not in page.context.cookies(f"{url}/other")
        assert (cookie["path"], cookie["httpOnly"], cookie["sameSite"]) == ("/scheduler", True, "Strict")
        page.get_by_role("button", name="Sign out").click()
        page.get_by_text("You are signed out.").wait_for()
        page.goto(f"{url}/scheduler/tasks")
        page.get_by_role("heading", name="Sign in").wait_for()
        page.goto("about:blank")
