"""Whatever goes wrong, the page says what is wrong and what to do, and never shows a traceback."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.cases import try_each
from tests.dashboard.conftest import get
from tests.dashboard.role_pages import Pages
from werkzeug.test import Client as Browser
from werkzeug.test import TestResponse

from cloudsched import errors
from cloudsched.client import Client
from cloudsched.dashboard.application import Dashboard

ADDRESSES = ("/", "/tasks", "/tasks/t1", "/tasks/t1/executions/e1", "/new", "/tasks/t1/edit", "/tasks/t1/run",
             "/bulk?action=pause&status=ACTIVE", "/calendar", "/queues", "/usage",
             "/deliveries?owner=ada", "/people/ada", "/audit", "/decisions", "/search?q=x")  # fmt: skip
CALLER = {"role": "admin", "mayChange": True, "now": datetime(2027, 3, 27, tzinfo=UTC).isoformat(), "seesAll": True}


class BrokenApi(Client):
    """An API that knows its caller, and answers everything else with one error or one damaged answer."""

    def __init__(
        self, failure: Exception | None, answer: object = None, caller: dict[str, Any] | None = CALLER
    ) -> None:
        super().__init__("http://127.0.0.1:9")
        self._failure, self._answer, self._caller = failure, answer, caller

    def run_flow(self, flow: Any) -> Any:  # noqa: ANN401 - as the client has it
        request = flow.send(None)
        if request.path == "/v1/caller" and self._caller is not None:
            answer: object = self._caller
        elif self._failure is not None:
            flow.throw(self._failure)
        else:
            answer = self._answer
        try:
            flow.send(type("Answer", (), {"content": answer, "etag": '"1"'}))
        except StopIteration as end:
            return end.value


def ask(api: Client, path: str, form: dict[str, str] | None = None) -> TestResponse:
    with api:
        browser = Browser(Dashboard(api, place="a test"))
        headers = {"Origin": "http://localhost"}
        method = "GET" if form is None else "POST"
        return browser.open(path, method=method, data=form, base_url="http://localhost", headers=headers)


FAILURES = [
    (errors.Unauthenticated("The key is wrong."), 401, "--key"),
    (errors.Forbidden("The role worker sees nothing."), 403, "The role worker sees nothing."),
    (errors.NotFound("task", "t1"), 404, "have been deleted"),
    (errors.NotAllowed("pause", "COMPLETED"), 409, "Nothing was changed"),
    (errors.PreconditionFailed("task t1"), 412, "Somebody has changed"),
    (errors.QuotaExceeded("tasks", 5, "Delete some."), 429, "Delete some."),
    (errors.Unavailable("The API", "ConnectError"), 503, "Nothing is lost"),
    (errors.Unavailable("The API", "500: The document tasks/t1 is damaged."), 502, "other views work"),
]


@pytest.mark.parametrize(("failure", "status", "words"), FAILURES, ids=lambda each: str(each)[:30])
def test_each_refusal_is_a_plain_page(failure: Exception, status: int, words: str) -> None:
    """At every address: the API's words, what follows, one h1, and a way on."""
    for path in ADDRESSES:
        page = ask(BrokenApi(failure), path)
        assert page.status_code == status, path
        assert words in page.text, path
        assert page.text.count("<h1>") == 1
        assert "Traceback (most" not in page.text
        target, named = re.findall(r'<a href="[./]*([^"]*)">See (\w+)</a>', page.text)[0]
        assert {"": "Home", "audit": "Changes"}.get(target, target).lower() == named.lower()
        assert "not change anything" not in page.text
        assert target == "" or status != 403, "the list may be what is refused"


@pytest.mark.parametrize("answer", [{}, {"tasks": [{"id": "t1"}]}, {"tasks": None}, [], {"handlers": [{}]}])
def test_an_answer_that_is_damaged_is_a_plain_page(answer: object) -> None:
    """A row without what every row has fails this view only, and says so."""
    for path in ADDRESSES:
        page = ask(BrokenApi(None, answer), path)
        assert page.status_code in {200, 500}, path
        assert "Traceback (most" not in page.text
        assert "KeyError" not in page.text


@pytest.mark.parametrize("failure", [errors.Unavailable("The API", "ConnectError"), errors.Unauthenticated("no key")])
def test_a_form_that_did_not_arrive_can_be_sent_again(failure: Exception) -> None:
    """What was typed stands in the page, as text and nothing else, behind one button."""
    typed = {"title": 'Q3 "close" </textarea><script>', "handler": "work", "verb": "create", "key": "k1"}
    page = ask(BrokenApi(failure), "/new", typed)
    assert page.status_code in {401, 503}
    assert "Send it again" in page.text
    assert "Q3 &#34;close&#34; &lt;/textarea&gt;&lt;script&gt;" in page.text
    assert 'name="key"' in page.text
    assert "<script>" not in page.text


def test_no_answer_at_all_is_a_plain_page() -> None:
    """Even who is calling is unknown then."""
    page = ask(BrokenApi(errors.Unavailable("The API", "ConnectError"), caller=None), "/tasks")
    assert page.status_code == 503
    assert "ConnectError" in page.text


@try_each(
    "address",
    [
        *("/calendar?day=2027-13-45", "/calendar?week=x", "/calendar?month=2027-99", "/usage?month=x"),
        *("/?tz=Nowhere", "/tasks?tz=../x", "/runs?within=P99Y", "/tasks.csv?tz=Nowhere", "/runs.csv?within=x"),
    ],
)
def test_a_time_that_is_none_is_refused(pages: Pages, address: str) -> None:
    """Nothing else is shown in its place, and the page says what was wrong and how it is written."""
    refused = pages.get("admin", address)
    assert refused.status_code == 400
    assert html.escape(address.partition("=")[2]) in refused.text


@pytest.mark.parametrize(
    ("path", "says", "back"),
    [
        ("retry", "Nothing is chosen: that would mean all there is. Tick some, or filter the list first.", "runs"),
        ("retry?only=ticked", "Nothing is chosen", "runs"),
        ("retry?status=nonsense", "Input should be 'FAILED' or 'TIMED_OUT'", "runs"),
        ("bulk?action=pause", "Nothing is chosen", "tasks"),
        ("bulk?action=explode&owner=ada", "There is no such action on many tasks.", "tasks"),
        ("bulk?action=pause&search=words", "Tasks that were searched for by words", "tasks"),
        ("tasks/nope", "See Tasks", "tasks"),
        ("runs?status=nonsense", "See Runs", "runs"),
        ("runs?minLateness=x", "Start delay of at least: is no length of time", "runs"),
        ("tasks?dueFrom=x", "Due from: is no time", "tasks"),
        ("tasks?page=made-up", "This page of the list is no longer there. Start again at the first page.", "tasks"),
    ],
)
def test_a_refusal_is_a_sentence_with_the_way_back(ui: str, path: str, says: str, back: str) -> None:
    """It shows neither names of fields that no page has nor what Python writes."""
    text = html.unescape(get(f"{ui}/{path}").text)
    said = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text))
    assert says in said
    assert not re.search(r"selection:|\bverb:|action:|<\w+\.\w+: '|\(Tick", text)
    assert re.search(rf'href="[^"]*ui/{back}">See {back}<|href="[./]*{back}">See {back}<', text, re.IGNORECASE)
