"""What the deployed functions of the fake project answer, and whom Cloud Run lets through to them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.deployables.fake_databases import find_served, may_use
from tests.deployables.fake_resources import get_env, is_unchecked

if TYPE_CHECKING:
    from tests.deployables.fake_gcloud import FakeCloud


def is_open(cloud: FakeCloud, function: str) -> bool:
    """Return whether Cloud Run lets everybody call a function."""
    name = f"service/cloudsched-{function}"
    return cloud.is_granted(name, "allUsers", "roles/run.invoker") or is_unchecked(cloud.state[name])


def refuse(cloud: FakeCloud, url: str, headers: dict[str, str]) -> int:
    """Return the status with which Cloud Run or any serving revision of the API refuses a request, or 0.

    Cloud Run checks X-Serverless-Authorization first, and strips the signature from the token that it has checked.
    """
    state = cloud.state
    is_public = is_open(cloud, "api")
    checked = "X-Serverless-Authorization" if "X-Serverless-Authorization" in headers else "Authorization"
    kind, account, audience = headers[checked].split(",")
    address = json.loads(state["service/cloudsched-api"]["metadata"]["annotations"]["run.googleapis.com/urls"])[0]
    may_call = cloud.is_granted("service/cloudsched-api", f"serviceAccount:{account}", "roles/run.invoker")
    if not is_public and (kind != "an-identity-token" or audience != address or not may_call):
        return 403
    status = state["service/cloudsched-api"]["status"]
    serving = [part["revisionName"] for part in status["traffic"]]
    kind, account, audience = headers["Authorization"].split(",")
    for name in [status["tags"]["candidate"]] if url.startswith("https://candidate---") else serving:
        env = get_env(status["revisions"][name])
        is_signed = is_public or checked != "Authorization" or env.get("CLOUDSCHED_TRUST_CLOUD_RUN") == "on"
        is_known = f"{account}=admin" in env.get("CLOUDSCHED_SERVICE_ACCOUNTS", "").split()
        if not (is_signed and is_known and audience in env["CLOUDSCHED_AUDIENCES"].split()):
            return 401
    return 0


def answer_api(cloud: FakeCloud, method: str, url: str) -> tuple[int, Any]:
    """Accept tasks. They fail if an executor with BROKEN=yes serves; a new API with DEAF=yes answers 500.

    A revision that cannot use its database answers 503, and a task is not found by an executor that uses another one.
    """
    state = cloud.state
    status = state["service/cloudsched-api"]["status"]
    names = [part["revisionName"] for part in status["traffic"]]
    if url.startswith("https://candidate---"):
        names = [status["latestReadyRevisionName"]]
    answering = [status["revisions"][name] for name in names]
    if not all(may_use(cloud, each) for each in answering):
        return 503, {"type": "unavailable"}
    if url.startswith("https://candidate---"):
        return (500 if "DEAF=yes" in answering[0]["set-env-vars"] else 200), {"tasks": []}
    if url.endswith("/executions"):
        if len(find_served(cloud)) != 1 or state["queue/cloudsched"].get("state", "RUNNING") != "RUNNING":
            return 200, {"executions": []}
        status = state["service/cloudsched-execute"]["status"]
        serving = [status["revisions"][part["revisionName"]]["set-env-vars"] for part in status["traffic"]]
        is_broken = any("BROKEN=yes" in settings for settings in serving)
        times = {"scheduledFor": "2027-01-01T00:00:00Z", "startedAt": "2027-01-01T00:00:01.5Z"}
        return 200, {"executions": [{"status": "FAILED" if is_broken else "SUCCEEDED"} | times]}
    return {"GET": 200, "POST": 201, "DELETE": 204}[method], {}


def answer_links(cloud: FakeCloud, url: str) -> tuple[int, Any]:
    """Answer 404 for a feed that there is not, unless a revision with MUTE=yes serves."""
    state = cloud.state
    if not is_open(cloud, "links"):
        return 403, {}
    status = state["service/cloudsched-links"]["status"]
    names = [part["revisionName"] for part in status["traffic"]]
    names = [status["tags"]["candidate"]] if url.startswith("https://candidate---") else names
    is_mute = any(get_env(status["revisions"][name]).get("MUTE") == "yes" for name in names)
    return (500, {}) if is_mute else (404, {"status": 404})
