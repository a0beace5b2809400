"""``cloudsched doctor --project``: a deployment as the scripts make it is well, and each harm is found and named."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.deployables.fake_databases import add_app, key_of, make_database
from tests.deployables.fake_project import IN_USE, PROJECT, ROOT, Cloud
from tests.instants import HOUR, MINUTE

from cloudsched import App, Settings
from cloudsched.cli import main as cli
from cloudsched.cli.doctor import deployment
from cloudsched.cli.doctor.configuration import DEFAULTS, read_configuration
from cloudsched.cli.doctor.deployment import PRIORITIES, QUEUES, Deployment, Gcloud
from cloudsched.cli.doctor.resource_checks import check_database
from cloudsched.domain.documents.delivery_channels import QUEUE_CHANNELS
from cloudsched.errors import Misconfigured
from cloudsched.local.wsgi_server import WebServer
from cloudsched.testing import Simulation
from cloudsched.web.functions import wsgi

Report = dict[str, Any]


@pytest.fixture(name="api", scope="module")
def serve_api() -> Iterator[str]:
    with Simulation(App(Settings())) as sim, WebServer(wsgi(sim.app)) as server:
        server.serve()
        yield f"http://{server.address}"


@pytest.fixture
def doctor(
    cloud: Cloud, api: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, list[dict[str, str]]]]:
    """Look at the fake project; return the exit status and what is not well."""
    monkeypatch.setenv("PATH", str(cloud.folder / "bin"), prepend=":")
    monkeypatch.chdir(ROOT)
    make_backup(cloud, 20 * HOUR)
    job = cloud.state["job/cloudsched-sweep"]
    job |= {"state": "ENABLED", "lastAttemptTime": f"{datetime.now(UTC) - timedelta(seconds=20):%Y-%m-%dT%H:%M:%SZ}"}

    def look(*words: str) -> tuple[int, list[dict[str, str]]]:
        words = words or ("--config", str(cloud.config))
        monkeypatch.setattr(sys, "argv", ["cloudsched", "doctor", *words, "--url", api, "--no-canary", "--json"])
        cloud.fake.forget()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        report = json.loads(capsys.readouterr().out)
        bad = [each for each in report["findings"] if each["verdict"] in {"wrong", "unknown"}]
        assert report["isWell"] == (not bad)
        return int(str(ended.value.code or 0)), bad

    return look


def make_backup(cloud: Cloud, age: timedelta, *, database: str = "cloudsched", state: str = "READY") -> None:
    """Put a backup of so long ago into the project."""
    name = f"projects/{PROJECT}/databases/{database}"
    at = f"{datetime.now(UTC) - age:%Y-%m-%dT%H:%M:%S.123456Z}"
    cloud.state.setdefault("backups", []).append({"database": name, "snapshotTime": at, "state": state})


@pytest.fixture
def quick_doctor(doctor: Callable[[], Any], cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """The same, asking the fake project in this process; the other tests start `gcloud` for each question."""

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        status, output = cloud.fake.execute("gcloud", command[1:], "")
        return subprocess.CompletedProcess(command, status, *(("", output) if status else (output, "")))

    monkeypatch.setattr(deployment, "subprocess", SimpleNamespace(run=run, DEVNULL=subprocess.DEVNULL))
    return doctor


def test_a_new_deployment_is_well(doctor: Callable[[], Any], cloud: Cloud) -> None:
    """As the scripts make it, and the doctor changes nothing."""
    assert doctor() == (0, [])
    assert cloud.changes == 0


def test_a_deployment_in_an_apps_database_is_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The app's own indexes, ready or not, and its backups are not the deployment's."""
    cloud = Cloud(tmp_path, IN_USE, DATABASE="'(default)'", COLLECTION_PREFIX="cloudsched_")
    add_app(cloud.state)
    cloud.ok("deploy.sh")

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        status, output = cloud.fake.execute("gcloud", command[1:], "")
        return subprocess.CompletedProcess(command, status, *(("", output) if status else (output, "")))

    monkeypatch.setattr(deployment, "subprocess", SimpleNamespace(run=run, DEVNULL=subprocess.DEVNULL))
    monkeypatch.setattr(deployment, "shutil", SimpleNamespace(which=lambda _: "gcloud"))
    indexes = cloud.state[key_of("indexes", "(default)")]
    indexes[0]["state"] = "CREATING"
    asked = Deployment(Gcloud(PROJECT), "us-central1", "cloudsched", database="(default)")
    found = [*check_database(asked, datetime.now(UTC))]
    assert all(each.is_well for each in found), found
    assert {each.area for each in found} == {"database", "backups"}
    indexes[-1]["state"] = "CREATING"
    assert not all(each.is_well for each in check_database(asked, datetime.now(UTC)))


def test_each_of_several_queues_is_looked_at(doctor: Callable[[], Any], cloud: Cloud) -> None:
    """With more queues a priority than one, each has to be there; the doctor learns from the API how many there are."""
    cloud.fake.quota = dict.fromkeys(cloud.fake.quota, 10**12)
    cloud.ok("deploy.sh", QUEUES_PER_PRIORITY="2", EXECUTE_MAX_INSTANCES="30")
    cloud.ok("upgrade.sh")
    assert doctor() == (0, [])
    cloud.state.pop("queue/cloudsched-low-q2")
    _, bad = doctor()
    assert "cloudsched-low-q2 does not exist" in [each["what"] for each in bad if each["area"] == "queues"]


def grant(kind: str, member: str, role: str) -> Callable[[Cloud], None]:
    return lambda cloud: cloud.state.setdefault(f"iam/{kind}", []).append([member, role, ""])


def edit(key: str, **changes: Any) -> Callable[[Cloud], None]:
    return lambda cloud: cloud.state[key].update(changes)


def mount(function: str, version: str) -> Callable[[Cloud], None]:
    def harm(cloud: Cloud) -> None:
        revision = cloud.revision(function)
        revision["set-secrets"] = revision["set-secrets"].replace("dispatch:1", f"dispatch:{version}")

    return harm


HARMS: dict[str, tuple[Callable[[Cloud], object], str, str]] = {
    "no database": (lambda c: c.state.pop("database/cloudsched"), "database", "--step=database"),
    "an index is not ready": (lambda c: c.state["indexes"][0].update(state="CREATING"), "database", "--step=indexes"),
    "nothing is backed up": (edit("database/cloudsched", schedules=[]), "backups", "--step=database"),
    "a queue is gone": (lambda c: c.state.pop("queue/cloudsched-high"), "queues", "--step=queues"),
    "a queue is paused": (edit("queue/cloudsched", state="PAUSED"), "queues", "queues resume cloudsched "),
    "the secret's version is disabled": (
        lambda c: c.state["secret/cloudsched-dispatch"]["versions"].update({"1": "DISABLED"}),
        "secret",
        "infra/upgrade.sh",
    ),
    "the executor does not know what the API signs with": (
        lambda c: [
            c.state["secret/cloudsched-dispatch"]["versions"].update({"2": "x"}),
            mount("api", "2")(c),
        ],
        "secret",
        "infra/upgrade.sh",
    ),
    "a function is gone": (lambda c: c.state.pop("service/cloudsched-sweep"), "functions", "--step=functions"),
    "a function is not ready": (
        lambda c: c.state["service/cloudsched-api"]["status"].update(ready="False"),
        "functions",
        "logs read cloudsched-api",
    ),
    "no job": (lambda c: c.state.pop("job/cloudsched-sweep"), "sweep", "--step=sweep"),
    "the job is paused": (edit("job/cloudsched-sweep", state="PAUSED"), "sweep", "jobs resume cloudsched-sweep"),
    "the sweep is silent": (edit("job/cloudsched-sweep", lastAttemptTime="2026-01-01T00:00:00Z"), "sweep", "jobs run"),
    "the sweep fails": (edit("job/cloudsched-sweep", status={"code": 7}), "sweep", "--check"),
    "everybody may run handlers": (
        grant("service/cloudsched-execute", "allUsers", "roles/run.invoker"),
        "iam",
        "run services remove-iam-policy-binding cloudsched-execute",
    ),
    "everybody may reach an API that believes Cloud Run": (
        grant("service/cloudsched-api", "allUsers", "roles/run.invoker"),
        "iam",
        "run services remove-iam-policy-binding cloudsched-api",
    ),
    "Cloud Run checks nobody at an API that believes it": (
        lambda c: c.state["service/cloudsched-api"]["metadata"]["annotations"].update(
            {"run.googleapis.com/invoker-iam-disabled": "true"}
        ),
        "iam",
        f"run services update cloudsched-api --region=us-central1 --project={PROJECT} --invoker-iam-check",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("harm", "area", "mend"), HARMS.values(), ids=HARMS)
def test_each_harm_is_found_with_the_command_that_mends_it(
    harm: Callable[[Cloud], object], area: str, mend: str, quick_doctor: Callable[..., Any], cloud: Cloud
) -> None:
    """The exit status is 1, and a line of that area names the command."""
    harm(cloud)
    code, bad = quick_doctor()
    assert code
    assert [each for each in bad if each["area"] == area and mend in each["mend"]], bad


@pytest.mark.parametrize("denied", ["firestore", "tasks queues", "secrets", "scheduler", "run"])
def test_what_you_may_not_see_is_said(denied: str, quick_doctor: Callable[..., Any], cloud: Cloud) -> None:
    """It is neither well nor wrong, the rest is looked at all the same, and the exit status is 1."""
    cloud.fake.deny = denied
    code, bad = quick_doctor()
    assert code
    assert {each["verdict"] for each in bad} == {"unknown"}
    assert all("PERMISSION_DENIED" in each["what"] for each in bad)


def test_the_doctor_judges_the_database_that_its_own_functions_use(
    quick_doctor: Callable[..., Any], cloud: Cloud
) -> None:
    """Another deployment's may be what it likes; one that the configuration names has to be used."""
    make_database(cloud.state, "restored")
    cloud.configure(DATABASE="restored")
    _, bad = quick_doctor()
    assert [(each["what"], each["mend"]) for each in bad if each["area"] == "database"] == [
        (
            "the functions use cloudsched, and the configuration names restored",
            f"infra/upgrade.sh --config={cloud.config}",
        )
    ]
    cloud.ok("upgrade.sh")
    cloud.state.pop("database/cloudsched")
    make_backup(cloud, HOUR, database="restored")
    assert quick_doctor() == (0, [])
    cloud.configure()
    assert quick_doctor() == (0, [])
    cloud.state.pop("database/restored")
    assert "there is no database restored" in str(quick_doctor()[1])


def test_two_deployments_in_one_project_never_see_each_other(quick_doctor: Callable[..., Any], cloud: Cloud) -> None:
    """What is wrong with one is found by its own doctor and not by the other's, with its configuration or its name."""
    own = {key: value for key, value in cloud.state.items() if "cloudsched" in key or key in {"indexes", "fields"}}
    text = json.dumps(own).replace("cloudsched", "shop").replace('"indexes": [{', '"indexes/shop": [{', 1)
    cloud.state.update(json.loads(text.replace('"fields": {', '"fields/shop": {', 1)))
    make_backup(cloud, HOUR, database="shop")
    other = cloud.folder / "shop.sh"
    other.write_text(cloud.config.read_text() + "NAME=shop\n")
    ways = {
        "cloudsched": (("--config", str(cloud.config)), ("--project", PROJECT)),
        "shop": (("--config", str(other)), ("--project", PROJECT, "--name", "shop")),
    }
    for harmed in ways:
        for harm in (f"database/{harmed}", f"queue/{harmed}-high", f"job/{harmed}-sweep"):
            kept = cloud.state.pop(harm)
            for name, both in ways.items():
                assert [quick_doctor(*words)[0] > 0 for words in both] == [name == harmed] * 2, (harm, name)
            cloud.state[harm] = kept


def test_after_a_rollback_the_doctor_looks_at_what_serves(quick_doctor: Callable[..., Any], cloud: Cloud) -> None:
    """The newest revisions name a database that is not there; nobody uses them."""
    make_database(cloud.state, "restored")
    assert cloud.run("upgrade.sh", DATABASE="restored", SETTINGS="(DEAF=yes)").code == 1
    cloud.state.pop("database/restored")
    cloud.configure()
    assert quick_doctor() == (0, [])


def test_a_sweep_is_late_by_its_own_schedule(quick_doctor: Callable[..., Any], cloud: Cloud) -> None:
    """One that runs each month may have run half an hour ago, and a new one not at all yet."""
    job = cloud.state["job/cloudsched-sweep"]
    ago = datetime.now(UTC) - 30 * MINUTE
    job["lastAttemptTime"] = f"{ago:%Y-%m-%dT%H:%M:%SZ}"
    assert "the last sweep began" in str(quick_doctor()[1])
    job["schedule"] = f"{ago.minute} {ago.hour} {ago.day} * *"
    assert quick_doctor() == (0, [])
    job |= {"lastAttemptTime": None, "userUpdateTime": f"{ago:%Y-%m-%dT%H:%M:%SZ}"}
    assert quick_doctor() == (0, [])


@pytest.mark.parametrize("text", ["", "PROJECT=''", "PROJECT=p\nfalse", "PROJECT=p\nif"])
def test_a_configuration_that_says_nothing_is_an_error(text: str, tmp_path: Path) -> None:
    """It names no project, or bash ends in it, as it would end a script."""
    file = tmp_path / "config.sh"
    file.write_text(text)
    with pytest.raises(Misconfigured, match=re.escape(str(file))):
        read_configuration(file)


def test_a_configuration_reads_as_the_scripts_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it leaves out has the example's value, whatever the environment says, and may be used in it."""
    monkeypatch.setenv("REGION", "europe-west9")
    example = tmp_path / "example.sh"
    example.write_text((ROOT / "infra/config.example.sh").read_text("utf-8").replace('PROJECT=""', "PROJECT=p"))
    assert read_configuration(example) == DEFAULTS | {"PROJECT": "p"}
    shared = tmp_path / "config.sh"
    shared.write_text('echo hello; PROJECT=p\nDATABASE="$NAME-$REGION"\nSMOKE_PAYLOAD="{\n}"\nFOLDER=$(dirname "$0")')
    found = DEFAULTS | {"PROJECT": "p", "DATABASE": "cloudsched-us-central1", "SMOKE_PAYLOAD": "{\n}"}
    assert read_configuration(shared) == found


def test_the_doctor_knows_what_the_scripts_make() -> None:
    """The same queues as in ``infra/resources.json``."""
    table = json.loads((ROOT / "infra" / "resources.json").read_text("utf-8"))
    assert [*table["priorities"]] == [*PRIORITIES]
    assert {*table["queues"]} == {*QUEUES, *map(str.lower, QUEUE_CHANNELS)}


def find_backup_findings(bad: list[dict[str, str]]) -> list[str]:
    assert {each["area"] for each in bad} <= {"backups"}
    return [each["what"] for each in bad]


def test_the_doctor_says_how_old_the_last_backup_is(quick_doctor: Callable[..., Any], cloud: Cloud) -> None:
    """Of this database, and one that is ready; a new schedule has a day for its first one."""
    cloud.state["backups"] = []
    make_backup(cloud, 2 * HOUR, database="other")
    make_backup(cloud, HOUR, state="CREATING")
    make_backup(cloud, 40 * HOUR)
    assert find_backup_findings(quick_doctor()[1]) == ["the last backup of cloudsched is 40 hours old"]
    cloud.state["backups"] = []
    (schedule,) = cloud.state["database/cloudsched"]["schedules"]
    schedule["createTime"] = f"{datetime.now(UTC) - timedelta(hours=40):%Y-%m-%dT%H:%M:%SZ}"
    assert find_backup_findings(quick_doctor()[1]) == ["there is no backup of cloudsched yet"]
    schedule["createTime"] = f"{datetime.now(UTC) - timedelta(hours=5):%Y-%m-%dT%H:%M:%SZ}"
    assert quick_doctor() == (0, [])
