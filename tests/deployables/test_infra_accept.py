"""accept.sh against the fake project: it runs every step, reports what it saw, and leaves nothing behind."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.deployables.fake_databases import make_database
from tests.deployables.fake_project import PROJECT, Cloud
from tests.deployables.fake_resources import OPERATOR

STEPS = ["unused", "deploy", "doctor", "reminder", "hop", "rollback", "rotation", "purge", "restore", "teardown"]


def read_lines(report: Path) -> dict[str, list[str]]:
    rows = re.findall(r"(?m)^\| (\w+) \| (passed|FAILED) \| (\d+) \| (.*) \|$", report.read_text("utf-8"))
    return {step: rest for step, *rest in rows}


@pytest.mark.timeout(600)
def test_every_step_runs_and_nothing_is_left(tmp_path: Path) -> None:
    """Each step passes, the deployment moves to the restored database, and all is removed."""
    cloud = Cloud(tmp_path)
    cloud.configure(MEMORY="256Mi", EXECUTE_CONCURRENCY="20")
    make_database(cloud.state, "(default)")
    before = set(cloud.state)
    report = tmp_path / "report.md"
    ran = cloud.ok("accept.sh", "--name=cloudsched", f"--report={report}", seconds=550)
    lines = read_lines(report)
    assert list(lines) == STEPS
    assert {result for result, *_ in lines.values()} == {"passed"}
    assert "accept-purge ran once, 1.5 s after its time" in lines["purge"][2]
    assert re.search(r"31 days is at \d{4}-", lines["hop"][2])
    assert "sha256:" in lines["deploy"][2]
    kinds = {key.partition("/")[0] for key in cloud.state} - {
        "services",
        "project",
        "sink",
        "rules",
        "collections",
        "indexes",
        "fields",
        "bucket",
        "database",
    }
    assert {kind for kind in kinds if not kind.startswith("iam")} == set()
    assert {key for key in cloud.state if key.startswith("database/")} == {"database/(default)"}
    assert cloud.state["database/(default)"]["schedules"] == [], "what the project had is left alone"
    assert before <= set(cloud.state)
    text = report.read_text("utf-8")
    assert "execute 15, api 3, 256Mi each" in text
    assert "| own settings | PROJECT MONITORING MEMORY EXECUTE_CONCURRENCY |" in text
    assert "4 tasks ran" in text
    assert f"run-sources-{PROJECT}-us-central1" in text
    assert re.search(r"\d+ ok", lines["doctor"][2])
    assert f"issue: {report}" in ran.err
    assert {place for place, *_ in cloud.bindings() if place.startswith("project/")} == set()
    called = [" ".join(call) for call in cloud.calls if call[0] == "gcloud"]
    moved = next(n for n, words in enumerate(called) if "CLOUDSCHED_DATABASE=cloudsched-restored" in words)
    assert any("firestore import" in words for words in called[:moved])


def test_a_name_in_use_is_refused_and_the_report_says_so(cloud: Cloud, tmp_path: Path) -> None:
    """Nothing is changed where a deployment of that name is."""
    report = tmp_path / "report.md"
    assert "Choose another --name" in cloud.fails("accept.sh", PROJECT, "--name=cloudsched", f"--report={report}").err
    assert cloud.changes == 0
    assert [*read_lines(report)] == ["unused"]
    assert read_lines(report)["unused"][0] == "FAILED"
    assert "infra/teardown.sh --yes --with-data --config=build/acceptance.sh" in report.read_text("utf-8")


def test_a_hop_that_cloud_tasks_would_refuse_fails_and_takes_access_back(cloud: Cloud, tmp_path: Path) -> None:
    """A step that fails ends the run, is reported, and leaves the smoke test's account without access."""
    library = cloud.checkout / "infra/accept.sh"
    library.write_text(re.sub(r"STEPS=\(.*\)", "STEPS=(hop)", library.read_text("utf-8")), "utf-8")
    cloud.fake.hop_days = 31
    report = tmp_path / "report.md"
    ran = cloud.fails("accept.sh", PROJECT, "--name=cloudsched", f"--report={report}", DATABASE="'(default)'")
    assert "later than Cloud Tasks accepts" in ran.err
    assert read_lines(report)["hop"][0] == "FAILED"
    assert cloud.state[f"account/cloudsched-smoke@{PROJECT}.iam.gserviceaccount.com"]["disabled"]
    assert f"user:{OPERATOR}" not in {member for _, member, _, _ in cloud.bindings()}
