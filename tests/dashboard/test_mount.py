"""The dashboard stands under any prefix. `tests/local/test_embedded_page.py` has that no page leads out of it."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urljoin

import pytest
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.test import Client as Browser
from werkzeug.wrappers import Response

from cloudsched.client import Client
from cloudsched.dashboard.application import Dashboard
from cloudsched.local.stack import Stack

BASE = "https://ops.example"
PATH = "/ops/tasks/weekday-report"


@pytest.fixture
def browser(stack: Stack) -> Iterator[Browser]:
    """A browser of a server that has the dashboard below a prefix."""
    with Client(stack.url) as api:
        yield Browser(DispatcherMiddleware(Response(status=418), {"/ops": Dashboard(api, place="x", hosts=None)}))


def test_verbs_and_changes_stay_below_the_mount(browser: Browser) -> None:
    """The way back after a form is relative, so that no proxy has to translate it.

    The script that asks for changes names the whole path; an execution is recognised below the prefix, too.
    """
    answer = browser.post(f"{PATH}/verbs/pause", base_url=BASE, headers={"Origin": BASE})
    assert answer.status_code == 303
    assert urljoin(f"{BASE}{PATH}/verbs/pause", answer.headers["Location"]) == f"{BASE}{PATH}?done=pause#said"
    refused = browser.post(f"{PATH}/verbs/resume", base_url=BASE, headers={"Origin": "https://evil.example"})
    assert refused.status_code == 403
    answer = browser.get(f"/ops/changes?at={PATH}", base_url=BASE)
    assert answer.status_code == 200
    assert answer.json is not None
    assert set(answer.json) == {"cursor", "iso", "clock", "mode"}
    assert browser.get(f"/ops/changes?at={PATH}/executions/nope&open=1", base_url=BASE).status_code == 404
