"""A person who is asked by name answers by a tap on a link: once, for that question, and for nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pytest
from pydantic import BaseModel
from tests.cases import try_each
from tests.web.callers import RoleHarness, open_api, open_roles
from werkzeug.test import TestResponse

from cloudsched import App, AsyncContext, Context, EventTimedOut, Schedule, Task
from cloudsched.config.settings import Settings
from cloudsched.people.wiring import PeopleWiring
from cloudsched.web.functions import serve_links

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
SECRET = "what the task is about"  # noqa: S105 - no secret


class Decision(BaseModel):
    """An answer."""

    approved: bool
    note: str = ""


class Order(BaseModel):
    """An answer that no tap can give."""

    approved: bool
    amount: int


class Strict(BaseModel, extra="forbid"):
    """An answer without a note."""

    approved: bool


ASKED: dict[str, Any] = {}
"""What the handler asks, as a test has it."""


app = App()


@app.handler("early", events={"decision": Decision}, early_events=("decision",))
def early(ctx: Context, _payload: dict[str, str]) -> str:
    try:
        ctx.wait_for("decision", timeout=DAY, by=("user:bob",), channels=["EMAIL"])
    except EventTimedOut:
        return "late"
    return "answered"


@app.handler("renew", retry=False, events={"decision": Decision, "order": Order, "strict": Strict})
def renew(ctx: Context, _payload: dict[str, str]) -> Any:  # noqa: ANN401 - JSON
    found = []
    for _ in range(ASKED.get("rounds", 1)):
        options = {"timeout": DAY, "by": ("user:bob",), "question": "Renew it?", "channels": ["EMAIL"]}
        event = ASKED.get("event", "decision")
        try:
            given, sender = ctx.wait_for(event, **options | ASKED.get("options", {}), with_sender=True)
            found.append([given["approved"], given.get("note", ""), sender.person, sender.role, sender.via])
        except EventTimedOut:
            found.append(["late"])
    if ASKED.pop("fails", False):
        raise ValueError("broken")
    return found


@pytest.fixture
def roles(app: App) -> Iterator[RoleHarness]:
    ASKED.clear()
    with open_roles(app) as opened:
        opened.sim.add_person("bob")
        yield opened


def ask(roles: RoleHarness, handler: str = "renew", **asked: Any) -> Task:
    """Start a task of Ada's that asks Bob."""
    ASKED.update(asked)
    task = roles.sim.app.create(
        owner="ada", title=SECRET, handler=handler, payload={"about": SECRET}, schedule=Schedule.once(roles.sim.now)
    )
    roles.sim.advance(MINUTE)
    return task


def find_mailed(roles: RoleHarness, to: str = "bob", channel: str = "EMAIL") -> str:
    """Return the path of the link in the latest mail."""
    return urlsplit(str(roles.sim.sent(channel, to=to)[-1].message.answer_url)).path


def find_listed(roles: RoleHarness, who: str = "bob", owner: str = "bob") -> str | None:
    listed = roles.ask(who, "GET", f"/v1/inboxes/{owner}/messages").get_json()["messages"]
    return next((each.get("answerUrl") for each in listed if "event" in each), None)


def tap(
    roles: RoleHarness, path: str, decision: str = "approve", *, body: str | None = None, **form: str
) -> TestResponse:
    client = open_api(roles.sim.app, serve_links)
    data = {"decision": decision, **form} if body is None else body
    return client.post(path, data=data, content_type="application/x-www-form-urlencoded")


def read(page: TestResponse) -> str:
    """Return what a page says, without its markup."""
    return re.sub(r"<[^>]*>", " ", page.text.partition("</style>")[2])


def result(roles: RoleHarness, task: Task) -> Any:  # noqa: ANN401 - JSON
    roles.sim.advance(MINUTE)
    (run,) = roles.sim.executions(task.id)
    return run.content if run.status == "SUCCEEDED" else str(run.status)


@pytest.mark.parametrize(("decision", "approved"), [("approve", True), ("reject", False)])
def test_a_mail_asks_and_a_tap_answers(roles: RoleHarness, decision: str, *, approved: bool) -> None:
    """The run gets the answer as that person's. The record says that it came by a link. The inbox has it read.

    A second tap, whatever it says, changes nothing and shows the first, before the run goes on and after it. Nothing
    that the person sees tells more of the task.
    """
    task = ask(roles)
    (mail,) = roles.sim.sent("EMAIL", to="bob")
    assert (mail.title, mail.body) == ("Renew it?", "Renew it?")
    page = roles.ask(None, "GET", find_mailed(roles))
    assert ["Approve" in page.text, "Reject" in page.text, "Renew it?" in page.text] == [True] * 3
    assert "2027-01-02 00:00" in read(page), "until when"
    assert page.headers["Cache-Control"] == "no-store"
    assert page.headers["Referrer-Policy"] == "no-referrer"
    assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
    assert "noindex" in page.headers["X-Robots-Tag"]
    verb = {True: "Approved", False: "Rejected"}[approved]
    seen = [page.text, str(mail), roles.ask("bob", "GET", "/v1/deliveries").text]
    assert "Renew it?" in seen[2]
    for said, note in ((decision, "As\r\nusual"), ("approve", ""), ("reject", "")):
        done = tap(roles, find_mailed(roles), said, note=note)
        assert (done.status_code, f"{verb} by bob" in read(done), "<button" in done.text) == (200, True, False)
        assert "Note: As" in read(done)
        seen.append(done.text)
        if said == "approve":
            assert result(roles, task) == [[approved, "As\nusual", "user:bob", "person", "link"]]
    assert not [each for each in seen if SECRET in each]
    assert result(roles, task) == [[approved, "As\nusual", "user:bob", "person", "link"]]
    assert [each.is_read for each in roles.sim.inbox("bob")] == [True]
    assert f"{verb} by bob" in read(roles.ask(None, "GET", find_mailed(roles))), "also once it has ended"


FORMS = (
    "decision=approve&decision=reject",
    "decision=reject&decision=approve",
    "decision=approve&decision=approve",
    "decision=approve&note=a&note=b",
    "&".join(f"f{number}=1" for number in range(10)) + "&decision=approve",
    "decision[]=approve",
    "decision=approve;decision=reject",
    "",
)
"""What does not say one thing."""


def test_looking_never_answers(roles: RoleHarness) -> None:
    """Scanners of mails open links, ask for their headers, and post nothing that says which button.

    A form that does not say one thing is refused on the page, where the buttons still are; with a link that was made
    up, too. So is a note that is too long. However often the run looks, the question is sent once.
    """
    task = ask(roles)
    path = find_mailed(roles)
    for method in ("GET", "HEAD"):
        for _ in range(50):
            assert roles.ask(None, method, path).status_code == 200
    assert tap(roles, path, "both").status_code == 400
    assert tap(roles, f"{path}?decision=approve", "").status_code == 400
    assert roles.ask(None, "POST", path, {"decision": "approve"}).status_code == 400
    for body in FORMS:
        refused = tap(roles, path, body=body)
        assert (refused.status_code, "Approve" in refused.text) == (400, True), body
        assert tap(roles, "/v1/links/answer/x", body=body).status_code == 404
    for length in (501, 30_000_000):
        assert tap(roles, path, note="x" * length).status_code in {400, 413}
    roles.sim.advance(timedelta(hours=23))
    assert len(roles.sim.sent("EMAIL")) == 1
    assert result(roles, task) == "SUSPENDED"
    assert not roles.sim.inbox("bob")[0].is_read


def test_of_two_taps_at_once_one_counts_and_both_see_it(roles: RoleHarness) -> None:
    ask(roles)
    path = find_mailed(roles)
    with ThreadPoolExecutor(8) as pool:
        taps = [pool.submit(partial(tap, roles, path, each)) for each in ("approve", "reject") * 4]
        seen = {re.findall("Approved|Rejected", read(each.result()))[0] for each in taps}
    assert len(seen) == 1


def test_an_inbox_has_the_link_for_its_owner_alone(roles: RoleHarness) -> None:
    """A key that reads all inboxes, or may not answer, is shown none: it would answer as that person."""
    task = ask(roles, options={"channels": ()})
    assert not roles.sim.sent("EMAIL")
    assert find_listed(roles, "viewer") is None
    assert find_listed(roles, "admin") is None
    assert roles.sim.app.inbox("bob").items[0].answer_url == find_listed(roles)
    assert "Approved" in tap(roles, urlsplit(str(find_listed(roles))).path).text
    assert result(roles, task)[0][0] is True


def test_a_server_that_acts_for_a_person_answers_by_the_api(roles: RoleHarness) -> None:
    """The link is the person's own proof. A server's answer has both names: who acted, and for whom."""
    task = ask(roles)
    acting = {"X-On-Behalf-Of": "bob"}
    [listed] = roles.ask("admin", "GET", "/v1/inboxes/bob/messages", **acting).get_json()["messages"]
    assert "answerUrl" not in listed
    assert find_listed(roles) is not None
    body = {"executionId": listed["executionId"], "payload": {"approved": True}}
    assert roles.ask("admin", "POST", f"/v1/tasks/{task.id}/events/decision", body, **acting).status_code == 204
    [[approved, _, person, _, via]] = result(roles, task)
    assert (approved, person, via) == (True, "user:bob", "key:admin")


@try_each("replay", [False, True])
def test_an_async_handler_asks_the_same(*, replay: bool) -> None:
    """Once, also if it is replayed at every point."""
    app = App()

    @app.handler("ask")
    async def ask_bob(ctx: AsyncContext) -> object:
        await ctx.step("first", lambda: 1)
        return await ctx.wait_for("decision", timeout=DAY, by=("user:bob",), channels=["EMAIL"])

    with open_roles(app, replay=replay) as roles:
        roles.sim.add_person("bob")
        task = app.create(owner="ada", title="Ask", handler="ask")
        roles.sim.advance(timedelta(hours=12))
        assert len(roles.sim.sent("EMAIL")) == 1
        tap(roles, find_mailed(roles))
        assert result(roles, task) == {"approved": True}


def test_the_owner_who_is_asked_answers_as_such(roles: RoleHarness) -> None:
    """Ada's own reader sees her inbox, and answers nothing."""
    roles.sim.add_person("ada")
    task = ask(roles, options={"by": ("user:ada",)})
    assert find_listed(roles, "reader", "ada") is None
    assert find_listed(roles, "ada", "ada") is not None
    tap(roles, find_mailed(roles, "ada"))
    assert result(roles, task) == [[True, "", "user:ada", "owner", "link"]]


def test_forged_links_lead_nowhere(roles: RoleHarness) -> None:
    """Whatever is changed of a link: 404, without a word about what there is."""
    task = ask(roles)
    path = find_mailed(roles)
    links = PeopleWiring.of(roles.sim.app.container).links
    head, _, proof = path.rpartition(".")
    content = links.read("answer", path.rpartition("/")[2])
    other = f"/v1/links/answer/{links.sign('unsubscribe', content)}"
    stale = f"/v1/links/answer/{links.sign('answer', ['ada', *content[1:]])}"
    forged = [path[:-1], f"{head}.{'A' * len(proof)}", path.replace(".", "x"), other, stale, f"{path}é", head]
    for each in forged:
        for page in (tap(roles, each), roles.ask(None, "GET", each)):
            assert page.status_code == 404, each
            assert "Renew" not in page.text
    assert result(roles, task) == "SUSPENDED"


def test_a_link_answers_its_own_question_only(roles: RoleHarness) -> None:
    """The next question of the same run, to the same person for the same event, is not answered by an old link."""
    task = ask(roles, rounds=2)
    first = find_mailed(roles)
    tap(roles, first, "reject")
    roles.sim.advance(MINUTE)
    second = find_mailed(roles)
    assert second != first
    assert "Rejected" in read(tap(roles, first))
    assert result(roles, task) == "SUSPENDED"
    tap(roles, second)
    assert [each[0] for each in result(roles, task)] == [False, True]


def test_a_link_of_a_wait_that_timed_out_says_so(roles: RoleHarness) -> None:
    """Also while the run asks again, and once it has ended."""
    task = ask(roles, rounds=2)
    first = find_mailed(roles)
    for _ in range(2):
        roles.sim.advance(DAY)
        late = tap(roles, first)
        assert (late.status_code, "too late" in late.text) == (410, True)
        assert roles.ask(None, "GET", first).status_code == 410
    assert result(roles, task) == [["late"], ["late"]]


def test_an_answer_after_the_time_is_not_kept_for_later(roles: RoleHarness) -> None:
    """Although the run has not noticed yet that its time is over, and its handler keeps what comes early."""
    task = ask(roles, "early")
    path = find_mailed(roles)
    roles.sim.clock.move_to(roles.sim.now + 2 * DAY)
    late = tap(roles, path)
    assert (late.status_code, "too late" in late.text) == (410, True)
    assert result(roles, task) == "late"


def test_a_run_that_is_retried_asks_anew(roles: RoleHarness) -> None:
    """The link of the first time does not answer the second, which has the same place in the journal."""
    task = ask(roles, fails=True)
    first = find_mailed(roles)
    tap(roles, first, "reject")
    assert result(roles, task) == "FAILED"
    (run,) = roles.sim.executions(task.id)
    roles.sim.app.retry(task.id, run.id, from_step=1)
    roles.sim.advance(MINUTE)
    second = find_mailed(roles)
    assert second != first
    assert tap(roles, first, "reject").status_code == 404
    assert "Approved" in tap(roles, second).text
    assert result(roles, task)[0][0] is True


def test_what_is_answered_already_is_not_sent_any_more(roles: RoleHarness) -> None:
    """The mail server was away, and the person has looked into their inbox. Nor does the record say delivered."""
    roles.sim.channel("EMAIL").is_down = True
    task = ask(roles)
    assert "Approved" in tap(roles, urlsplit(str(find_listed(roles))).path).text
    roles.sim.channel("EMAIL").is_down = False
    roles.sim.advance(DAY)
    assert not roles.sim.sent("EMAIL")
    assert not roles.sim.executions(task.id)[0].is_delivered


@pytest.mark.parametrize("end", ["cancel", "delete"])
def test_nobody_waits_once_the_task_is_gone(roles: RoleHarness, end: str) -> None:
    task = ask(roles)
    path = find_mailed(roles)
    getattr(roles.sim.app, end)(task.id)
    roles.sim.advance(MINUTE)
    for page in (tap(roles, path), roles.ask(None, "GET", path)):
        assert (page.status_code, "Approved" in page.text) == (410, False)
        assert SECRET not in page.text


def test_whoever_is_no_longer_asked_answers_nothing(roles: RoleHarness) -> None:
    """The code was changed while the run waited: it would ask somebody else now, which ends the run."""
    roles.sim.add_person("ada")
    task = ask(roles)
    path = find_mailed(roles)
    ASKED["options"] = {"by": ("user:ada",)}
    roles.sim.advance(timedelta(hours=20))  # it looks by itself
    for page in (tap(roles, path), roles.ask(None, "GET", path)):
        assert (page.status_code, "Nobody waits" in page.text) == (410, True)
    assert result(roles, task) == "FAILED"


def test_an_erased_person_answers_nothing(roles: RoleHarness) -> None:
    task = ask(roles)
    path = find_mailed(roles)
    assert roles.ask("admin", "DELETE", "/v1/people/bob?everything=true").status_code == 202
    roles.sim.advance(timedelta(minutes=5))
    assert tap(roles, path).status_code == roles.ask(None, "GET", path).status_code == 404
    assert result(roles, task) == "SUSPENDED"


def test_each_person_who_is_asked_has_a_link_and_one_answer_counts(roles: RoleHarness) -> None:
    roles.sim.add_person("ada")
    task = ask(roles, options={"by": ("user:ada", "user:bob"), "channels": ["EMAIL", "MOBILE", "WEBHOOK"]})
    for channel in ("EMAIL", "MOBILE", "WEBHOOK"):
        assert roles.sim.sent(channel, to="ada")[0].message.data["answerUrl"] != find_mailed(roles, "bob", channel)
    tap(roles, find_mailed(roles, "ada"), "reject")
    assert "Rejected by ada" in read(tap(roles, find_mailed(roles)))
    assert result(roles, task)[0][2] == "user:ada"


def test_who_does_not_want_such_mails_gets_none(roles: RoleHarness) -> None:
    """The category of the task decides, as for its other messages. The inbox has the question."""
    channels: dict[str, Any] = {"OTHERS": []}
    assert roles.ask("bob", "PATCH", "/v1/people/bob", {"channels": channels}).status_code == 200
    task = ask(roles)
    assert not roles.sim.sent("EMAIL")
    assert find_listed(roles) is not None
    (report,) = roles.sim.app.deliveries(task.id, roles.sim.executions(task.id)[0].id)
    assert report.status == "SUPPRESSED"


def test_what_the_question_says_is_only_text(roles: RoleHarness) -> None:
    """Markup is shown as it is; control characters and marks of direction change nothing of what is read."""
    roles.ask("bob", "PATCH", "/v1/people/bob", {"name": "<b>Bob</b>"})
    text = "<script>alert(1)</script>\u202eevil\u0007 " + "long " * 1_000
    ask(roles, options={"question": text})
    page = roles.ask(None, "GET", find_mailed(roles)).text
    done = tap(roles, find_mailed(roles), note="<img src=x>\u202e\u0000").text
    for each in (page, done):
        assert "&lt;script&gt;" in each
        assert not re.search("<script|<img|<b>|[\u202e\u0007\u0000]", each)
    assert "&lt;b&gt;Bob" in page
    assert "&lt;img" in done


@pytest.mark.parametrize(
    ("options", "event", "told"),
    [
        ({"channels": "EMAIL"}, "decision", "EMAIL, WEB"),
        ({"channels": ["OPERATOR"]}, "decision", "EMAIL, WEB"),
        ({"channels": ["SMOKE"]}, "decision", "EMAIL, WEB"),
        ({"by": ("admin",)}, "decision", "Name the users"),
        ({}, "order", "amount"),
    ],
)
def test_channels_that_cannot_work_are_refused(
    roles: RoleHarness, options: dict[str, Any], event: str, told: str
) -> None:
    """At once, with the reason: they reach nobody, or the declared answer takes more than a link can give."""
    task = ask(roles, options=options, event=event)
    (run,) = roles.sim.executions(task.id)
    assert run.error is not None
    assert run.error.type == ("WorkflowError" if event == "order" else "InvalidInput")
    assert told in run.error.message
    assert not roles.sim.inbox("bob")


def test_an_inbox_links_to_a_page_that_says_what_it_cannot_take(roles: RoleHarness) -> None:
    """A question without channels may need more than yes or no."""
    ask(roles, event="order", options={"channels": ()})
    page = roles.ask(None, "GET", urlsplit(str(find_listed(roles))).path)
    assert (page.status_code, "more than yes or no" in page.text) == (410, True)
    ask(roles, event="strict", options={"channels": ["EMAIL"]})
    path = find_mailed(roles)
    assert "<textarea" not in roles.ask(None, "GET", path).text
    refused = tap(roles, path, note="hello")
    assert (refused.status_code, "Nothing was sent" in refused.text) == (400, True)
    assert "Approved" in tap(roles, path).text


def test_without_a_public_address_there_is_no_link(app: App) -> None:
    """The question is sent all the same, and `explain` says what is missing."""
    ASKED.clear()
    with open_roles(app, public_url="") as roles:
        roles.sim.add_person("bob")
        task = ask(roles)
        assert roles.sim.sent("EMAIL", to="bob")[0].message.answer_url is None
        assert find_listed(roles) is None
        told = roles.sim.app.explain(task.id)
        assert "CLOUDSCHED_PUBLIC_URL" in str(told)


def test_the_public_function_answers_without_the_secret(roles: RoleHarness, caplog: pytest.LogCaptureFixture) -> None:
    """It leaves the dispatch to the sweep, which sends it within a minute. No alert takes that for an outage."""
    task = ask(roles)
    path = find_mailed(roles)
    sim = roles.sim
    public = App(
        Settings(public_url="https://api.example"), store=sim.app.container.store, clock=sim.clock, dispatcher=sim.queue
    )
    client = open_api(public, serve_links)
    assert "Approved" in client.post(path, data={"decision": "approve"}).text
    assert not [each for each in caplog.records if getattr(each, "action", "") == "deferred"]
    sim.advance(2 * MINUTE)
    assert result(roles, task)[0][0] is True
