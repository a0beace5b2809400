"""The dashboard stands under any prefix, of a server of your own or of a proxy that checks who calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urljoin

import pytest
import requests
from tests.dashboard.conftest import make_app
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.test import Client as Browser
from werkzeug.wrappers import Response

from cloudsched.client import Client
from cloudsched.dashboard.application import Dashboard
from cloudsched.local.stack import run_stack

BASE = "https://ops.example"
PAGES = (
    "",
    "tasks",
    "tasks/t",
    "calendar",
    "calendar?day=2027-03-28",
    "queues",
    "runs",
    "locks",
    "usage",
    "outbox",
    "tasks/nope",
)


@pytest.fixture(scope="module")
def api() -> Iterator[Client]:
    """A client of a stack with one task."""
    with run_stack(make_app(), store="sqlite") as stack, Client(stack.url) as client:
        task = {
            "id": "t",
            "owner": "ada",
            "title": "T",
            "handler": "report",
            "schedule": {"at": "2100-01-01T00:00:00Z"},
        }
        assert requests.post(f"{stack.url}/v1/tasks", json=task, timeout=60).status_code == 201
        yield client


@pytest.mark.parametrize("prefix", ["", "/ops", "/a/b/c"])
def test_no_page_leads_out_of_its_mount(api: Client, prefix: str) -> None:
    """Every link, file and form of every page stays below the prefix, and answers there."""
    page = Dashboard(api, place="a deployment", hosts=None)
    browser = Browser(DispatcherMiddleware(Response("elsewhere", status=418), {prefix: page}) if prefix else page)
    asked = set[str]()
    for path in PAGES:
        url = f"{BASE}{prefix}/{path}"
        answer = browser.get(f"{prefix}/{path}", base_url=BASE)
        assert answer.status_code == (404 if "nope" in path else 200)
        for link in re.findall(r'(?:href|src|action|data-root)="([^"#]+)"', answer.text):
            target = urljoin(url, link.replace("&amp;", "&"))
            assert target.startswith(f"{BASE}{prefix}/"), (url, link)
            if "/verbs/" not in target and not target.endswith(("/bulk", "/retry")) and target not in asked:  # no forms
                asked.add(target)
                assert browser.get(target.removeprefix(BASE), base_url=BASE).status_code in {200, 404}


def test_a_verb_leads_back_below_the_mount(api: Client) -> None:
    """The way back after a form is relative, so that no proxy has to translate it."""
    browser = Browser(DispatcherMiddleware(Response(status=418), {"/ops": Dashboard(api, place="x", hosts=None)}))
    answer = browser.post("/ops/tasks/t/verbs/pause", base_url=BASE, headers={"Origin": BASE})
    assert answer.status_code == 303
    assert urljoin(f"{BASE}/ops/tasks/t/verbs/pause", answer.headers["Location"]) == f"{BASE}/ops/tasks/t?done=pause"
    refused = browser.post("/ops/tasks/t/verbs/resume", base_url=BASE, headers={"Origin": "https://evil.example"})
    assert refused.status_code == 403


def test_changes_are_asked_for_below_the_mount(api: Client) -> None:
    """The script names the whole path; an execution is recognised below the prefix, too."""
    browser = Browser(DispatcherMiddleware(Response(status=418), {"/ops": Dashboard(api, place="x", hosts=None)}))
    answer = browser.get("/ops/changes?at=/ops/tasks/t", base_url=BASE)
    assert answer.status_code == 200
    assert answer.json is not None
    assert set(answer.json) == {"cursor", "iso", "clock", "mode"}
    assert browser.get("/ops/changes?at=/ops/tasks/t/executions/nope&open=1", base_url=BASE).status_code == 404
