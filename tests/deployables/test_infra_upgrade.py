"""upgrade.sh, rollback.sh and rotate-secret.sh: running tasks are safe after every single change."""

from __future__ import annotations

import re
from copy import deepcopy
from datetime import timedelta
from itertools import pairwise

import pytest
from tests.deployables.fake_project import FUNCTIONS, Cloud
from tests.deployables.fake_resources import State, get_env

from cloudsched.domain.documents.document import SCHEMA_VERSION
from cloudsched.engine.signed_dispatches import SigningKeys
from cloudsched.errors import Unauthenticated


def get_traffic(cloud: Cloud) -> list[dict[str, int]]:
    """Return the percentage of requests per revision, for each function."""
    return [cloud.serving(function) for function in FUNCTIONS]


def list_shares(history: list[State], function: str, revision: str) -> list[int]:
    """Return the successive percentages of requests that a revision got."""
    found: list[int] = []
    for state in history:
        parts = state[f"service/cloudsched-{function}"]["status"]["traffic"]
        share = sum(part["percent"] for part in parts if part["revisionName"] == revision)
        if found[-1:] != [share]:
            found.append(share)
    return found


def test_an_upgrade_goes_step_by_step(cloud: Cloud) -> None:
    """New revisions start beside the old ones, get 0, 10, 50 and 100 % of the requests, with a smoke test per step.

    The API and the sweep never have a larger share of the new code than the executor. A rollback moves requests,
    senders first, and deploys nothing.
    """
    before = get_traffic(cloud)
    cloud.ok("upgrade.sh", EXECUTE_CONCURRENCY="20", MEMORY="1Gi")
    after = get_traffic(cloud)
    assert [dict.fromkeys(old, 100) for old in before] == before
    assert all(set(old).isdisjoint(new) and set(new.values()) == {100} for old, new in zip(before, after, strict=True))
    for function, old in zip(FUNCTIONS, before, strict=True):
        assert list_shares(cloud.fake.history, function, *old) == [100, 90, 50, 0]
    assert sum(any(word.endswith("/trigger") for word in call) for call in cloud.calls) == 3
    olds = dict(zip(FUNCTIONS, before, strict=True))
    for state in cloud.fake.history:
        new = {
            function: sum(
                part["percent"]
                for part in state[f"service/cloudsched-{function}"]["status"]["traffic"]
                if part["revisionName"] not in old
            )
            for function, old in olds.items()
        }
        assert new["execute"] >= max(new["sweep"], new["api"]), new
    cloud.check()
    for function in FUNCTIONS:
        (revision,) = cloud.serving(function)
        told = cloud.state[f"service/cloudsched-{function}"]["status"]["revisions"][revision]
        assert cloud.ledger[f"image.{function}"] == told["image"]
        assert re.fullmatch(r"\S+@sha256:[0-9a-f]{64}", told["image"])
    cloud.ok("rollback.sh")
    assert get_traffic(cloud) == before
    moved = [call[4] for call in cloud.calls if call[1:4] == ["run", "services", "update-traffic"]]
    assert moved == ["cloudsched-api", "cloudsched-sweep", "cloudsched-execute"]
    assert not any("deploy" in call for call in cloud.calls)
    assert cloud.run("deploy.sh", "--check").code == 1, "the rolled-back functions differ from the configuration"


def list_touched(cloud: Cloud) -> set[str]:
    """Return the services that the last run deployed, or whose traffic it changed."""
    changing = ("deploy", "update", "update-traffic")
    return {word for call in cloud.calls for word in call if call[1:2] == ["run"] and {*call} & {*changing}} & {
        f"cloudsched-{function}" for function in FUNCTIONS
    }


def test_a_second_upgrade_changes_nothing(cloud: Cloud) -> None:
    """It says so, and so does one after a rotation, whose secrets are no part of what an upgrade compares.

    Earlier revisions do not have the new secret and would refuse new dispatches, so rollback.sh refuses then.
    """
    assert "Nothing was upgraded" in cloud.ok("upgrade.sh").err
    assert cloud.changes == 0
    cloud.ok("upgrade.sh", MEMORY="1Gi")
    cloud.ok("rotate-secret.sh")
    before = deepcopy(cloud.state)
    assert "Nothing was upgraded" in cloud.ok("upgrade.sh").err
    assert cloud.state == before
    assert "rotation of the secret" in cloud.fails("rollback.sh").err


def test_what_has_not_changed_is_neither_built_nor_deployed(cloud: Cloud) -> None:
    """A setting of the API alone touches the API alone, and so does the way back, also after a greater upgrade."""
    cloud.ok("upgrade.sh", MEMORY="1Gi")
    before = get_traffic(cloud)
    cloud.ok("upgrade.sh", MEMORY="1Gi", CORS_ORIGINS="https://app.example")
    assert list_touched(cloud) == {"cloudsched-api"}
    assert get_env(cloud.revision("api"))["CLOUDSCHED_CORS_ORIGINS"] == "https://app.example"
    assert get_traffic(cloud)[:2] == before[:2]
    cloud.check()
    cloud.ok("rollback.sh")
    assert list_touched(cloud) == {"cloudsched-api"}
    assert get_traffic(cloud) == before
    assert "was rolled back" in cloud.fails("rotate-secret.sh").err
    cloud.ok("upgrade.sh")
    assert list_touched(cloud) == {"cloudsched-api"}


@pytest.mark.parametrize("way", ["upgrade.sh", "rollback.sh"])
def test_an_upgrade_of_one_function_that_dies_concerns_it_alone(cloud: Cloud, way: str) -> None:
    """Wherever it was killed, the next upgrade completes it, or a rollback leads back to what served just before."""
    cloud.ok("upgrade.sh", MEMORY="1Gi")
    before, state = get_traffic(cloud), deepcopy(cloud.state)
    for die_at in range(2, 26, 4):
        cloud.fake.state = deepcopy(state)
        code = cloud.run("upgrade.sh", die_at=die_at, MEMORY="1Gi", CORS_ORIGINS="https://app.example").code
        is_begun = cloud.ledger.get("serving.api", "none") != "none"
        if way == "rollback.sh" and code and is_begun:
            cloud.ok(way)
            assert get_traffic(cloud) == before
            continue
        cloud.ok("upgrade.sh")
        assert get_traffic(cloud)[:2] == before[:2]
        assert get_env(cloud.revision("api"))["CLOUDSCHED_CORS_ORIGINS"] == "https://app.example"
        assert cloud.serving("api") == {cloud.state["service/cloudsched-api"]["status"]["latestReadyRevisionName"]: 100}


@pytest.mark.parametrize(("setting", "complaint"), [("BROKEN", "did not run"), ("DEAF", "answered 500")])
def test_an_upgrade_that_fails_is_reverted(cloud: Cloud, setting: str, complaint: str) -> None:
    """If the smoke test fails or the new API does not work, all requests go back to the old revisions."""
    before = get_traffic(cloud)
    assert complaint in cloud.fails("upgrade.sh", SETTINGS=f"({setting}=yes)").err
    assert get_traffic(cloud) == before
    cloud.configure()
    cloud.ok("upgrade.sh")


def test_an_upgrade_that_dies_is_resumed_or_rolled_back(cloud: Cloud) -> None:
    """A killed upgrade can be completed or rolled back; the old revisions are still known."""
    before = get_traffic(cloud)
    assert cloud.run("upgrade.sh", die_at=12, MEMORY="1Gi").code == -9
    cloud.ok("rollback.sh")
    assert get_traffic(cloud) == before
    assert cloud.run("upgrade.sh", die_at=13).code == -9
    cloud.ok("upgrade.sh")
    assert all(set(share.values()) == {100} for share in get_traffic(cloud))
    cloud.ok("rollback.sh")
    assert get_traffic(cloud) == before


def _write_schema(cloud: Cloud, version: int) -> None:
    file = cloud.checkout / "src/cloudsched/domain/documents/document.py"
    code = file.read_text("utf-8")
    file.write_text(re.sub(r"(?m)^SCHEMA_VERSION = \d+$", f"SCHEMA_VERSION = {version}", code), "utf-8")


def test_a_newer_schema_gets_all_requests_and_cannot_be_rolled_back(cloud: Cloud) -> None:
    """Code with a newer schema version never shares requests with the old code, and is not rolled back to it."""
    (old,) = cloud.serving("execute")
    _write_schema(cloud, SCHEMA_VERSION + 1)
    cloud.ok("upgrade.sh")
    assert list_shares(cloud.fake.history, "execute", old) == [100, 0]
    assert f"written with schema version {SCHEMA_VERSION + 1}" in cloud.fails("rollback.sh").err
    _write_schema(cloud, SCHEMA_VERSION)
    assert f"version {SCHEMA_VERSION + 1} is stored" in cloud.fails("upgrade.sh").err


# ── The check before it ──────────────────────────────────────────────────────────────────────────────────────────────


def _answer_check(cloud: Cloud, output: str, code: int) -> None:
    (cloud.folder / "bin/answer").write_text(f"{output}\n", "utf-8")
    (cloud.folder / "bin/code").write_text(str(code), "utf-8")


def test_an_upgrade_looks_first_at_what_is_deployed(cloud: Cloud) -> None:
    """The handlers here are compared with the serving API, as the smoke test's account, whose token no argument has."""
    cloud.configure(MEMORY="1Gi")
    _answer_check(cloud, "Looked at all. Nothing would fail.", 0)
    done = cloud.ok("upgrade.sh")
    assert "Nothing would fail." in done.err
    checked = (cloud.folder / "bin/checked").read_text("utf-8")
    assert f"--handlers {cloud.checkout}/infra/../functions/handlers.py" in checked
    assert "--url https://cloudsched-api-" in checked
    token = (cloud.folder / "bin/token").read_text("utf-8")
    assert token
    assert token not in checked + done.out + done.err


@pytest.mark.parametrize(("code", "says"), [(1, "What would fail is above"), (5, "could not be compared")])
def test_an_upgrade_that_would_break_tasks_changes_nothing(cloud: Cloud, code: int, says: str) -> None:
    """Whatever is found, or hides what would be: all stays as it was, and may be upgraded all the same."""
    cloud.configure(MEMORY="1Gi")
    before = deepcopy(cloud.state)
    _answer_check(cloud, "fails    3 times of 'greet'", code)
    refused = cloud.fails("upgrade.sh")
    assert "fails    3 times of 'greet'" in refused.err
    assert says in refused.err
    assert cloud.state == before
    old = get_traffic(cloud)
    cloud.ok("upgrade.sh", "--unchecked")
    assert get_traffic(cloud) != old


def test_an_upgrade_that_cannot_look_says_what_it_needs(cloud: Cloud) -> None:
    """Without cloudsched here nothing is changed, unless it is told not to look."""
    cloud.configure(MEMORY="1Gi")
    before = deepcopy(cloud.state)
    python = cloud.folder / "bin/python"
    plain = python.rename(python.with_name("plain-python"))
    python.write_text(f'#!/bin/sh\n[ "$2" != "import cloudsched" ] || exit 1\nexec {plain} "$@"\n', "utf-8")
    python.chmod(0o755)
    assert "pip install them, and set PYTHON" in cloud.fails("upgrade.sh").err
    assert cloud.state == before
    cloud.ok("upgrade.sh", "--unchecked")


# ── Rotation ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def list_serving_pairs(history: list[State]) -> list[set[tuple[str, str]]]:
    """Return the (function, secrets) pairs that serve during each change: those before and after it."""
    states = [
        {
            (function, service["revisions"][part["revisionName"]]["set-secrets"])
            for function in FUNCTIONS
            for service in [state[f"service/cloudsched-{function}"]["status"]]
            for part in service["traffic"]
        }
        for state in history
    ]
    return [one | other for one, other in pairwise(states)]


def get_mounted(cloud: Cloud) -> str:
    """Return the secrets of the executor that serves."""
    ((_, mounted),) = {pair for pair in list_serving_pairs([cloud.state, cloud.state])[0] if pair[0] == "execute"}
    return mounted


def get_keys(mounted: str, secrets: dict[str, str]) -> SigningKeys:
    pairs = dict(pair.split("=") for pair in mounted.split(","))
    values = {name: secrets[version.rpartition(":")[2]] for name, version in pairs.items()}
    return SigningKeys(values["CLOUDSCHED_SECRET"], values.get("CLOUDSCHED_PREVIOUS_SECRET"))


def find_refused_pairs(history: list[State]) -> list[tuple[str, str]]:
    """Return the pairs of a sender and an executor that serve together although the executor refuses the sender."""
    secrets = history[-1]["secret/cloudsched-dispatch"]["versions"]
    found: list[tuple[str, str]] = []
    for instant in list_serving_pairs(history):
        for sender in instant:
            token = get_keys(sender[1], secrets).sign(b"a dispatch")
            for function, mounted in instant:
                try:
                    if function == "execute":
                        get_keys(mounted, secrets).verify(b"a dispatch", token)
                except Unauthenticated:
                    found.append((f"{sender[0]}: {sender[1]}", f"{function}: {mounted}"))
    return found


def test_a_rotation_refuses_no_dispatch(cloud: Cloud) -> None:
    """At every moment, every executor, old or new, accepts what any app that shares the queue signs.

    New revisions mount the secrets named in the ledger: after an upgrade the executor still accepts the old one.
    """
    cloud.ok("rotate-secret.sh")
    assert find_refused_pairs(cloud.fake.history) == []
    secrets = cloud.state["secret/cloudsched-dispatch"]["versions"]
    assert secrets["1"] != secrets["2"]
    waiting = SigningKeys(secrets["1"]).sign(b"for weeks")
    for function in FUNCTIONS:
        ((revision, _),) = cloud.serving(function).items()
        keys = get_keys(
            cloud.state[f"service/cloudsched-{function}"]["status"]["revisions"][revision]["set-secrets"], secrets
        )
        assert keys.current == secrets["2"]
        if function == "execute":
            keys.verify(b"for weeks", waiting)
    history = cloud.fake.history
    cloud.ok("upgrade.sh", MEMORY="1Gi")
    assert find_refused_pairs(history + cloud.fake.history) == []
    assert get_mounted(cloud) == (
        "CLOUDSCHED_SECRET=cloudsched-dispatch:2,CLOUDSCHED_PREVIOUS_SECRET=cloudsched-dispatch:1"
    )


def test_a_rotation_that_dies_is_resumed(cloud: Cloud) -> None:
    """A rotation killed at any change and run again refuses no dispatch, and ends with one new secret in use."""
    history: list[State] = []
    for die_at in (1, 3, 4, 5):
        assert cloud.run("rotate-secret.sh", die_at=die_at).code == -9
        history += cloud.fake.history
    cloud.ok("rotate-secret.sh")
    history += cloud.fake.history
    assert find_refused_pairs(history) == []
    assert cloud.ledger["secret.previous"] == "1"
    cloud.check()


def test_the_old_secret_is_disabled_when_nothing_waits(cloud: Cloud) -> None:
    """--finish is refused for 31 days; then the executor stops accepting the old secret, which is then disabled.

    --compromised disables the old secret without waiting.
    """
    cloud.ok("rotate-secret.sh")
    assert "Try again in 31 days" in cloud.fails("rotate-secret.sh", "--finish").err
    assert "can accept only two secrets" in cloud.fails("rotate-secret.sh").err
    long_ago = timedelta(days=31, minutes=1)
    cloud.ledger["secret.rotated"] = str(cloud.now - int(long_ago.total_seconds()))
    cloud.ok("rotate-secret.sh", "--finish")
    assert cloud.state["secret/cloudsched-dispatch"]["versions"]["1"] == "DISABLED"
    assert get_mounted(cloud) == "CLOUDSCHED_SECRET=cloudsched-dispatch:2"
    unmounted = next(at for at, call in enumerate(cloud.calls) if any("--remove-secrets" in word for word in call))
    disabled = next(at for at, call in enumerate(cloud.calls) if "disable" in call)
    assert unmounted < disabled
    cloud.ok("rotate-secret.sh")
    cloud.ok("rotate-secret.sh", "--compromised")
    assert cloud.state["secret/cloudsched-dispatch"]["versions"]["2"] == "DISABLED"
