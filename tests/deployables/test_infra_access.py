"""Who may call a deployment: the real API is asked, with the settings that deploy.sh gave it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.deployables.fake_project import FUNCTIONS, IN_USE, PROJECT, Cloud
from tests.deployables.fake_resources import NUMBER, OPERATOR, State, find_reachable_revisions, get_env, is_unchecked
from tests.harness import LocalClient
from tests.web.auth.token_issuer import PROJECT as USERS
from tests.web.auth.token_issuer import Issuer, publish_keys
from tests.web.callers import clear_authenticators
from werkzeug.wrappers import Request, Response

from cloudsched import App
from cloudsched.adapters.blobs import FileBlobs
from cloudsched.adapters.google.id_tokens import REMOVED_SIGNATURE
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.config.settings import Settings
from cloudsched.web.auth.authentication import Authenticator, create_key
from cloudsched.web.auth.roles import Role
from cloudsched.web.functions import serve_api, serve_sweep

API, SWEEP = (f"https://cloudsched-{function}-{NUMBER}.us-central1.run.app" for function in ("api", "sweep"))
SMOKE, INVOKER, EXECUTOR = (
    f"cloudsched-{role}@{PROJECT}.iam.gserviceaccount.com" for role in ("smoke", "invoker", "executor")
)
BILLING, GPU, ANYWHERE = (f"{name}@elsewhere.iam.gserviceaccount.com" for name in ("billing", "gpu", "any"))
pytestmark = pytest.mark.usefixtures("own_process")  # what is deployed configures its logging
PUBLIC = {"API_ACCESS": "public", "FIREBASE_PROJECT": USERS}
EVERYTHING = PUBLIC | {
    "SERVICE_ACCOUNTS": f"({BILLING}=viewer {GPU}=worker@gpu+render {ANYWHERE}=worker)",
    "API_KEYS_SECRET": "our-keys",
    "API_ADDRESSES": "https://tasks.example",
    "CORS_ORIGINS": "https://app.example",
    "MAX_ACTIVE_TASKS": "3",
    "MAX_CREATIONS_A_MINUTE": "2",
    "MAX_RUN_CREATIONS_A_MINUTE": "unlimited",
    "BUCKET": "our-results",
}
KEY, KEPT = create_key("mailer", Role.ADMIN)


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    """An issuer whose key the API accepts as Google's."""
    issuer = Issuer()
    clear_authenticators()
    with publish_keys(issuer):
        yield issuer
    clear_authenticators()


def get_environment(cloud: Cloud, function: str) -> dict[str, str]:
    """Return the environment of a function's latest revision: settings, mounted secrets, Cloud Run's variables."""
    told = cloud.revision(function)
    mounted = (pair.partition("=") for pair in told["set-secrets"].split(","))
    secrets = {
        name: cloud.state[f"secret/{where.partition(':')[0]}"]["versions"][where.partition(":")[2]]
        for name, _, where in mounted
    }
    return get_env(told) | secrets | {"K_SERVICE": f"cloudsched-{function}"}


class NoQueue:
    """A queue that discards its dispatches."""

    def create(self, _envelope: object) -> None:
        """Discard it."""

    def close(self) -> None:
        """Do nothing."""


def get_response(cloud: Cloud, function: str = "api", **headers: str) -> Response:
    settings = Settings.from_environment(get_environment(cloud, function))
    assert settings.is_deployed
    store = SqliteStore()
    app = App(settings, store=store, dispatcher=NoQueue(), blobs=FileBlobs())
    serve = serve_api if function == "api" else serve_sweep
    client = LocalClient(Request.application(lambda request: serve(app, request)))
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        if function == "api":
            return client.get("/v1/tasks", headers=named)
        return client.post("/", headers=named)
    finally:
        store.close()


def get_status(cloud: Cloud, token: str, function: str = "api") -> int:
    return get_response(cloud, function, Authorization=f"Bearer {token}").status_code


def strip_signature(token: str) -> str:
    """Return a token without its signature: as Cloud Run forwards it, and as anyone could forge it."""
    return f"{token.rpartition('.')[0]}.{REMOVED_SIGNATURE}"


def configure_everything(folder: Path) -> Cloud:
    """Return a project whose configuration sets every access setting, before its first deployment."""
    cloud = Cloud(folder, IN_USE, **EVERYTHING)
    cloud.state.update(
        {"secret/our-keys": {"name": "our-keys", "annotations": {}, "versions": {"1": "", "2": str(KEPT)}}}
    )
    cloud.state.update({"bucket/gs://our-results": {"name": "our-results"}})
    cloud.state.update({f"account/{email}": {"email": email} for email in (BILLING, GPU, ANYWHERE)})
    return cloud


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Cloud:
    """Such a project after its first deployment. Tests must not change it."""
    cloud = configure_everything(tmp_path_factory.mktemp("everything"))
    cloud.ok("deploy.sh")
    return cloud


def test_by_default_only_the_smoke_account_is_admitted(deployed: Cloud, issuer: Issuer) -> None:
    """By default the API accepts only the smoke test's token, signed or as Cloud Run forwards it."""
    token = issuer.make_account_token(SMOKE, aud=API)
    assert (get_status(deployed, token), get_status(deployed, strip_signature(token))) == (200, 200)
    strangers = [
        issuer.make_account_token(SMOKE, aud="https://elsewhere.example"),
        issuer.make_account_token(SMOKE, aud=SWEEP),
        issuer.make_account_token(SMOKE, aud=API, exp=int(time.time()) - 60),
        *(issuer.make_account_token(email, aud=API) for email in (EXECUTOR, INVOKER, OPERATOR, BILLING)),
        issuer.make_user_token(),
        Issuer().make_account_token(SMOKE, aud=API),
    ]
    assert [get_status(deployed, stranger) for stranger in strangers] == [401] * len(strangers)
    assert [get_status(deployed, strip_signature(stranger)) for stranger in strangers[:-1]] == [401] * (
        len(strangers) - 1
    )
    assert get_response(deployed).status_code == get_response(deployed, X_Api_Key=KEY).status_code == 401


def test_callers_in_the_configuration_are_admitted(everything: Cloud, issuer: Issuer) -> None:
    """A public API accepts users, listed accounts and keys under each of its URLs, and refuses forged tokens."""
    cloud = everything
    assert get_status(cloud, issuer.make_user_token()) == 200
    for address in (API, "https://tasks.example"):
        assert (
            get_status(cloud, issuer.make_account_token(SMOKE, aud=address)),
            get_status(cloud, issuer.make_account_token(BILLING, aud=address)),
        ) == (
            200,
            200,
        )
    assert get_response(cloud, X_Api_Key=KEY).status_code == 200
    assert get_response(cloud, X_Api_Key=KEY + "x").status_code == 401
    assert get_status(cloud, strip_signature(issuer.make_account_token(SMOKE, aud=API))) == 401, (
        "anyone could forge that token"
    )
    shown = get_response(cloud, X_Api_Key=KEY, Origin="https://app.example").headers["Access-Control-Allow-Origin"]
    assert shown == "https://app.example"
    for function in FUNCTIONS:  # those that create calls need the quotas as well
        settings = Settings.from_environment(get_environment(cloud, function))
        assert (settings.access.max_active_tasks, settings.access.max_creations) == (3, 2)
    cloud.check()


def test_a_service_account_may_be_a_worker_of_some_queues(everything: Cloud, issuer: Issuer) -> None:
    """deploy.sh accepts EMAIL=worker@QUEUE+QUEUE as docs/guides/access.md has it, and so does the deployed API."""
    gate = Authenticator(Settings.from_environment(get_environment(everything, "api")).access)
    found = [
        gate.authenticate(
            Request.from_values(headers={"Authorization": f"Bearer {issuer.make_account_token(email, aud=API)}"})
        )
        for email in (GPU, ANYWHERE)
    ]
    assert [(caller.role, caller.queues) for caller in found] == [
        (Role.WORKER, {"gpu", "render"}),
        (Role.WORKER, frozenset()),
    ]
    invokers = {member for resource, member, _, _ in everything.bindings() if resource == "service/cloudsched-api"}
    assert {f"serviceAccount:{email}" for email in (GPU, ANYWHERE)} <= invokers


def test_each_function_gets_only_the_settings_that_it_needs(everything: Cloud, tmp_path: Path) -> None:
    """All functions get the bucket, only the API gets keys and accounts, and each gets its own time limit."""
    cloud = Cloud(tmp_path, everything.state, **EVERYTHING)
    told = {name: Settings.from_environment(get_environment(cloud, name)) for name in FUNCTIONS}
    assert {name: settings.bucket for name, settings in told.items()} == dict.fromkeys(told, "our-results")
    assert [name for name, settings in told.items() if settings.access.is_configured] == ["api"]
    assert told["execute"].time_limit.total_seconds() == 1800
    assert told["sweep"].time_limit.total_seconds() == 540
    ours = {(resource, member, role) for resource, member, role, _ in cloud.bindings() if "our-" in resource}
    api, executor = (
        f"serviceAccount:cloudsched-{role}@{PROJECT}.iam.gserviceaccount.com" for role in ("api", "executor")
    )
    assert ours == {
        ("secret/our-keys", api, "roles/secretmanager.secretAccessor"),
        ("bucket/gs://our-results", api, "roles/storage.objectUser"),
        ("bucket/gs://our-results", executor, "roles/storage.objectUser"),
    }
    cloud.ok("teardown.sh", "--yes", "--with-data")
    assert {binding for binding in cloud.bindings() if "our-" in binding[0]} == set()
    assert {"secret/our-keys", "bucket/gs://our-results"} <= set(cloud.state)


def test_only_cloud_scheduler_may_call_the_sweep(deployed: Cloud, issuer: Issuer) -> None:
    """The sweep accepts only the invoker's token with the sweep's URL as audience, as Cloud Run forwards it."""
    job = deployed.state["job/cloudsched-sweep"]["httpTarget"]["oidcToken"]
    assert job == {"serviceAccountEmail": INVOKER, "audience": SWEEP}
    assert get_status(deployed, strip_signature(issuer.make_account_token(INVOKER, aud=SWEEP)), "sweep") == 200
    for stranger in (issuer.make_account_token(SMOKE, aud=SWEEP), issuer.make_account_token(INVOKER, aud=API)):
        assert get_status(deployed, strip_signature(stranger), "sweep") == 401


@pytest.mark.parametrize(
    ("missing", "complaint"),
    [
        ("secret/our-keys", "Secret our-keys does not exist"),
        ("bucket/gs://our-results", "Bucket our-results does not exist"),
    ],
)
def test_what_the_operator_has_to_create_is_named(tmp_path: Path, missing: str, complaint: str) -> None:
    """No function is deployed without what the configuration names."""
    cloud = configure_everything(tmp_path)
    del cloud.state[missing]
    assert complaint in cloud.fails("deploy.sh").err
    assert not any(key.startswith("service/") for key in cloud.state)


def test_new_keys_are_deployed_by_an_upgrade(everything: Cloud, tmp_path: Path) -> None:
    """The keys are mounted by version number: --check reports a newer version, and an upgrade deploys it."""
    cloud = Cloud(tmp_path, everything.state, **EVERYTHING)
    assert get_environment(cloud, "api")["CLOUDSCHED_API_KEYS"].startswith("mailer:")
    cloud.state["secret/our-keys"]["versions"]["3"] = str(create_key("other", Role.VIEWER)[1])
    assert "function cloudsched-api; run infra/upgrade.sh" in cloud.run("deploy.sh", "--check").out
    cloud.ok("upgrade.sh")
    assert get_environment(cloud, "api")["CLOUDSCHED_API_KEYS"].startswith("other:")
    cloud.ok("rotate-secret.sh")
    assert get_environment(cloud, "api")["CLOUDSCHED_API_KEYS"].startswith("other:")
    cloud.check()


def test_a_smoke_account_of_the_operator_is_not_changed(tmp_path: Path) -> None:
    """An account named in the configuration may call the API; the script does not decide who may impersonate it."""
    theirs = f"prober@{PROJECT}.iam.gserviceaccount.com"
    cloud = Cloud(tmp_path, None, SMOKE_ACCOUNT=theirs)
    cloud.state.update({f"account/{theirs}": {"email": theirs}})
    assert "getAccessToken" in cloud.fails("deploy.sh").err
    cloud.state[f"iam/account/{theirs}"] = [[f"user:{OPERATOR}", "roles/iam.serviceAccountTokenCreator", ""]]
    cloud.ok("deploy.sh", "--step=smoke")
    assert f"account/{SMOKE}" not in cloud.state


# ── Private and public ───────────────────────────────────────────────────────────────────────────────────────────────


def find_forgeable_states(history: list[State]) -> list[State]:
    """Return the states in which the public could reach a revision that accepts unsigned tokens."""
    return [
        state
        for state in history
        if (
            ["allUsers", "roles/run.invoker", ""] in state.get("iam/service/cloudsched-api", [])
            or is_unchecked(state.get("service/cloudsched-api", {"metadata": {"annotations": {}}}))
        )
        and any(
            "CLOUDSCHED_TRUST_CLOUD_RUN" in get_env(one)
            for one in find_reachable_revisions(state["service/cloudsched-api"])
        )
    ]


def age_closing(cloud: Cloud) -> None:
    """Make an hour pass since the API was made private."""
    if cloud.ledger.get("open.api", "").isdigit():
        cloud.ledger["open.api"] = str(cloud.now - 3600)


def test_the_api_is_opened_and_closed_step_by_step(cloud: Cloud) -> None:
    """To make the API public: upgrade.sh, deploy.sh. To make it private: deploy.sh, ten minutes, upgrade.sh."""
    history: list[State] = []

    def run(script: str, *arguments: str) -> str:
        ran = cloud.run(script, *arguments)
        history.extend(cloud.fake.history)
        return ran.out + ran.err

    cloud.configure(**PUBLIC)
    assert "cloudsched-api is not public yet; run infra/upgrade.sh, then infra/deploy.sh" in run("deploy.sh")
    assert "Run infra/deploy.sh to make it public" in run("upgrade.sh")
    assert "Done" in run("deploy.sh")
    assert ("service/cloudsched-api", "allUsers", "roles/run.invoker", "") in cloud.bindings()
    cloud.check()
    assert "There is no revision to go back to" in run("rollback.sh")

    cloud.configure()
    assert "is public. Run infra/deploy.sh" in run("upgrade.sh")
    assert "make function cloudsched-api private" in run("deploy.sh")
    assert "Try again in 10 minutes" in run("upgrade.sh")
    age_closing(cloud)
    assert "Upgraded" in run("upgrade.sh")
    assert "delete the composite index on tasks (owner, createdAt)" in run("deploy.sh"), "no client reads it any more"
    cloud.check()
    assert len(history) > 30
    assert find_forgeable_states(history) == []


def test_an_organisation_that_forbids_all_users_can_have_a_public_api(cloud: Cloud) -> None:
    """Where no role may name allUsers, Cloud Run checks none; closing, --check and the order of steps are the same."""
    cloud.fake.policies.add("iam.allowedPolicyMemberDomains")
    cloud.configure(**PUBLIC, PUBLIC_LINKS="yes")
    history: list[State] = []
    for script in ("deploy.sh", "upgrade.sh", "deploy.sh"):
        cloud.ok(script)
        history += cloud.fake.history
    assert not any("allUsers" in row for row in cloud.bindings())
    assert is_unchecked(cloud.state["service/cloudsched-api"])
    assert is_unchecked(cloud.state["service/cloudsched-links"])
    cloud.check()
    cloud.configure()
    cloud.ok("deploy.sh")
    history += cloud.fake.history
    assert not is_unchecked(cloud.state["service/cloudsched-api"])
    assert not is_unchecked(cloud.state["service/cloudsched-links"])
    assert "Try again in 10 minutes" in cloud.run("upgrade.sh").err
    assert find_forgeable_states(history + cloud.fake.history) == []


def test_an_organisation_that_forbids_any_public_service_is_told_so(cloud: Cloud) -> None:
    """The error names both policies, and what to do."""
    cloud.fake.policies |= {"iam.allowedPolicyMemberDomains", "run.managed.requireInvokerIam"}
    assert "Ask for an exception for project" in cloud.fails("deploy.sh", PUBLIC_LINKS="yes").err


def test_the_api_is_not_opened_after_a_rollback(cloud: Cloud) -> None:
    """A rollback brings back revisions that accept unsigned tokens, so deploy.sh does not make the API public."""
    cloud.configure(**PUBLIC)
    cloud.ok("upgrade.sh")
    cloud.ok("rollback.sh")
    assert "is not public yet" in cloud.run("deploy.sh").out
    assert find_forgeable_states(cloud.fake.history) == []


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"API_ACCESS": "private", "MEMORY": "1Gi"}, None),
        ({"API_ACCESS": "public", "API_KEYS_SECRET": "keys"}, API),
        (
            {
                "API_ACCESS": "public",
                "API_KEYS_SECRET": "keys",
                "SETTINGS": "(CLOUDSCHED_PUBLIC_URL=https://plants.example)",
            },
            "https://plants.example",
        ),
    ],
)
def test_links_in_mails_begin_with_an_address_that_everybody_reaches(
    cloud: Cloud, config: dict[str, str], expected: str | None
) -> None:
    """The api's own if it is public, another one if that is named; none if nobody could open it."""
    cloud.configure(**config)
    cloud.state["secret/keys"] = {"name": "keys", "annotations": {}, "versions": {"1": "a"}}
    cloud.ok("upgrade.sh")
    for function in FUNCTIONS:
        assert get_env(cloud.revision(function)).get("CLOUDSCHED_PUBLIC_URL") == expected
