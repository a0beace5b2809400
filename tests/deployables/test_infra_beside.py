"""A project that has an app of its own: a deployment beside it changes nothing that it did not make."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path

import pytest
from tests.deployables.fake_databases import DATABASE, add_app, get_app, key_of, make_database
from tests.deployables.fake_project import IN_USE, PROJECT, ROOT, Cloud
from tests.record_kinds import list_record_kinds


def test_an_app_is_as_before_after_all_that_a_deployment_does(tmp_path: Path) -> None:
    """Deployed, upgraded, rolled back, moved to a restored backup, removed with its data, each also interrupted."""
    cloud = Cloud(tmp_path, IN_USE)
    before = add_app(cloud.state)
    cloud.run("deploy.sh", die_at=40)
    cloud.ok("deploy.sh")
    assert f"database/{DATABASE}" in cloud.state
    cloud.run("upgrade.sh", die_at=9, MEMORY="1Gi")
    cloud.ok("upgrade.sh")
    cloud.ok("rollback.sh")
    make_database(cloud.state, "restored")
    cloud.run("upgrade.sh", die_at=20, DATABASE="restored")
    cloud.ok("upgrade.sh")
    cloud.ok("deploy.sh")
    assert get_app(cloud.state) == before
    cloud.run("teardown.sh", "--yes", "--with-data", die_at=9)
    cloud.ok("teardown.sh", "--yes", "--with-data")
    assert f"database/{DATABASE}" not in cloud.state
    assert get_app(cloud.state) == before


@pytest.mark.parametrize("what", ["collections", "indexes", "fields", "rules"])
def test_a_database_that_another_program_uses_is_refused_before_anything_changes(tmp_path: Path, what: str) -> None:
    """Each of the things that an app may have is enough; the message names it, and how to get another database."""
    cloud = Cloud(tmp_path, IN_USE)
    add_app(cloud.state)
    named = {"collections": "chats", "indexes": "room, createdAt", "fields": "createdAt", "rules": "rules of its own"}
    for kind, none in (("collections", []), ("indexes", []), ("fields", {})):
        if kind != what:
            cloud.state[key_of(kind, "(default)")] = none
    if what != "rules":
        del cloud.state[f"rules/projects/{PROJECT}/releases/cloud.firestore"]
    before = deepcopy(cloud.state)
    ran = cloud.fails("deploy.sh", DATABASE="'(default)'")
    assert named[what] in ran.err
    assert "leave DATABASE empty" in ran.err
    assert cloud.state == before


def test_a_backup_of_an_earlier_version_is_ones_own(tmp_path: Path) -> None:
    """It has collections and indexes that today's code no longer uses."""
    cloud = Cloud(tmp_path, IN_USE)
    make_database(cloud.state, "named")
    cloud.state[key_of("collections", "named")].append("calendarChanges")
    name = f"projects/{PROJECT}/databases/named/collectionGroups/calendarChanges/fields/owner"
    index = {"queryScope": "COLLECTION", "state": "READY", "fields": [{"fieldPath": "owner", "order": "ASCENDING"}]}
    cloud.state[key_of("fields", "named")] = {name: {"name": name, "indexConfig": {"indexes": [index]}}}
    cloud.ok("deploy.sh", DATABASE="named")


def test_a_deployment_moves_only_to_a_database_of_its_own(cloud: Cloud) -> None:
    """An upgrade with the app's DATABASE ends before anything changes; the old one goes on."""
    add_app(cloud.state)
    before = deepcopy(cloud.state)
    assert "is used by another program" in cloud.fails("upgrade.sh", DATABASE="'(default)'").err
    assert cloud.state == before


def test_a_deployment_keeps_the_database_that_it_has(cloud: Cloud) -> None:
    """One that was deployed to another database stays there, also when its configuration no longer names it."""
    make_database(cloud.state, "restored")
    cloud.ok("upgrade.sh", DATABASE="restored")
    cloud.configure()
    cloud.check()
    assert "moving" not in cloud.ok("upgrade.sh", MEMORY="1Gi").err


def test_the_scripts_know_all_collections_of_the_code() -> None:
    """What is missing from their table would be taken for another program's."""
    table = json.loads((ROOT / "infra/resources.json").read_text("utf-8"))
    known = {each.collection for each in list_record_kinds()}
    assert len(known) > 10
    assert known | {"tasks", "offers", "locks", "inboxes"} <= set(table["collections"])
