"""What a refusal says: all that is wrong with a body and where, which content is taken, what is missing for good."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic.alias_generators import to_snake
from tests import greeting_app
from tests.harness import free_port
from tests.web.callers import GREETING, SECOND, open_api, open_roles
from tests.web.conftest import Call, create, fetch

from cloudsched import App, Settings
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.transitions.commit import Commit
from cloudsched.errors import InvalidInput
from cloudsched.testing import Simulation
from cloudsched.web.api.operations import OPERATIONS


def pointers(problem: dict[str, Any]) -> set[str]:
    """Return where a problem says that something is wrong."""
    return {each["pointer"] for each in problem["errors"]}


def test_all_faults_of_a_body_are_told_at_once(call: Call) -> None:
    """Each with its place, also below a name with a dot; the first as before."""
    body = {**GREETING, "maxRuns": 0, "jitter": "x", "priority": "SOON", "titel": "T"}
    problem = call("POST", "/v1/tasks", body).json
    assert pointers(problem) == {"#/maxRuns", "#/jitter", "#/priority", "#/titel"}
    assert problem["errors"][0]["pointer"] == f"#/{problem['field']}"
    assert all(each["detail"] for each in problem["errors"])
    problem = create(call, payload={"times": "many"}).json
    assert pointers(problem) == {"#/payload/name", "#/payload/times"}
    problem = call("PATCH", "/v1/tasks/absent", {"priority": 1}).json
    assert problem["status"] in {400, 404}
    problem = call("PUT", "/v1/people/ada", {"channels": {"a.b/c~": ["EMAIL"]}}).json
    assert pointers(problem) == {"#/channels/a.b~1c~0/[key]"} or pointers(problem) == {"#/channels/a.b~1c~0"}


def test_an_empty_rule_alone_is_once(call: Call, sim: Simulation) -> None:
    """As tables of others store it, and as the page says: it runs now, and nothing follows. No rule is a mistake."""
    made = create(call, schedule={"rrule": "", "timezone": "Europe/Paris"})
    assert (made.status_code, made.json["isOneTime"]) == (201, True)
    sim.advance(SECOND)
    assert fetch(call, f"/v1/tasks/{made.json['id']}")["status"] == "COMPLETED"
    problem = create(call, schedule={"timezone": "Europe/Paris"}).json
    assert pointers(problem) == {"#/schedule/rrule"}
    at = {"rrule": "", "at": "2027-03-01T09:00:00Z"}
    assert create(call, schedule=at).json["nextExecutionTime"] == at["at"]


def test_faults_of_payloads_and_children_are_told_at_once(call: Call) -> None:
    """Of each child, each field of a payload, and of what is missing only what nothing else was meant to be."""
    child = {"handler": "greet", "payload": {"nam": "Ada", "times": "many"}, "priority": "HIGH"}
    body = {"owner": "ada", "children": [child, {**child, "handler": "nobody"}], "pull": "gpu"}
    problem = call("POST", "/v1/tasks", body).json
    assert pointers(problem) == {
        "#/pull",
        "#/children/0/payload/nam",
        "#/children/0/payload/times",
        "#/children/1/handler",
    }
    problem = create(call, handler="nobody", payload={"x": 1}).json
    assert (pointers(problem), problem["type"].rpartition("/")[2]) == ({"#/handler"}, "unknown-handler")


INDEPENDENT: tuple[tuple[str, dict[str, Any]], ...] = (
    ("#/titel", {"titel": "T"}),
    ("#/owner", {"owner": "a/b"}),
    ("#/priority", {"priority": "SOON"}),
    ("#/maxRuns", {"maxRuns": 0}),
    ("#/retry", {"retry": 3}),
    ("#/labels/1", {"labels": ["a=b", "B"]}),
    ("#/deliveryChannels/0", {"deliveryChannels": ["PIGEON"]}),
    ("#/lockScope", {"lockScope": "owner"}),
    ("#/parallel", {"parallel": True}),
    ("#/then", {"then": [{"titel": 1}]}),
    ("#/payload/times", {"payload": {"name": "Ada", "times": "many"}}),
    ("#/payload/nam", {"payload": {"name": "Ada", "nam": "Ada"}}),
    ("#/payload", {"payload": "Ada"}),
    ("#/handler", {"handler": "nobody"}),
    ("#/handler", {"handler": 5}),
    ("#/schedule", {"schedule": "every blursday"}),
    ("#/schedule", {"schedule": "on 3/4 at 9:00"}),
    ("#/schedule", {"schedule": 5}),
    ("#/schedule/calendars/0/id", {"schedule": {"rrule": "FREQ=DAILY", "calendars": [{"id": "of-nobody"}]}}),
    ("#/schedule/rrule", {"schedule": {"rrule": "FREQ=BLURS"}}),
    ("#/schedule/cron", {"schedule": {"cron": 5}}),
    ("#/schedule/gap #/schedule/fold", {"schedule": {"rrule": "FREQ=DAILY", "gap": "x", "fold": 1}}),
    (
        "#/schedule/rrule #/schedule/timezone #/schedule/exdates/0",
        {"schedule": {"rrule": "FREQ=BLURS", "timezone": "Mars/Base", "exdates": ["x"]}},
    ),
    ("#/timezone #/locale", {"timezone": 5, "locale": 7, "schedule": "every day at 9"}),
    ("#/timezone", {"timezone": "Mars/Base", "schedule": "every day at 9"}),
    ("#/locale", {"locale": "tlh", "schedule": "every day at 9"}),
)
"""Faults of a creation that say nothing of each other, each with its places and the fields that have them."""


def choose_faults(seed: int) -> tuple[set[str], dict[str, Any]]:
    """Return the places and the fields of some faults, none of which concern the same field."""
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    places, body = set[str](), dict[str, Any]()
    for place, fields in chance.sample(INDEPENDENT, chance.randint(2, 8)):
        needs_handler = {"payload", "handler"} <= fields.keys() | body.keys()  # what it takes is then not known
        if not (fields.keys() & body.keys() or needs_handler):
            places |= {*place.split()}
            body |= fields
    return places, body


@pytest.mark.parametrize("seed", range(60))
def test_no_fault_hides_another(call: Call, sim: Simulation, seed: int) -> None:
    """In a creation, an edit, a dry run, a batch and from Python: each fault has its place, and no other is told."""
    places, body = choose_faults(seed)
    created = create(call, **body).json
    assert {each["pointer"] for each in created["errors"]} == places
    assert call("POST", "/v1/tasks?validateOnly=true", {**GREETING, **body}).json == created
    (result,) = call("POST", "/v1/tasks/batchCreate", {"tasks": [{**GREETING, **body}]}).json["results"]
    assert pointers(result["problem"]) == {place.replace("#", "#/tasks/0", 1) for place in places}
    create(call, id="edited", schedule="every day at 9")
    assert pointers(call("PATCH", "/v1/tasks/edited", body).json) == places

    fields = {to_snake(name): value for name, value in {**GREETING, **body}.items() if name != "retry"}
    if places == {"#/retry"}:
        return
    with pytest.raises(InvalidInput) as caught:
        sim.app.create(**fields)
    told = {f"#/{each.field.replace('.', '/')}" for each in caught.value.faults}
    assert told == places - {"#/retry"}  # which Python takes as a number


def test_a_wrong_schedule_makes_nothing_else_wrong(call: Call) -> None:
    """Nor does another wrong field: what is right is not told, although it is about the wrong one."""
    right = {
        **GREETING,
        "schedule": "every day at 9",
        "timezone": "Europe/Paris",
        "locale": "en",
        "maxRuns": 3,
        "jitter": 60,
        "overlap": "skip",
        "catchUp": "latest",
        "expiration": 600,
        "lockKey": "printer",
        "lockScope": "owner",
        "lockLimit": 2,
        "pull": "gpu",
    }
    wrong = {"schedule": "every blursday", "lockKey": 5, "pull": 7, "owner": "a/b"}
    for chosen in ({"schedule": "every blursday"}, {"lockKey": 5, "pull": 7}, wrong):
        body = {**right, "handler": "of a worker", **chosen} if "pull" in chosen else {**right, **chosen}
        assert pointers(call("POST", "/v1/tasks", body).json) == {f"#/{name}" for name in chosen}


def test_a_choice_of_readings_stands_beside_other_faults(call: Call) -> None:
    """The problem is still the choice, which a person can make."""
    problem = create(call, titel=1, schedule="on 3/4 at 9:00").json
    assert problem["type"].endswith("/ambiguous-schedule"), problem
    assert problem["readings"]
    assert pointers(problem) == {"#/titel", "#/schedule"}


def test_query_headers_and_body_are_checked_together(call: Call) -> None:
    """None of them hides what is wrong with the others, and nothing is stored."""
    headers = {"Idempotency-Key": "half%FFa character", "If-Match": "no tag"}
    query = "validateOnly=perhaps&colour=red&colour=blue"
    problem = call("POST", f"/v1/tasks?{query}", {**GREETING, "titel": 1}, headers=headers).json
    found = {next(iter(each.items())) for each in problem["errors"]}
    assert found == {
        ("parameter", "validateOnly"),
        ("parameter", "colour"),
        ("header", "Idempotency-Key"),
        ("pointer", "#/titel"),
    }
    create(call, id="edited", schedule="every day at 9")
    problem = call("PATCH", "/v1/tasks/edited?colour=red", {"titel": 1}, headers=headers).json
    assert {each.get("header") for each in problem["errors"]} == {None, *headers}
    assert {each.get("pointer") for each in problem["errors"]} == {None, "#/titel"}
    problem = fetch(call, "/v1/tasks?status=LATE&pageSize=x&colour=red&dueFrom=tomorrow&owner=ada&owner=bob")
    assert {each["parameter"] for each in problem["errors"]} == {"status", "pageSize", "colour", "dueFrom", "owner"}
    assert call("POST", "/v1/tasks?colour=red", GREETING).status_code == 400
    assert [each["id"] for each in fetch(call, "/v1/tasks")["tasks"]] == ["edited"]


def test_a_preview_tells_all_faults(call: Call) -> None:
    """Also beside words that are not understood."""
    wrong = {"schedule": "every blursday", "count": 0, "from": "soon", "colour": "red"}
    assert pointers(call("POST", "/v1/schedules/preview", wrong).json) == {f"#/{name}" for name in wrong}


@pytest.fixture
def guarded() -> Iterator[Callable[..., dict[str, Any]]]:
    """Ask an API whose only handler is for servers, with a key."""
    app = App(Settings())
    app.handler("greet")(greeting_app.greet)
    with open_roles(app) as roles:
        yield lambda *asked: roles.ask(*asked).json


def test_users_are_told_nothing_of_what_is_for_servers(guarded: Callable[..., dict[str, Any]]) -> None:
    """Neither whether a payload fits such a handler, nor that somebody else's task exists."""
    daily = {"schedule": "every day at 9:00"}
    wrong = {**GREETING, "payload": {"nam": 5}, "lockKey": "a", "lockScope": "global"}
    assert pointers(guarded("ada", "POST", "/v1/tasks", wrong)) == {"#/handler", "#/lockScope"}
    children = {"children": [{"handler": "greet", "payload": {"nam": 5}}]}
    assert pointers(guarded("ada", "POST", "/v1/tasks", children)) == {"#/children/0/handler"}
    guarded("admin", "POST", "/v1/tasks", {**GREETING, **daily, "id": "hers"})
    guarded("admin", "POST", "/v1/tasks", {**GREETING, **daily, "id": "his", "owner": "bob"})
    change = {"payload": {"nam": 5}}
    assert pointers(guarded("ada", "PATCH", "/v1/tasks/hers", change)) == {"#/handler"}
    assert guarded("ada", "PATCH", "/v1/tasks/his", change)["status"] == 404
    told = pointers(guarded("ada", "PATCH", "/v1/tasks/his", {"payload": {"nam": 5}, "tilte": 1}))
    assert told == {"#/tilte"}


HINTS = {
    "taskType": "handler",
    "delivery": "deliveryChannels",
    "expectedExecutionTimeInMinutes": "expectedDuration? It is in seconds.",
    "isOneTimeExecution": "Leave it out: it follows from the schedule.",
    "time_zone": "timezone",
    "lock_key": "lockKey",
    "tilte": "title",
}


def test_every_unknown_field_has_a_hint_of_its_own(call: Call) -> None:
    """In the names of JSON: what other systems call it, the nearest name, or that there is none."""
    for path, method in (("/v1/tasks", "POST"), ("/v1/tasks/t", "PATCH")):
        problem = call(method, path, {**GREETING, **dict.fromkeys(HINTS, "x"), "zzz": 1}).json
        hints = {each["pointer"].removeprefix("#/"): each["hint"] for each in problem["errors"]}
        assert all(hint in hints[name] for name, hint in HINTS.items()), hints
        assert hints["zzz"] == "Remove it, or check its spelling."
        assert not [hint for hint in hints.values() if re.search("[a-z]_[a-z]", hint)]


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("text/plain", 415),
        ("application/xml", 415),
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("application/merge-patch+json", 200),
        ("application/x-www-form-urlencoded", 200),  # what `curl -d` says of JSON
        (None, 200),
    ],
)
def test_a_body_of_another_type_is_refused(call: Call, kind: str | None, status: int) -> None:
    """415, with what is accepted; what says nothing, or what curl says by itself, is read as JSON."""
    task_id = create(call).json["id"]
    headers = {} if kind is None else {"Content-Type": kind}
    answer = call("PATCH", f"/v1/tasks/{task_id}", b'{"title": "New"}', headers=headers)
    assert answer.status_code == status, answer.text
    if status == 415:
        assert answer.headers["Accept-Patch"] == "application/merge-patch+json"
        assert answer.json["type"].endswith("/unsupported-content")


def test_a_page_larger_than_the_largest_is_the_largest(call: Call) -> None:
    """A program that asks for too many at once gets as many as there are in one page, and no refusal."""
    create(call)
    for size in (500, 501, 999_999_999):
        assert len(fetch(call, f"/v1/tasks?pageSize={size}")["tasks"]) == 1
    assert call("GET", "/v1/tasks?pageSize=0").status_code == 400
    assert call("GET", "/v1/tasks?pageSize=many").status_code == 400


def test_a_missing_package_is_no_outage(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """501 and not 503: nobody should ask again."""
    monkeypatch.setitem(sys.modules, "holidays", None)
    answer = call("PUT", "/v1/calendars/fr", {"holidays": {"country": "FR"}})
    assert (answer.status_code, "Retry-After" in answer.headers) == (501, False)
    assert answer.json["type"].endswith("/missing-extra")


def test_a_dead_local_part_is_an_outage(tmp_path: Path) -> None:
    """503 with what to look at, and not 500: without the local Cloud Tasks nobody knows the time."""
    address = f"127.0.0.1:{free_port()}"
    parts = {"CLOUDSCHED_STORE": "sqlite", "CLOUDSCHED_DATA": str(tmp_path / "tasks.db")}
    parts |= {"CLOUD_TASKS_EMULATOR_HOST": address, "CLOUDSCHED_EXECUTOR_URL": "http://127.0.0.1:1"}
    parts |= {"CLOUDSCHED_OPEN": "on", "CLOUDSCHED_SECRET": "a-secret-of-many-letters"}
    app = App(Settings.from_environment(parts))
    app.handler("greet")(lambda: None)
    client = open_api(app)
    made = {**GREETING, "payload": {}}
    asked = (
        ("POST", "/v1/tasks", made),
        ("GET", "/v1/overview", None),
        ("PUT", "/v1/people/ada", {"timezone": "UTC"}),
    )
    for method, path, body in asked:
        answer = client.open(path, method=method, json=body)
        assert (answer.status_code, answer.json["type"].rpartition("/")[2]) == (503, "store-unavailable")
        assert f"The local Cloud Tasks at {address} cannot be reached" in answer.json["detail"]
        assert "Is it running?" in answer.json["detail"]
    app.close()


def test_a_task_of_the_system_takes_no_other_payload(call: Call) -> None:
    """An admin may run it now, with its own payload; another one is refused where it failed with a KeyError."""
    made = {"owner": "system", "title": "R", "handler": "cloudsched.follow", "payload": {"calendar": "shop"}}
    refused = call("POST", "/v1/tasks", made)
    assert (refused.status_code, refused.json["field"]) == (400, "payload")
    refresh = {**made, "handler": "cloudsched.calendar.refresh", "schedule": "every day at 3am", "timezone": "UTC"}
    created = call("POST", "/v1/tasks", refresh)
    task_id = created.json["id"]
    refused = call("POST", f"/v1/tasks/{task_id}/trigger", {"payload": {"name": "x"}})
    assert (refused.status_code, refused.json["field"]) == (400, "payload")
    assert call("POST", f"/v1/tasks/{task_id}/trigger").status_code == 200


SECRET = "what is in the document is nobody's business"  # noqa: S105 - a text to look for


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/tasks/t", None),
        ("PATCH", "/v1/tasks/t", {"title": "Another"}),
        ("POST", "/v1/tasks/t/cancel", None),
    ],
)
@pytest.mark.parametrize("kind", ["damaged", "newer"])
def test_a_request_for_an_unreadable_document_is_answered_plainly(  # noqa: PLR0913 - parameters and fixtures
    *,
    sim: Simulation,
    call: Call,
    method: str,
    path: str,
    body: object,
    kind: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A problem that names the document and says what to do, with nothing of its content; no trace in the log."""
    task = sim.app.create(**GREETING, id="t")
    if kind == "newer":
        stored = sim.app.container.store.load("t")
        assert stored
        sim.app.container.store.commit(Commit(task.model_copy(update={"schema_version": 7}), stored))
    else:

        def load(_: SqliteStore, task_id: str) -> None:
            type(task).from_stored(task_id, {"schemaVersion": 1, "handler": [SECRET]})

        monkeypatch.setattr(SqliteStore, "load", load)
    response = call(method, path, body)
    assert response.status_code == 500
    problem = response.json
    expected = {"newer": ("Unsupported document", "Deploy the newer"), "damaged": ("Damaged document", "from a backup")}
    title, hint = expected[kind]
    assert problem["title"] == title
    assert hint in problem["hint"]
    assert "t" in problem["detail"].replace("'", "").split()
    assert SECRET not in response.get_data(as_text=True)
    told = [each for each in caplog.records if getattr(each, "action", None) == "unreadable"]
    assert told
    assert not any(each.exc_info for each in told)
    assert SECRET not in caplog.text


def test_a_refusal_offers_nothing_that_it_refuses(call: Call) -> None:
    """Each example and each choice that is named for a parameter of an address is taken there."""

    def refuse(path: str, name: str, text: str) -> str:
        errors = call("GET", path, query_string={name: text}).json.get("errors", ())
        return " ".join(f"{each['detail']} {each.get('hint')}" for each in errors if each["parameter"] == name)

    offered = set()
    for each in OPERATIONS:
        path = re.sub(r"\{.*?\}", "x", each.path)
        for name in each.query.model_json_schema()["properties"] if each.query and each.method == "GET" else ():
            for example in re.findall(r"such as ([^\s,]+)\b|'(\w+)'", refuse(path, name, "!")):
                assert not refuse(path, name, "".join(example)), name
                offered.add(name)
    assert offered >= {"minLateness", "month"}, "hardly anything was tried"
