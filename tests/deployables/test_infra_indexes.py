"""Indexes are created with retries, and are ready before a version that needs them gets traffic."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from tests.deployables.fake_project import ROOT, Cloud

NEW: dict[str, Any] = {
    "collectionGroup": "tasks",
    "queryScope": "COLLECTION",
    "fields": [
        {"fieldPath": "handler", "order": "ASCENDING"},
        {"fieldPath": "owner", "order": "ASCENDING"},
    ],
}


def read_index_file(cloud: Cloud) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((cloud.checkout / "infra/firestore.indexes.json").read_text("utf-8"))
    return content


def configure_indexes(cloud: Cloud, content: dict[str, Any]) -> None:
    (cloud.checkout / "infra/firestore.indexes.json").write_text(json.dumps(content), "utf-8")


def list_states(cloud: Cloud) -> set[str]:
    """Return the states that the project's indexes have."""
    fields = cloud.state["fields"].values()
    single = [index for field in fields for index in field.get("indexConfig", {}).get("indexes", ())]
    return {index["state"] for index in [*cloud.state["indexes"], *single]}


@pytest.fixture(name="bare")
def remove_indexes(cloud: Cloud) -> Cloud:
    """A deployed project whose database has no index."""
    cloud.state.update({"indexes": [], "fields": {}})
    return cloud


def shorten_waiting(cloud: Cloud) -> None:
    """Let the scripts look at unready indexes six times instead of sixty-four."""
    file = cloud.checkout / "infra/lib/indexes.sh"
    code = file.read_text("utf-8")
    assert "{1..60}" in code
    file.write_text(code.replace("{1..60}", "{1..2}"), "utf-8")


def test_contention_is_retried(bare: Cloud) -> None:
    """Requests refused with 409 (contention) are repeated, one at a time, until every index exists once."""
    cloud = bare
    cloud.fake.contended = 7
    assert "Firestore is busy with other indexes; retrying in 5 s" in cloud.ok("deploy.sh", "--step=indexes").err
    assert len(cloud.state["indexes"]) == len(read_index_file(cloud)["indexes"])
    cloud.ok("deploy.sh", "--step=functions")
    assert list_states(cloud) == {"READY"}


def test_functions_are_deployed_when_the_indexes_are_ready(tmp_path: Path) -> None:
    """deploy.sh waits for the indexes, with progress, before it deploys functions: those serve at once.

    After an hour of building it gives up before it deploys a function, and --check names the indexes.
    """
    cloud = Cloud(tmp_path)
    shorten_waiting(cloud)
    cloud.fake.build_polls = 10_000
    assert "still being built after an hour" in cloud.fails("deploy.sh").err
    assert not any(key.startswith("service/") for key in cloud.state)
    checked = cloud.run("deploy.sh", "--check", "--step=functions").out
    assert "index on tasks (owner, private.changed.shard, status, createdAt) is not ready: CREATING" in checked

    cloud.fake.build_polls = cloud.fake.polls + 9
    assert "waiting for " in cloud.ok("deploy.sh").err
    before = [state for state in cloud.fake.history if "service/cloudsched-execute" not in state]
    assert {index["state"] for index in before[-1]["indexes"]} == {"READY"}
    deployed_at = next(at for at, call in enumerate(cloud.calls) if call[1:3] == ["run", "deploy"])
    lists = [at for at, call in enumerate(cloud.calls) if call[1:5] == ["firestore", "indexes", "composite", "list"]]
    assert len([at for at in lists if at < deployed_at]) >= 4


def test_a_broken_index_is_reported(cloud: Cloud) -> None:
    """An index that Firestore could not build does not become ready by waiting: the run ends with what to do."""
    cloud.state["indexes"][0]["state"] = "NEEDS_REPAIR"
    assert "could not build the index on tasks (owner, private." in cloud.fails("deploy.sh").err


def test_an_upgrade_creates_its_indexes_first(cloud: Cloud) -> None:
    """upgrade.sh creates the indexes of the new version, and moves no request before they are ready."""
    content = read_index_file(cloud)
    content["indexes"].append(NEW)
    configure_indexes(cloud, content)
    cloud.configure(MEMORY="1Gi")
    cloud.fake.build_polls = 7
    (old,) = cloud.serving("api")
    cloud.ok("upgrade.sh")
    shifted = [state for state in cloud.fake.history if {old} != _get_revisions(state)]
    assert shifted
    for state in shifted:
        assert len(state["indexes"]) == len(content["indexes"])
        assert {index["state"] for index in state["indexes"]} == {"READY"}


RETIRED = {**NEW, "fields": [NEW["fields"][0], {"fieldPath": "wakeAt", "order": "DESCENDING"}]}
"""An index that the version before needed."""


def _list_paths(state: dict[str, Any]) -> set[tuple[str, ...]]:
    return {tuple(part["fieldPath"] for part in each["fields"][:-1]) for each in state["indexes"]}


def deploy_older(cloud: Cloud) -> None:
    """Leave the project as an earlier version had it, with an index of somebody else, and check out this one."""
    newer = read_index_file(cloud)
    older = deepcopy(newer)
    older["indexes"] += [RETIRED, NEW]
    configure_indexes(cloud, older)
    cloud.ok("deploy.sh", "--step=indexes")
    newer["retired"]["indexes"].append(RETIRED)
    wake = next(each for each in newer["fieldOverrides"] if each["fieldPath"] == "wakeAt")
    newer["fieldOverrides"].remove(wake)
    newer["retired"]["fieldOverrides"].append(wake)
    configure_indexes(cloud, newer)
    cloud.configure(MEMORY="1Gi")


def test_retired_indexes_go_after_the_upgrade(cloud: Cloud) -> None:
    """The old version serves with all that it had; then deploy.sh removes what only it needed, and nothing else."""
    deploy_older(cloud)
    for command in (("deploy.sh", "--step=indexes"), ("upgrade.sh",)):
        cloud.ok(*command)
        assert ("handler", "wakeAt") in _list_paths(cloud.state), command
        assert _get_orders(cloud, "wakeAt") == ["ASCENDING"], command
    before = _list_paths(cloud.state)
    assert "differs: delete the composite index on tasks (handler, wakeAt)" in cloud.run("deploy.sh", "--check").out
    cloud.ok("deploy.sh")
    assert before - _list_paths(cloud.state) == {("handler", "wakeAt")}
    assert ("handler", "owner") in _list_paths(cloud.state), "nobody said that it is retired"
    assert _get_orders(cloud, "wakeAt") == []
    cloud.check()


def test_what_needs_retired_indexes_is_not_rolled_back_to(cloud: Cloud) -> None:
    """As long as they are there it is; once they have been removed, also in part, only with --force."""
    deploy_older(cloud)
    cloud.ok("upgrade.sh")
    cloud.ok("rollback.sh")
    cloud.ok("upgrade.sh")
    cloud.run("deploy.sh", deny="firestore indexes composite delete")
    assert "indexes that only the previous code" in cloud.fails("rollback.sh").err
    cloud.ok("deploy.sh")
    assert cloud.run("rollback.sh").code == 1
    cloud.ok("rollback.sh", "--force")


def test_no_index_is_both_needed_and_retired() -> None:
    """Neither with one shard nor with more, nor of a single field."""
    content = json.loads((ROOT / "infra/firestore.indexes.json").read_text("utf-8"))
    retired = content["retired"]
    needed = [*content["indexes"], *content["sharded"]["indexes"]]
    shapes = [(each["collectionGroup"], *(part["fieldPath"] for part in each["fields"])) for each in needed]
    gone = [(each["collectionGroup"], *(part["fieldPath"] for part in each["fields"])) for each in retired["indexes"]]
    assert len({*shapes, *gone}) == len(shapes) + len(gone)
    fields = [(each["collectionGroup"], each["fieldPath"]) for each in content["fieldOverrides"]]
    assert not {(each["collectionGroup"], each["fieldPath"]) for each in retired["fieldOverrides"]} & {*fields}


def _get_orders(cloud: Cloud, field: str) -> list[str]:
    found = next(value for name, value in cloud.state["fields"].items() if name.endswith(f"/tasks/fields/{field}"))
    return sorted(index["fields"][0]["order"] for index in found["indexConfig"]["indexes"])


def _get_revisions(state: dict[str, Any]) -> set[str]:
    parts = state["service/cloudsched-api"]["status"]["traffic"]
    return {part["revisionName"] for part in parts if part["percent"]}


def test_a_database_that_clients_read_has_the_index_of_their_lists(cloud: Cloud) -> None:
    """Nobody else pays for it: one owner's new tasks would all be written into one place of it."""
    owned = ("owner", "createdAt")

    def list_owned() -> list[Any]:
        paths = [tuple(field["fieldPath"] for field in each["fields"][:-1]) for each in cloud.state["indexes"]]
        return [each for each in paths if each == owned]

    assert list_owned() == []
    cloud.ok("deploy.sh", FIREBASE_PROJECT="demo-project", API_ACCESS="public")
    assert list_owned() == [owned]
    cloud.ok("deploy.sh", FIREBASE_PROJECT="", API_ACCESS="private")
    assert list_owned() == []
