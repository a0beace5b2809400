"""Who may administer a deployment's queues: its API, only where that is switched on, and only its own queues."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.deployables.fake_project import PROJECT, Cloud
from tests.deployables.fake_resources import get_env
from tests.harness import LocalClient
from tests.web.callers import clear_authenticators
from werkzeug.wrappers import Request

from cloudsched import App
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.config.settings import Settings
from cloudsched.web.auth.authentication import create_key
from cloudsched.web.auth.roles import Role
from cloudsched.web.functions import serve_api

pytestmark = pytest.mark.usefixtures("own_process")  # what is deployed configures its logging
ADMIN = "roles/cloudtasks.queueAdmin"
API = f"serviceAccount:cloudsched-api@{PROJECT}.iam.gserviceaccount.com"
KEY, KEPT = create_key("ops", Role.ADMIN)


@pytest.fixture(autouse=True)
def new_authenticators() -> Iterator[None]:
    clear_authenticators()
    yield
    clear_authenticators()


def list_admins(cloud: Cloud) -> set[tuple[str, str]]:
    """Return where somebody may administer something of Cloud Tasks, and who."""
    return {(place, member) for place, member, role, _ in cloud.bindings() if role == ADMIN}


def list_queues(cloud: Cloud) -> set[str]:
    return {each for each in cloud.state if each.startswith("queue/cloudsched")}


def ask(cloud: Cloud, method: str, path: str) -> tuple[int, str]:
    """Ask the API, with the settings that it was deployed with."""
    env = get_env(cloud.revision("api")) | {
        "CLOUDSCHED_SECRET": "a-secret-of-many-letters",
        "CLOUDSCHED_API_KEYS": str(KEPT),
        "K_SERVICE": "cloudsched-api",
    }
    store = SqliteStore()
    try:
        app = App(Settings.from_environment(env), store=store)
        client = LocalClient(Request.application(lambda request: serve_api(app, request)))
        json = {"state": "PAUSED"} if method == "PATCH" else None
        answer = client.open(path, method=method, json=json, headers={"X-Api-Key": KEY})
        return answer.status_code, answer.text
    finally:
        store.close()


def test_by_default_no_account_may_administer_queues(cloud: Cloud) -> None:
    """And the API says which setting would change that, whatever is asked of a queue."""
    assert list_admins(cloud) == set()
    for method, path in (("GET", ""), ("PATCH", "/cloudsched"), ("POST", "/cloudsched/purge")):
        status, text = ask(cloud, method, f"/v1/dispatch-queues{path}")
        assert (status, "QUEUE_ADMIN" in text) == (403, True), text


def test_it_is_granted_where_it_is_switched_on_and_taken_away_again(cloud: Cloud) -> None:
    """On the deployment's own queues only. What somebody else was granted stays."""
    cloud.state["queue/shop"] = {"name": "shop"}
    theirs = ["user:ada@example.com", ADMIN, ""]
    cloud.state["iam/queue/shop"] = [[API, ADMIN, ""]]
    cloud.state["iam/queue/cloudsched-low"].append(theirs)
    others = list_admins(cloud)

    cloud.ok("deploy.sh", QUEUE_ADMIN="on")
    cloud.ok("upgrade.sh")
    assert list_admins(cloud) - others == {(queue, API) for queue in list_queues(cloud)}
    assert get_env(cloud.revision("api"))["CLOUDSCHED_QUEUE_ADMIN"] == "on"
    assert all("CLOUDSCHED_QUEUE_ADMIN" not in get_env(cloud.revision(each)) for each in ("execute", "sweep"))
    cloud.check()

    cloud.configure()
    assert f"differs: revoke {ADMIN} on queue cloudsched " in cloud.fails("deploy.sh", "--check").out
    cloud.ok("deploy.sh")
    cloud.ok("upgrade.sh")
    assert list_admins(cloud) == others
    assert ask(cloud, "GET", "/v1/dispatch-queues")[0] == 403
    cloud.check()


@pytest.mark.parametrize("config", [{"QUEUE_ADMIN": "yes"}, {"SETTINGS": '("CLOUDSCHED_QUEUE_ADMIN=on")'}])
def test_another_way_to_switch_it_on_is_refused(cloud: Cloud, config: dict[str, str]) -> None:
    """It would change the API without its role, or neither."""
    cloud.configure(**config)
    assert "QUEUE_ADMIN" in cloud.fails("deploy.sh", "--check").err
