"""The scripts make what infra/resources.json says, and so does the page for those who write a module of their own."""

from __future__ import annotations

import re

import pytest
from tests.deployables.fake_project import PROJECT, ROOT, TABLE, Cloud
from tests.doc_blocks import read_section

PAGE = read_section(ROOT / "docs/run/terraform.md", "Every resource")
ROWS = {
    row[0]: row[1:] for row in ([cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.split("\n")) if row
}
DOMAIN = f"{PROJECT}.iam.gserviceaccount.com"


@pytest.fixture(name="whole", scope="module")
def deploy_whole(tmp_path_factory: pytest.TempPathFactory, deployed: Cloud) -> Cloud:
    cloud = Cloud(tmp_path_factory.mktemp("whole"), deployed.state, PUBLIC_LINKS="yes", BUCKET="results")
    cloud.state["bucket/gs://results"] = {"name": "results"}
    cloud.ok("deploy.sh")
    return cloud


def test_the_scripts_make_what_the_table_says(whole: Cloud) -> None:
    """The same APIs, accounts, queues with their limits and retries, functions with their shape, and job."""
    state = whole.state
    assert state["services"] == TABLE["services"]
    accounts = {key for key in state if key.startswith("account/")}
    assert accounts == {f"account/cloudsched-{kind}@{PROJECT}.iam.gserviceaccount.com" for kind in TABLE["accounts"]}
    for kind, limits in TABLE["queues"].items():
        found = state["queue/cloudsched" + ("" if kind == "normal" else f"-{kind}")]
        rates = found["rateLimits"]
        assert f"{rates['maxDispatchesPerSecond']:g}/{rates['maxConcurrentDispatches']}" == limits
        assert found["retryConfig"] == {name: str(value) for name, value in TABLE["queueRetries"].items()}
    assert sum(key.startswith("queue/") for key in state) == len(TABLE["queues"])
    assert sum(key.startswith("service/") for key in state) == len(TABLE["functions"])
    for function, shape in TABLE["functions"].items():
        (told,) = state[f"service/cloudsched-{function}"]["status"]["revisions"].values()
        assert {
            "account": told["service-account"].partition("@")[0].removeprefix("cloudsched-"),
            "concurrency": int(told["concurrency"]),
            "minimum": int(told["min-instances"]),
            "maximum": int(told["max-instances"]),
            "timeout": int(told["timeout"].removesuffix("s")),
            "ingress": told["ingress"],
        } == shape
        assert told["memory"] == TABLE["memory"]
    assert state["job/cloudsched-sweep"]["schedule"] == TABLE["sweepSchedule"]


def test_the_scripts_grant_what_the_table_says(whole: Cloud) -> None:
    """Every binding of one is one of the other; the database's role holds for this database only."""
    only = f'expression=resource.name=="projects/{PROJECT}/databases/cloudsched",title=cloudsched-database'
    places = {
        "project": [f"project/{PROJECT}"],
        "secret": ["secret/cloudsched-dispatch"],
        "account invoker": [f"account/cloudsched-invoker@{DOMAIN}"],
        "bucket": ["bucket/gs://results"],
        "queue": ["queue/cloudsched" + ("" if kind == "normal" else f"-{kind}") for kind in TABLE["queues"]],
        **{f"function {function}": [f"service/cloudsched-{function}"] for function in TABLE["functions"]},
    }
    assert whole.bindings() == {
        (
            place,
            "allUsers" if account == "everybody" else f"serviceAccount:cloudsched-{account}@{DOMAIN}",
            each["role"],
            only if "condition" in each else "None" if each["on"] == "project" else "",
        )
        for each in TABLE["roles"]
        for account in each["accounts"]
        for place in places[each["on"]]
    }


def test_the_page_has_what_the_table_says() -> None:
    """Each API, account, role, queue and function with its figures, in the row of what it belongs to."""
    for each in TABLE["roles"]:
        assert f"`{each['role']}`: {', '.join(each['accounts'])}" in ROWS[each["on"]][2]
    named = {name: re.findall(r"`([^`]+)`", settings) for name, (_, settings, *_) in ROWS.items()}
    assert named["project"][:-1] == [each.removesuffix(".googleapis.com") for each in TABLE["services"]]
    queues, _, retries = ROWS["queue"][1].partition("; retries: ")
    assert queues == ", ".join(f"`{kind}` {limits}" for kind, limits in TABLE["queues"].items())
    assert retries == ", ".join(f"`{name}` {value}" for name, value in TABLE["queueRetries"].items())
    for function, shape in TABLE["functions"].items():
        requests = "1 request" if shape["concurrency"] == 1 else f"{shape['concurrency']} requests"
        assert ROWS[f"function {function}"][1] == (
            f"account {shape['account']}, {requests} at a time, {shape['minimum']} to {shape['maximum']} instances, "
            f"{shape['timeout']} s, ingress {shape['ingress']}, {TABLE['memory']}"
        )
    assert TABLE["sweepSchedule"] in named["job"]
    assert set(TABLE["accounts"]) <= set(re.findall(r"`(\w+)`", ROWS["accounts"][0]))
