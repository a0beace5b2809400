"""Metrics, alert policies and the dashboard: what the scripts apply, and that code and runbook name the same."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.deployables.fake_project import IN_USE, ROOT, Cloud
from tests.deployables.fake_resources import NUMBER

from cloudsched.domain.documents.execution import ExecutionStatus

FILES = ROOT / "infra/monitoring"
METRICS: dict[str, dict[str, str]] = json.loads((FILES / "metrics.json").read_text("utf-8"))
ALERTS = {file.stem: file.read_text("utf-8") for file in (FILES / "alerts").glob("*.json")}
ALERTS_PAGE = (ROOT / "docs/run/dashboard.md").read_text("utf-8")
CHANNEL = "projects/demo-project/notificationChannels/7"
LEDGER = {"name": "cloudsched-dispatch", "annotations": {"created.secret": "yes"}, "versions": {}}


def apply(cloud: Cloud, *options: str) -> str:
    """Run the step; return what it printed."""
    return cloud.ok("deploy.sh", "--step=monitoring", *options).out


def new_cloud(folder: Path) -> Cloud:
    """Return a project that has the ledger and nothing else."""
    return Cloud(folder, {**IN_USE, "secret/cloudsched-dispatch": LEDGER}, MONITORING="on")


def find(cloud: Cloud, part: str) -> list[dict[str, Any]]:
    return [value for key, value in cloud.state.items() if part in key]


def test_the_step_is_idempotent_updates_and_is_removed(tmp_path: Path) -> None:
    """Everything is created once; a second run changes nothing; a changed setting or file updates; teardown removes.

    What somebody else made stays, and so does the number of each.
    """
    cloud = new_cloud(tmp_path)
    name = f"projects/{NUMBER}/alertPolicies/99"
    foreign = {"name": name, "displayName": "cloudsched: late"}
    cloud.state[name] = foreign
    apply(cloud)
    assert {each["name"] for each in find(cloud, "metric/")} == {f"cloudsched-{key}" for key in METRICS}
    policies = [each for each in find(cloud, "alertPolicies") if each is not foreign and "userLabels" in each]
    assert {each["userLabels"]["key"] for each in policies} == set(ALERTS)
    assert [each["displayName"] for each in find(cloud, "/dashboards/")] == ["cloudsched"]
    assert "${" not in json.dumps([policies, find(cloud, "metric/"), find(cloud, "/dashboards/")])

    apply(cloud)
    assert cloud.changes == 0
    assert apply(cloud, "--check") == ""

    cloud.configure(MONITORING="on", NOTIFICATION_CHANNELS=f'"{CHANNEL}"')
    apply(cloud)
    assert cloud.changes == len(ALERTS)
    assert [each["notificationChannels"] for each in find(cloud, "alertPolicies") if "userLabels" in each] == [
        [CHANNEL]
    ] * len(ALERTS)

    cloud.state["metric/cloudsched-late"]["description"] = "older [0123456789ab]"
    file = cloud.checkout / "infra/monitoring/dashboard.json"
    file.write_text(file.read_text("utf-8").replace("and failures", "and final failures"), "utf-8")
    (cloud.checkout / "infra/monitoring/alerts/backlog.json").unlink()
    apply(cloud)
    assert cloud.changes == 3
    assert "and final failures" in json.dumps(find(cloud, "/dashboards/"))
    assert len(find(cloud, "alertPolicies")) == len(ALERTS)  # one less, and the foreign one

    cloud.ok("teardown.sh", "--yes")
    assert find(cloud, "alertPolicies") == [foreign]
    assert find(cloud, "metric/") + find(cloud, "/dashboards/") == []


def test_the_limit_of_spending_is_a_number_of_runs(tmp_path: Path) -> None:
    """A change of the daily limit changes that policy alone; what is no number of dollars is refused."""
    cloud = new_cloud(tmp_path)
    apply(cloud)
    cloud.configure(MONITORING="on", ALERT_DOLLARS_A_DAY="80")
    apply(cloud)
    assert cloud.changes == 1
    (spending,) = [each for each in find(cloud, "alertPolicies") if each["userLabels"]["key"] == "spending"]
    condition = spending["conditions"][0]["conditionThreshold"]
    assert condition["thresholdValue"] == 69_444  # 80 dollars pay ten million runs, a 144th of them in ten minutes
    assert "80 dollars" in spending["displayName"]
    assert (
        "ALERT_DOLLARS_A_DAY"
        in cloud.run("deploy.sh", "--step=monitoring", MONITORING="on", ALERT_DOLLARS_A_DAY="0").err
    )


def test_a_mounted_service_is_watched_and_nobody_elses(tmp_path: Path) -> None:
    """Each filter names the deployment's own services and the mounted one, and no service whose name begins alike."""
    cloud = new_cloud(tmp_path)
    apply(cloud)
    cloud.configure(MONITORING="on", MOUNTED_SERVICES='"shop till"')
    apply(cloud)
    assert cloud.changes == len(METRICS) + 1  # and the policy on the API's errors
    (errors,) = [each for each in find(cloud, "alertPolicies") if each["userLabels"]["key"] == "api-errors"]
    texts = [each["filter"] for each in find(cloud, "metric/")] + [json.dumps(errors).replace("\\", "")]
    for text in texts:
        for pattern in re.findall(r'service_name=~"([^"]*)"', text):
            for name in ("shop", "till"):
                assert re.fullmatch(pattern, name), pattern
            for name in ("cloudsched-web", "cloudsched-api-2", "my-cloudsched-api", "shop-two", "workshop"):
                assert not re.fullmatch(pattern, name), pattern
    assert (
        "MOUNTED_SERVICES"
        in cloud.fails("deploy.sh", "--step=monitoring", MONITORING="on", MOUNTED_SERVICES='"https://shop.example"').err
    )


def test_a_budget_is_made_once_follows_its_setting_and_is_removed(tmp_path: Path) -> None:
    """It is of this project, and a second run changes nothing. Somebody else's is neither changed nor removed."""
    cloud = new_cloud(tmp_path)

    def find_budgets() -> dict[str, str]:
        return {value["name"]: value["amount"]["specifiedAmount"]["units"] for value in find(cloud, "/budgets/")}

    assert (
        "differs: create the budget" in cloud.run("deploy.sh", "--check", "--step=monitoring", BUDGET_A_MONTH="100").out
    )
    assert "--step=services" in cloud.fails("deploy.sh", "--step=monitoring").err
    cloud.ok("deploy.sh", "--step=services")
    cloud.fake.delays.time += 600
    apply(cloud)
    (name,) = find_budgets()
    assert cloud.state[name]["projects"] == "projects/demo-project"
    other = name.replace("-f00", "-theirs")
    cloud.state[other] = cloud.state[name] | {"name": other, "displayName": "all of the company"}
    apply(cloud)
    assert cloud.changes == 0
    cloud.configure(BUDGET_A_MONTH="250")
    assert apply(cloud, "--dry-run").count("gcloud billing budgets") == 2  # it looks, and would make one
    assert "differs: update the budget" in cloud.run("deploy.sh", "--check", "--step=monitoring").out
    apply(cloud)
    assert find_budgets() == {name: "250", other: "100"}
    cloud.configure()
    apply(cloud)
    assert find_budgets() == {name: "250", other: "100"}
    cloud.ok("teardown.sh", "--yes")
    assert find_budgets() == {other: "100"}


def test_a_budget_of_the_same_name_that_we_did_not_make_is_refused(tmp_path: Path) -> None:
    """So nothing of it is changed. A setting that is no amount is refused, too."""
    cloud = new_cloud(tmp_path)
    cloud.ok("deploy.sh", "--step=services", BUDGET_A_MONTH="100")
    cloud.fake.delays.time += 600
    name = "billingAccounts/01AB-02CD/budgets/7"
    theirs = {"name": name, "displayName": "cloudsched in demo-project"}
    cloud.state[name] = theirs | {"amount": {"specifiedAmount": {"units": "7"}}}
    assert "did not create" in cloud.fails("deploy.sh", "--step=monitoring").err
    assert "BUDGET_A_MONTH" in cloud.fails("deploy.sh", "--step=monitoring", BUDGET_A_MONTH="20USD").err
    assert cloud.state[name] == theirs | {"amount": {"specifiedAmount": {"units": "7"}}}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"duration": "60s"', '"duration": "0s"'),
        ('"autoClose": "1800s"', '"autoClose": "600s"'),
        ('"autoClose": "1800s"', '"autoClose": "864000s"'),
        ("COMPARISON_GT", "COMPARISON_GE"),
    ],
)
def test_a_policy_that_google_refuses_is_refused_by_the_fake(tmp_path: Path, old: str, new: str) -> None:
    """So the policies in the repository are none of these, which the reference of the API excludes."""
    cloud = new_cloud(tmp_path)
    file = cloud.checkout / "infra/monitoring/alerts/late.json"
    file.write_text(file.read_text("utf-8").replace(old, new), "utf-8")
    assert "Cloud Monitoring did not create policy late: 400" in cloud.fails("deploy.sh", "--step=monitoring").err


def test_policies_wait_until_their_metrics_are_known(tmp_path: Path) -> None:
    """A metric is known everywhere only minutes after its creation; a refusal for another reason ends the run."""
    cloud = new_cloud(tmp_path)
    cloud.fake.unknown_metrics = 5
    apply(cloud)
    assert len(find(cloud, "alertPolicies")) == len(ALERTS)
    file = cloud.checkout / "infra/monitoring/alerts/late.json"
    file.write_text(file.read_text("utf-8").replace("-late", "-later"), "utf-8")
    assert "Cloud Monitoring did not update policy late: 404" in cloud.fails("deploy.sh", "--step=monitoring").err


def test_alerts_metrics_code_and_runbook_name_the_same() -> None:
    """Each alert has a runbook entry and each entry an alert; each metric is used, and the code logs what it counts."""
    assert set(re.findall(r"(?m)^### Alert: ([a-z-]+)$", ALERTS_PAGE)) == set(ALERTS)
    for key, text in ALERTS.items():
        assert f"“Alert: {key}”" in json.loads(text)["documentation"]["content"]
    used = set(re.findall(r"user/\$\{NAME\}-(\w+)", "".join(ALERTS.values())))
    assert used == set(METRICS)
    drawn = set(re.findall(r"user/\$\{NAME\}-(\w+)", (FILES / "dashboard.json").read_text("utf-8")))
    assert drawn == set(METRICS)
    code = "\n".join(file.read_text("utf-8") for file in (ROOT / "src/cloudsched/engine").rglob("*.py"))
    statuses = {status.lower() for status in ExecutionStatus}  # each is logged under its name: event_log.py
    logged = {*re.findall(r'"action": "(\w+)"', code), *re.findall(r'_log_line\(\s*task,\s*"(\w+)"', code), *statuses}
    for metric in METRICS.values():
        wanted = metric["filter"].partition("jsonPayload.action=")[2].partition(" jsonPayload")[0]
        actions = set(re.findall(r'"(\w+)"', wanted))
        assert actions
        assert actions <= logged
        for field in set(re.findall(r"jsonPayload\.(\w+)", metric["filter"])) - {"action"}:
            assert re.search(rf'\b{field}=|"{field}":', code), field
