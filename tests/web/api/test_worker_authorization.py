"""Whose work a worker gets: bound to queues, to an owner, to both; nothing else is there for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner
from tests.authorities import as_user
from tests.web.auth.token_issuer import AUDIENCE, Issuer, publish_keys
from tests.web.callers import ERROR, MINUTE, VERBS, Answer, RoleHarness, make_keys, run_path
from werkzeug.wrappers import Request

from cloudsched import App, Settings
from cloudsched.cli.main import cloudsched
from cloudsched.config.access import Access
from cloudsched.errors import Misconfigured
from cloudsched.testing import Simulation
from cloudsched.web.auth.authentication import Authenticator
from cloudsched.web.auth.roles import Caller, Role

QUEUES = ("gpu", "render", "mail")
OWN = {f"own-{queue}": ("ada", queue) for queue in QUEUES}
"""The tasks that ada has asked for; all others are a server's."""
TASKS = {f"{owner}-{queue}": (owner, queue) for owner in ("ada", "bob") for queue in QUEUES} | OWN
WORKERS: dict[str, tuple[Role, str | None, tuple[str, ...]]] = {
    "admin": (Role.ADMIN, None, ()),
    "ada": (Role.USER, "ada", ()),
    "every": (Role.WORKER, None, ()),
    "gpu": (Role.WORKER, None, ("gpu",)),
    "graphics": (Role.WORKER, None, ("gpu", "render")),
    "adas": (Role.WORKER, "ada", ()),
    "adas-gpu": (Role.WORKER, "ada", ("gpu",)),
}


class WorkerRoleHarness(RoleHarness):
    """A task of each owner on each queue, all of them offered; and a key for each kind of worker."""

    def __init__(self, sim: Simulation, keys: dict[str, str]) -> None:
        super().__init__(sim, keys)
        for task_id, (owner, queue) in TASKS.items():
            if task_id in OWN:
                draft = {"id": task_id, "owner": owner, "handler": "mine", "pull": queue}
                as_user(sim.app).put(sim.app.to_draft(draft))
                continue
            body = {"id": task_id, "owner": owner, "handler": "anything", "pull": queue}
            assert self.post("admin", "/v1/tasks", body).status_code == 201
        sim.advance(5 * MINUTE)

    def post(self, who: str, path: str, body: object = None) -> Answer:
        """POST with a caller's credential."""
        return self.ask(who, "POST", path, body)

    def claims(self, who: str, queue: str) -> list[dict[str, Any]]:
        """Claim everything that a queue offers to a caller."""
        answer = self.post(who, f"/v1/queues/{queue}/claim", {"limit": 100})
        assert answer.status_code in {200, 403}, answer.text
        found: list[dict[str, Any]] = answer.json.get("claims", [])
        return found


app = App(Settings())
"""A handler that users may name; all others are only known to workers."""
app.handler("mine", access="users", user_queues=QUEUES)(lambda: None)


@pytest.fixture
def worker_roles(simulate: Callable[..., Simulation]) -> WorkerRoleHarness:
    keys, access = make_keys(WORKERS)
    return WorkerRoleHarness(simulate(access=access), keys)


def is_visible(who: str, task_id: str) -> bool:
    """Return whether a task exists for a worker."""
    owner, queue = TASKS[task_id]
    _, own, queues = WORKERS[who]
    return own in {None, owner} and (not queues or queue in queues)


def is_allowed(who: str, task_id: str) -> bool:
    """Return whether a worker may work on a task: users do on what they asked for."""
    return is_visible(who, task_id) and (WORKERS[who][0] is not Role.USER or task_id in OWN)


@pytest.mark.parametrize("who", WORKERS)
def test_each_worker_is_offered_only_the_work_of_its_role(worker_roles: WorkerRoleHarness, who: str) -> None:
    """Each gets all of its own work and nothing else, from any queue; a queue that is not a worker's is a 403."""
    had = {claim["task"]["id"] for queue in ("gpu", "render", "mail") for claim in worker_roles.claims(who, queue)}
    assert had == {task_id for task_id in TASKS if is_allowed(who, task_id)}
    queues = WORKERS[who][2]
    for queue in ("gpu", "render", "mail", "nowhere"):
        answer = worker_roles.post(who, f"/v1/queues/{queue}/claim")
        is_users = WORKERS[who][0] is not Role.USER or queue in QUEUES
        assert answer.status_code == (200 if is_users and (not queues or queue in queues) else 403)


@pytest.mark.parametrize("who", WORKERS)
def test_each_worker_sees_and_chooses_only_the_work_of_its_role(worker_roles: WorkerRoleHarness, who: str) -> None:
    """It lists what its queues have for it, without payloads, and of all tasks can have what it may work on."""
    queues = WORKERS[who][2] or QUEUES
    for task_id, (_, queue) in TASKS.items():
        listed = worker_roles.ask(who, "GET", f"/v1/queues/{queue}/tasks").text
        assert (task_id in listed, "payload" in listed) == (is_visible(who, task_id), False)
        path = f"/v1/queues/{queue if queue in queues else queues[0]}/claim"
        chosen = worker_roles.post(who, path, {"taskId": task_id, "limit": 9})
        refusal = 409 if is_visible(who, task_id) else 404
        assert chosen.status_code == (200 if is_allowed(who, task_id) else refusal)


def test_a_worker_is_told_why_it_cannot_have_what_it_chose(worker_roles: WorkerRoleHarness) -> None:
    """What is not for it, taken, or over. What needs another skill, or has expired, is not listed for it either."""
    drafts: dict[str, dict[str, Any]] = {
        "cuda": {"pull": {"queue": "gpu", "skill": "cuda"}},
        "brief": {"pull": "gpu", "expiration": 60},
    }
    for task_id, draft in drafts.items():
        worker_roles.post("admin", "/v1/tasks", {"id": task_id, "handler": "anything", **draft})
    worker_roles.post("admin", "/v1/tasks/ada-gpu/pause")
    worker_roles.sim.advance(MINUTE / 2)
    worker_roles.sim.clock.advance(MINUTE)
    (claim,) = worker_roles.post("every", "/v1/queues/gpu/claim", {"taskId": "own-gpu"}).json["claims"]
    for task_id, why in {
        "bob-mail": "is in queue 'mail'",
        "cuda": "the skill 'cuda'",
        "ada-gpu": "PAUSED",
        "brief": "not waiting",
        "own-gpu": "taken by another worker",
    }.items():
        answer = worker_roles.post("every", "/v1/queues/gpu/claim", {"taskId": task_id})
        assert (answer.status_code, why in answer.text) == (409, True), answer.text
    worker_roles.post("every", f"{run_path(claim)}/complete", {"leaseToken": claim["leaseToken"]})
    assert "COMPLETED" in worker_roles.post("every", "/v1/queues/gpu/claim", {"taskId": "own-gpu"}).text
    for query, listed in {"": {"bob-gpu", "cuda"}, "?skill=rocm": {"bob-gpu"}}.items():
        page = worker_roles.ask("every", "GET", f"/v1/queues/gpu/tasks{query}")
        assert {each["taskId"] for each in page.json["tasks"]} == listed


@pytest.mark.parametrize("who", WORKERS)
def test_only_permitted_workers_may_claim_for_one_owner(worker_roles: WorkerRoleHarness, who: str) -> None:
    """Workers for that owner may; all others are refused, and nothing is claimed."""
    answer = worker_roles.post(who, "/v1/queues/gpu/claim", {"limit": 100, "owner": "bob"})
    if WORKERS[who][1] == "ada":
        assert answer.status_code == 403
        assert {claim["task"]["owner"] for claim in worker_roles.claims("admin", "gpu")} == {"ada", "bob"}
    else:
        assert [claim["task"]["id"] for claim in answer.json["claims"]] == ["bob-gpu"]


@pytest.mark.parametrize("who", [name for name in WORKERS if name not in {"admin", "every"}])
@pytest.mark.parametrize("verb", VERBS)
def test_another_owner_s_work_does_not_exist_for_a_worker(worker_roles: WorkerRoleHarness, who: str, verb: str) -> None:
    """Even with the lease token of an admin: 404 as for a task that does not exist, or 409 if it may be seen."""
    claims = [claim for queue in ("gpu", "render", "mail") for claim in worker_roles.claims("admin", queue)]
    assert len(claims) == len(TASKS)
    for claim in claims:
        task_id = claim["task"]["id"]
        said = {"leaseToken": claim["leaseToken"], **(ERROR if verb == "fail" else {})}
        answer = worker_roles.post(who, f"{run_path(claim)}/{verb}", said)
        assert answer.status_code == (409 if is_visible(who, task_id) else 404), answer.text
        if not is_visible(who, task_id):
            missing = worker_roles.post(who, f"{run_path(claim).replace(task_id, 'none')}/{verb}", said)
            assert answer.text.replace(task_id, "ID") == missing.text.replace("none", "ID")
        beat = worker_roles.post("admin", f"{run_path(claim)}/heartbeat", {"leaseToken": claim["leaseToken"]})
        assert beat.status_code == 200, "the claim was not changed"


def test_a_lost_lease_reveals_nothing_new(worker_roles: WorkerRoleHarness) -> None:
    """A repeated report returns the task's state, but not what its owner has changed since."""
    claim, _ = worker_roles.claims("adas-gpu", "gpu")
    said = {"leaseToken": claim["leaseToken"], "content": "done"}
    told = worker_roles.post("adas-gpu", f"{run_path(claim)}/complete", said).json
    assert told["status"] == "COMPLETED"
    again = worker_roles.post("adas-gpu", f"{run_path(claim)}/complete", said).json
    assert not {"payload", "description", "purpose", "source", "children", "script"} & set(again)
    (claim,) = worker_roles.claims("admin", "gpu")
    said = {"leaseToken": claim["leaseToken"], "content": "done"}
    assert "payload" in worker_roles.post("admin", f"{run_path(claim)}/complete", said).json


def test_a_key_is_made_for_queues_and_an_owner() -> None:
    """`cloudsched admin keys new --role worker --queue … --owner …` prints the line that is read as just that."""
    words = "admin keys new gpu-box --role worker --queue render --queue gpu --owner ada"
    done = CliRunner().invoke(cloudsched, words)
    assert done.stdout.startswith("gpu-box:worker@gpu+render:")
    assert done.stdout.endswith(":ada\n")
    caller = Authenticator(Access(api_keys=(done.stdout.strip(),))).authenticate(
        Request.from_values(headers={"X-Api-Key": done.stderr.split()[-1]})
    )
    assert caller == Caller("key:gpu-box", Role.WORKER, "ada", frozenset({"gpu", "render"}))
    for wrong in (["--role", "admin", "--queue", "gpu"], ["--role", "worker", "--queue", ""]):
        refused = CliRunner().invoke(cloudsched, ["admin", "keys", "new", "x", *wrong])
        assert isinstance(refused.exception, Misconfigured)
        assert refused.stdout == ""


def test_a_service_account_may_be_a_worker() -> None:
    """`EMAIL=worker@gpu` is a worker of that queue, for all owners; a role that is none stops the API."""
    access = Access(service_accounts=("box@p=worker@gpu+render", "all@p=worker"), audiences=(AUDIENCE,))
    issuer = Issuer()
    with publish_keys(issuer):
        found = [
            Authenticator(access).authenticate(
                Request.from_values(headers={"Authorization": f"Bearer {issuer.make_account_token(email)}"})
            )
            for email in ("box@p", "all@p")
        ]
    assert found == [
        Caller("account:box@p", Role.WORKER, None, frozenset({"gpu", "render"}), verified_email="box@p"),
        Caller("account:all@p", Role.WORKER, None, verified_email="all@p"),
    ]
    for entry in ("box@p=worker@", "box@p=admin@gpu", "box@p=king", "box=worker"):
        with pytest.raises(Misconfigured):
            Authenticator(Access(service_accounts=(entry,), audiences=("a",)))
