"""More queues and more shards: the Terraform module makes what the scripts make, at every step of the way."""

from __future__ import annotations

import json
import re
import runpy
from typing import TYPE_CHECKING, Any

import pytest
from tests.deployables.fake_project import PROJECT, ROOT, Cloud
from tests.deployables.fake_resources import get_env
from tests.deployables.fake_schedules import Schedules
from tests.deployables.terraform_stand_in import evaluate, require_terraform, run_terraform, write_stand_in

from cloudsched.config.settings import MAX_QUEUES_PER_PRIORITY, MAX_SHARDS

if TYPE_CHECKING:
    from pathlib import Path

TABLE: dict[str, Any] = json.loads((ROOT / "infra/resources.json").read_text(encoding="utf-8"))
MINIMAL = {"project": PROJECT, "image": "us-central1-docker.pkg.dev/p/r/i@sha256:" + "0" * 64}
SHOP = {"url": "https://shop.example/scheduler", "service_account": "shop@p.iam.gserviceaccount.com"}
LARGE = {"queues_per_priority": 2, "shards": 8, "functions": {"execute": {"maximum": 250}}}
STEPS: dict[str, dict[str, Any]] = {
    "one": MINIMAL,
    "growing": MINIMAL | LARGE,
    "placed": MINIMAL | LARGE | {"placed_shards": 8},
    "further": MINIMAL | LARGE | {"shards": 16, "placed_shards": 8},
    "upgrading": MINIMAL | {"keep_retired_indexes": True},
    "existing": {"project": PROJECT, "existing_service": SHOP, "queues_per_priority": 2, "shards": 8},
}


@pytest.fixture(name="computed", scope="module")
def compute(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the module computes at each of STEPS."""
    require_terraform()
    return evaluate(tmp_path_factory.mktemp("terraform"), STEPS)


@pytest.fixture(name="clouds", scope="module")
def deploy_each(tmp_path_factory: pytest.TempPathFactory, deployed: Cloud) -> dict[str, Cloud]:
    """A project that the scripts have brought to each step."""
    settings = {"QUEUES_PER_PRIORITY": "2", "SHARDS": "8", "EXECUTE_MAX_INSTANCES": "30"}
    growing = Cloud(tmp_path_factory.mktemp("growing"), deployed.state, **settings)
    growing.fake.quota = dict.fromkeys(growing.fake.quota, 10**12)
    for step in ("indexes", "queues", "roles"):
        growing.ok("deploy.sh", f"--step={step}")
    growing.ok("upgrade.sh")
    placed = Cloud(tmp_path_factory.mktemp("placed"), growing.state, **settings)
    Schedules(placed)
    placed.ok("deploy.sh", "--step=shards")
    return {"one": deployed, "growing": growing, "placed": placed}


def shape(index: dict[str, Any]) -> tuple[Any, ...]:
    """Return an index's scope, and its fields with their order; Firestore adds `__name__` to what was asked for."""
    parts = [(part["fieldPath"], part.get("order") or part.get("arrayConfig")) for part in index["fields"]]
    return (index["queryScope"], *(part for part in parts if part[0] != "__name__"))


@pytest.mark.parametrize("step", ["one", "growing", "placed"])
def test_queues_have_the_names_limits_and_roles_that_the_scripts_give(
    step: str, clouds: dict[str, Cloud], computed: dict[str, Any]
) -> None:
    """A priority's second queue is NAME-critical-q2, or NAME-q2, limited as the first; channels and hops have one."""
    ours, cloud = computed[step], clouds[step]
    found = {
        key.removeprefix("queue/"): (
            float(queue["rateLimits"]["maxDispatchesPerSecond"]),
            int(queue["rateLimits"]["maxConcurrentDispatches"]),
        )
        for key, queue in cloud.state.items()
        if key.startswith("queue/")
    }
    assert {each["name"]: (each["rate"], each["concurrent"]) for each in ours["queues"].values()} == found
    assert len(found) == len(TABLE["queues"]) + (0 if step == "one" else len(TABLE["priorities"]))
    assert "cloudsched-hops" in found
    made = ours["made"]
    assert sorted(made["google_cloud_tasks_queue.this"]) == sorted(ours["queues"])
    members = {
        f"serviceAccount:cloudsched-{kind}@{PROJECT}.iam.gserviceaccount.com": kind for kind in TABLE["accounts"]
    }
    keys = {each["name"]: key for key, each in ours["queues"].items()}
    granted = [
        f"{keys[place.removeprefix('queue/')]} {members[member]}"
        for place, member, *_ in cloud.bindings()
        if place.startswith("queue/")
    ]
    assert sorted(made["google_cloud_tasks_queue_iam_member.this"]) == sorted(granted)


@pytest.mark.parametrize("step", ["one", "growing", "placed"])
def test_the_database_has_the_indexes_that_the_scripts_make(
    step: str, clouds: dict[str, Cloud], computed: dict[str, Any]
) -> None:
    """Those of one shard; those of more beside them; and at last only those that shards do not replace."""
    ours, state = computed[step], clouds[step].state
    found = sorted((each["name"].split("/")[-3], *shape(each)) for each in state["indexes"])
    assert sorted((each["collectionGroup"], *shape(each)) for each in ours["composites"].values()) == found
    assert sorted(ours["made"]["google_firestore_index.this"]) == sorted(ours["composites"])
    single = {
        f"{name.split('/')[-3]} {name.rpartition('/')[2].strip('`')}": sorted(
            (index["queryScope"], index["fields"][0]["order"]) for index in field["indexConfig"].get("indexes", ())
        )
        for name, field in state["fields"].items()
        if field.get("indexConfig")
    }
    wanted = {
        key: sorted((index["queryScope"], index["order"]) for index in field["indexes"])
        for key, field in ours["fields"].items()
        if "indexes" in field
    }
    assert {key: each for key, each in wanted.items() if each} == {key: each for key, each in single.items() if each}
    assert sorted(ours["made"]["google_firestore_field.this"]) == sorted(ours["fields"])


def test_an_upgrade_may_keep_the_indexes_of_the_version_before(computed: dict[str, Any]) -> None:
    """As long as the old functions may serve; without the variable they are none of the module's."""
    content = json.loads((ROOT / "infra/firestore.indexes.json").read_text(encoding="utf-8"))
    kept, usual = computed["upgrading"], computed["one"]
    retired = [(each["collectionGroup"], *shape(each)) for each in content["retired"]["indexes"]]
    assert retired
    for ours, expected in ((usual, []), (kept, retired)):
        found = [(each["collectionGroup"], *shape(each)) for each in ours["composites"].values()]
        needed = [(each["collectionGroup"], *shape(each)) for each in content["indexes"]]
        assert sorted(found) == sorted([*needed, *expected])
    fields = {f"{each['collectionGroup']} {each['fieldPath']}" for each in content["retired"]["fieldOverrides"]}
    assert {*kept["fields"]} - {*usual["fields"]} == fields


@pytest.mark.parametrize("step", ["one", "growing", "placed"])
def test_functions_know_how_many_queues_and_shards_there_are(
    step: str, clouds: dict[str, Cloud], computed: dict[str, Any]
) -> None:
    """Each gets the variables that the scripts give it, and none of them with one queue and one shard."""
    for function in ("api", "execute", "sweep"):
        status = clouds[step].state[f"service/cloudsched-{function}"]["status"]
        theirs = get_env(status["revisions"][status["latestReadyRevisionName"]])
        ours = computed[step]["settings"][function]
        for name in ("CLOUDSCHED_SHARDS", "CLOUDSCHED_QUEUES_PER_PRIORITY"):
            assert ours.get(name) == theirs.get(name)
            assert (name in ours) == (step != "one")


def test_more_shards_later_need_no_other_indexes(computed: dict[str, Any]) -> None:
    """From 8 to 16 only the functions' variable changes, and no index that was removed comes back."""
    before, after = computed["placed"], computed["further"]
    assert after["composites"] == before["composites"]
    assert after["fields"] == before["fields"]
    assert {each["CLOUDSCHED_SHARDS"] for each in after["settings"].values()} == {"16"}


def test_a_service_of_yours_gets_the_same_queues_and_indexes(computed: dict[str, Any]) -> None:
    """Its account may use each queue, by one binding, and its settings name both numbers."""
    ours, theirs = computed["existing"], computed["growing"]
    assert ours["queues"] == theirs["queues"]
    assert ours["composites"] == theirs["composites"]
    assert len(ours["made"]["google_cloud_tasks_queue_iam_member.this"]) == len(ours["queues"])
    assert ours["common_settings"]["CLOUDSCHED_SHARDS"] == "8"
    assert ours["common_settings"]["CLOUDSCHED_QUEUES_PER_PRIORITY"] == "2"


def test_scripts_and_functions_have_the_bounds_of_the_table(cloud: Cloud) -> None:
    """The module reads its bounds and the fields of rising values from the table; all others must mean the same."""
    assert TABLE["maxShards"] == MAX_SHARDS
    assert TABLE["maxQueuesPerPriority"] == MAX_QUEUES_PER_PRIORITY
    script = runpy.run_path(str(ROOT / "infra/lib/firestore_indexes.py"))
    assert set(TABLE["risingFields"]) == script["RISING"]
    for name, maximum in (("SHARDS", MAX_SHARDS), ("QUEUES_PER_PRIORITY", MAX_QUEUES_PER_PRIORITY)):
        complaint = f"a whole number from 1 to {maximum}"
        for number, is_refused in ((0, True), (maximum, False), (maximum + 1, True)):
            cloud.configure(**{name: str(number)})
            result = cloud.run("deploy.sh", "--dry-run", "--step=services")  # the configuration is read by each
            assert (complaint in result.err) == is_refused, (name, number, result.err)


@pytest.mark.parametrize("name", ["shards", "placed_shards", "queues_per_priority"])
def test_the_module_refuses_what_is_out_of_bounds(name: str, tmp_path: Path) -> None:
    """Zero, one too many, and what is no whole number."""
    require_terraform()
    maximum = TABLE["maxQueuesPerPriority" if name == "queues_per_priority" else "maxShards"]
    write_stand_in(tmp_path / "module")
    for number in (0, 1.5, maximum, maximum + 1):
        variables = MINIMAL | {"shards": TABLE["maxShards"], name: number}
        (tmp_path / "module/terraform.tfvars.json").write_text(json.dumps(variables), encoding="utf-8")
        code, said = run_terraform(tmp_path / "module", "plan", "-input=false", "-no-color")
        said = " ".join(re.sub(r"[│╷╵]", "", said).split())
        is_refused = f"a whole number from 1 to {maximum}." in said
        assert is_refused == (number != maximum), (number, said)
        assert code == (1 if is_refused or name == "queues_per_priority" else 0), (number, said)
