"""Raising the number of shards with the scripts, against a fake cloud and a fake `cloudsched admin shards grow`."""

from __future__ import annotations

import json

import pytest
from tests.deployables.fake_project import FUNCTIONS, Cloud
from tests.deployables.fake_resources import get_env
from tests.deployables.fake_schedules import Schedules


@pytest.fixture
def program(cloud: Cloud) -> Schedules:
    return Schedules(cloud)


def list_shapes(cloud: Cloud) -> set[tuple[str, ...]]:
    """Return the composite indexes of tasks and offers that the database has, by their fields."""
    return {
        (each["name"].split("/")[-3], *(part["fieldPath"] for part in each["fields"][:-1]))
        for each in cloud.state["indexes"]
    }


def list_single(cloud: Cloud) -> set[str]:
    """Return the fields of tasks with an index of their own."""
    return {
        name.rpartition("/")[2]
        for name, each in cloud.state["fields"].items()
        if "/tasks/" in name and each.get("indexConfig", {}).get("indexes")
    }


BEFORE = {("tasks", "status", "createdAt"), ("offers", "queueKey", "order")}
AFTER = {("tasks", "private.changed.shard", "wakeAt"), ("offers", "shard", "queueKey", "order")}


def test_the_number_of_shards_is_raised_step_by_step(cloud: Cloud, program: Schedules) -> None:
    """The indexes with shards come first, the functions next, then the walk; the indexes without shards go last."""
    assert list_shapes(cloud) >= BEFORE
    assert not list_shapes(cloud) & AFTER, "one shard needs none of them"
    cloud.ok("deploy.sh", "--step=indexes", SHARDS="8")
    assert list_shapes(cloud) >= BEFORE | AFTER
    assert "Run infra/upgrade.sh first" in cloud.fails("deploy.sh", "--step=shards").err
    cloud.ok("upgrade.sh")
    for function in FUNCTIONS:
        assert get_env(cloud.revision(function))["CLOUDSCHED_SHARDS"] == "8"
    assert list_shapes(cloud) >= BEFORE, "nothing relies on shards yet"
    cloud.ok("deploy.sh", "--step=shards")
    assert program.arguments == "cloudsched admin shards grow 8\n"
    assert list_shapes(cloud) >= AFTER
    assert not list_shapes(cloud) & BEFORE
    assert not list_single(cloud)
    wanted = json.loads((cloud.checkout / "infra/firestore.indexes.json").read_text("utf-8"))
    assert len(list_shapes(cloud)) < len(wanted["indexes"]) + len(wanted["sharded"]["indexes"])
    (cloud.folder / "arguments").unlink()
    cloud.ok("deploy.sh", "--step=shards")
    assert (program.arguments, cloud.changes) == ("", 0), "there is nothing left to do"
    assert cloud.run("deploy.sh", "--check").code == 0
    cloud.configure(SHARDS="4")
    for script in (("deploy.sh",), ("upgrade.sh",)):
        assert "cannot be lowered" in cloud.fails(*script).err


def test_a_walk_that_fails_drops_no_index(cloud: Cloud, program: Schedules) -> None:
    """Lists still need the indexes without shards; a later run continues."""
    cloud.ok("deploy.sh", "--step=indexes", SHARDS="8")
    cloud.ok("upgrade.sh")
    program.answer("Firestore is unavailable", 2)
    assert cloud.run("deploy.sh", "--step=shards").code != 0
    assert list_shapes(cloud) >= BEFORE | AFTER
    program.answer("done", 0)
    cloud.ok("deploy.sh", "--step=shards")
    assert not list_shapes(cloud) & BEFORE
