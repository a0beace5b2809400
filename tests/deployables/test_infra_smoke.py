"""The smoke test's account can call the API only while a smoke test runs, however the test ends."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.deployables.fake_project import PROJECT, Cloud
from tests.deployables.fake_resources import OPERATOR, State

SMOKE = f"cloudsched-smoke@{PROJECT}.iam.gserviceaccount.com"
INTERRUPTED, TERMINATED = (130, -2), (143, -15)


def find_access(state: State) -> set[str]:
    """Return what the smoke test's account, or whoever may impersonate it, can do."""
    creators = {row[0] for row in state.get(f"iam/account/{SMOKE}", []) if row[1].endswith("TokenCreator")}
    members = {row[0] for row in state.get("iam/service/cloudsched-api", [])}
    found = creators | (members & {f"serviceAccount:{SMOKE}"})
    return found if state[f"account/{SMOKE}"].get("disabled") else found | {"enabled"}


def had_access(cloud: Cloud) -> bool:
    """Return whether a smoke test could run during the last run of a script."""
    access = {"enabled", f"user:{OPERATOR}", f"serviceAccount:{SMOKE}"}
    return any(find_access(state) == access for state in cloud.fake.history if f"account/{SMOKE}" in state)


@pytest.mark.parametrize("arguments", [(), ("--dry-run",)])
@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"SMOKE_HANDLER": "remnd"}, "Did you mean 'remind'?"),
        ({"SMOKE_PAYLOAD": "'{}'"}, "payload.text"),
        ({"SMOKE_PAYLOAD": "[1]"}, "JSON object"),
    ],
)
def test_a_smoke_test_that_no_handler_takes_is_refused_first(
    tmp_path: Path, config: dict[str, str], says: str, arguments: tuple[str, ...]
) -> None:
    """Before anything is made, with the Python that has cloudsched."""
    cloud = Cloud(tmp_path, None, **config)
    (tmp_path / "bin/python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n', encoding="utf-8")
    assert says in cloud.fails("deploy.sh", *arguments).err
    assert cloud.changes == 0


def test_access_ends_with_the_smoke_test(cloud: Cloud) -> None:
    """After a deployment, an upgrade or a rollback nobody can act as the account, and it cannot reach the API."""
    assert find_access(cloud.state) == set()
    cloud.configure(MEMORY="1Gi")
    for script in ("upgrade.sh", "rollback.sh"):
        cloud.ok(script)
        assert had_access(cloud)
        assert find_access(cloud.state) == set()
    cloud.ok("deploy.sh", "--step=smoke")
    assert had_access(cloud)
    assert find_access(cloud.state) == set()


def test_access_ends_with_a_smoke_test_that_fails(tmp_path: Path, cloud: Cloud) -> None:
    """A task that does not run ends a deployment or an upgrade with an error, and the access with it."""
    assert cloud.run("upgrade.sh", SETTINGS="('BROKEN=yes')").code == 1
    assert had_access(cloud)
    assert find_access(cloud.state) == set()
    broken = Cloud(tmp_path / "first", None, SETTINGS="('BROKEN=yes')")
    assert broken.run("deploy.sh").code == 1
    assert had_access(broken)
    assert find_access(broken.state) == set()


@pytest.mark.parametrize(("status", "code"), [INTERRUPTED, TERMINATED], ids=["INT", "TERM"])
@pytest.mark.parametrize("word", ["print-identity-token", "/trigger"])
@pytest.mark.parametrize("script", ["deploy.sh", "upgrade.sh"])
def test_access_ends_with_a_smoke_test_that_is_interrupted(
    cloud: Cloud, script: str, word: str, status: int, code: int
) -> None:
    """Ctrl-C or a termination ends the run and the access."""
    cloud.configure(MEMORY="1Gi")
    cloud.fake.interrupt_at = (word, status)
    arguments = ["--step=smoke"] if script == "deploy.sh" else []
    assert cloud.run(script, *arguments).code in {code, 128 - code}
    assert had_access(cloud)
    assert find_access(cloud.state) == set()


def test_a_killed_run_is_cleaned_up_by_the_next(cloud: Cloud) -> None:
    """What SIGKILL leaves is reported by --check and revoked by the next deployment, whoever left it."""
    cloud.fake.interrupt_at = ("/trigger", 137)
    assert cloud.run("deploy.sh", "--step=smoke").code == -9
    assert find_access(cloud.state) == {"enabled", f"user:{OPERATOR}", f"serviceAccount:{SMOKE}"}
    cloud.state[f"iam/account/{SMOKE}"].append(["user:bob@example.com", "roles/iam.serviceAccountTokenCreator", ""])
    check = cloud.run("deploy.sh", "--check")
    assert check.out == "differs: account cloudsched-smoke has access to the API although no smoke test runs\n"
    cloud.ok("deploy.sh")
    assert find_access(cloud.state) == set()
    cloud.check()


def test_access_that_cannot_be_revoked_fails_the_run(cloud: Cloud) -> None:
    """A failed revocation does not keep the others from being tried, and ends the run with an error."""
    result = cloud.fails("deploy.sh", "--step=smoke", deny="iam service-accounts disable")
    assert "The smoke test still has access to the API. Run infra/deploy.sh" in result.err
    assert find_access(cloud.state) == {"enabled"}
    cloud.ok("deploy.sh")
    assert find_access(cloud.state) == set()
