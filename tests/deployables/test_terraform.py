"""The Terraform module makes what the scripts make: both are held against infra/resources.json and each other."""

from __future__ import annotations

import json
import os
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from tests.deployables.fake_project import PROJECT, ROOT, Cloud
from tests.deployables.fake_resources import get_env
from tests.deployables.outages import DOLLARS, read_policies
from tests.deployables.terraform_stand_in import MODULE, evaluate, require_terraform, run_terraform, write_stand_in

if TYPE_CHECKING:
    from pathlib import Path

INFRA = ROOT / "infra"
TABLE: dict[str, Any] = json.loads((INFRA / "resources.json").read_text(encoding="utf-8"))
IMAGE = "us-central1-docker.pkg.dev/p/r/i@sha256:" + "0" * 64
SHOP = {"url": "https://shop.example/scheduler", "service_account": "shop@p.iam.gserviceaccount.com"}
MINIMAL = {"project": PROJECT, "image": IMAGE, "alert_dollars_a_day": DOLLARS}
MODULES: dict[str, dict[str, Any]] = {
    "minimal": MINIMAL,
    "links": MINIMAL | {"public_links": True, "bucket": "results"},
    "public": MINIMAL | {"api_access": "public", "service_accounts": {"a@p.iam.gserviceaccount.com": "user"}},
    "existing": {"project": PROJECT, "existing_service": SHOP},
    "rotation": MINIMAL | {"secret_generations": [1, 2], "signing_generation": 1},
    "rotated": MINIMAL | {"secret_generations": [1, 2], "signing_generation": 2},
}
KINDS = {
    "google_project_service",
    "google_service_account",
    "google_project_iam_member",
    "google_secret_manager_secret",
    "google_secret_manager_secret_version",
    "google_secret_manager_secret_iam_member",
    "google_service_account_iam_member",
    "google_cloud_tasks_queue",
    "google_cloud_tasks_queue_iam_member",
    "google_storage_bucket_iam_member",
    "google_cloud_run_v2_service",
    "google_cloud_run_v2_service_iam_member",
    "google_firestore_database",
    "google_firestore_backup_schedule",
    "google_firestore_index",
    "google_firestore_field",
    "google_firebaserules_ruleset",
    "google_firebaserules_release",
    "google_cloud_scheduler_job",
    "google_logging_project_exclusion",
    "google_logging_metric",
    "google_monitoring_alert_policy",
    "google_monitoring_dashboard",
    "terraform_data",
}


@pytest.fixture(scope="module", autouse=True)
def find_terraform() -> None:
    """Terraform. Without it the tests fail where CI is set, and are skipped elsewhere."""
    require_terraform()


@pytest.fixture(name="computed", scope="module")
def compute(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the module computes for each of MODULES."""
    return evaluate(tmp_path_factory.mktemp("terraform"), MODULES)


@pytest.fixture(name="whole", scope="module")
def deploy_whole(tmp_path_factory: pytest.TempPathFactory, deployed: Cloud) -> Cloud:
    """A project with all that the scripts can make."""
    cloud = Cloud(tmp_path_factory.mktemp("whole"), deployed.state, PUBLIC_LINKS="yes", BUCKET="results")
    cloud.state["bucket/gs://results"] = {"name": "results"}
    cloud.ok("deploy.sh")
    return cloud


def expand(computed: dict[str, Any]) -> set[tuple[str, str, str, str]]:
    """Return the bindings that the module makes, as the fake project names resources."""
    only = f'expression=resource.name=="projects/{PROJECT}/databases/cloudsched",title=cloudsched-database'
    places = {
        "project": [f"project/{PROJECT}"],
        "secret": ["secret/cloudsched-dispatch"],
        "account invoker": [f"account/cloudsched-invoker@{PROJECT}.iam.gserviceaccount.com"],
        "bucket": ["bucket/gs://results"],
        "queue": [f"queue/{queue['name']}" for queue in computed["queues"].values()],
        **{f"function {function}": [f"service/cloudsched-{function}"] for function in computed["functions"]},
    }
    found = set()
    for each in computed["bindings"].values():
        condition = only if each["condition"] else "None" if each["on"] == "project" else ""
        found |= {(place, each["member"], each["role"], condition) for place in places.get(each["on"], ())}
    return found


def test_the_scripts_make_what_the_table_says(whole: Cloud) -> None:
    """The same APIs, accounts, queues with their limits and retries, functions with their shape, and job."""
    state = whole.state
    assert state["services"] == TABLE["services"]
    accounts = {key for key in state if key.startswith("account/")}
    assert accounts == {f"account/cloudsched-{kind}@{PROJECT}.iam.gserviceaccount.com" for kind in TABLE["accounts"]}
    for kind, limits in TABLE["queues"].items():
        found = state["queue/cloudsched" + ("" if kind == "normal" else f"-{kind}")]
        rates = found["rateLimits"]
        assert f"{rates['maxDispatchesPerSecond']:g}/{rates['maxConcurrentDispatches']}" == limits
        assert found["retryConfig"] == {name: str(value) for name, value in TABLE["queueRetries"].items()}
    assert sum(key.startswith("queue/") for key in state) == len(TABLE["queues"])
    assert sum(key.startswith("service/") for key in state) == len(TABLE["functions"])
    for function, shape in TABLE["functions"].items():
        (told,) = state[f"service/cloudsched-{function}"]["status"]["revisions"].values()
        assert {
            "account": told["service-account"].partition("@")[0].removeprefix("cloudsched-"),
            "concurrency": int(told["concurrency"]),
            "minimum": int(told["min-instances"]),
            "maximum": int(told["max-instances"]),
            "timeout": int(told["timeout"].removesuffix("s")),
            "ingress": told["ingress"],
        } == shape
        assert told["memory"] == TABLE["memory"]
    assert state["job/cloudsched-sweep"]["schedule"] == TABLE["sweepSchedule"]


def test_the_module_grants_what_the_scripts_grant(whole: Cloud, computed: dict[str, Any]) -> None:
    """Every binding of one is one of the other, and so is every account; an existing service gets its roles once."""
    assert expand(computed["links"]) == whole.bindings()
    assert set(computed["links"]["accounts"]) == set(TABLE["accounts"])
    existing = computed["existing"]
    shop, invoker = f"serviceAccount:{SHOP['service_account']}", f"cloudsched-invoker@{PROJECT}.iam.gserviceaccount.com"
    granted = expand(existing)
    assert {member for _, member, _, _ in granted} == {shop}
    assert len(granted) == 4 + len(TABLE["queues"])
    assert (f"account/{invoker}", shop, "roles/iam.serviceAccountUser", "") in granted
    assert set(existing["accounts"]) == {"invoker"}
    assert existing["sweep_url"] == SHOP["url"] + "/v1/sweep"


def test_the_functions_get_the_settings_that_the_scripts_give(
    deployed: Cloud, whole: Cloud, computed: dict[str, Any]
) -> None:
    """Each variable is the same, but for the smoke test's account."""
    for cloud, module, function in [
        *((deployed, "minimal", each) for each in ("api", "execute", "sweep")),
        (whole, "links", "links"),
    ]:
        (told,) = cloud.state[f"service/cloudsched-{function}"]["status"]["revisions"].values()
        ours = computed[module]["settings"][function]
        assert ours["FUNCTION_TARGET"] == function
        theirs = get_env(told)
        theirs.pop("CLOUDSCHED_SERVICE_ACCOUNTS", None)
        ours.pop("CLOUDSCHED_SERVICE_ACCOUNTS", None)
        assert ours == theirs
        mounted = {
            f"{name}={it['secret']}:{it['version']}" for name, it in computed[module]["mounts"][function].items()
        }
        assert mounted == set(filter(None, told.get("set-secrets", "").split(",")))
    assert "CLOUDSCHED_TRUST_CLOUD_RUN" not in computed["public"]["settings"]["api"]
    assert "CLOUDSCHED_TRUST_CLOUD_RUN" in computed["public"]["settings"]["sweep"]


def test_a_rotation_lets_the_executor_accept_before_anything_signs(computed: dict[str, Any]) -> None:
    """After the first apply the executor accepts the new secret; after the second all sign with it."""

    def versions(module: str, function: str) -> dict[str, str]:
        return {name: it["version"] for name, it in computed[module]["mounts"][function].items()}

    assert versions("rotation", "execute") == {"CLOUDSCHED_SECRET": "1", "CLOUDSCHED_PREVIOUS_SECRET": "2"}
    assert versions("rotation", "api") == versions("rotation", "sweep") == {"CLOUDSCHED_SECRET": "1"}
    assert versions("rotated", "execute") == {"CLOUDSCHED_SECRET": "2", "CLOUDSCHED_PREVIOUS_SECRET": "1"}
    assert versions("rotated", "api") == versions("rotated", "sweep") == {"CLOUDSCHED_SECRET": "2"}


def test_indexes_ttl_and_alerts_are_those_of_the_files(computed: dict[str, Any]) -> None:
    """None is lost because two have the same key; a field with both an index and a TTL policy has one resource."""
    indexes = json.loads((INFRA / "firestore.indexes.json").read_text(encoding="utf-8"))
    minimal = computed["minimal"]
    assert sorted(map(json.dumps, minimal["composites"].values())) == sorted(
        json.dumps(index, sort_keys=True) for index in indexes["indexes"]
    )
    ttl = json.loads((INFRA / "firestore.ttl.json").read_text(encoding="utf-8"))
    named = {f"{each['collectionGroup']} {each['fieldPath']}" for each in [*indexes["fieldOverrides"], *ttl]}
    assert set(minimal["fields"]) == named
    applied, _ = read_policies()
    assert minimal["policies"] == {
        key: {name: value for name, value in policy.items() if name != "userLabels"} for key, policy in applied.items()
    }
    assert set(minimal["metrics"]) == set(json.loads((INFRA / "monitoring/metrics.json").read_text(encoding="utf-8")))
    assert "${" not in json.dumps([minimal["policies"], minimal["metrics"]])


@pytest.mark.parametrize(
    ("variables", "complaint"),
    [
        ({"project": PROJECT, "image": "i:latest"}, "by digest"),
        ({"project": PROJECT}, "by digest"),
        (MINIMAL | {"existing_service": SHOP}, "by digest"),
        (MINIMAL | {"secret_generations": [2]}, "must be one of secret_generations"),
        (MINIMAL | {"api_access": "public"}, "no caller would be accepted"),
        (MINIMAL | {"queues": {"normal": "500/999"}}, "would answer 429"),
        (MINIMAL | {"settings": {"CLOUDSCHED_SECRET": "x"}}, "Secrets belong"),
        (MINIMAL | {"settings": {"CLOUDSCHED_SHARDS": "2"}}, "are derived from other variables"),
        (MINIMAL | {"settings": {"CLOUDSCHED_QUEUES_PER_PRIORITY": "2"}}, "are derived from other variables"),
        (MINIMAL | {"queues_per_priority": 2}, "would answer 429"),
        (MINIMAL | {"shards": 8, "placed_shards": 16}, "cannot be lowered"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_made(
    variables: dict[str, Any], complaint: str, tmp_path: Path
) -> None:
    """A plan fails with a sentence that says what to change."""
    write_stand_in(tmp_path / "module")
    (tmp_path / "module/terraform.tfvars.json").write_text(json.dumps(variables), encoding="utf-8")
    code, said = run_terraform(tmp_path / "module", "plan", "-input=false", "-no-color")
    assert code == 1
    assert complaint in " ".join(re.sub(r"[│╷╵]", "", said).split())


@pytest.mark.parametrize("example", sorted(each.name for each in (MODULE / "examples").iterdir()))
def test_the_examples_fit_the_module(example: str, tmp_path: Path) -> None:
    """Terraform accepts each example's variables, in their types and together."""
    write_stand_in(tmp_path / "stand-in")
    code = (MODULE / "examples" / example / "main.tf").read_text(encoding="utf-8")
    code = re.sub(r'(?ms)^provider "google" \{(?:\}$|.*?^\}$)', "", code).replace('"../.."', '"./stand-in"')
    (tmp_path / "main.tf").write_text(code, encoding="utf-8")
    asked = re.findall(r'(?m)^variable "(\w+)"', code)
    values = {
        name: IMAGE if "image" in name else "projects/p/notificationChannels/1" if name == "pager" else PROJECT
        for name in asked
    }
    (tmp_path / "terraform.tfvars.json").write_text(json.dumps(values), encoding="utf-8")
    assert run_terraform(tmp_path, "init", "-input=false")[0] == 0
    status, said = run_terraform(tmp_path, "plan", "-input=false", "-no-color")
    assert status == 0, said


def test_the_files_are_formatted_and_their_roles_come_from_the_table() -> None:
    """Terraform parses and formats every file; resources are of the known kinds, and no role is written elsewhere."""
    code, said = run_terraform(MODULE, "fmt", "-check", "-recursive", "-diff")
    assert code == 0, said
    texts = [file.read_text(encoding="utf-8") for file in [*MODULE.glob("*.tf"), *MODULE.glob("function/*.tf")]]
    assert set(re.findall(r'(?m)^resource "(\w+)"', "\n".join(texts))) == KINDS
    assert set(re.findall(r"roles/[\w.]+", "\n".join(texts))) == {
        "roles/run.invoker",
        "roles/secretmanager.secretAccessor",
    }


def test_checkov_finds_nothing(tmp_path: Path) -> None:
    """Nothing is open, public or not encrypted, by checkov's rules; `./emulator.sh pytest --all` installs it apart."""
    checkov = ROOT / "build" / "terraform" / "bin" / "checkov"
    if not checkov.exists():
        (pytest.fail if os.environ.get("CI") else pytest.skip)("There is no checkov: ./emulator.sh pytest --all")
    command = [str(checkov), "--directory", str(MODULE), "--framework", "terraform", "--compact", "--quiet"]
    done = subprocess.run(  # noqa: S603 - checkov
        [*command, "--skip-download"],
        env={**os.environ, "HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
