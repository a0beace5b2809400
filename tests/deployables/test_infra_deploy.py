"""deploy.sh, against a fake cloud that records what they do."""

from __future__ import annotations

import json
import re
import shlex
from copy import deepcopy
from itertools import groupby
from pathlib import Path

import pytest
from tests.deployables.fake_project import FUNCTIONS, IN_USE, PROJECT, Cloud
from tests.deployables.fake_resources import NUMBER, OPERATOR, State, get_env

from cloudsched.adapters.google.cloud_tasks import list_queue_ids, queue_id
from cloudsched.domain.documents.policy import Priority

API, EXECUTOR, INVOKER, BUILDER, SMOKE = (
    f"serviceAccount:cloudsched-{role}@{PROJECT}.iam.gserviceaccount.com"
    for role in ("api", "executor", "invoker", "builder", "smoke")
)


def strip_random_values(state: State) -> State:
    """Return a project's resources, without random values, instants and the number of revisions."""
    content = deepcopy(state)
    for schedule in content["database/cloudsched"]["schedules"]:
        schedule.pop("createTime")
    secret = content["secret/cloudsched-dispatch"]
    secret["versions"] = secret["versions"].keys()
    for key, value in content.items():
        if key.startswith("service/"):
            revisions = value["status"]["revisions"]
            value["status"] = revisions[value["status"]["traffic"][0]["revisionName"]]
    rules = {key: value for key, value in content.items() if key.startswith("rules/")}
    return {key: value for key, value in content.items() if key not in rules} | {"rules": len(rules) > 0}


def is_lock(call: list[str]) -> bool:
    """Whether a call takes the lock of a run, or gives it back."""
    return call[1:3] == ["secrets", "update"] and ("--remove-annotations=lock" in call or "--etag" in " ".join(call))


def list_changing_calls(calls: list[list[str]]) -> list[list[str]]:
    """Return the calls that change something, each once that was repeated until Google was ready for it."""
    asking = {"describe", "list", "get", "get-iam-policy", "print-access-token", "print-identity-token"}
    changing = [call for call in calls if call[0] == "gcloud" and not asking & {*call[1:5]} and not is_lock(call)]
    return [call for call, _ in groupby(changing)]


def test_indexes_are_those_of_the_file(deployed: Cloud) -> None:
    """Every composite index, single-field override and TTL policy in the files is created, in the files' order."""
    wanted = json.loads((deployed.checkout / "infra/firestore.indexes.json").read_text("utf-8"))
    shapes = [index["fields"] for index in wanted["indexes"]]
    made = [index["fields"][:-1] for index in deployed.state["indexes"]]
    assert made == shapes
    ttl = json.loads((deployed.checkout / "infra/firestore.ttl.json").read_text("utf-8"))
    fields = {tuple(name.split("/")[-3::2]) for name in deployed.state["fields"]}
    assert fields == {(o["collectionGroup"], o["fieldPath"]) for o in [*wanted["fieldOverrides"], *ttl]}
    expiring = {name.rpartition("/")[2] for name, field in deployed.state["fields"].items() if "ttlConfig" in field}
    assert expiring == {policy["fieldPath"] for policy in ttl}


def test_functions_get_the_settings_that_they_need(deployed: Cloud) -> None:
    """Each function has as many threads as concurrent requests, and the secret by its version."""
    for function, threads in (("api", "20"), ("execute", "10"), ("sweep", "1")):
        told = deployed.revision(function)
        settings = get_env(told)
        assert settings["THREADS"] == told["concurrency"] == threads
        assert settings["CLOUDSCHED_EXECUTOR_URL"] == f"https://cloudsched-execute-{NUMBER}.us-central1.run.app"
        assert settings["CLOUDSCHED_QUEUE"] == "cloudsched"
        assert told["set-secrets"] == "CLOUDSCHED_SECRET=cloudsched-dispatch:1"
        assert "no-allow-unauthenticated" in told


def test_a_second_run_changes_nothing(cloud: Cloud) -> None:
    """A second deployment runs only read-only commands, and --check reports no difference."""
    cloud.configure(MONITORING="on")
    before = deepcopy(cloud.state)
    ran = cloud.ok("deploy.sh")
    assert cloud.changes == 0
    assert "0 changes" in ran.err
    assert cloud.state == before
    cloud.check()
    assert list_changing_calls(cloud.calls) == []


def test_a_run_that_dies_is_resumed(tmp_path: Path, deployed: Cloud) -> None:
    """After any number of kills, before or after a change took effect, the next run reaches the same result."""
    cloud = Cloud(tmp_path, MONITORING="on")
    deaths = 0
    for die_at in (1, 2, 11, 22, 12, 5):
        ran = cloud.run("deploy.sh", die_at=die_at)
        deaths += ran.code == -9
    assert deaths == 6
    cloud.ok("deploy.sh")
    assert strip_random_values(cloud.state) == strip_random_values(deployed.state)
    made = {key: value for key, value in cloud.ledger.items() if key.startswith("created.")}
    assert made == {key: value for key, value in deployed.ledger.items() if key.startswith("created.")}


def test_a_dry_run_prints_the_commands_of_a_run(tmp_path: Path, deployed: Cloud) -> None:
    """--dry-run runs nothing, needs no credentials, and prints exactly the commands of a first deployment."""
    cloud = Cloud(tmp_path, MONITORING="on")
    printed = cloud.ok("deploy.sh", "--dry-run").out
    printed = printed.replace("PROJECT_NUMBER", NUMBER).replace("user:YOU", f"user:{OPERATOR}")
    assert cloud.calls == []
    commands = [shlex.split(line) for line in printed.splitlines() if line.startswith(("gcloud ", "openssl "))]
    words = [command[command.index("gcloud") :] for command in commands]
    assert [_strip_digests(call) for call in list_changing_calls(words)] == [
        _strip_digests(call) for call in list_changing_calls(deployed.calls)
    ]


def _strip_digests(call: list[str]) -> list[str]:
    """Return a call without its build folder and its digests, which a dry run cannot know."""
    words = (re.sub(r"(digest|image)\.(\w+)=[^,]+", r"\1.\2", word) for word in call)
    words = (re.sub(r",lock=[^,]+", "", word) for word in words)
    words = (re.sub(r"^--image=\S+@sha256:.*", "--image=IMAGE", word) for word in words)
    words = (re.sub(r"^--base-image=.*/", "--base-image=", word) for word in words)
    return [re.sub(r"^--(source|config-from-file|policy)=.*/(build|infra)", r"--\1=\2", word) for word in words]


def test_check_reports_differences_and_deploy_reverts_them(cloud: Cloud) -> None:
    """--check reports manual changes without changing anything, and the next run reverts them."""
    wanted = deepcopy(cloud.state)
    cloud.state["queue/cloudsched-low"]["rateLimits"]["maxDispatchesPerSecond"] = 7.0
    cloud.state["job/cloudsched-sweep"]["schedule"] = "0 * * * *"
    cloud.state["iam/queue/cloudsched-high"].pop()
    cloud.state["indexes"].pop(0)
    cloud.state["iam/service/cloudsched-api"].append(["allUsers", "roles/run.invoker", ""])
    drifted = deepcopy(cloud.state)

    ran = cloud.fails("deploy.sh", "--check")
    assert [re.sub(r"^differs: (\w+ \S+ ?\S*).*", r"\1", line) for line in ran.out.splitlines()] == [
        "create composite index",
        "update queue cloudsched-low",
        "grant roles/cloudtasks.enqueuer on",
        "make function cloudsched-api",
        "update the job",
    ]
    assert cloud.state == drifted

    cloud.ok("deploy.sh")
    wanted["indexes"].append(wanted["indexes"].pop(0))
    assert cloud.state == wanted


def read_excluded(cloud: Cloud, *mounted: str) -> re.Pattern[str]:
    """Return what the addresses of the requests match that the log sink leaves out."""
    (exclusion,) = cloud.state["sink/_Default"]["exclusions"]
    assert (exclusion["name"], exclusion["disabled"]) == ("cloudsched-feeds", False)
    service, method, url = re.fullmatch(
        r'resource\.type="cloud_run_revision" AND resource\.labels\.service_name=~"(.*)"'
        r' AND httpRequest\.requestMethod!="(.*)" AND httpRequest\.requestUrl=~"(.*)"',
        exclusion["filter"],
    ).groups()  # type: ignore[union-attr] # it fails here if the filter is another one
    named = ("cloudsched-api", "cloudsched-links", "shop", "cloudsched-web", "cloudsched-api-2", "a-cloudsched-api", "")
    assert [name for name in named if re.search(service, name)] == ["cloudsched-api", "cloudsched-links", *mounted]
    assert method == "DELETE"
    return re.compile(url)


def test_addresses_of_feeds_are_not_logged(cloud: Cloud) -> None:
    """The request log leaves out what is asked for with a feed's secret, however it is written, and nothing else.

    An exclusion that somebody changed or disabled is put right; those of others stay; a teardown removes ours.
    """
    excluded = read_excluded(cloud)
    for path in ("secret.ics", "secret.ICS?x=1", "secret%2Eics", "secret"):
        assert excluded.search(f"https://cloudsched-api-1.run.app/v1/feeds/{path}"), path
    for path in ("feeds", "feeds/", "tasks/feeds", "tasks?owner=ada"):
        assert not excluded.search(f"https://cloudsched-api-1.run.app/v1/{path}"), path
    exclusions = cloud.state["sink/_Default"]["exclusions"]
    theirs = {"name": "theirs", "filter": "severity<ERROR", "disabled": False}
    exclusions.append(theirs)
    wanted = deepcopy(exclusions)
    for change in ({"filter": "severity=DEBUG"}, {"disabled": True}):
        exclusions[0].update(change)
        assert "differs: update the exclusion of feeds" in cloud.run("deploy.sh", "--check", "--step=logs").out
        cloud.ok("deploy.sh", "--step=logs")
        assert exclusions == wanted
    exclusions.remove(theirs)
    cloud.ok("deploy.sh", "--step=logs", MOUNTED_SERVICES='"shop "')
    read_excluded(cloud, "shop")
    exclusions.append(theirs)
    cloud.ok("teardown.sh", "--yes")
    assert exclusions == [theirs]


def test_changed_settings_require_an_upgrade(cloud: Cloud) -> None:
    """deploy.sh does not change a serving function but refers to upgrade.sh, which can roll back."""
    ran = cloud.run("deploy.sh", "--check", EXECUTE_CONCURRENCY="20")
    assert (ran.code, ran.out) == (1, "differs: function cloudsched-execute; run infra/upgrade.sh\n")
    cloud.ok("deploy.sh")
    assert not any("run deploy" in " ".join(call) for call in cloud.calls)


def test_each_priority_gets_as_many_queues_as_are_set(cloud: Cloud) -> None:
    """Each has its priority's limits and roles, the functions know of them, and a teardown removes also former ones."""
    cloud.fake.quota = dict.fromkeys(cloud.fake.quota, 10**12)
    cloud.ok("deploy.sh", QUEUES_PER_PRIORITY="3", EXECUTE_MAX_INSTANCES="40")
    cloud.ok("upgrade.sh")
    for priority in Priority:
        first, *others = (
            cloud.state[f"queue/{queue_id('cloudsched', priority, number)}"]["rateLimits"] for number in (1, 2, 3)
        )
        assert others == [first, first]
    bound = {resource for resource, *_ in cloud.bindings()}
    assert {f"queue/{each}" for each in list_queue_ids("cloudsched", 3)} <= bound
    for function in FUNCTIONS:
        assert get_env(cloud.revision(function))["CLOUDSCHED_QUEUES_PER_PRIORITY"] == "3"
    cloud.ok("teardown.sh", "--yes", QUEUES_PER_PRIORITY="1", EXECUTE_MAX_INSTANCES="40")
    assert not [key for key in cloud.state if key.startswith("queue/")]


def test_a_failed_query_does_not_mean_that_a_resource_is_missing(tmp_path: Path) -> None:
    """A query that fails for lack of permission ends the run: it does not mean that the resource is missing."""
    cloud = Cloud(tmp_path)
    ran = cloud.run("deploy.sh", deny="tasks queues list")
    assert ran.code != 0
    assert "PERMISSION_DENIED" in ran.err
    assert not any(key.startswith(("queue/", "service/")) for key in cloud.state)


@pytest.mark.parametrize("requirement", ["cloudsched", "cloudsched[sandbox,telemetry]", "Cloudsched [all]==1.2"])
def test_functions_that_run_scripts_have_a_full_linux(tmp_path: Path, requirement: str) -> None:
    """Their filter of system calls needs it; it wants memory, and the others keep what Cloud Run chooses."""
    functions = tmp_path / "functions"
    functions.mkdir()
    (functions / "requirements.txt").write_text(f"{requirement}\n", "utf-8")
    cloud = Cloud(tmp_path / "cloud", None, FUNCTIONS_DIR=str(functions))
    cloud.ok("deploy.sh")
    deployed = [each for each in cloud.calls if each[1:3] == ["run", "deploy"]]
    assert len(deployed) >= 3
    assert {"--execution-environment=gen2" in each for each in deployed} == {"[" in requirement}
    if "[" in requirement:
        assert "need 512Mi" in cloud.fails("deploy.sh", FUNCTIONS_DIR=str(functions), MEMORY="256Mi").err


def test_existing_rules_are_kept(tmp_path: Path) -> None:
    """A database keeps the rules that it already has, unless the configuration says RULES=replace."""
    cloud = Cloud(tmp_path, IN_USE)
    theirs: State = {"name": "x", "source": {"files": [{"content": "theirs"}]}}
    release = f"rules/projects/{PROJECT}/releases/cloud.firestore/cloudsched"
    cloud.state.update({release: {"rulesetName": f"projects/{PROJECT}/rulesets/x"}})
    cloud.state.update({f"rules/projects/{PROJECT}/rulesets/x": theirs})
    cloud.ok("deploy.sh", "--step=secret")
    assert "rules that these scripts did not release" in cloud.fails("deploy.sh", "--step=rules").err
    assert cloud.state[release]["rulesetName"].endswith("/x")
    cloud.ok("deploy.sh", "--step=rules", RULES="replace")
    ruleset = cloud.state["rules/" + cloud.state[release]["rulesetName"]]
    ours = (cloud.checkout / "infra/firestore.rules").read_text("utf-8")
    assert ruleset["source"]["files"][0]["content"] == ours


def test_the_secret_appears_nowhere(deployed: Cloud) -> None:
    """The secret goes from openssl to Secret Manager through a pipe, and appears in no argument and nowhere else.

    A list of the machine's processes shows no token.
    """
    (secret,) = deployed.state["secret/cloudsched-dispatch"]["versions"].values()
    assert len(secret) == 64
    assert secret not in json.dumps(deployed.calls)
    rest = {key: value for key, value in deployed.state.items() if key != "secret/cloudsched-dispatch"}
    assert secret not in json.dumps(rest)
    assert "an-access-token" not in json.dumps(deployed.calls)
    assert "an-identity-token" not in json.dumps(deployed.calls)
