"""Every view and every verb works without script, and says what the API says."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode

import pytest
import requests
from tests.cases import try_each
from tests.dashboard.conftest import ATTACK, NOW, find_execution, get, make_app, post, send
from tests.web.callers import HOUR
from werkzeug.test import Client as Browser

import cloudsched.dashboard
from cloudsched.client import Client
from cloudsched.dashboard.application import Dashboard
from cloudsched.dashboard.routes import VIEWS
from cloudsched.emulator.runtime.clock import MovableClock
from cloudsched.local.stack import Stack, run_stack

ROOM = Path(cloudsched.dashboard.__file__).parent
ADDRESSES = (
    "/",
    "/queues",
    "/queues?queue=gpu",
    "/runs",
    "/runs?calls=true",
    "/runs?outcome=SKIPPED",
    "/due",
    "/decisions",
    "/retry?status=FAILED",
    "/calendar",
    "/calendar?week=2027-03-22&tz=Europe/Paris",
    "/calendar?day=2027-03-28",
    "/calendar?month=2027-03",
    "/deliveries?owner=ada",
    "/deliveries",
    "/people/ada",
    "/usage",
    "/usage?by=handler",
    "/search?q=report",
    "/search",
    "/actions",
    "/audit",
    "/audit?by=a&from=2027-03-20T02:30&tz=Europe/Paris",
    "/runs?from=2027-03-28T02:30&tz=Europe/Paris",
    "/tasks",
    "/new",
    "/new?handler=report",
    "/tasks/weekday-report/edit",
    "/tasks/weekday-report",
    "/tasks/monthly-close",
    "/tasks/sync",
)


@try_each("address", ADDRESSES)
def test_each_view_opens_directly(ui: str, address: str) -> None:
    """One h1, no inline style or script, a strict policy, and nothing from elsewhere."""
    response = get(ui + address)
    assert response.status_code == 200
    assert response.text.count("<h1>") == 1
    assert '="javascript:' not in response.text
    names = re.sub(r'"[^"]*"', '""', response.text)  # what users wrote may stand in a value, but never ends it
    assert not re.search(r"<[^>]*\s(style|on\w+)=|<script(?!( type=\"\")? src=)", names)
    assert "https://" not in response.text
    policy = response.headers["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize("address", ["/tasks", "/tasks/sync"])
def test_what_users_wrote_is_only_text(ui: str, address: str) -> None:
    """A title or an error with markup is shown as it was written."""
    text = get(ui + address).text
    assert ATTACK not in text
    assert "&lt;script&gt;" in text


def test_links_lead_somewhere(ui: str) -> None:
    """Each link of each view answers, and none is absolute: the page may be mounted anywhere."""
    seen: set[str] = set()
    for address in ADDRESSES:
        page = get(ui + address)
        for link in re.findall(r'(?:href|src|action)="([^"#]+)"', page.text):
            assert not link.startswith("/")
            url = requests.compat.urljoin(page.url, link.replace("&amp;", "&"))
            if url not in seen and "/verbs/" not in url and not url.endswith(("/bulk", "/retry")):  # those are forms
                seen.add(url)
                assert get(url).status_code == 200, url


def test_a_task_says_why_what_ran_and_what_comes(ui: str) -> None:
    """The API's sentence, the executions, and the occurrences in both zones with the clock change between them."""
    text = get(f"{ui}/tasks/weekday-report").text.replace("\N{NO-BREAK SPACE}", " ")
    assert "It runs next on Mon 29 Mar 2027 at 09:00</b> · " in text
    assert "Fri 26 Mar 2027 09:00 +0100" in text
    assert "Mon 29 Mar 2027 09:00 +0200" in text
    assert "29 Mar 07:00" in text
    assert text.count("clocks go forward on 28 Mar") == 1


def test_an_execution_shows_what_it_did(ui: str) -> None:
    """Steps, the sleep, the wait and progress; a step can be chosen."""
    address = f"{ui}/tasks/monthly-close/executions/{find_execution(ui, 'monthly-close')}"
    text = get(address, step="1").text.replace("\N{NO-BREAK SPACE}", " ")
    for part in ("collect", "balance", "approved", "214 invoices collected", "Step 1: collect"):
        assert part in text, part


def test_a_task_may_be_called_new(stack: Stack, ui: str) -> None:
    """The form for a new task has an address that no task has."""
    schedule = {"at": "2099-01-01T00:00:00Z"}
    body = {"id": "new", "owner": "nobody-else", "title": "Called new", "handler": "report", "schedule": schedule}
    try:
        assert send(f"{stack.url}/v1/tasks", body).status_code == 201
        assert "<h1>Called new</h1>" in get(f"{ui}/tasks/new").text
        assert "<h1>Edit Called new</h1>" in get(f"{ui}/tasks/new/edit").text
        assert "<h1>New task</h1>" in get(f"{ui}/new").text
    finally:
        requests.delete(f"{stack.url}/v1/tasks/new", timeout=60)


def test_what_is_not_there_is_said(ui: str) -> None:
    """An unknown page, task, execution, verb or file is a 404 of this page's own."""
    for address in ("/nothing", "/tasks/nope", "/tasks/sync/executions/nope", "/static/..%2Fapi.py", "/static/none"):
        assert get(ui + address).status_code == 404, address
    assert post(f"{ui}/tasks/sync/verbs/explode", {}).status_code == 404


def test_the_clock_moves_from_the_page() -> None:
    """An hour on, and to an instant, over the clock change at night; never backwards, and words are refused."""
    with run_stack(make_app(), store="sqlite", clock=MovableClock(NOW, frozen=True)) as stack:
        url = f"{stack.url}/ui/"
        assert post(url, {"verb": "hour"}).status_code == 200
        assert stack.clock.now() - NOW == HOUR
        target = datetime(2027, 3, 28, 4, tzinfo=UTC)
        answer = post(url, {"verb": "to", "to": target.isoformat()})
        assert answer.status_code == 200
        assert stack.clock.now() == target
        assert "Sun 28 Mar 2027 04:00 +0000" in answer.text.replace("\N{NO-BREAK SPACE}", " ")
        for form in ({"verb": "to", "to": NOW.isoformat()}, {"verb": "to", "to": "soon"}, {"verb": "explode"}, {}):
            assert post(url, form).status_code == 400
        assert stack.clock.now() == target


def test_a_deployment_has_no_clock_to_move(stack: Stack) -> None:
    """Beside a deployment, Home has no form for it, and one that is sent anyway is not found."""
    own = {"base_url": "http://localhost", "headers": {"Origin": "http://localhost"}}
    with Client(stack.url) as api:
        page = Browser(Dashboard(api, place="elsewhere"))
        assert page.post("/", data={"verb": "hour"}, **own).status_code == 404
        assert "Freeze the clock" not in page.get("/", base_url="http://localhost").text
        assert "Let the clock run" not in page.get("/", base_url="http://localhost").text


def test_other_sites_change_nothing(stack: Stack, ui: str) -> None:
    """A form of another site, one without an origin, and a rebound name are refused; the clock is, too."""
    for path in ("tasks/sync/verbs/pause", "new", "tasks/sync/edit", "tasks/sync/run", "bulk", "retry", "deliveries"):
        url = f"{ui}/{path}"
        assert post(url, {}, Origin="https://evil.example").status_code == 403
        for site in ("cross-site", "same-site", "none"):  # another port of this machine is the same site
            assert post(url, {}, Sec_Fetch_Site=site).status_code == 403
        assert send(url).status_code == 403
    assert requests.get(f"{ui}/tasks", headers={"Host": "evil.example"}, timeout=60).status_code == 403
    clock = f"{stack.url}/dev/clock"
    evil = {"Origin": "https://evil.example"}
    assert requests.post(clock, json={"advance": "PT1H"}, headers=evil, timeout=60).status_code == 403
    assert requests.get(clock, headers={"Host": "evil.example"}, timeout=60).status_code == 403
    assert (
        requests.post(clock, json={"advance": "PT1H"}, headers={"Host": "evil.example"}, timeout=60).status_code == 403
    )
    assert get(f"{stack.url}/v1/tasks/sync").json()["status"] == "ACTIVE"


@pytest.mark.parametrize("path", ["/ui/tasks", "/dev/clock", "/dev/mailbox", "/v1/tasks"])
def test_what_a_proxy_forwards_is_not_of_this_machine(stack: Stack, path: str) -> None:
    """A proxy that calls it as localhost, for whoever asks, says so in a header: whatever is open here stays closed."""
    assert get(stack.url + path).status_code == 200
    for header in ("X-Forwarded-For", "CF-Connecting-IP", "Via"):
        assert requests.get(stack.url + path, headers={header: "10.0.0.7"}, timeout=60).status_code in {401, 403}


def test_all_that_a_page_loads_is_small() -> None:
    """Stylesheet, scripts, icon and the largest template together stay below 150 kB."""
    static = sum(file.stat().st_size for file in (ROOM / "static").iterdir())
    assert static + max(file.stat().st_size for file in (ROOM / "templates").iterdir()) < 150_000


def test_a_zone_that_was_chosen_holds_on_the_pages_that_follow(ui: str) -> None:
    """By any link or form, also on a task's page, which begins in the task's zone. Only a visit to a page chooses."""
    with requests.Session() as browser:
        assert "Times in UTC<" in browser.get(f"{ui}/tasks", timeout=60).text
        browser.get(f"{ui}/runs", params={"tz": "Asia/Tokyo"}, timeout=60)
        for path in ("tasks", "tasks/weekday-report", "calendar?week=2027-03-22"):
            assert "Times in Asia/Tokyo<" in browser.get(f"{ui}/{path}", timeout=60).text
        news = {"Sec-Fetch-Mode": "cors"}  # of a tab where another zone is shown
        asked = browser.get(f"{ui}/runs", params={"tz": "America/Lima"}, headers=news, timeout=60)
        assert "Times in America/Lima<" in asked.text
        browser.get(f"{ui}/runs", params={"tz": "No/Where"}, timeout=60)
        assert "Times in Asia/Tokyo<" in browser.get(f"{ui}/tasks", timeout=60).text


def test_filters_are_written_as_pages_write_instants_durations_and_statuses(ui: str) -> None:
    """Beside a list and in the question before many are changed: nobody reads ISO 8601, or the names of an enum."""
    since = {"from": "2027-03-27T08:00:00+00:00"}
    shown = {
        "runs?minLateness=PT90S&minDuration=PT10S&status=TIMED_OUT": (
            "Start delay of at least: 1 min 30 s",
            "Ended, took at least: 10 s",
            "Status: Timed out",
        ),
        "tasks?dueFrom=2027-03-28T13:42:07Z&category=OTHERS": (
            "Due from: Sun 28 Mar 2027 13:42:07 +0000",
            "Category: Others",
        ),
        "tasks?trouble=PAUSED": ("Needs attention: Paused after failures",),
        "audit?action=EDITED&from=2027-03-20T02:30": ("Action: Edited", "From: Sat 20 Mar 2027 02:30 +0000"),
        "bulk?action=pause&dueFrom=2027-03-27T15:00:00Z": ("<dt>Due from</dt><dd>Sat 27 Mar 2027 15:00 +0000</dd>",),
        f"retry?{urlencode(since)}&minLateness=PT10S": (
            "<dt>From</dt><dd>Sat 27 Mar 2027 08:00 +0000</dd>",
            "<dt>Start delay of at least</dt><dd>10 s</dd>",
        ),
    }
    for address, words in shown.items():
        text = get(f"{ui}/{address}").text.replace("\N{NO-BREAK SPACE}", " ")
        assert [each for each in words if each not in text] == [], address


def test_a_parameter_that_a_view_does_not_know_is_refused(ui: str) -> None:
    """By its name, on each page and in each download, rather than left out as if there were no such filter."""
    for name, view in VIEWS.items():
        path = view.path.replace("<action_id>", "x").replace("<event>", "approved").replace("<int:number>", "1")
        path = path.replace("<task_id>", "sync").replace("<execution_id>", "x").replace("<owner>", "ada")
        for address in (path, *([f"{path}.csv"] if view.list_rows else [])):
            response = get(f"{ui}{address}", **{"<statuss": "FAILED"})
            assert response.status_code == 400, address
            assert "&lt;statuss is no parameter of this address" in response.text, name
            assert ", tz" in response.text, "it says what there is"
    assert get(f"{ui}/tasks.csv", page="x").status_code == 400, "a file has all pages"
