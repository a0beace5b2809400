"""The schedules that handlers declare, as a step of deploy.sh, against a fake cloud and a fake `cloudsched apply`."""

from __future__ import annotations

import pytest
from tests.deployables.fake_project import PROJECT, Cloud
from tests.deployables.fake_schedules import Schedules


@pytest.fixture(name="schedules")
def with_schedules(cloud: Cloud) -> Schedules:
    schedules = Schedules(cloud)
    schedules.declare()
    cloud.ok("upgrade.sh")
    return schedules


def test_the_step_applies_with_the_functions_settings(schedules: Schedules) -> None:
    """The deployed queue, address, invoker and secret, with the secret in no argument; the changes are shown."""
    schedules.answer("+ create report: report, every day at 09:00, UTC\n1 change made.", 0)
    done = schedules.cloud.ok("deploy.sh", "--step=apply")
    assert "+ create report" in done.err
    assert "Done: 2 changes" in done.err, "the ledger, and the task"
    assert schedules.arguments.startswith("cloudsched apply --handlers ")
    found = dict(line.partition("=")[::2] for line in (schedules.cloud.folder / "environment").read_text().splitlines())
    secret = schedules.cloud.state["secret/cloudsched-dispatch"]["versions"]["1"]
    assert found["CLOUDSCHED_SECRET"] == secret.strip()
    assert found["GOOGLE_CLOUD_PROJECT"] == PROJECT
    assert found["CLOUDSCHED_QUEUE"] == "cloudsched"
    assert found["CLOUDSCHED_INVOKER"] == f"cloudsched-invoker@{PROJECT}.iam.gserviceaccount.com"
    assert found["CLOUDSCHED_EXECUTOR_URL"].startswith("https://cloudsched-execute-")
    assert secret.strip() not in done.out + done.err + schedules.arguments
    assert schedules.cloud.ledger["schedules"] == "yes"


def test_a_check_reports_what_differs_and_changes_nothing(schedules: Schedules) -> None:
    """Exit code 1 if the command says so; 0 if nothing differs; any other code is an error."""
    schedules.answer("~ update report: payload", 1)
    checked = schedules.cloud.run("deploy.sh", "--check")
    assert (checked.code, "differs: schedule: ~ update report: payload" in checked.out) == (1, True), checked.err
    assert schedules.arguments.strip().endswith("--check")
    assert schedules.cloud.changes == 0
    schedules.answer("Nothing differs.", 0)
    assert schedules.cloud.run("deploy.sh", "--check").code == 0
    schedules.answer("", 2)
    assert "could not be applied" in schedules.cloud.fails("deploy.sh", "--check").err


def test_handlers_that_are_not_deployed_yet_are_not_scheduled(cloud: Cloud) -> None:
    """Until the upgrade, a task of such a handler would fail."""
    schedules = Schedules(cloud)
    schedules.declare()
    done = cloud.ok("deploy.sh", "--step=apply")
    assert "after infra/upgrade.sh, run infra/deploy.sh" in done.out
    assert schedules.arguments == ""


def test_code_without_schedules_needs_no_python(cloud: Cloud) -> None:
    """The step does nothing, also in a check; once schedules were applied, their disappearance is applied too."""
    schedules = Schedules(cloud)
    cloud.ok("deploy.sh", "--step=apply")
    assert schedules.arguments == ""
    cloud.ledger["schedules"] = "yes"
    cloud.ok("deploy.sh", "--step=apply")
    assert schedules.arguments.startswith("cloudsched apply")
