"""What ``cloudsched init --ci github`` writes: workflows without keys, and a script that deploys and goes back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deployables.fake_project import PROJECT, Cloud

WORKFLOWS = ("deploy", "pipeline")


@pytest.fixture(name="project", scope="module")
def write_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with workflows for GitHub, whose environment `staging` is the fake project."""
    folder = tmp_path_factory.mktemp("pipeline") / "shop"
    command = [sys.executable, "-m", "cloudsched", "init", str(folder), "--ci", "github"]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - our own command
    staging = folder / "infra" / "staging.sh"
    staging.write_text(staging.read_text().replace('PROJECT=""', f'PROJECT="{PROJECT}"') + "MONITORING=off\n")
    return folder


def run(project: Path, cloud: Cloud, *words: str, doctor: int = 0) -> tuple[int, str, list[str]]:
    """Run the pipeline's script; return its exit status, its output, and how it called `cloudsched`."""
    log = cloud.folder / "doctor.log"
    log.unlink(missing_ok=True)
    stub = cloud.folder / "bin" / "cloudsched"
    stub.write_text(f'#!/bin/sh\nprintf "%s\\n" "$CLOUDSCHED_TOKEN" "$@" >> {log}\nexit {doctor}\n')
    stub.chmod(0o755)
    python = cloud.folder / "bin" / "python"
    if "apply" not in python.read_text():  # Firestore is not there: test_infra_schedules.py applies schedules
        python.write_text(python.read_text().replace("\n", '\n[ "$3" != apply ] || exit 0\n', 1))
    cloud.fake.forget()
    done = subprocess.run(  # noqa: S603 - the script under test
        [str(project / "infra" / "pipeline.sh"), *words],
        env=cloud.environment | {"CLOUDSCHED": str(cloud.checkout)},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
        start_new_session=True,
    )
    return done.returncode, done.stdout + done.stderr, log.read_text().splitlines() if log.exists() else []


@pytest.fixture(name="first", scope="module")
def deploy_staging(project: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Cloud, list[str]]:
    """An empty project that the pipeline has deployed, and how it called `cloudsched`. Tests must not change it."""
    cloud = Cloud(tmp_path_factory.mktemp("staging"))
    code, output, doctor = run(project, cloud, "deploy", "staging")
    assert code == 0, output
    return cloud, doctor


def load(project: Path, name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((project / ".github" / "workflows" / f"{name}.yml").read_text())
    return content


def test_the_workflows_hold_no_key(project: Path) -> None:
    """They are recognised by a token that GitHub issues, and only the jobs that reach the cloud may ask for one."""
    texts = [(project / ".github" / "workflows" / f"{name}.yml").read_text() for name in WORKFLOWS]
    assert not any(word in text for text in texts for word in ("secrets.", "credentials_json", "_KEY"))
    deploy = load(project, "deploy")
    assert deploy["permissions"] == {"contents": "read"}
    asking = {name for name, job in deploy["jobs"].items() if "id-token" in job.get("permissions", {})}
    assert asking == {name for name, job in deploy["jobs"].items() if "uses" in job}
    (auth,) = [step for step in load(project, "pipeline")["jobs"]["step"]["steps"] if "auth@" in step.get("uses", "")]
    assert set(auth["with"]) == {"workload_identity_provider", "service_account"}


def test_no_input_is_part_of_a_command(project: Path) -> None:
    """What somebody types into the form reaches the shell as a variable, never as text of the script."""
    steps = [
        step for name in WORKFLOWS for job in load(project, name)["jobs"].values() for step in job.get("steps", ())
    ]
    assert steps
    assert not [step for step in steps if "${{" in step.get("run", "")]


def test_a_new_project_is_deployed(project: Path, first: tuple[Cloud, list[str]], tmp_path: Path) -> None:
    """An empty project is deployed, and then looked at with a token for its API; the next plan finds no difference."""
    cloud = Cloud(tmp_path)
    code, output, _ = run(project, cloud, "plan", "staging")
    assert code == 0, output
    assert "differs:" in output
    assert cloud.changes == 0
    cloud, doctor = first
    assert doctor[:3] == ["an-identity-token", "doctor", f"--project={PROJECT}"]
    assert "service/cloudsched-api" in cloud.state
    code, output, _ = run(project, cloud, "plan", "staging")
    assert (code, "differs:" in output) == (0, False), output


def test_a_deployment_that_is_not_well_goes_back(project: Path, first: tuple[Cloud, list[str]], tmp_path: Path) -> None:
    """When the doctor finds something wrong after an upgrade, the revisions before serve again, and the job fails."""
    cloud = Cloud(tmp_path, first[0].state)
    before = cloud.serving("execute")
    handlers = project / "functions" / "handlers.py"
    text = handlers.read_text()
    try:
        handlers.write_text(text + "\nNEW = True\n")
        code, output, _ = run(project, cloud, "deploy", "staging", doctor=1)
    finally:
        handlers.write_text(text)
    assert code == 1
    assert "not well" in output
    assert cloud.serving("execute") == before
    assert len(cloud.state["service/cloudsched-execute"]["status"]["revisions"]) > 1
