"""Tasks are created and edited by forms that work without script: checked first, stored once, nothing typed is lost."""

from __future__ import annotations

import html
import json
import re
import uuid
from collections.abc import Iterator
from typing import Any, Literal

import pytest
import requests
from pydantic import BaseModel, Field
from tests.dashboard.conftest import ATTACK, NOW, get, make_app, post, read_form, send
from tests.harness import wait_until

from cloudsched import App, Context
from cloudsched.dashboard.forms import task_options
from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.delivery_channels import DeliveryChannel
from cloudsched.domain.documents.policy import CatchUpMode, Overlap, Priority
from cloudsched.emulator.runtime.clock import MovableClock
from cloudsched.local.stack import Stack, run_stack


class Backup(BaseModel):
    bucket: str = Field(min_length=3, description="Where it goes.")
    depth: int = 1
    kind: Literal["full", "quick"] = "full"
    folders: list[str] = []


class Decision(BaseModel):
    amount: int = Field(ge=1, description="What may be spent.")
    is_final: bool = False


def make_form_app() -> App:
    app = make_app()

    @app.handler("backup")
    def backup(ctx: Context, payload: Backup) -> str:
        """Copy a bucket."""
        return f"{payload.bucket} of {ctx.task.owner}"

    @app.handler("asking", events={"decision": Decision})
    def ask(ctx: Context) -> str:
        return f"{ctx.wait_for('decision', Decision).amount} {ctx.wait_for('other')}"

    return app


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    """A stack whose clock stands still the day before clocks go forward in Paris."""
    with run_stack(make_form_app(), store="sqlite", clock=MovableClock(NOW, frozen=True)) as running:
        yield running


@pytest.fixture
def task(stack: Stack) -> str:
    made = {
        "id": f"t{uuid.uuid4().hex}",
        "owner": "ada",
        "title": "Nightly backup",
        "handler": "backup",
        "payload": {"bucket": "europe", "depth": 2},
        "labels": ["team=shop"],
        "schedule": {"rrule": "FREQ=DAILY", "dtstart": "2027-03-21T02:30:00", "timezone": "Europe/Paris"},
    }
    response = send(f"{stack.url}/v1/tasks", made)
    assert response.status_code == 201, response.text
    return str(made["id"])


FORM = {
    "handler": "backup",
    "title": "Weekly copy",
    "schedule": "every day at 9:00",
    "timezone": "Europe/Paris",
    "payload": '{"bucket": "europe", "folders": ["one", "two"]}',
}


def new(ui: str, **changes: str) -> requests.Response:
    return post(f"{ui}/new", {**FORM, "key": uuid.uuid4().hex, "verb": "create", **changes})


def list_tasks(stack: Stack, title: str) -> list[dict[str, Any]]:
    found = get(f"{stack.url}/v1/tasks", pageSize="500").json()["tasks"]
    return [each for each in found if each["title"] == title]


def test_the_form_is_made_from_the_schema(ui: str) -> None:
    """The payload is JSON, and its field names the parts of the handler's schema."""
    for handler, said in (("backup", "bucket: Where it goes."), ("report", "")):
        text = get(f"{ui}/new", handler=handler).text
        assert said in text.partition('name="payload"')[2]
    assert get(f"{ui}/new", handler=ATTACK).status_code == 200


def test_checking_stores_nothing_and_reads_the_schedule_back(stack: Stack, ui: str) -> None:
    """The words, the next ten instants in both zones, and the clock change between them."""
    page = post(f"{ui}/new", {**FORM, "title": "Only checked", "verb": "check"})
    text = page.text.replace("\N{NO-BREAK SPACE}", " ")
    assert page.status_code == 200
    for part in (
        "Every day at 09:00",
        "Sun 28 Mar 2027 09:00 +0200",
        "28 Mar 07:00",
        "clocks go forward on 28 Mar",
    ):
        assert part.lower() in text.lower(), part
    assert len(re.findall(r'<td class="num brief">\d\d \w{3} \d\d:\d\d</td>', text)) == 10
    assert "This is valid." in text
    assert list_tasks(stack, "Only checked") == []
    wrong = post(f"{ui}/new", {**FORM, "payload": "{}", "verb": "check"})
    assert wrong.status_code == 200  # an answer to the question, which browsers need not report as an error
    assert 'aria-invalid="true"' in wrong.text


def test_creating_leads_to_the_task(stack: Stack, ui: str) -> None:
    """With the payload of the form, and the options."""
    page = new(ui, title="Made", labels="team=shop, kind=copy", priority="HIGH", lockKey="disk", overlap="buffer",
               catchUp="all", retries="2", owner="grace", deliveryChannels="WEB")  # fmt: skip
    assert "Created." in page.text
    [made] = list_tasks(stack, "Made")
    assert page.url.startswith(f"{ui}/tasks/{made['id']}?")
    assert made["payload"] == json.loads(FORM["payload"])
    assert (made["owner"], made["priority"], made["lockKey"], made["overlap"]) == ("grace", "HIGH", "disk", "BUFFER")
    assert (made["catchUp"]["mode"], made["retry"]["maxRetries"]) == ("ALL", 2)
    assert (set(made["labels"]), made["deliveryChannels"]) == ({"team=shop", "kind=copy"}, ["WEB"])
    assert made["timezone"] == "Europe/Paris"


def test_sending_twice_makes_one_task(stack: Stack, ui: str) -> None:
    """The form's key is the request's idempotency key; other content with a used key is refused, with a new key."""
    key = uuid.uuid4().hex
    first, second = (new(ui, title="Once", key=key) for _ in range(2))
    assert first.url == second.url
    assert len(list_tasks(stack, "Once")) == 1
    other = new(ui, title="Once more", key=key)
    assert other.status_code == 422
    assert "has already created a task" in other.text
    again = read_form(other.text)
    assert again["key"] != key
    assert again["title"] == "Once more"
    assert post(f"{ui}/new", {**again, "verb": "create"}).status_code == 200
    assert len(list_tasks(stack, "Once more")) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("payload", '{"bucket": "eu"}'),
        ("payload", '{"bucket": "europe", "kind": "slow"}'),
        ("payload", '{"bucket": '),
        ("payload", "[1]"),
        ("payload", "[" * 9_999),
        ("schedule", "whenever it suits"),
        ("schedule", '{"rrule": "FREQ=NEVER"}'),
        ("timezone", "Europe/Atlantis"),
        ("labels", "no label"),
        ("retries", "21"),
        ("priority", "UTMOST"),
        ("lockKey", "x" * 201),
        ("title", "y" * 501),
    ],
)
def test_a_refusal_stands_at_its_field_and_loses_nothing(stack: Stack, ui: str, name: str, text: str) -> None:
    """Every other text is still there, and nothing was stored."""
    sent = {"title": "Refused", "description": f"as typed {ATTACK}", name: text}
    page = new(ui, **sent)
    assert page.status_code == 400
    where = page.text.index(f'name="{name}"')
    following = page.text[where:]
    assert 'aria-invalid="true"' in following[: following.index("data-error>") + 10]
    assert following[following.index("data-error>") + 11 :].startswith("<i")
    again = read_form(page.text)
    assert {key: again[key].replace("\n", "\r\n") for key in FORM if key not in sent} == {
        key: value for key, value in FORM.items() if key not in sent
    }
    assert {key: again[key] for key in sent} == sent
    assert ATTACK not in page.text
    assert ("is not JSON" in page.text) == (name == "payload" and text[-1] not in "}]")
    assert list_tasks(stack, sent["title"]) == []


def test_all_that_is_refused_stands_at_its_fields_at_once(stack: Stack, ui: str) -> None:
    """Whatever else is wrong: the form is sent once, and mended once."""
    wrong = {"labels": "no label", "priority": "UTMOST", "lockKey": "x" * 201}
    page = new(ui, title="All wrong", **wrong)
    assert page.status_code == 400
    for name in wrong:
        following = page.text[page.text.index(f'name="{name}"') :]
        assert 'aria-invalid="true"' in following[: following.index("data-error>") + 10], name
    assert list_tasks(stack, "All wrong") == []


def test_words_with_several_meanings_are_asked_back(stack: Stack, ui: str) -> None:
    """Each meaning is a button. Choosing one leaves words in the field that mean only it, and previews it."""
    for words in ("daily at 5", "every 2nd monday at 9:00", "on 3/4 at 9:00", "friday at midnight", "jeden Tag um 5"):
        asked = {"schedule": words, "timezone": "Europe/Paris"}
        refused = send(f"{stack.url}/v1/schedules/preview", asked).json()
        page = new(ui, title="Ambiguous", schedule=words, timezone="Europe/Paris")
        assert page.status_code == 400
        assert "These words leave something open." in page.text
        choices = [html.unescape(each) for each in re.findall(r'name="choose" value="([^"]+)"', page.text)]
        for choice, reading in zip(choices, refused["readings"], strict=True):
            chosen = post(f"{ui}/new", {**read_form(page.text), "choose": choice})
            form = read_form(chosen.text)
            assert "{" not in form["schedule"]
            meant, read = (
                send(f"{stack.url}/v1/schedules/preview", each).json()["occurrences"]
                for each in (
                    {"schedule": reading["schedule"]},
                    {"schedule": form["schedule"], "timezone": form["timezone"]},
                )
            )
            assert meant == read
            assert reading["description"].partition(",")[0] in html.unescape(chosen.text)
    assert list_tasks(stack, "Ambiguous") == []


def test_the_zone_of_the_form_is_the_one_that_the_words_were_read_in(ui: str) -> None:
    """Words may name their own, and so may the chosen one of several meanings. In a refused zone nothing is read."""
    words = "every 2nd monday at 9:00"
    for named, zone in (("", "Asia/Tokyo"), (" in Paris", "Europe/Paris")):
        page = new(ui, title="Zoned", schedule=words + named, timezone="Asia/Tokyo")
        choice = html.unescape(re.findall(r'name="choose" value="([^"]+)"', page.text)[0])
        chosen = post(f"{ui}/new", {**read_form(page.text), "choose": choice})
        assert read_form(chosen.text)["timezone"] == zone
    checked = new(ui, title="Zoned", schedule="every day at 9:00 in Paris", timezone="UTC", verb="check")
    assert read_form(checked.text)["timezone"] == "Europe/Paris"
    refused = new(ui, title="Zoned", schedule=words, timezone="Paris")
    assert read_form(refused.text)["timezone"] == "Paris"
    assert "did you mean Europe/Paris" in html.unescape(refused.text)
    assert "UTC&#39;" not in refused.text
    assert 'name="choose"' not in refused.text


def test_editing_changes_what_was_changed_and_nothing_else(stack: Stack, ui: str, task: str) -> None:
    """The form shows the task; saving it unchanged changes nothing; the other parts of the payload stay."""
    url, api = f"{ui}/tasks/{task}/edit", f"{stack.url}/v1/tasks/{task}"
    before = get(api).json()
    form = read_form(get(url).text)
    assert (json.loads(form["payload"])["bucket"], form["labels"]) == ("europe", "team=shop")
    assert form["schedule"].startswith("every day at 02:30")
    same = post(url, {**form, "verb": "save"})
    assert "Nothing was changed." in same.text
    assert get(api).json() == before
    saved = post(url, {**form, "payload": form["payload"].replace("europe", "asia"), "verb": "save"})
    assert "Saved." in saved.text
    after = get(api).json()
    assert after["payload"] == {**before["payload"], "bucket": "asia"}
    same_fields = before.keys() - {"message", "payload", "revision", "updatedAt"}
    assert {name: after[name] for name in same_fields} == {name: before[name] for name in same_fields}


def test_what_somebody_else_has_changed_is_shown_beside_yours(stack: Stack, ui: str, task: str) -> None:
    """Nothing is saved the first time. What was not touched becomes theirs; saving again saves what was.

    The ETag changes with every run; an edit is refused only if somebody has edited.
    """
    url, api = f"{ui}/tasks/{task}/edit", f"{stack.url}/v1/tasks/{task}"
    form = {**read_form(get(url).text), "title": "Ran meanwhile", "verb": "save"}
    assert send(f"{api}/trigger").status_code == 200
    assert post(url, form).status_code == 200
    assert get(api).json()["title"] == "Ran meanwhile"
    form = {**read_form(get(url).text), "title": "My title", "verb": "save"}
    theirs = {"title": "Their title", "priority": "HIGH"}
    assert requests.patch(api, json=theirs, timeout=60).status_code == 200
    page = post(url, form)
    assert page.status_code == 412
    assert "Somebody has changed this task" in page.text
    assert "Their title" in page.text
    assert get(api).json()["title"] == "Their title"
    again = read_form(page.text)
    assert (again["title"], again["priority"]) == ("My title", "HIGH")
    assert post(url, {**again, "verb": "save"}).status_code == 200
    found = get(api).json()
    assert (found["title"], found["priority"]) == ("My title", "HIGH")


@pytest.mark.parametrize("base", ["", "{", "[1]", '{"title": 5}', '{"nothing": "x"}'])
def test_a_tampered_form_is_no_traceback(ui: str, task: str, base: str) -> None:
    """Whatever the hidden fields say, the page is the form again or the saved task."""
    form = {**read_form(get(f"{ui}/tasks/{task}/edit").text), "base": base, "verb": "save"}
    assert post(f"{ui}/tasks/{task}/edit", form).status_code in {200, 412}
    assert post(f"{ui}/new", {"verb": "create"}).status_code == 400
    assert post(f"{ui}/new", {"verb": "create", "key": "\x00 é", "handler": "nobody"}).status_code == 400


def test_choices_are_those_of_the_api() -> None:
    """The form offers what a task takes, and all of it."""
    fields = {each.name: each for each in task_options.make_options(task_options.NAMES, {}, {}, (), is_new=False)}
    for name, members in (
        ("category", Category),
        ("deliveryChannels", DeliveryChannel),
        ("priority", Priority),
        ("overlap", Overlap),
        ("catchUp", CatchUpMode),
    ):
        assert [value for value, _ in fields[name].options] == [*members], name


def test_an_awaited_event_is_answered_in_a_form(stack: Stack, ui: str) -> None:
    """What is wrong is said at its field; an event of no declared shape takes any JSON."""
    body = {"owner": "a", "title": "Ask", "handler": "asking"}
    task_id = send(f"{stack.url}/v1/tasks", body).json()["id"]
    path = f"{ui}/tasks/{task_id}"
    wait_until(lambda: "the event 'decision'" in html.unescape(get(path).text), "it waits for the decision")
    [run] = re.findall(r'href="[^"]*(/executions/[^"]*)">\s*<span>Answer…', get(path).text)
    [link] = re.findall(r'href="[^"]*(/events/[^"]*)">\s*Answer decision…', get(f"{path}{run}").text)
    path += link
    page = get(path).text
    assert "What may be spent." in page
    form = read_form(page)
    refused = post(path, {**form, "payload": '{"amount": 0}', "verb": "send"})
    assert refused.status_code == 400
    assert "greater than or equal to 1" in refused.text
    sent = post(path, {**form, "payload": '{"amount": 3}', "verb": "send"})
    assert "Sent." in sent.text
    task_page = f"{ui}/tasks/{task_id}"
    wait_until(lambda: "the event 'other'" in html.unescape(get(task_page).text), "it waits for the other event")
    other = f"{ui}/tasks/{task_id}/events/other"
    assert "Sent." in post(other, {**read_form(get(other).text), "verb": "send"}).text
