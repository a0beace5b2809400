"""The scripts' gcloud commands, parsed by the real gcloud; those for Cloud Tasks, run against the local emulator."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from pathlib import Path

import pytest
from tests.deployables.fake_databases import make_database
from tests.deployables.fake_project import PROJECT, ROOT, Cloud
from tests.deployables.fake_resources import OPERATOR
from tests.deployables.fake_schedules import Schedules
from tests.deployables.real_gcloud import Gcloud, find_gcloud
from tests.deployables.test_doctor import HARMS
from tests.deployables.test_infra_company import COMPANY
from tests.harness import run_to_end

WORDS = r"(?:[a-z][a-z-]+ )"


@pytest.fixture
def gcloud() -> Gcloud:
    return find_gcloud()


def every_command(deployed: Cloud, folder: Path) -> list[list[str]]:
    """Run the scripts through deployment, repair, upgrade, rollback and teardown; return every gcloud command."""
    public = {"API_ACCESS": "public", "API_KEYS_SECRET": "keys", "BUCKET": "results", "BUDGET_A_MONTH": "100"}
    public |= {"QUEUE_ADMIN": "on"}
    cloud = Cloud(folder, deployed.state, MONITORING="on")
    calls = list(deployed.calls)
    smoke = f"smoke@{PROJECT}.iam.gserviceaccount.com"
    cloud.state["secret/keys"] = {"name": "keys", "annotations": {}, "versions": {"1": "…"}}
    cloud.state["bucket/gs://results"] = {"name": "results"}
    cloud.state[f"account/{smoke}"] = {"email": smoke}
    cloud.state[f"iam/account/{smoke}"] = [[f"user:{OPERATOR}", "roles/iam.serviceAccountTokenCreator", ""]]

    def run(script: str, *arguments: str) -> None:
        cloud.ok(script, *arguments)
        calls.extend(cloud.calls)

    cloud.state["queue/cloudsched-low"]["retryConfig"]["maxAttempts"] = "3"
    cloud.state["job/cloudsched-sweep"]["schedule"] = "* * * * 1"
    cloud.state["metric/cloudsched-late"]["description"] = "older [0123456789ab]"
    run("deploy.sh")
    cloud.configure(MEMORY="1Gi", SMOKE_ACCOUNT=smoke, **public)
    run("deploy.sh")
    run("upgrade.sh")
    run("rollback.sh")
    Schedules(cloud).declare()
    public |= {"SHARDS": "4", "BUDGET_A_MONTH": "200", "QUEUE_ADMIN": "off"}
    cloud.configure(MEMORY="1Gi", SMOKE_ACCOUNT=smoke, **public)
    run("deploy.sh", "--step=indexes")
    run("upgrade.sh")
    run("deploy.sh", "--step=shards")
    cloud.fake.policies.add("iam.allowedPolicyMemberDomains")
    run("deploy.sh")
    cloud.fake.policies.clear()
    cloud.configure(MEMORY="1Gi", SMOKE_ACCOUNT=smoke, **public | {"API_ACCESS": "private", "PUBLIC_LINKS": "yes"})
    run("deploy.sh")
    run("rotate-secret.sh")
    run("rotate-secret.sh", "--compromised")
    make_database(cloud.state, "restored")
    public |= {"DATABASE": "restored", "BACKUP_RETENTION": "14d", "API_ACCESS": "private", "PUBLIC_LINKS": "yes"}
    cloud.configure(SMOKE_ACCOUNT=smoke, **public)
    cloud.fake.delays.time += 3600  # the API was made private a moment ago
    run("upgrade.sh")
    cloud.configure(SMOKE_ACCOUNT=smoke, **public | {"BACKUP_RETENTION": "7d"})
    run("deploy.sh")
    run("teardown.sh", "--yes", "--with-data")
    advice = ["gcloud", "secrets", "versions", "destroy", "1", "--secret=cloudsched-dispatch", f"--project={PROJECT}"]
    printed = cloud.ok("accept.sh", PROJECT, "--name=cloudsched", "--dry-run").out.splitlines()
    accepting = [shlex.split(line) for line in printed if line.startswith("gcloud ")]
    version = ["gcloud", "version", "--format=value('Google Cloud SDK')", "--quiet"]
    told = list_told_commands(folder / "shared")
    unique = {tuple(call[1:]) for call in [*calls, advice, *accepting, *told, version] if call[0] == "gcloud"}
    return [list(call) for call in sorted(unique)]


COMPANIES: dict[str, dict[str, str]] = {
    "Europe, closed to the Internet": COMPANY,
    "a Firebase app": {
        "DATABASE": "'(default)'",
        "COLLECTION_PREFIX": "cloudsched_",
        "API_ACCESS": "public",
        "FIREBASE_PROJECT": PROJECT,
    },
    "two in one project": {"NAME": "shop", "REGION": "europe-west3"},
    "the other one": {"NAME": "shop-staging", "REGION": "europe-west3", "SECRETS": "(STRIPE_KEY@execute=stripe:1)"},
}


def dry_run(folder: Path, company: dict[str, str]) -> list[list[str]]:
    """Return the gcloud commands that a company would see before its first deployment, and its upgrade."""
    cloud = Cloud(folder, None, MONITORING="on", **company)
    printed = "".join(cloud.ok(script, "--dry-run").out for script in ("deploy.sh", "upgrade.sh", "teardown.sh"))
    assert all(call[1:4] == ["secrets", "versions", "list"] for call in cloud.calls)
    return [shlex.split(line)[1:] for line in printed.splitlines() if line.startswith("gcloud ")]


@pytest.mark.timeout(600)
def test_gcloud_understands_what_companies_are_shown(gcloud: Gcloud, tmp_path: Path) -> None:
    """Each command of the dry run is one that gcloud takes, and none is about the project's default database."""
    found = {}
    for number, (name, company) in enumerate(COMPANIES.items()):
        (tmp_path / f"{number}").mkdir()
        found[name] = dry_run(tmp_path / f"{number}", company)
    commands = [command for each in found.values() for command in each]
    complaints = gcloud.parse(commands, tmp_path / "gcloud")
    assert [(command, said) for command, said in zip(commands, complaints, strict=True) if said is not None] == []
    words = [{word for call in found[name] for word in call} for name in ("two in one project", "the other one")]
    assert not [word for word in words[0] & words[1] if "shop" in word], "what both would make or change"


def list_told_commands(folder: Path) -> list[list[str]]:
    """Return the commands that the scripts tell you to type, for a deployment in an app's database."""
    folder.mkdir()
    cloud = Cloud(folder, DATABASE="'(default)'", COLLECTION_PREFIX="cloudsched_")
    said = [cloud.ok(*words).err for words in (("teardown.sh", "--dry-run"), ("deploy.sh", "--step=settings"))]
    told = [shlex.split(line) for line in "\n".join(said).splitlines() if line.startswith("  gcloud ")]
    assert len(told) > 1
    return told


def list_doctor_commands(deployed: Cloud, folder: Path) -> list[list[str]]:
    """Return the gcloud commands by which the doctor looks at a deployment, and those by which it would mend one."""
    folder.mkdir()
    cloud = Cloud(folder, deployed.state)
    environment = os.environ | {"PATH": f"{cloud.folder / 'bin'}:{os.environ['PATH']}"}
    found: list[list[str]] = []

    def look() -> None:
        done = run_to_end(
            [sys.executable, "-m", "cloudsched", "doctor", "--config", str(cloud.config), "--url", "", "--json"],
            env=environment,
        )
        mends = " ".join(each["mend"] + "," for each in json.loads(done.stdout)["findings"])
        found.extend(shlex.split(mend)[1:] for mend in re.findall(r"gcloud [^,]*", mends))

    spared = ("no ", "the sweep")
    schedules = cloud.state["database/cloudsched"]["schedules"]
    for name, (harm, _, _) in HARMS.items():
        if not name.startswith(spared) and not name.endswith(("gone", "missing")):
            harm(cloud)
    look()
    HARMS["the sweep is silent"][0](cloud)
    cloud.state["database/cloudsched"]["schedules"] = [
        each | {"createTime": "2026-01-01T00:00:00Z"} for each in schedules
    ]
    cloud.state["job/cloudsched-sweep"].pop("state")
    look()
    return [*found, *(call[1:] for call in cloud.calls)]


def list_documented_commands() -> list[list[str]]:
    """Return the gcloud commands that the operator's pages tell readers to type."""
    files = sorted((ROOT / "docs").rglob("*.md"))
    pages = "\n".join(file.read_text("utf-8") for file in files)
    typed = re.findall(r"(?m)^\$ (gcloud .*(?:(?<=\\)\n.*)*)", pages) + re.findall(r"`(gcloud [^`]* --[^`]*)`", pages)
    assert len(typed) >= 3
    return [shlex.split(command.replace("\\\n", " "), comments=True)[1:] for command in typed]


@pytest.mark.timeout(600)
def test_gcloud_understands_every_command(gcloud: Gcloud, deployed: Cloud, tmp_path: Path) -> None:
    """The real gcloud parses every command of the scripts, docs and doctor: groups, flags, values, filters, formats.

    It rejects the invalid commands listed here, and no command in the scripts is left unchecked.
    """
    commands = every_command(deployed, tmp_path)
    wrong = [
        ["tasks", "queues", "create", "q", "--location=x", "--max-attempts=zero"],
        ["tasks", "queues", "create", "q", "--location=x", "--no-such-flag=1"],
        ["tasks", "queues", "list", "--location=x", "--filter=(a"],
        ["tasks", "queues", "describe", "q", "--location=x", "--format=value(a"],
        ["firestore", "databases", "create", "--database=x"],
        ["run", "deploy", "x", "--function=f", "--ingress=nobody"],
        ["run", "services", "no-such-verb", "x"],
    ]
    of_doctor = list_doctor_commands(deployed, tmp_path / "doctor")
    assert {"remove-iam-policy-binding", "operations", "resume"} <= {word for each in of_doctor for word in each}
    commands += [*list_documented_commands(), *of_doctor]
    complaints = gcloud.parse([*commands, *wrong], tmp_path / "gcloud")
    bad = [(command, said) for command, said in zip(commands, complaints, strict=False) if said is not None]
    assert bad == []
    assert None not in complaints[len(commands) :]

    code = "\n".join(file.read_text("utf-8") for file in (ROOT / "infra").rglob("*.sh"))
    written = {match.strip() for match in re.findall(rf"gcloud ({WORDS}+)(?=[\"$-]|\\)", code)}
    run = [" ".join(command) for command in commands]
    assert {words for words in written if not any(command.startswith(words + " ") for command in run)} == set()
    assert len(written) > 25
