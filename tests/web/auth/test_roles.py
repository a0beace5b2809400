"""The rights of each role: everything is denied unless allowed, and a stranger learns nothing."""

from __future__ import annotations

from typing import Any, cast

import pytest
from jsonschema_rs import Draft202012Validator
from tests.cases import try_each
from tests.web.callers import TASK, RoleHarness, open_roles

from cloudsched.config.access import Access
from cloudsched.domain.documents.task import Task
from cloudsched.domain.documents.verbs import Verb
from cloudsched.engine.storage.known_tasks import KnownTasks
from cloudsched.errors import Misconfigured, Unauthenticated
from cloudsched.web.api.operation import Operation
from cloudsched.web.api.operations import OPERATIONS
from cloudsched.web.auth.authentication import ApiKey, ApiKeys, create_key
from cloudsched.web.auth.roles import Caller, Right, Role

HASH = "0" * 64
OF_A_TASK = [each for each in OPERATIONS if "{taskId}" in each.path]
RIGHTS = [each for each in OPERATIONS if each.right]


def path_for(operation: Operation, task_id: str) -> str:
    """Return an operation's path for a task of Ada's, and for other things of hers that there need not be."""
    return operation.path.format(
        taskId=task_id,
        executionId="x",
        owner="ada",
        chat="telegram",
        event="e",
        queue="q",
        feedId="0" * 64,
        messageId="m",
        deliveryId="d",
        calendarId="c",
        scriptName="s",
    )


def body_for(operation: Operation) -> object:
    if operation.name in {"backfill", "cancel_run", "move"}:
        example = next(each for each in Verb if each.method == operation.name).traits.example
        return example and example["value"]
    if operation.name == "send_event":
        return {"early": True}
    if operation.name == "preview_schedule":
        return {"schedule": {"rrule": "FREQ=DAILY"}}
    if operation.right is Right.WORK and operation.name != "claim":
        error = {"error": {"type": "E", "message": "m"}} if operation.name == "fail" else {}
        return {"leaseToken": "x", **error}
    return {"title": "Mine now"} if operation.is_patch else None


@pytest.fixture
def description(roles: RoleHarness) -> dict[str, Any]:
    """What the API says of itself to somebody without a key."""
    return cast("dict[str, Any]", roles.fetch(None, "/openapi.json"))


@try_each("name", [each.name for each in RIGHTS])
def test_every_operation_requires_authentication(roles: RoleHarness, description: dict[str, Any], name: str) -> None:
    """Without credentials, or with a stranger's key, each operation is the 401 that its description promises.

    It says how to authenticate. With a key in the header that the description names, a request gets further.
    """
    operation = next(each for each in OPERATIONS if each.name == name)
    path, body = path_for(operation, "no-such-task"), body_for(operation) or {}
    promised = description["paths"][operation.path][operation.method.lower()]
    assert {"key": []} in promised["security"]
    header = description["components"]["securitySchemes"]["key"]["name"]
    for headers in ({}, {header: create_key("admin", Role.ADMIN)[0]}):
        answer = roles.ask(None, operation.method, path, body, **headers)
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="cloudsched"'
        schema = promised["responses"]["401"]["content"][answer.mimetype]["schema"]
        Draft202012Validator({**schema, "components": description["components"]}).validate(answer.json)
    own = roles.headers("admin")["X-Api-Key"]
    assert roles.ask(None, operation.method, path, body, **{header: own}).status_code != 401


@pytest.mark.parametrize("if_match", [{}, {"If-Match": '"x"'}, {"If-Match": "*"}], ids=str)
@try_each("operation", OF_A_TASK, roles=open_roles)
def test_a_stranger_cannot_tell_a_task_that_exists(
    roles: RoleHarness, operation: Operation, if_match: dict[str, str]
) -> None:
    """For each operation, the answer for another's task is, byte for byte, that for none; and nothing has changed."""
    taken = roles.task("ada")
    before = roles.fetch("admin", f"/v1/tasks/{taken}")
    missing = taken[:-1] + ("0" if taken[-1] != "0" else "1")
    answers = []
    for task_id in (taken, missing):
        path = operation.path.format(taskId=task_id, executionId="20270101T000500Z", event="e")
        answer = roles.ask("bob", operation.method, path, body_for(operation), **if_match)
        answers.append((answer.status_code, sorted(answer.headers), answer.text.replace(task_id, "ID")))
    assert answers[0] == answers[1]
    assert answers[0][0] == 404
    assert roles.fetch("admin", f"/v1/tasks/{taken}") == before


@try_each("operation", OF_A_TASK, roles=open_roles)
def test_hiding_a_task_reads_as_much_as_finding_none(
    roles: RoleHarness, operation: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each operation, as many tasks are parsed for another's task as for none, which takes equally long.

    It makes no difference whether this process knows the other's task already.
    """
    reads: list[str] = []
    parse = Task.model_validate_json

    def count(text: str, **options: Any) -> Task:
        reads.append(text)
        return parse(text, **options)

    counts = []
    find, task = KnownTasks.find, roles.task("ada")
    for task_id, is_known in ((task, True), (task, False), ("missing", True)):
        path = operation.path.format(taskId=task_id, executionId="20270101T000500Z", event="e")
        with monkeypatch.context() as patch:
            patch.setattr(Task, "model_validate_json", count)
            if not is_known:
                patch.setattr(KnownTasks, "find", lambda known, task_id, _stamp: find(known, task_id, object()))
            assert roles.ask("bob", operation.method, path, body_for(operation)).status_code == 404
        counts.append(len(reads))
        reads.clear()
    assert counts == [1, 1, 1]


def test_a_stranger_cannot_take_an_id(roles: RoleHarness) -> None:
    """Ids that users choose are kept apart, so that choosing one neither reveals nor takes another user's."""
    roles.task("ada", id="secret-project")
    answers = [roles.create_task("bob", {**TASK, "id": name}) for name in ("secret-project", "no-such")]
    assert [answer.status_code for answer in answers] == [201, 201]
    ids = [answer.json["id"] for answer in answers]
    assert [name.partition("-")[2] for name in ids] == ["secret-project", "no-such"]
    assert [roles.create_task("bob", {**TASK, "id": name}).status_code for name in ids] == [200, 200]
    assert roles.create_task("bob", {**TASK, "id": "no-such"}).json["id"] == ids[1]
    for other in ids:
        assert roles.create_task("ada", {**TASK, "id": other}).json["id"] != other


@pytest.mark.parametrize(("who", "right"), [("reader", Right.READ), ("viewer", Right.READ), ("worker", Right.WORK)])
@try_each("operation", RIGHTS, roles=open_roles)
def test_a_viewer_changes_nothing(roles: RoleHarness, operation: Operation, who: str, right: Right) -> None:
    """A reader and a viewer may read, and get 403 for everything else, as readers do for logs that are for admins.

    A worker gets 403 for everything but seeing, claiming and ending work, even for reading.
    """
    answer = roles.ask(who, operation.method, path_for(operation, roles.task("ada")), body_for(operation))
    is_closed = (operation.name, who) == ("get_execution_logs", "reader")
    assert (answer.status_code == 403) == (operation.right not in {right, Right.QUEUES} or is_closed)


def test_a_new_tasks_owner_is_its_creator(roles: RoleHarness) -> None:
    """A user's task is their own, whether they say so or not; another's name is refused. A server's is the system's."""
    assert roles.create_task("ada", TASK).json["owner"] == "ada"
    assert roles.create_task("ada", {**TASK, "owner": "ada"}).status_code == 201
    assert roles.create_task("ada", {**TASK, "owner": "bob"}).status_code == 403
    assert roles.create_task("ada", {**TASK, "owner": ["ada"]}).status_code == 403
    assert roles.create_task("admin", TASK).json["owner"] == "system"
    batch = roles.ask("ada", "POST", "/v1/tasks/batchCreate", {"tasks": [TASK, {**TASK, "owner": "bob"}]}).json
    assert [result["status"] for result in batch["results"]] == [201, 403]


@try_each("key", ["", "x", "csk_ada_x", "csk_nobody_" + "x" * 43, "csk_ada_" + "x" * 43, "csk_ada_é" * 9])
def test_a_wrong_key_is_refused(roles: RoleHarness, key: str) -> None:
    """A key that is not known is a 401 which does not repeat it; a good token beside it does not help."""
    answer = roles.ask(None, "GET", "/v1/tasks", **{"X-Api-Key": key.encode().decode("latin-1")})
    assert answer.status_code == 401
    assert not key or key not in answer.text


@try_each("key", ["x", "csk_ada_x", "csk_ada_" + "x" * 43])
def test_a_key_in_the_place_of_a_token_is_told_its_own(roles: RoleHarness, key: str) -> None:
    """Also where the packages that verify tokens are missing: an API that has only keys takes no token."""
    answer = roles.ask(None, "GET", "/v1/tasks", Authorization=f"Bearer {key}")
    assert answer.status_code == 401
    assert "X-Api-Key" in answer.text


def test_a_key_is_kept_as_a_hash() -> None:
    """The stored entry does not contain the key, and no other key matches it; a key is shown by its name alone."""
    key, kept = create_key("billing", Role.ADMIN)
    secret = key.removeprefix("csk_billing_")
    assert len(secret) == 43
    assert key not in str(kept)
    assert secret not in str(kept)
    assert kept.digest not in repr(kept)
    keys = ApiKeys([str(kept)])
    assert keys.authenticate(key) == Caller("key:billing", Role.ADMIN, None)
    for other in (key[:-1], key + "x", key.swapcase(), key[:-1] + ("a" if key[-1] != "a" else "b")):
        with pytest.raises(Unauthenticated):
            keys.authenticate(other)


@try_each(
    "entry",
    [
        *("", "a", "a:admin", f"a:king:{HASH}", "a:admin:0", f"a:user:{HASH}", "a b:c", f"a:admin:{HASH}:ada"),
        *(f"a:worker@:{HASH}", f"a:worker@x+:{HASH}", f"a:worker@x/y:{HASH}", f"a:admin@x:{HASH}", f"a:worker:{HASH}:"),
    ],
)
def test_a_broken_list_of_keys_is_refused(entry: str) -> None:
    """A list that cannot be right stops the API, instead of letting in fewer, or more, than was meant."""
    with pytest.raises(Misconfigured):
        ApiKeys([entry])
    with pytest.raises(Misconfigured):
        ApiKeys([f"a:admin:{'0' * 64}", f"a:viewer:{'1' * 64}"])


@try_each("entry", ["a:{}:" + "0" * 64, "a:worker@{}:" + "0" * 64, "a:admin:{}", "{}:admin:0"])
def test_a_key_in_the_wrong_place_is_not_repeated(entry: str) -> None:
    """If the key itself is put into the list, the error says that the entry is invalid, without repeating it."""
    secret = "s" * 43 + "/"
    with pytest.raises(Misconfigured) as caught:
        ApiKeys([entry.format(secret)])
    assert secret not in str(caught.value)


@try_each("queues", [[""], ["a+b"], ["a", ""], ["a:b"], ["x" * 65]])
def test_a_worker_s_key_is_never_bound_to_more_queues_than_named(queues: list[str]) -> None:
    """No name of a queue makes a key for more queues than were named, or for all of them."""
    with pytest.raises(Misconfigured):
        create_key("box", Role.WORKER, queues=queues)
    with pytest.raises(Misconfigured):
        create_key("box", Role.ADMIN, queues=["gpu"])


@try_each(
    "role, owner, queues",
    [
        ("worker", None, frozenset[str]()),
        ("worker@gpu+render", None, {"gpu", "render"}),
        ("worker@gpu", "user:7", {"gpu"}),
        ("worker", "ada", frozenset[str]()),
    ],
)
def test_a_workers_key_may_be_limited_to_queues_and_an_owner(
    role: str, owner: str | None, queues: frozenset[str]
) -> None:
    """Its queues stand behind its role, its owner at its end; it is read as it is written."""
    text = ":".join(["box", role, "0" * 64, *([owner] if owner else [])])
    key = ApiKey.parse(text)
    assert (key.role, key.owner, key.queues) == (Role.WORKER, owner, queues)
    assert str(key) == text


def test_access_settings_survive_environment_variables() -> None:
    """What `Access` says is read back from the variables that it gives."""
    whole = Access(
        firebase_project="p",
        audiences=("a", "b"),
        service_accounts=("x@y=admin",),
        trust_cloud_run=True,
        api_keys=("k:admin:" + "0" * 64,),
        sweeper="s@y",
        origins=("https://x", "https://y"),
        max_active_tasks=5,
        max_creations=6,
    )
    for access in (whole, Access()):
        assert (
            Access.from_environment({name: value for name, value in access.to_variables().items() if value}) == access
        )
    for bad in ({"CLOUDSCHED_MAX_ACTIVE_TASKS": "0"}, {"CLOUDSCHED_TRUST_CLOUD_RUN": "yes"}):
        with pytest.raises(Misconfigured):
            Access.from_environment(bad)
