"""firestore.rules in Google's own rules engine, queried as web and mobile clients do, with Firebase users' tokens.

The emulator accepts unsigned tokens; apart from that they are as in production.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from unittest.mock import Mock

import pytest
from tests.cases import try_each
from tests.deployables.fake_project import ROOT
from tests.harness import LocalClient
from tests.instants import MINUTE
from tests.subject_cases import ACCEPTED, REFUSED
from tests.web.callers import clear_authenticators
from werkzeug.wrappers import Request

from cloudsched import App, Settings
from cloudsched.adapters.firestore.emulator import EmulatorNotFound, find_emulator
from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.config.access import Access
from cloudsched.domain.documents.authority import EventSender, SenderRole, is_subject
from cloudsched.domain.documents.event import Event
from cloudsched.domain.documents.execution import Definition, Execution, ExecutionStatus, Message
from cloudsched.domain.documents.person import Person
from cloudsched.domain.documents.task import Task
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.domain.transitions.commit import Commit
from cloudsched.people.documents import ContactSecrets
from cloudsched.web.functions import serve_api

PROJECT = "demo-rules"
NOW = datetime(2027, 1, 1, 9, tzinfo=UTC)
RUN = "20270101T090000Z"
DENIED, FINE = 403, 200


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Google's emulator with our rules. If it is missing, the tests fail where CI is set, and are skipped elsewhere."""
    found = find_emulator()
    if isinstance(found, EmulatorNotFound):
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"No Firestore emulator: {found.reason}. {found.hint}")
    with replace(found, command=(*found.command, f"--rules={ROOT / 'infra/firestore.rules'}")) as running:
        yield running.address


@pytest.fixture(scope="module", autouse=True)
def _store_documents(address: str) -> None:
    """Store tasks, executions and messages of ada and bob, through the store that the functions use."""
    store = FirestoreStore(project=PROJECT, emulator=address, deadline=MINUTE)
    for owner in ("ada", "bob"):
        for key in ("one", "deleted"):
            task = Task(
                id=f"{owner}-{key}",
                owner=owner,
                title="A task",
                handler="greet",
                schedule=Schedule.once(NOW),
                is_one_time=True,
                timezone="UTC",
                created_at=NOW,
                updated_at=NOW,
                status_changed_at=NOW,
                deleted_at=NOW if key == "deleted" else None,
            )
            record = Execution(
                id=RUN, task_id=task.id, owner=owner, scheduled_for=NOW, status=ExecutionStatus.SUCCEEDED
            )
            message = Message(
                id=f"{task.id}-1", task_id=task.id, owner=owner, execution_id=RUN, title="Hi", body="", created_at=NOW
            )
            store.commit(Commit(task, None, [record], [message]))
        for kind in (Person, ContactSecrets):
            store.records.write(kind(id=owner, owner=owner, created_at=NOW, updated_at=NOW), None)
    store.close()


class Client:
    """A web or mobile app's Firestore client, over REST."""

    def __init__(self, address: str, token: str | None) -> None:
        self._address = address
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Send a request for a document or a collection; return the status and the body."""
        connection = http.client.HTTPConnection(self._address, timeout=60)
        try:
            target = f"/v1/projects/{PROJECT}/databases/(default)/documents{path}"
            connection.request(method, target, None if body is None else json.dumps(body), self._headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def get(self, path: str) -> int:
        return self.ask("GET", f"/{path}")[0]

    def find(self, collection: str, order: str, *, parent: str = "", **equal: str) -> tuple[int, list[str]]:
        """Query a collection; return the status and the IDs found."""
        query: dict[str, Any] = {"from": [{"collectionId": collection}]}
        query["orderBy"] = [{"field": {"fieldPath": order}, "direction": "DESCENDING"}]
        for field, value in equal.items():
            condition = {"field": {"fieldPath": field}, "op": "EQUAL", "value": {"stringValue": value}}
            query["where"] = {"fieldFilter": condition}
        status, answer = self.ask("POST", f"{parent}:runQuery", {"structuredQuery": query})
        found = [row["document"]["name"].rpartition("/")[2] for row in answer if "document" in row]
        return status, found


def make_token(uid: str, **claims: object) -> str:
    """Return the ID token of a Firebase user, unsigned."""
    now = int(datetime.now(UTC).timestamp())
    content = {
        "iss": f"https://securetoken.google.com/{PROJECT}",
        "aud": PROJECT,
        "sub": uid,
        "user_id": uid,
        "auth_time": now,
        "iat": now,
        "exp": now + 3600,
        "firebase": {"sign_in_provider": "password", "identities": {}},
    } | claims
    parts = (json.dumps(part).encode() for part in ({"alg": "none", "typ": "JWT"}, content))
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts) + "."


@pytest.fixture
def ada(address: str) -> Client:
    return Client(address, make_token("ada"))


@pytest.fixture
def admin(address: str) -> Client:
    return Client(address, make_token("root", admin=True))


@pytest.fixture
def stranger(address: str) -> Client:
    return Client(address, None)


OWN = ["tasks/ada-one", f"tasks/ada-one/executions/{RUN}", "inboxes/ada/messages/ada-one-1", "people/ada"]
OTHERS = [path.replace("ada", "bob") for path in OWN]


@pytest.mark.parametrize("path", [*OTHERS, "tasks/ada-deleted"])
def test_users_cannot_read_documents_of_others(ada: Client, path: str) -> None:
    """Nor a task of their own that is being deleted, whose document is removed only after its executions."""
    assert ada.get(path) == DENIED


@pytest.mark.parametrize("path", ["tasks/nobody-knows", "tasks/nobody-knows/executions/x", "inboxes/eve/messages/x"])
def test_a_missing_document_looks_like_that_of_another_user(ada: Client, path: str) -> None:
    """Guessing IDs reveals nothing: a missing document is refused just like another user's."""
    assert ada.get(path) == DENIED


@pytest.mark.parametrize("path", OWN + OTHERS)
def test_nothing_can_be_read_without_a_token(stranger: Client, path: str) -> None:
    """Every read without a token is refused."""
    assert stranger.get(path) == DENIED


API_PATHS = {
    "tasks/{}-one": "/v1/tasks/{}-one",
    "tasks/{}-deleted": "/v1/tasks/{}-deleted",
    f"tasks/{{}}-one/executions/{RUN}": f"/v1/tasks/{{}}-one/executions/{RUN}",
    "tasks/{}-one/executions": "/v1/tasks/{}-one/executions",
    "tasks": "/v1/tasks?owner={}",
    "inboxes/{}/messages": "/v1/inboxes/{}/messages",
    "people/{}": "/v1/people/{}",
}
"""What a client may read from the database, and what it would ask the API for instead."""
PEOPLE: tuple[tuple[str, dict[str, bool]], ...] = (
    *(("ada", {}), ("bob", {}), ("root", {"admin": True})),
    *(("system", {}), ("system", {"admin": True})),
)
ORDERS = {"tasks": "createdAt", "executions": "scheduledFor", "messages": "createdAt"}


@pytest.fixture
def api(address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalClient]:
    """Serve the API on the same database, to the same tokens."""
    monkeypatch.setenv("FIREBASE_AUTH_EMULATOR_HOST", "localhost:9099")
    access = Access(firebase_project=PROJECT, firebase_emulator="localhost:9099")
    store = FirestoreStore(project=PROJECT, emulator=address, deadline=MINUTE)
    clear_authenticators()
    settings = Settings(access=access, secret="s" * 40)
    app = App(settings, store=store, dispatcher=Mock())  # nothing is sent
    yield LocalClient(Request.application(lambda request: serve_api(app, request)))
    clear_authenticators()
    app.close()


def may_read_in_the_database(client: Client, path: str, owner: str) -> bool:
    """Return whether a client may read a document, or list a collection."""
    parent, _, name = path.rpartition("/")
    if name not in ORDERS:
        return client.get(path) == FINE
    equal = {"owner": owner} if not parent else {}
    return client.find(name, ORDERS[name], parent=f"/{parent}" if parent else "", **equal)[0] == FINE


@pytest.mark.parametrize("document", API_PATHS)
def test_the_database_shows_a_person_what_the_api_would(address: str, api: LocalClient, document: str) -> None:
    """With the same token: of one's own, another's and the system's things, as a user, an admin, and as nobody."""
    for uid, claims in PEOPLE:
        token = make_token(uid, **claims)
        for owner in ("ada", "bob", "system"):
            answer = api.get(API_PATHS[document].format(owner), headers={"Authorization": f"Bearer {token}"})
            shown = may_read_in_the_database(Client(address, token), document.format(owner), owner)
            is_hidden = answer.status_code in {401, 403, 404}
            is_admin = uid == "root"  # the rules let admins look for what there is not
            assert shown != is_hidden or (is_admin and answer.status_code == 404), (uid, owner, shown, answer.text)


def test_what_others_have_written_into_a_persons_task_is_in_the_apis_answer(
    ada: Client, address: str, api: LocalClient
) -> None:
    """An event that waits for a run, and a record's event and definition: no rule hides a field; the API shows them."""
    store = FirestoreStore(project=PROJECT, emulator=address, deadline=MINUTE)
    sender = EventSender(role=SenderRole.ADMIN, subject="the-warehouse")
    event = Event(name="shipped", payload={"note": "by-rail"}, at=NOW, sender=sender)
    base = store.load("ada-one")
    assert base is not None
    began_with = Definition(handler="pack", payload={"box": "the-small-one"})
    record = Execution(
        id=RUN,
        task_id="ada-shipped",
        owner="ada",
        scheduled_for=NOW,
        status=ExecutionStatus.FAILED,
        events=(event.model_copy(update={"payload": "by-ship"}),),
        began_with=began_with,
    )
    store.commit(Commit(base.task.model_copy(update={"id": "ada-shipped", "events": (event,)}), None, [record]))
    store.close()
    told = ("shipped", "by-rail", "the-warehouse"), ("shipped", "by-ship", "the-warehouse", "pack", "the-small-one")
    for path, words in zip(("tasks/ada-shipped", f"tasks/ada-shipped/executions/{RUN}"), told, strict=True):
        answer = api.get(f"/v1/{path}", headers={"Authorization": f"Bearer {make_token('ada')}"})
        assert [each for each in words if each not in answer.text] == []
        assert [each for each in words if each not in json.dumps(ada.ask("GET", f"/{path}"))] == []


def test_users_can_list_their_own_documents(ada: Client) -> None:
    """A query that can only find the user's own documents is allowed."""
    assert ada.find("tasks", "createdAt", owner="ada")[0] == FINE
    assert "ada-one" in ada.find("tasks", "createdAt", owner="ada")[1]
    assert ada.find("executions", "scheduledFor", parent="/tasks/ada-one") == (FINE, [RUN])
    assert set(ada.find("messages", "createdAt", parent="/inboxes/ada")[1]) == {"ada-one-1", "ada-deleted-1"}


def test_lists_without_an_owner_are_refused(ada: Client, stranger: Client) -> None:
    """A query that could find another user's documents is refused, whatever it would actually find."""
    assert ada.find("tasks", "createdAt")[0] == DENIED
    assert ada.find("tasks", "createdAt", owner="bob")[0] == DENIED
    assert ada.find("tasks", "createdAt", status="ACTIVE")[0] == DENIED
    assert ada.find("executions", "scheduledFor", parent="/tasks/bob-one")[0] == DENIED
    assert ada.find("messages", "createdAt", parent="/inboxes/bob")[0] == DENIED
    assert stranger.find("tasks", "createdAt", owner="ada")[0] == DENIED


def test_collections_are_not_searched_across_parents(ada: Client, admin: Client) -> None:
    """Collection-group queries, which would cover every user's executions or inbox, are refused for everyone."""
    for client in (ada, admin):
        for collection in ("executions", "messages"):
            query = {"from": [{"collectionId": collection, "allDescendants": True}]}
            assert client.ask("POST", ":runQuery", {"structuredQuery": query})[0] == DENIED


@pytest.mark.parametrize("path", OWN + OTHERS)
def test_admins_read_everything(admin: Client, path: str) -> None:
    """The custom claim `admin` allows reading all tasks, executions and inboxes."""
    assert admin.get(path) == FINE
    assert admin.find("tasks", "createdAt")[0] == FINE


@pytest.mark.parametrize("claim", ["true", 1, {"admin": True}, None, False])
def test_only_true_makes_an_admin(address: str, claim: object) -> None:
    """Only the value `true` of the `admin` claim counts."""
    assert Client(address, make_token("eve", admin=claim)).get("tasks/ada-one") == DENIED


@pytest.mark.parametrize("who", ["ada", "admin", "stranger"])
@try_each("path", [*OWN, "tasks/new", "inboxes/ada/messages/new", "settings/x", "locks/x", "offers/x", "tasks/a/b/c"])
def test_no_client_can_write(request: pytest.FixtureRequest, who: str, path: str) -> None:
    """No client can create, change or delete anything, including its own documents, whatever its claims."""
    client: Client = request.getfixturevalue(who)
    body = {"fields": {"owner": {"stringValue": "ada"}, "status": {"stringValue": "ACTIVE"}}}
    assert client.ask("PATCH", f"/{path}", body)[0] == DENIED
    assert client.ask("DELETE", f"/{path}")[0] == DENIED
    collection, _, key = path.rpartition("/")
    assert client.ask("POST", f"/{collection}?documentId={key}-2", body)[0] == DENIED


@pytest.mark.parametrize(
    "path",
    ["locks/x", "offers/x", "settings/x", "inboxes/ada", "apiKeys/x", "tasks/ada-one/other/x", "contactSecrets/ada"],
)
def test_documents_without_a_rule_cannot_be_read(ada: Client, admin: Client, path: str) -> None:
    """Clients cannot read any other document, including those of future collections."""
    assert ada.get(path) == DENIED
    assert admin.get(path) == DENIED


def test_the_rules_and_the_api_agree_on_who_a_user_can_be(address: str) -> None:
    """A user's own task is shown to whoever `is_subject` takes for a user, and to nobody else, admins included."""
    trusted = Client(address, "owner")  # the emulator's own word for a caller whom no rule binds
    shown = {}
    for number, uid in enumerate((*ACCEPTED, *REFUSED)):
        path = f"tasks/subject-{number}"
        assert trusted.ask("PATCH", f"/{path}", {"fields": {"owner": {"stringValue": uid}}})[0] == FINE
        for claims in ({}, {"admin": True}):
            client = Client(address, make_token(uid, **claims))
            found = client.find("tasks", "owner", owner=uid)[0] == FINE
            assert (client.get(path) == FINE) is found, (uid, claims)
            shown[uid, bool(claims)] = found
    assert shown == {(uid, is_admin): is_subject(uid) for uid, is_admin in shown}
    assert sum(shown.values()) == 2 * len(ACCEPTED)
