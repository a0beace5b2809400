"""A deployment moves to another database, such as a restored backup: two are never served at once.

Nothing is written to one half that the other would miss, whatever fails or interrupts the move.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.deployables.fake_databases import find_served, make_database
from tests.deployables.fake_gcloud import FakeCloud
from tests.deployables.fake_project import FUNCTIONS, IN_USE, PROJECT, Cloud
from tests.deployables.fake_resources import get_env

OLD, NEW = "cloudsched", "restored"


@pytest.fixture(name="moving")
def prepare_move(cloud: Cloud) -> Cloud:
    """A deployment whose configuration names a database that was restored from a backup."""
    make_database(cloud.state, NEW)
    cloud.configure(DATABASE=NEW)
    return cloud


def watch(cloud: Cloud) -> list[set[str]]:
    """Return a list that grows by the databases that requests can change, at each instant at which they differ."""
    seen: list[set[str]] = []

    def look(fake: FakeCloud) -> None:
        served = find_served(fake)
        if seen[-1:] != [served]:
            seen.append(served)

    cloud.fake.look = look
    return seen


def find_databases(cloud: Cloud) -> set[str]:
    found = set()
    for function in FUNCTIONS:
        status = cloud.state[f"service/cloudsched-{function}"]["status"]
        found |= {
            get_env(status["revisions"][part["revisionName"]])["CLOUDSCHED_DATABASE"] for part in status["traffic"]
        }
    return found


def list_paused(cloud: Cloud) -> list[str]:
    return [
        key for key, each in cloud.state.items() if key.startswith(("queue/", "job/")) and each["state"] == "PAUSED"
    ]


def assert_moved(cloud: Cloud, *paused: str) -> None:
    """Everything serves the restored database, runs, and is protected as the one before was."""
    assert find_databases(cloud) == {NEW}
    assert list_paused(cloud) == [*paused]
    found = cloud.state[f"database/{NEW}"]
    assert found["deleteProtectionState"] == "DELETE_PROTECTION_ENABLED"
    assert found["pointInTimeRecoveryEnablement"] == "POINT_IN_TIME_RECOVERY_ENABLED"
    assert [each["retention"] for each in found["schedules"]] == [f"{7 * 86_400}s"]
    assert {
        key for key in cloud.ledger if key.startswith(("fenced", "moving")) and cloud.ledger[key] != "none"
    } == set()


def test_a_move_serves_one_database_at_any_time(moving: Cloud) -> None:
    """All functions move at once, and only after nothing can use the old database any more; then it is as before."""
    seen = watch(moving)
    moving.ok("upgrade.sh")
    assert seen == [{OLD}, set(), {NEW}]
    assert_moved(moving)
    moving.check()
    assert f"moved from database {OLD} to {NEW}" in moving.fails("rollback.sh").err
    moving.ok("upgrade.sh", DATABASE=NEW, MEMORY="1Gi")
    moving.ok("rollback.sh")
    assert find_databases(moving) == {NEW}


def test_a_move_that_dies_is_completed(moving: Cloud) -> None:
    """Killed at any two changes and run again, it never serves two, and ends as one that was not interrupted.

    Queues that were paused before stay so: the operator had a reason.
    """
    moving.state["queue/cloudsched-low"]["state"] = "PAUSED"
    seen = watch(moving)
    assert moving.run("upgrade.sh", die_at=36).code == -9
    other = moving.run("deploy.sh")
    assert other.code == 0 or "infra/upgrade.sh" in other.err
    moving.run("upgrade.sh", die_at=41)
    moving.ok("upgrade.sh")
    assert all(len(served) <= 1 for served in seen)
    assert_moved(moving, "queue/cloudsched-low")


@pytest.mark.parametrize("entry", ["serving.api", "fenced", "moving"])
def test_a_move_can_be_given_up_until_it_has_begun(moving: Cloud, entry: str) -> None:
    """With the old DATABASE, or by a rollback, everything goes on there; once functions have moved, that is refused.

    The move is killed as soon as the ledger has an entry.
    """
    for way in ("upgrade.sh", "rollback.sh"):
        moving.fake.trouble = lambda _: (137, "", False) if moving.ledger.get(entry, "none") != "none" else None
        assert moving.run("upgrade.sh").code == -9
        moving.fake.trouble = lambda _: None
        has_begun = moving.ledger.get("moving", "none") != "none"
        moving.configure()
        ran = moving.run(way)
        assert (ran.code == 0) == (not has_begun), ran.err
        if has_begun:
            assert f'with DATABASE="{NEW}"' in ran.err
        else:
            assert find_databases(moving) == {OLD}
            assert list_paused(moving) == []
        moving.configure(DATABASE=NEW)
    moving.ok("upgrade.sh")
    assert_moved(moving)


def test_a_database_that_does_not_work_is_not_moved_to(moving: Cloud) -> None:
    """If the new API does not answer from it, or another role leads to the old one, nothing has changed."""
    seen = watch(moving)
    assert moving.run("upgrade.sh", DATABASE=NEW, SETTINGS="(DEAF=yes)").code == 1
    assert (
        "Database nowhere does not exist. Restore a backup into it"
        in moving.fails("upgrade.sh", DATABASE="nowhere").err
    )
    # An account that may write to everything would write to the old database behind the fence.
    moving.configure(DATABASE=NEW)
    editor = f"serviceAccount:cloudsched-executor@{PROJECT}.iam.gserviceaccount.com"
    moving.state[f"iam/project/{PROJECT}"].append([editor, "roles/editor", ""])
    assert f"{editor} has roles/editor" in moving.fails("upgrade.sh").err
    assert list_paused(moving) == []
    assert find_databases(moving) == {OLD}
    assert seen == [{OLD}]


def test_a_move_whose_smoke_test_fails_says_how_to_go_back(moving: Cloud) -> None:
    """Nothing goes back by itself: what was written meanwhile would be lost. The old data are one upgrade away."""
    seen = watch(moving)
    assert f'set DATABASE="{OLD}" and run it' in moving.fails("upgrade.sh", DATABASE=NEW, SETTINGS="(BROKEN=yes)").err
    moving.ok("upgrade.sh", DATABASE=OLD)
    assert find_databases(moving) == {OLD}
    assert all(len(served) <= 1 for served in seen)


def test_an_enterprise_database_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    """Its indexes work otherwise: the steps for indexes would fail, and queries search everything."""
    cloud = Cloud(tmp_path, IN_USE)
    make_database(cloud.state, OLD, databaseEdition="ENTERPRISE")
    assert "Enterprise edition" in cloud.fails("deploy.sh").err
    assert not any(key.startswith(("queue/", "service/")) for key in cloud.state)


def test_a_database_has_backups_and_can_be_left_alone(tmp_path: Path) -> None:
    """A new one is protected at once; one that lost that gets it back; with BACKUP_RETENTION="" it stays as it is."""
    cloud = Cloud(tmp_path, IN_USE)
    cloud.ok("deploy.sh", "--step=secret")
    cloud.ok("deploy.sh", "--step=database")
    wanted = {**cloud.state[f"database/{OLD}"]}
    assert [each["retention"] for each in wanted["schedules"]] == [f"{7 * 86_400}s"]
    lost = {"deleteProtectionState": "DELETE_PROTECTION_DISABLED", "schedules": []}
    cloud.state[f"database/{OLD}"].update(lost)
    cloud.ok("deploy.sh", "--step=database", BACKUP_RETENTION="''")
    assert cloud.changes == 0
    cloud.ok("deploy.sh", "--step=database", BACKUP_RETENTION="14d")
    wanted["schedules"] = [wanted["schedules"][0] | {"retention": f"{14 * 86_400}s"}]
    assert cloud.state[f"database/{OLD}"] == wanted


def test_a_teardown_knows_each_database_that_was_made(moving: Cloud) -> None:
    """Of two, that which the scripts made is removed with the data; that which somebody restored is kept."""
    moving.ok("upgrade.sh")
    ran = moving.ok("teardown.sh", "--yes", "--with-data")
    assert f"Database {NEW} is kept: these scripts did not make it." in ran.err
    assert {key for key in moving.state if key.startswith(("database/", "secret/"))} == {f"database/{NEW}"}
