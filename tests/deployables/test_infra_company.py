"""What a company's rules demand of a deployment, and what the scripts refuse to guess."""

from __future__ import annotations

import re
from copy import deepcopy
from pathlib import Path

import pytest
from tests.deployables.fake_databases import make_database
from tests.deployables.fake_project import FUNCTIONS, IN_USE, PROJECT, ROOT, Cloud
from tests.deployables.fake_resources import State, get_env
from tests.harness import run_to_end

SERVER = "smtps://mailer:s3cret@mail.example:465"
TOKEN = "sk" + "_live_" + "51HxQ2abcdefgh"


def list_mounts(cloud: Cloud, function: str) -> set[str]:
    return {*cloud.revision(function)["set-secrets"].split(",")}


def list_readers(cloud: Cloud, secret: str) -> set[str]:
    """Return the accounts of the deployment that may read a secret."""
    members = {member for member, role, _ in cloud.state[f"iam/secret/{secret}"] if role.endswith("secretAccessor")}
    return {each.removeprefix("serviceAccount:cloudsched-").partition("@")[0] for each in members}


def add_secret(cloud: Cloud, name: str, **more: object) -> None:
    cloud.state[f"secret/{name}"] = {"name": name, "annotations": {}, "versions": {"1": "x", "2": "y"}} | more


# ── What is written ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("QUEUE_NORML", "QUEUE_NORMAL"),
        ("EXECUTE_MAX_INSTANCE", "EXECUTE_MAX_INSTANCES"),
        ("NOTIFICATION_CHANNEL", "NOTIFICATION_CHANNELS"),
        ("SECRET", "SECRETS"),  # which the scripts have themselves
    ],
)
def test_a_name_that_nothing_reads_is_refused_with_the_nearest(tmp_path: Path, written: str, meant: str) -> None:
    """A misspelt setting is not a setting that holds: the script stops before its first command."""
    cloud = Cloud(tmp_path, None, **{written: "1"})
    said = cloud.fails("deploy.sh").err
    assert re.search(rf"\b{written}\b.*\b{meant}\b", said)
    assert not cloud.calls


def test_a_configuration_may_have_variables_of_its_own_and_read_other_files(tmp_path: Path) -> None:
    """In lower case, as the environments of `cloudsched init` do."""
    (tmp_path / "shared.sh").write_text("stage=test\nLABELS=(stage=$stage)\n", "utf-8")
    cloud = Cloud(tmp_path)
    beside = 'here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"\nsource "$here/shared.sh"\n'
    cloud.config.write_text(cloud.config.read_text("utf-8") + beside, "utf-8")
    assert "stage=test" in cloud.ok("deploy.sh", "--dry-run").out


def test_a_configuration_that_needs_the_environment_is_checked_as_well(tmp_path: Path) -> None:
    """A pipeline gives it the project's ID; what a file demands does not hide what it says."""
    cloud = Cloud(tmp_path, None, PROJECT='"${CI_PROJECT:?}"', SETTINGS='("DB_PASSWORD=hunter2")', QUEUE_NORML="1/1")
    command = [str(cloud.checkout / "infra/deploy.sh"), "--dry-run", f"--config={cloud.config}"]
    environment = cloud.environment | {"CI_PROJECT": PROJECT}
    done = run_to_end(command, env=environment)
    assert "DB_PASSWORD" in done.stderr
    assert "QUEUE_NORMAL" in done.stderr


@pytest.mark.parametrize(
    "setting",
    [
        f"STRIPE_KEY={TOKEN}",
        "CLOUDSCHED_MODEL_KEY=abc",
        "DB_PASSWORD=hunter2",
        "DATABASE_URL=postgres://shop:hunter2@10.0.0.3/shop",
        "GITHUB_TOKEN=x",
        "CHAT=https://hooks.chat.example/services/T0/B0/x",
        "SIGNER='-----BEGIN PRIVATE KEY-----'",
    ],
)
def test_a_secret_among_the_settings_is_refused_with_the_line_to_write(tmp_path: Path, setting: str) -> None:
    """Whoever may look at a function reads its variables. The value itself is not printed again."""
    name, _, value = setting.partition("=")
    cloud = Cloud(tmp_path, None, SETTINGS=f'("{setting}")')
    said = cloud.fails("deploy.sh").err
    line = re.search(rf'SECRETS=\("{name}=([a-z-]+):1"\)', said)
    assert line
    assert value.strip("'") not in said
    assert not cloud.calls
    assert f",{name}={line[1]}:1" in cloud.ok("deploy.sh", "--dry-run", SECRETS=line[0].partition("=")[2]).out


def test_what_only_looks_a_little_like_a_secret_is_a_setting(tmp_path: Path) -> None:
    """The name of a column, a number of tokens, a public key, the address of a service."""
    settings = (
        "SORT_KEY=created_at",
        "MAX_TOKENS=4096",
        "PUBLIC_KEY=MIIB0123456789012345",
        "SHOP=https://shop.example/a:b",
    )
    cloud = Cloud(tmp_path, IN_USE, SETTINGS=f"({' '.join(settings)})")
    cloud.ok("deploy.sh")
    told = get_env(cloud.revision("execute"))
    assert {f"{name}={told[name]}" for name in ("SORT_KEY", "MAX_TOKENS", "PUBLIC_KEY", "SHOP")} == {*settings}


# ── Secrets ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_any_variable_is_a_secret_of_the_functions_that_need_it(tmp_path: Path) -> None:
    """The mail server's and a handler's own: mounted by version, readable by the account of those functions alone.

    Whoever knows the address of the sweep's switch can silence the alarm: it is the sweep's. A teardown takes it back.
    """
    secrets = (
        "(CLOUDSCHED_SMTP_URL=mail:{} STRIPE_KEY@execute=stripe:1 MAP_KEY@api+links=map:1 CLOUDSCHED_SWEEP_PING=ping:1)"
    )
    more = {"PUBLIC_LINKS": "yes", "API_MAX_INSTANCES": "2", "SETTINGS": "(CLOUDSCHED_MAIL_FROM=ada@example.com)"}
    cloud = Cloud(tmp_path, IN_USE, SECRETS=secrets.format(2), **more)
    names = ("mail", "stripe", "map", "ping")
    for name in names:
        add_secret(cloud, name)
    cloud.ok("deploy.sh")
    where = {
        mount: {function for function in (*FUNCTIONS, "links") if mount in list_mounts(cloud, function)}
        for mount in (
            "CLOUDSCHED_SMTP_URL=mail:2",
            "STRIPE_KEY=stripe:1",
            "MAP_KEY=map:1",
            "CLOUDSCHED_SWEEP_PING=ping:1",
        )
    }
    assert [*where.values()] == [{*FUNCTIONS}, {"execute"}, {"api", "links"}, {"sweep"}]
    readers = [list_readers(cloud, name) for name in names]
    assert readers == [{"api", "executor"}, {"executor"}, {"api", "links"}, {"executor"}]
    cloud.check()
    cloud.configure(SECRETS=secrets.format(1), **more)
    assert "infra/upgrade.sh" in cloud.run("deploy.sh", "--check", "--step=functions").out
    cloud.configure(SECRETS=secrets.format(2), **more)
    cloud.ok("teardown.sh", "--yes")
    assert not [each for each in names if list_readers(cloud, each)]


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ({"SECRETS": "(STRIPE_KEY@worker=stripe:1)"}, "execute, sweep, api and links"),
        ({"SECRETS": "(STRIPE_KEY=stripe:latest)"}, "the number of a version"),
        ({"SECRETS": "(STRIPE_KEY=a:1 STRIPE_KEY@sweep=b:1)"}, "two values in sweep"),
        ({"SECRETS": "(MODE=a:1)", "SETTINGS": "(MODE=fast)"}, "Write it once"),
        ({"SECRETS": "(CLOUDSCHED_DATABASE=a:1)"}, "derived"),
        ({"SETTINGS": "(CLOUDSCHED_DATABASE=theirs)"}, "derived"),
        ({"SECRETS": "(MAP_KEY@links=map:1)"}, "PUBLIC_LINKS"),
        ({"RUN_FLAGS": "('links --cpu=2')"}, "PUBLIC_LINKS"),
        ({"RUN_FLAGS": "(--no-default-url)"}, "rely"),
        ({"RUN_FLAGS": "(--max=3)"}, "setting of its own"),
        ({"FIRESTORE_LOCATION": "EUR3"}, "a region"),
        ({"RUN_FLAGS": "(--ingress=all)"}, "API_INGRESS"),
        ({"RUN_FLAGS": "('execute --set-env-vars=A=b')"}, "SETTINGS"),
        ({"RUN_FLAGS": "(--allow-unauthenticated)"}, "rely"),
        ({"RUN_FLAGS": "('worker --cpu=2')"}, "the functions that it is for"),
        ({"LABELS": "(Team=payments)"}, "lowercase"),
        ({"LABELS": "(deployment=other)"}, "the scripts' own"),
        ({"API_INGRESS": "none"}, "internal-and-cloud-load-balancing"),
        ({"SECRET_LOCATIONS": "eu"}, "regions"),
        ({"ADOPT": "(cloudsched-high)"}, "KIND/NAME"),
        ({"REGION": "europe-wset1"}, "a region"),
        ({"MEMORY": "64Mi"}, "128Mi to 4Gi"),
        ({"MEMORY": "8Gi"}, "128Mi to 4Gi"),
        ({"API_CONCURRENCY": "1001"}, "1 to 1000"),
        ({"PROJECT": ""}, "set it to your project's ID"),
        ({"QUEUE_CRITICAL": "501/1"}, "1 to 500 dispatches per second"),
        ({"EXECUTE_MAX_INSTANCES": "14"}, "allows only 140"),
        ({"QUEUES_PER_PRIORITY": "2"}, "send up to 260 concurrent dispatches"),
        ({"SETTINGS": "(CLOUDSCHED_QUEUES_PER_PRIORITY=2)"}, "is derived from other values"),
        ({"EXECUTE_TIMEOUT": "3600"}, "accepts 15 to 1800"),
        ({"SETTINGS": "('CLOUDSCHED_SECRET=0123456789abcdef')"}, "CLOUDSCHED_SECRET, which is derived"),
        ({"NAME": "Sched_1"}, "lowercase letters"),
        ({"API_ACCESS": "public"}, "API_ACCESS is public, but no caller would be accepted: set FIREBASE_PROJECT"),
        ({"SERVICE_ACCOUNTS": "(ada@example.com=admin)"}, "each entry must be a service account's EMAIL=ROLE"),
        (
            {"SERVICE_ACCOUNTS": "(a@p.iam.gserviceaccount.com=viewer a@p.iam.gserviceaccount.com=admin)"},
            "SERVICE_ACCOUNTS lists a@p.iam.gserviceaccount.com more than once",
        ),
        (
            {
                "SERVICE_ACCOUNTS": "(a@p.iam.gserviceaccount.com=viewer)",
                "SMOKE_ACCOUNT": "a@p.iam.gserviceaccount.com",
            },
            "SMOKE_ACCOUNT is also in SERVICE_ACCOUNTS",
        ),
        ({"SMOKE_ACCOUNT": "ada@example.com"}, "it must be a service account's email address"),
        ({"CORS_ORIGINS": "https://app.example/path"}, "without a path"),
        ({"API_ADDRESSES": "api.example"}, "it must be https://"),
        ({"MAX_ACTIVE_TASKS": "0"}, "it must be a positive number"),
        ({"BUCKET": "gs://results"}, "without gs://"),
        ({"SETTINGS": f"(CLOUDSCHED_SMTP_URL={SERVER})"}, "SETTINGS"),
        ({"SETTINGS": "(CLOUDSCHED_APPRISE_URLS=slack://token)"}, "SETTINGS"),
        ({"SETTINGS": "(CLOUDSCHED_SWEEP_PING=https://hc-ping.com/1)"}, "SETTINGS"),
        ({"SECRETS": "(CLOUDSCHED_SMTP_URL=mail-server)"}, "the number of a version"),
        ({"SECRETS": f"(CLOUDSCHED_SMTP_URL={SERVER})"}, "the number of a version"),
        ({"SECRETS": "(CLOUDSCHED_SECRET=mine:1)"}, "derived"),
        ({"SECRETS": "(CLOUDSCHED_SMTP_URL=mail-server:0)"}, "the number of a version"),
        ({"SECRETS": "(CLOUDSCHED_SMTP_URL=mail-server:1)"}, "no sender"),  # no function would start
    ],
)
def test_what_cannot_be_meant_is_refused_before_any_command(
    tmp_path: Path, config: dict[str, str], complaint: str
) -> None:
    """The message says what to write instead."""
    cloud = Cloud(tmp_path, None, **config)
    assert complaint in cloud.fails("deploy.sh").err
    assert not cloud.calls


@pytest.mark.parametrize("arguments", [(), ("--dry-run",)])
def test_a_secret_that_is_not_there_is_named_before_anything_is_made(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """Or a version of it: the functions could not start."""
    cloud = Cloud(tmp_path, IN_USE, SECRETS="(MAP_KEY=map:2 STRIPE_KEY=stripe:3)")
    add_secret(cloud, "map")
    assert "Secret stripe does not exist" in cloud.fails("deploy.sh", *arguments).err
    add_secret(cloud, "stripe")
    assert "version 3" in cloud.fails("deploy.sh", *arguments).err
    assert cloud.changes == 0


def test_a_signing_secret_that_exists_is_used_where_it_is(tmp_path: Path) -> None:
    """A company makes it with its own places and keys; a teardown leaves it, without our notes, to be used again."""
    cloud = Cloud(tmp_path, IN_USE)
    theirs = {"replication": {"userManaged": {"replicas": [{"location": "europe-west3"}]}}}
    add_secret(cloud, "cloudsched-dispatch", versions={}, **theirs)
    cloud.ok("deploy.sh")
    assert "CLOUDSCHED_SECRET=cloudsched-dispatch:1" in list_mounts(cloud, "execute")
    cloud.ok("teardown.sh", "--yes", "--with-data")
    secret = cloud.state["secret/cloudsched-dispatch"]
    assert secret["replication"] == theirs["replication"]
    assert not secret["annotations"]
    cloud.state.pop("bucket/gs://run-sources-demo-project-us-central1")
    cloud.fake.delays.time += 8 * 86_400  # until the names of the queues are free
    cloud.ok("deploy.sh")


# ── Places ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(name="european")
def configure_europe(tmp_path: Path) -> Cloud:
    """A project whose configuration says nothing but its region."""
    cloud = Cloud(tmp_path, IN_USE, REGION="europe-west1")
    cloud.fake.is_quota_hidden = True
    return cloud


def test_the_region_decides_where_the_data_are(european: Cloud) -> None:
    """The place of the database is printed first, and follows the region unless another one is written down."""
    ran = european.ok("deploy.sh")
    assert european.state["database/cloudsched"]["locationId"] == "europe-west1"
    assert "europe-west1" in ran.err.splitlines()[0]
    places = {
        word.partition("=")[2] for call in european.calls for word in call if re.match("--(region|location)=", word)
    }
    assert places == {"europe-west1"}


def test_a_database_elsewhere_is_used_only_if_that_is_written_down(european: Cloud) -> None:
    """Deployed with another place by an earlier version, or by mistake: nothing is changed until somebody decides."""
    make_database(european.state, "cloudsched", locationId="us-central1")
    before = deepcopy(european.state)
    said = european.fails("deploy.sh").err
    assert 'FIRESTORE_LOCATION="us-central1"' in said
    assert european.state == before
    european.ok("deploy.sh", REGION="europe-west1", FIRESTORE_LOCATION="us-central1")


def test_a_region_without_firestore_asks_for_a_place(tmp_path: Path) -> None:
    """Nobody chooses for good in your place."""
    cloud = Cloud(tmp_path, IN_USE, REGION="europe-west99")
    cloud.fake.is_quota_hidden = True
    said = cloud.fails("deploy.sh").err
    assert "FIRESTORE_LOCATION" in said
    assert "eur3" in said
    assert "database/cloudsched" not in cloud.state


# ── An organisation ──────────────────────────────────────────────────────────────────────────────────────────────────

STRICT = {
    "run.allowedIngress": ["internal", "internal-and-cloud-load-balancing"],
    "gcp.resourceLocations": ["in:europe-locations"],
}
COMPANY = {
    "REGION": "europe-west1",
    "API_INGRESS": "internal-and-cloud-load-balancing",
    "SECRET_LOCATIONS": "'europe-west1 europe-west3'",
    "LABELS": "(team=payments cost-center=42)",
    "RUN_FLAGS": "(--network=shared '--subnet=apps' 'execute+sweep --vpc-egress=all-traffic' --build-worker-pool=own)",
    "API_ADDRESSES": "https://tasks.example.com",
}


@pytest.fixture(name="strict")
def make_strict_project(tmp_path: Path) -> Cloud:
    """A project of an organisation with the usual policies."""
    cloud = Cloud(tmp_path, IN_USE)
    cloud.fake.is_quota_hidden = True
    cloud.fake.allowed = STRICT
    return cloud


@pytest.mark.parametrize(
    ("lacking", "policy"),
    [
        ("API_INGRESS", "run.allowedIngress"),
        ("REGION", "gcp.resourceLocations"),
        ("SECRET_LOCATIONS", "gcp.resourceLocations"),
    ],
)
def test_a_policy_that_would_refuse_is_named_before_anything_is_made(strict: Cloud, lacking: str, policy: str) -> None:
    """Not after half an hour, by an error of the third service."""
    before = deepcopy(strict.state)
    strict.configure(**{name: value for name, value in COMPANY.items() if name != lacking})
    assert policy in strict.fails("deploy.sh").err
    assert strict.state == before


def test_a_company_deploys_within_its_policies(strict: Cloud) -> None:
    """Ingress, places, network, labels and builds are as it says; the smoke test goes through its address."""
    strict.configure(**COMPANY)
    strict.ok("deploy.sh")
    told = {function: strict.revision(function) for function in FUNCTIONS}
    assert {each["network"] for each in told.values()} == {"shared"}
    assert [each.get("vpc-egress") for each in told.values()] == ["all-traffic", "all-traffic", None]
    assert told["api"]["ingress"] == "internal-and-cloud-load-balancing"
    for each in told.values():
        assert {"team=payments", "cost-center=42", "deployment=cloudsched"} <= {*each["update-labels"].split(",")}
    secret = strict.state["secret/cloudsched-dispatch"]
    assert secret["locations"] == ["europe-west1", "europe-west3"]
    assert secret["labels"]["team"] == "payments"
    built = [call for call in strict.calls if call[1:3] == ["run", "deploy"] and "--build-worker-pool=own" in call]
    assert len({call[3] for call in built}) == 1
    assert all(any(word.startswith("--source=") for word in call) for call in built)
    assert any("https://tasks.example.com/v1/tasks" in word for call in strict.calls for word in call)
    strict.check()
    strict.configure(**COMPANY | {"LABELS": "(team=search)"})
    strict.ok("upgrade.sh")
    assert "team=search" in strict.revision("api")["update-labels"].split(",")


def test_a_machine_outside_of_the_network_is_told_so(strict: Cloud) -> None:
    """Cloud Run answers it as if there were no such service; that is no fault of the deployment."""
    strict.configure(**{name: value for name, value in COMPANY.items() if name != "API_ADDRESSES"})
    strict.fake.is_outside = True
    assert "this machine is outside" in strict.fails("deploy.sh").err


def test_who_may_not_read_policies_deploys_all_the_same(strict: Cloud) -> None:
    """Google itself refuses what it must; the log says that nobody looked."""
    strict.configure(**COMPANY)
    ran = strict.run("deploy.sh", deny="resource-manager org-policies")
    assert ran.code == 0, ran.err
    assert "cannot be read" in ran.err


# ── What was there ───────────────────────────────────────────────────────────────────────────────────────────────────


def add_theirs(cloud: Cloud, resource: str) -> str:
    """Let somebody have made a resource under a name of the deployment. Return where the fake project has it."""
    kind, _, name = resource.partition("/")
    key = f"account/{name}@{PROJECT}.iam.gserviceaccount.com" if kind == "account" else resource
    retry = {"minBackoff": "1s", "maxBackoff": "9s", "maxDoublings": "2", "maxAttempts": "3", "maxRetryDuration": "60s"}
    limits = {"maxDispatchesPerSecond": 1.0, "maxConcurrentDispatches": 1}
    target = {"uri": "https://theirs.example/", "oidcToken": {"serviceAccountEmail": "them@x.iam.gserviceaccount.com"}}
    job = {"schedule": "0 4 * * *", "httpTarget": target, "attemptDeadline": "60s"}
    content: State = {"queue": {"rateLimits": limits, "retryConfig": retry, "state": "RUNNING"}, "job": job}
    cloud.state[key] = {"name": name, **content.get(kind, {})}
    return key


def test_a_log_sink_and_a_metric_keep_what_somebody_else_wrote(tmp_path: Path) -> None:
    """The sink is shared by all that the project logs, and a metric may be another program's."""
    cloud = Cloud(tmp_path, IN_USE)
    theirs = {"name": "cloudsched-feeds", "filter": "severity<ERROR", "disabled": False}
    cloud.state["sink/_Default"]["exclusions"] = [dict(theirs)]
    assert "severity<ERROR" in cloud.fails("deploy.sh").err
    assert cloud.state["sink/_Default"]["exclusions"] == [theirs]
    metric = {"name": "cloudsched-late", "description": "theirs", "filter": "x"}
    cloud.state["metric/cloudsched-late"] = dict(metric)
    assert (
        "cloudsched-late exists" in cloud.fails("deploy.sh", ADOPT="(exclusion/cloudsched-feeds)", MONITORING="on").err
    )
    assert cloud.state["metric/cloudsched-late"] == metric
    assert cloud.state["sink/_Default"]["exclusions"] != [theirs]


@pytest.mark.parametrize(
    ("resource", "difference"),
    [
        ("queue/cloudsched-high", "1 calls a second"),
        ("job/cloudsched-sweep", "0 4 * * *"),
        ("account/cloudsched-builder", ""),
        ("repository/cloudsched", ""),
    ],
)
def test_what_somebody_else_made_is_not_touched_unless_it_is_adopted(
    tmp_path: Path, resource: str, difference: str
) -> None:
    """A queue of one call a second was silently made one of three hundred. A teardown leaves it, too."""
    cloud = Cloud(tmp_path, IN_USE)
    key = add_theirs(cloud, resource)
    before = deepcopy(cloud.state[key])
    said = cloud.fails("deploy.sh").err
    assert difference in said
    assert f'ADOPT=("{resource}")' in said
    assert cloud.state[key] == before
    cloud.ok("deploy.sh", ADOPT=f'("{resource}")')
    cloud.check()
    cloud.ok("teardown.sh", "--yes")
    assert key in cloud.state


# ── Two operators ────────────────────────────────────────────────────────────────────────────────────────────────────


def lock(cloud: Cloud, host: str, process: int, age: int = 60) -> None:
    cloud.ledger["lock"] = f"{cloud.now - age}/{host}/{process}/upgrade.sh"


@pytest.mark.parametrize("script", ["deploy.sh", "upgrade.sh", "rotate-secret.sh"])
def test_two_operators_do_not_work_at_once(cloud: Cloud, script: str) -> None:
    """The second one is told who is at work, and changes nothing. Who only looks is not kept."""
    cloud.configure(MEMORY="1Gi", QUEUE_LOW="7/7")
    lock(cloud, "build-7", 4711)
    before = deepcopy(cloud.state)
    said = cloud.fails(script).err
    assert "upgrade.sh is at work" in said
    assert "build-7" in said
    assert cloud.state == before
    assert "lock" not in cloud.run("deploy.sh", "--check").err
    cloud.ok(script, "--take-over")
    assert "lock" not in cloud.ledger


def test_a_killed_run_keeps_nobody_out_for_ever(cloud: Cloud) -> None:
    """On the same machine it is seen that its process is gone; elsewhere a lock ends when no run can take so long."""
    assert cloud.run("deploy.sh", die_at=1, QUEUE_LOW="7/7", SWEEP_SCHEDULE="'*/2 * * * *'").code == -9
    assert "lock" in cloud.ledger
    cloud.ok("deploy.sh")
    assert "lock" not in cloud.ledger
    cloud.configure(QUEUE_LOW="8/8")
    lock(cloud, "build-7", 4711, age=4 * 3600)
    cloud.ok("deploy.sh")


def test_a_lock_that_was_taken_over_is_the_others(cloud: Cloud) -> None:
    """The run that lost it ends without giving it back, so no third one comes in beside the second."""
    cloud.configure(QUEUE_LOW="7/7")
    theirs = f"{cloud.now}/build-7/4711/upgrade.sh"
    real = cloud.fake.execute

    def execute(name: str, arguments: list[str], extra: str) -> tuple[int, str]:
        if arguments[:3] == ["tasks", "queues", "update"]:
            cloud.ledger["lock"] = theirs
        return real(name, arguments, extra)

    cloud.fake.execute = execute  # type: ignore[method-assign] # the other operator is as quick
    cloud.ok("deploy.sh")
    assert cloud.ledger["lock"] == theirs


def test_what_changes_between_look_and_change_stops_the_run(cloud: Cloud) -> None:
    """The lock is given only for the ledger that was read, so one of two that begin together has it."""
    cloud.configure(QUEUE_LOW="7/7")
    real = cloud.fake.execute

    def execute(name: str, arguments: list[str], extra: str) -> tuple[int, str]:
        answer = real(name, arguments, extra)
        if arguments[:3] == ["secrets", "describe", "cloudsched-dispatch"]:
            cloud.ledger["secret.rotated"] = str(len(cloud.calls))
        return answer

    cloud.fake.execute = execute  # type: ignore[method-assign] # the other operator is as quick
    assert "another one has changed the deployment" in cloud.fails("deploy.sh").err
    assert cloud.state["queue/cloudsched-low"]["rateLimits"]["maxConcurrentDispatches"] == 10


def test_a_lock_is_given_back_by_a_run_that_fails(cloud: Cloud) -> None:
    """An operator who mends the cause needs no option to go on."""
    assert cloud.run(
        "deploy.sh", deny="scheduler jobs update", QUEUE_LOW="7/7", SWEEP_SCHEDULE="'*/2 * * * *'"
    ).code not in {0, -9}
    assert "lock" not in cloud.ledger


def test_gcloud_is_not_needed_to_hear_of_a_mistake(tmp_path: Path) -> None:
    """The checks of a configuration run nothing but bash and Python."""
    cloud = Cloud(tmp_path, None, QUEUE_NORML="1/1")
    command = [str(cloud.checkout / "infra/deploy.sh"), "--dry-run", f"--config={cloud.config}"]
    done = run_to_end(command, env={"PATH": "/usr/bin:/bin"})
    assert "QUEUE_NORMAL" in done.stderr


def test_the_checklist_answers_with_what_the_scripts_ask_and_set() -> None:
    """Each policy that they look up, and each setting by which a company's rules are met."""
    page = (ROOT / "docs/run/checklist.md").read_text("utf-8")
    asked = re.findall(r"list_refused ([a-z]\w*[.]\w+)", (ROOT / "infra/lib/policies.sh").read_text("utf-8"))
    assert asked
    assert all(f"`{name}`" in page for name in (*asked, "API_INGRESS", "RUN_FLAGS", "SECRET_LOCATIONS"))
