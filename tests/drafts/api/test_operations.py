"""Drafts over the API: nothing is stored before it is confirmed, and what is confirmed is what was shown."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from tests.drafts_app import make_app
from tests.instants import MINUTE
from tests.web.callers import RoleHarness
from werkzeug.test import TestResponse

from cloudsched import App

TEXT = {"text": "Remind me to stretch every weekday at 9:00", "timezone": "Europe/Paris"}


@pytest.fixture
def app() -> App:
    """The app with handlers for drafts, in place of the greeting one."""
    return make_app()


def draft(roles: RoleHarness, who: str = "ada", **fields: Any) -> dict[str, Any]:
    answer = roles.ask(who, "POST", "/v1/tasks/draft", {**TEXT, **fields})
    assert answer.status_code == 200, answer.text
    content: dict[str, Any] = answer.get_json()
    return content


def confirm(roles: RoleHarness, drafted: dict[str, Any], who: str = "ada", **more: Any) -> TestResponse:
    shown: dict[str, Any] = drafted.get("task") or drafted["changes"]
    fields = {**shown, "draftToken": drafted["draftToken"], **more}
    if "taskId" in drafted:
        return roles.ask(who, "PATCH", f"/v1/tasks/{drafted['taskId']}", fields)
    return roles.ask(who, "POST", "/v1/tasks", fields)


def stored(roles: RoleHarness) -> list[Any]:
    tasks: list[Any] = roles.ask("admin", "GET", "/v1/tasks").get_json()["tasks"]
    return tasks


def test_a_draft_is_confirmed(roles: RoleHarness) -> None:
    """As shown, with the token, its fields become the caller's task; repeating it answers 200 with the same one."""
    drafted = draft(roles)
    assert set(drafted) == {
        *("decision", "task", "schedule", "description", "next", "assumptions", "questions", "missing", "steps"),
        *("draftToken", "readBack", "tasks"),
    }
    assert stored(roles) == []
    created = confirm(roles, drafted)
    assert (created.status_code, created.get_json()["owner"]) == (201, "ada")
    roles.ask("ada", "PATCH", f"/v1/tasks/{created.get_json()['id']}", {"title": "Mine"})
    again = confirm(roles, drafted)
    found = again.get_json()
    assert (again.status_code, found["id"], found["title"]) == (200, created.get_json()["id"], "Mine")
    assert len(stored(roles)) == 1


def test_german_words_are_answered_in_german(roles: RoleHarness) -> None:
    """The draft, each answer to its question, the task that a confirmation makes of one, and the change of it."""
    text = "Erinnere mich jeden zweiten Dienstag um 10 daran, die Blumen zu gießen"
    asked = draft(roles, text=text)
    [question] = asked["questions"]
    told = [each["description"] for each in question["answers"]]
    assert told[0] == "jeden Monat am 2. Dienstag um 10:00, Europe/Paris"
    assert told[1].startswith("alle 2 Wochen am Dienstag um 10:00, erstmals am ")

    chosen = draft(roles, text=text, context=question["answers"][1]["context"])
    assert chosen["description"] == told[1]
    created = confirm(roles, chosen)
    assert created.get_json()["readBack"]["description"] == told[1]

    text = "verschiebe Blumen gießen auf jeden 31. um 9"
    changed = draft(roles, text=text)
    [question] = changed["questions"]
    told = [each["description"] for each in question["answers"]]
    assert told[1].startswith("jeden Monat am 31. um 09:00 (oder am letzten Tag davor")
    answer = question["answers"][1]
    chosen = draft(roles, text=text, context=answer["context"])
    assert chosen["description"] == told[1]
    assert confirm(roles, chosen).get_json()["readBack"]["description"] == told[1]

    english = draft(roles, locale="de")
    assert english["description"] == "jeden Werktag um 09:00, Europe/Paris"


def test_a_change_is_confirmed(roles: RoleHarness) -> None:
    """By PATCH, with the changes as shown; the token of a creation is worth nothing there, nor the other way round."""
    created = draft(roles)
    task_id = confirm(roles, created).get_json()["id"]
    drafted = draft(roles, text="move my reminder to 10:00")
    assert (drafted["decision"], drafted["taskId"]) == ("UPDATE", task_id)
    wrong = roles.ask("ada", "PATCH", f"/v1/tasks/{task_id}", {**created["task"], "draftToken": created["draftToken"]})
    assert (wrong.status_code, wrong.get_json(force=True)["field"]) == (400, "draftToken")
    crossed = roles.ask("ada", "POST", "/v1/tasks", {**created["task"], "draftToken": drafted["draftToken"]})
    assert crossed.status_code == 400
    changed = confirm(roles, drafted)
    assert changed.status_code == 200
    assert changed.get_json()["schedule"] == drafted["schedule"] | changed.get_json()["schedule"]
    roles.ask("ada", "PATCH", f"/v1/tasks/{task_id}", {"title": "Mine"})
    assert confirm(roles, draft(roles, text="move my mine to 11:00")).status_code == 200


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"title": "Other"}, "title"),
        ({"handler": "report"}, "handler"),
        ({"payload": {"text": "stretch", "city": "Rome"}}, "payload"),
        ({"id": "mine"}, "id"),
        ({"owner": "ada"}, "owner"),
    ],
)
def test_a_field_that_was_not_shown_so_is_refused(roles: RoleHarness, changes: dict[str, Any], field: str) -> None:
    """Changed or added; so is one that is left out. Nothing is stored."""
    refused = confirm(roles, draft(roles), **changes)
    assert (refused.status_code, refused.get_json(force=True)["field"]) == (400, field)
    drafted = draft(roles)
    del drafted["task"]["title"]
    assert confirm(roles, drafted).get_json(force=True)["field"] == "title"
    assert stored(roles) == []


@pytest.mark.parametrize("who", ["bob", "phone", "admin"])
def test_a_token_is_its_callers_own(roles: RoleHarness, who: str) -> None:
    """Another user, another program of the same user, and an admin get nothing by it."""
    refused = confirm(roles, draft(roles), who)
    assert (refused.status_code, refused.get_json(force=True)["field"]) == (400, "draftToken")
    assert stored(roles) == []


def tamper(token: str) -> list[object]:
    """Return tokens that nobody has signed."""
    body, _, signature = token.partition(".")
    content = json.loads(base64.urlsafe_b64decode(body))
    later = base64.urlsafe_b64encode(json.dumps({**content, "until": 10**12}).encode()).decode()
    flipped = ("0" if signature[0] != "0" else "1") + signature[1:]
    return [
        *(f"{later}.{signature}", f"{body}.{flipped}", f"{body}.", body, f".{signature}", "", "x", "ä.ö", "a" * 9000),
        *(None, 7, [], {}, True, f"{body}.{signature}.{signature}", f" {token}", f"{body[:-4]}.{signature}"),
    ]


def test_a_tampered_token_is_refused(roles: RoleHarness) -> None:
    """Whatever is changed of it, and whatever is sent in its place: 400, and nothing is stored."""
    drafted = draft(roles)
    for token in tamper(drafted["draftToken"]):
        refused = confirm(roles, {**drafted, "draftToken": token})
        assert (refused.status_code, refused.get_json(force=True)["field"]) == (400, "draftToken"), token
    assert stored(roles) == []
    assert confirm(roles, drafted).status_code == 201


def test_an_expired_token_says_what_to_do(roles: RoleHarness) -> None:
    """It is a problem of its own; the words that led to it may be sent again."""
    drafted = draft(roles)
    roles.sim.advance(15 * MINUTE)
    problem = confirm(roles, drafted).get_json(force=True)
    assert (problem["title"], problem["field"]) == ("Draft expired", "draftToken")
    assert "/v1/tasks/draft" in problem["hint"]
    assert confirm(roles, draft(roles)).status_code == 201


def test_the_token_opens_nothing(roles: RoleHarness) -> None:
    """A reader may not draft; an admin's draft of a handler for servers cannot be confirmed by its user."""
    assert roles.ask("reader", "POST", "/v1/tasks/draft", TEXT).status_code == 403
    assert roles.ask("ada", "POST", "/v1/tasks/draft", {**TEXT, "owner": "bob"}).status_code == 403
    drafted = draft(roles, "admin", text="audit every Monday at 9:00", owner="ada")
    assert drafted["task"]["handler"] == "audit"
    assert confirm(roles, drafted).status_code in {400, 403}
    assert confirm(roles, drafted, "admin").status_code == 201


def test_validate_only_stores_nothing(roles: RoleHarness) -> None:
    """A creation and an edit with a token are only checked, too."""
    drafted = draft(roles)
    body = {**drafted["task"], "draftToken": drafted["draftToken"]}
    assert roles.ask("ada", "POST", "/v1/tasks?validateOnly=true", body).status_code == 200
    assert stored(roles) == []
    task_id = confirm(roles, drafted).get_json()["id"]
    change = draft(roles, text="move my reminder to 10:00")
    body = {**change["changes"], "draftToken": change["draftToken"]}
    assert roles.ask("ada", "PATCH", f"/v1/tasks/{task_id}?validateOnly=true", body).status_code == 200
    assert stored(roles)[0]["revision"] == 1


@pytest.mark.parametrize("text", ["pause my reminder", "delete my reminder", "run my reminder now"])
def test_an_operation_is_confirmed(roles: RoleHarness, text: str) -> None:
    """By PATCH: checked alone it does nothing, without its token it is refused, and once confirmed it is done."""
    task_id = confirm(roles, draft(roles)).get_json()["id"]
    drafted, before = draft(roles, text=text), stored(roles)
    path, body = f"/v1/tasks/{task_id}", {**drafted["changes"], "draftToken": drafted["draftToken"]}
    assert roles.ask("ada", "PATCH", f"{path}?validateOnly=true", body).status_code == 200
    assert roles.ask("ada", "PATCH", path, drafted["changes"]).get_json(force=True)["field"] == "operation"
    assert roles.ask("ada", "PATCH", path, {**body, "operation": "cancel"}).status_code == 400
    assert roles.ask("ada", "PATCH", path, {**body, "title": "Other"}).status_code == 400
    assert roles.ask("bob", "PATCH", path, body).status_code == 404
    assert roles.ask("phone", "PATCH", path, body).status_code == 400
    assert stored(roles) == before
    assert confirm(roles, drafted).get_json()["id"] == task_id
    assert stored(roles) != before


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"text": "x" * 1_000_000}, "text"),
        ({"text": ""}, "text"),
        ({"text": "call mum \u202etomorrow at 9:00"}, "text"),
        ({"text": "call \ud800 tomorrow at 9:00"}, "text"),
        ({"timezone": "Mars/Olympus"}, "timezone"),
        ({"now": "2027-01-01T09:00:00"}, "now"),
        ({"conversation": [{"role": "root", "content": "x"}]}, "conversation.0.role"),
        ({"conversation": [{"role": "user", "content": "x"}] * 101}, "conversation"),
        ({"conversation": [{"role": "user", "content": "x" * 9000}] * 9}, "(body)"),
        ({"context": {"a": "x" * 20_000}}, "context"),
        ({"context": {"taskId": "nobody's"}}, "context.taskId"),
        ({"handler": "audit"}, "handler"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_request_is_bounded(roles: RoleHarness, fields: dict[str, Any], field: str) -> None:
    """What is too large, or would not be shown as it is stored, is refused with the field's name."""
    body = json.dumps({**TEXT, **fields}).encode()
    refused = roles._client.post(  # noqa: SLF001 - lone surrogates need the bytes as they are
        "/v1/tasks/draft", data=body, headers=roles.headers("ada")
    )
    assert refused.status_code == 400, refused.text
    assert refused.get_json(force=True)["field"] == field


def test_the_steps_are_streamed(roles: RoleHarness) -> None:
    """As server-sent events on request: each step, and at last the draft, which is the one that JSON gives."""
    answer = roles.ask("ada", "POST", "/v1/tasks/draft", TEXT, Accept="text/event-stream")
    assert answer.content_type.startswith("text/event-stream")
    events = [dict(line.split(": ", 1) for line in each.splitlines()) for each in answer.text.strip().split("\n\n")]
    assert [each["event"] for each in events] == ["step", "step", "step", "draft"]
    drafted = json.loads(events[-1]["data"])
    assert [json.loads(each["data"]) for each in events[:-1]] == drafted["steps"]
    plain = draft(roles)
    assert [each["text"] for each in plain["steps"]] == [each["text"] for each in drafted["steps"]]
    rest = {"draftToken": "", "steps": []}
    assert {**drafted, **rest} == {**plain, **rest}
    assert confirm(roles, drafted).status_code == 201


def test_a_problem_ends_the_stream(roles: RoleHarness) -> None:
    """What is wrong only becomes known while the draft is made: it is the last event."""
    body = {**TEXT, "context": {"taskId": "nobody's"}}
    answer = roles.ask("ada", "POST", "/v1/tasks/draft", body, Accept="text/event-stream")
    assert [line for line in answer.text.splitlines() if line.startswith("event: ")][-1] == "event: problem"
    assert '"field":"context.taskId"' in answer.text


def test_now_is_where_words_count_from(roles: RoleHarness) -> None:
    """The word "tomorrow" is the day after the request's instant; what is past by the server's clock is refused."""
    text = {"text": "remind me to stretch tomorrow at 9:00"}
    drafted = draft(roles, **text, now="2027-03-01T12:00:00+01:00")
    assert drafted["next"][0]["local"] == "2027-03-02T09:00:00+01:00"
    assert draft(roles, **text, now="2026-03-01T12:00:00+01:00")["missing"][0]["code"] == "past"
