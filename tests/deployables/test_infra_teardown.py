"""teardown.sh, against a fake cloud that records what it does."""

from __future__ import annotations

from pathlib import Path

from tests.deployables.fake_databases import make_database
from tests.deployables.fake_project import PROJECT, Cloud

BUILDER = f"serviceAccount:cloudsched-builder@{PROJECT}.iam.gserviceaccount.com"


def test_teardown_removes_only_what_was_created(tmp_path: Path) -> None:
    """Resources that existed before the deployment still exist after its teardown."""
    cloud = Cloud(tmp_path, MONITORING="on", ADOPT="(account/cloudsched-builder)")
    account = f"account/cloudsched-builder@{PROJECT}.iam.gserviceaccount.com"
    cloud.state.update({"queue/other": {"name": "other"}, account: {"email": account.partition("/")[2]}})
    make_database(cloud.state, "(default)")
    before = set(cloud.state)
    cloud.ok("deploy.sh")
    ran = cloud.ok("teardown.sh", "--yes", "--with-data")
    left = {key for key in cloud.state if not key.startswith(("iam/", "services", "rules/"))}
    assert left - before == {f"bucket/gs://run-sources-{PROJECT}-us-central1"}, "which a script says"
    assert before <= left
    assert f"run-sources-{PROJECT}-us-central1" in ran.err
    kept = (f"project/{PROJECT}", BUILDER, "roles/run.builder", "None")
    assert {binding for binding in cloud.bindings() if binding[0].startswith("project/")} == {kept}


def test_teardown_keeps_the_data_by_default(cloud: Cloud) -> None:
    """A teardown keeps the database, and the ledger that allows its removal later."""
    cloud.ok("teardown.sh", "--yes")
    assert {key for key in cloud.state if key.startswith(("database/", "secret/", "service/", "queue/"))} == {
        "database/cloudsched",
        "secret/cloudsched-dispatch",
    }
    cloud.ok("teardown.sh", "--yes", "--with-data")
    assert not any(key.startswith(("database/", "secret/", "rules/releases")) for key in cloud.state)


def test_a_teardown_that_dies_is_resumed(cloud: Cloud) -> None:
    """The secret with the ledger goes last, so that a killed teardown can be run again to completion."""
    for die_at in (2, 3, 6):
        assert cloud.run("teardown.sh", "--yes", "--with-data", die_at=die_at).code == -9
    cloud.ok("teardown.sh", "--yes", "--with-data")
    kinds = ("database/", "secret/", "queue/", "job/", "account/", "service/")
    assert not any(key.startswith(kinds) for key in cloud.state)
