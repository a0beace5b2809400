"""A deployment in the database that an app has: in collections with a prefix, and nothing of the app changes."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path

import pytest
import requests
from click.testing import CliRunner
from tests.deployables.fake_databases import add_app, get_app, key_of, make_database
from tests.deployables.fake_project import IN_USE, PROJECT, ROOT, Cloud
from tests.deployables.fake_resources import State, get_env
from tests.deployables.test_firestore_rules import make_token
from tests.harness import new_project, run_to_end
from tests.recipes.conftest import read_code

from cloudsched.cli.init import init

PREFIX = "cloudsched_"
SHARED = {"DATABASE": "'(default)'", "COLLECTION_PREFIX": PREFIX}


def get_rest(state: State) -> State:
    """Return what the database has outside of the collections with the prefix."""
    found = get_app(state)
    indexes, fields = key_of("indexes", "(default)"), key_of("fields", "(default)")
    found[indexes] = [each for each in found[indexes] if f"/collectionGroups/{PREFIX}" not in each["name"]]
    found[fields] = {name: each for name, each in found[fields].items() if f"/collectionGroups/{PREFIX}" not in name}
    return found


@pytest.fixture
def shared(tmp_path: Path) -> Cloud:
    """A project whose app has data, indexes, TTL policies and rules, and a configuration that names its database."""
    cloud = Cloud(tmp_path, IN_USE, **SHARED)
    add_app(cloud.state)
    return cloud


def test_nothing_of_the_app_changes_whatever_a_deployment_does(shared: Cloud) -> None:
    """Deployed, upgraded, rolled back, removed with its data, each also interrupted. Its own indexes are there."""
    before = get_rest(shared.state)
    shared.run("deploy.sh", die_at=60)
    assert f"match /{PREFIX}tasks/" in shared.ok("deploy.sh").err
    assert get_rest(shared.state) == before
    groups = {each["name"].split("/")[5] for each in get_app(shared.state)[key_of("indexes", "(default)")]}
    assert groups == {"messages", *(PREFIX + each for each in ("tasks", "offers", "executions"))}
    expiring = {
        name.split("/")[5]
        for name, field in get_app(shared.state)[key_of("fields", "(default)")].items()
        if field.get("ttlConfig")
    }
    assert expiring >= {f"{PREFIX}executions", f"{PREFIX}messages"}
    shared.check()
    shared.configure(**SHARED, MEMORY="1Gi")
    shared.run("upgrade.sh", die_at=9)
    shared.ok("upgrade.sh")
    shared.ok("rollback.sh")
    assert get_rest(shared.state) == before
    shared.run("teardown.sh", "--yes", "--with-data", die_at=9)
    assert "bulk-delete" in shared.ok("teardown.sh", "--yes", "--with-data").err
    assert get_rest(shared.state) == before


def test_a_firebase_project_needs_two_commands(shared: Cloud, tmp_path: Path) -> None:
    """`cloudsched init --firebase` and `deploy.sh`: its users may call the API, and its database is as it was."""
    before = get_rest(shared.state)
    folder = tmp_path / "shop"
    written = CliRunner().invoke(init, [str(folder), "--firebase", PROJECT], catch_exceptions=False)
    assert written.exit_code == 0, written.output
    (folder / "functions/handlers.py").write_text(read_code("transactions.md")["orders"], "utf-8")
    shared.config = folder / "infra/config.sh"
    shared.ok("deploy.sh")
    assert get_rest(shared.state) == before
    environment = get_env(shared.revision("api"))
    assert environment["CLOUDSCHED_FIREBASE_PROJECT"] == PROJECT
    assert environment["CLOUDSCHED_DATABASE"] == "(default)"
    assert environment["CLOUDSCHED_COLLECTION_PREFIX"]
    refused = CliRunner().invoke(init, [str(tmp_path / "other"), "--firebase", "My Project"])
    assert refused.exit_code == 2
    assert not (tmp_path / "other").exists()


def test_it_moves_to_a_backup_of_the_app_with_the_app(shared: Cloud) -> None:
    """A restored backup has the app's collections and ours. The old database stays as it is."""
    shared.ok("deploy.sh")
    before = get_app(shared.state)
    make_database(shared.state, "restored")
    shared.state[key_of("collections", "restored")] = ["tasks", f"{PREFIX}sweeps", f"{PREFIX}tasks"]
    database = deepcopy(shared.state["database/restored"])
    shared.configure(**SHARED | {"DATABASE": "restored"})
    shared.ok("upgrade.sh")
    assert get_app(shared.state) == before
    assert shared.state["database/restored"] == database
    names = [each["name"] for each in shared.state[key_of("indexes", "restored")]]
    assert names
    assert all(f"/collectionGroups/{PREFIX}" in name for name in names)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"COLLECTION_PREFIX": "other_"}, "cannot be changed"),
        ({"COLLECTION_PREFIX": ""}, "cannot be changed"),
        ({"RULES": "replace"}, "rules of your app"),
        ({"COLLECTION_PREFIX": "Cloud"}, "lowercase"),
    ],
)
def test_what_would_lose_tasks_or_rules_is_refused(shared: Cloud, settings: dict[str, str], reason: str) -> None:
    """Another prefix than the deployed one, the app's rules replaced: nothing changes."""
    shared.ok("deploy.sh")
    before = deepcopy(shared.state)
    shared.configure(**SHARED | settings)
    for script in ("deploy.sh", "upgrade.sh"):
        assert reason in shared.fails(script).err
    assert shared.state == before


def test_a_deployment_does_not_get_a_prefix_later(cloud: Cloud) -> None:
    """Its tasks are in collections without one."""
    assert "cannot be changed" in cloud.fails("upgrade.sh", COLLECTION_PREFIX=PREFIX).err


def test_a_prefix_that_the_app_uses_is_refused(shared: Cloud) -> None:
    """So is one of another deployment's tasks, a database that is missing, and rules that hold for all collections."""
    collections = shared.state[key_of("collections", "(default)")]
    collections.append(f"{PREFIX}notes")
    assert f"{PREFIX}notes" in shared.fails("deploy.sh").err
    collections[-1] = f"{PREFIX}sweeps"
    role = ["roles/datastore.user", f'resource.name=="projects/{PROJECT}/databases/(default)"']
    member = f"serviceAccount:staging-executor@{PROJECT}.iam.gserviceaccount.com"
    shared.state[f"iam/project/{PROJECT}"] = [[member, role[0], f"expression={role[1]},title=staging-database"]]
    assert "another deployment" in shared.fails("deploy.sh").err
    del collections[-1]
    source = shared.state[f"rules/projects/{PROJECT}/rulesets/app"]["source"]["files"][0]
    for wide in (
        "/{document=**}",
        "/{collection}/{id}",
        "/databases/{database}/documents/{every=**}",
        "/databases/{databaseId}/documents/{collection}/{rest=**}",
        "\t/{a}/{b}/{rest=**}\n",
    ):
        source["content"] = f"service cloud.firestore {{ match {wide} {{ allow write: if true; }} }}"
        assert "for all collections" in shared.fails("deploy.sh").err
    source["content"] = "service cloud.firestore { match /{path=**}/notes/{id} { allow read: if true; } }"
    shared.configure(**SHARED | {"DATABASE": "missing"})
    assert "does not exist" in shared.fails("deploy.sh").err
    assert not any(key.startswith("secret/") for key in shared.state)
    shared.configure(**SHARED)
    shared.ok("deploy.sh", "--step=secret")
    shared.ok("deploy.sh", "--step=indexes")


def test_the_command_for_its_documents_names_every_collection(shared: Cloud) -> None:
    """What teardown.sh leaves can be deleted: no collection of the code is missing, and none is the app's."""
    shared.ok("deploy.sh")
    said = shared.ok("teardown.sh").err
    named = said.partition("--collection-ids=")[2].split()[0].split(",")
    files = [json.loads((ROOT / "infra" / f"firestore.{each}.json").read_text("utf-8")) for each in ("indexes", "ttl")]
    groups = {each["collectionGroup"] for each in (*files[0]["indexes"], *files[0]["fieldOverrides"], *files[1])}
    assert {PREFIX + each for each in groups | {"shards", "sweeps"}} <= set(named)
    assert all(each.startswith(PREFIX) for each in named)


def test_the_lines_for_the_apps_rules_add_to_them(firestore_address: str) -> None:
    """Beside an app's block, even with a function of the same name: users read what is theirs, and write nothing."""
    project = new_project()
    print_rules = f"COLLECTION_PREFIX={PREFIX}; INFRA={ROOT}/infra; source {ROOT}/infra/lib/web.sh; print_rules"
    block = run_to_end(["bash", "-c", print_rules], check=True).stdout
    own = """match /databases/{database}/documents {
        function isSignedIn() { return true; }
        match /tasks/{id} { allow read, write: if isSignedIn(); }
    }"""
    content = f"rules_version = '2'; service cloud.firestore {{ {own}\n{block} }}"
    rules = {"rules": {"files": [{"name": "firestore.rules", "content": content}]}}
    place = f"http://{firestore_address}/emulator/v1/projects/{project}:securityRules"
    requests.put(place, json=rules, timeout=60).raise_for_status()
    documents = f"http://{firestore_address}/v1/projects/{project}/databases/(default)/documents"

    def ask(method: str, path: str, token: str) -> int:
        headers, body = {"Authorization": f"Bearer {token}"}, {"fields": {"owner": {"stringValue": "ada"}}}
        json_body = body if method == "PATCH" else None
        return requests.request(method, f"{documents}/{path}", headers=headers, json=json_body, timeout=60).status_code

    ada, bob = (make_token(uid).replace(PROJECT, project) for uid in ("ada", "bob"))
    task, run, message = (
        f"{PREFIX}tasks/t",
        f"{PREFIX}tasks/t/{PREFIX}executions/e",
        f"{PREFIX}inboxes/ada/{PREFIX}messages/m",
    )
    for path in (task, run, message):
        assert ask("PATCH", path, "owner") == 200
        assert (ask("GET", path, ada), ask("GET", path, bob), ask("PATCH", path, ada)) == (200, 403, 403)
    assert (ask("PATCH", "tasks/own", bob), ask("GET", "tasks/own", ada)) == (200, 200)
