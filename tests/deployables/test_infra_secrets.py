"""Passwords reach the functions through Secret Manager only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.deployables.fake_project import PROJECT, Cloud
from tests.deployables.fake_resources import NUMBER, get_env

if TYPE_CHECKING:
    from pathlib import Path

API = f"https://cloudsched-api-{NUMBER}.us-central1.run.app"
URL = "smtps://mailer:s3cret@mail.example:465"


def test_the_mail_server_is_mounted_where_it_is_used(tmp_path: Path) -> None:
    """In each function, by its version, readable by their accounts alone; a teardown takes that back."""
    cloud = Cloud(tmp_path, None, SECRETS="(CLOUDSCHED_SMTP_URL=mail-server:2)")
    kept = {"name": "mail-server", "annotations": {}, "versions": {"1": "old", "2": URL}}
    cloud.state.update({"secret/mail-server": kept})
    cloud.ok("deploy.sh")
    for function in ("api", "execute", "sweep"):
        status = cloud.state[f"service/cloudsched-{function}"]["status"]
        told = status["revisions"][status["latestReadyRevisionName"]]
        assert "CLOUDSCHED_SMTP_URL=mail-server:2" in told["set-secrets"].split(",")
    readers = {member for member, role, _ in cloud.state["iam/secret/mail-server"] if role.endswith("secretAccessor")}
    assert readers == {
        f"serviceAccount:cloudsched-{account}@{PROJECT}.iam.gserviceaccount.com" for account in ("api", "executor")
    }
    cloud.ok("deploy.sh", "--check")
    cloud.configure(SECRETS="(CLOUDSCHED_SMTP_URL=mail-server:1)")
    assert "infra/upgrade.sh" in cloud.run("deploy.sh", "--check").out
    cloud.configure(SECRETS="(CLOUDSCHED_SMTP_URL=mail-server:2)")
    cloud.ok("teardown.sh", "--yes")
    assert not cloud.state.get("iam/secret/mail-server")


def test_the_password_of_the_mail_provider_is_mounted_as_well(tmp_path: Path) -> None:
    """It is a secret like the mail server's address, and refused among the settings."""
    cloud = Cloud(tmp_path, None, SECRETS="(CLOUDSCHED_MAIL_EVENTS_SECRET=mail-events:1)")
    cloud.state["secret/mail-events"] = {"name": "mail-events", "annotations": {}, "versions": {"1": "x" * 16}}
    cloud.ok("deploy.sh")
    status = cloud.state["service/cloudsched-api"]["status"]
    told = status["revisions"][status["latestReadyRevisionName"]]
    assert "CLOUDSCHED_MAIL_EVENTS_SECRET=mail-events:1" in told["set-secrets"].split(",")


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"API_ACCESS": "private"}, None),
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
    tmp_path: Path, config: dict[str, str], expected: str | None
) -> None:
    """The api's own if it is public, another one if that is named; none if nobody could open it."""
    cloud = Cloud(tmp_path, None, **config)
    cloud.state["secret/keys"] = {"name": "keys", "annotations": {}, "versions": {"1": "a"}}
    cloud.ok("deploy.sh", "--step=services")
    for step in ("secret", "accounts", "database", "indexes", "queues", "roles", "functions"):
        cloud.ok("deploy.sh", f"--step={step}")
    for function in ("api", "execute", "sweep"):
        status = cloud.state[f"service/cloudsched-{function}"]["status"]
        told = get_env(status["revisions"][status["latestReadyRevisionName"]])
        assert told.get("CLOUDSCHED_PUBLIC_URL") == expected


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("SETTINGS", f"(CLOUDSCHED_SMTP_URL={URL})"),
        ("SETTINGS", "(CLOUDSCHED_APPRISE_URLS=slack://token)"),
        ("SETTINGS", "(CLOUDSCHED_MAIL_EVENTS_SECRET=0123456789abcdef)"),
        ("SECRETS", "(CLOUDSCHED_SMTP_URL=mail-server)"),
        ("SECRETS", f"(CLOUDSCHED_SMTP_URL={URL})"),
        ("SECRETS", "(CLOUDSCHED_SECRET=mine:1)"),
        ("SECRETS", "(CLOUDSCHED_SMTP_URL=mail-server:0)"),
    ],
)
def test_a_password_in_the_configuration_is_refused(tmp_path: Path, setting: str, value: str) -> None:
    """Before any command: an environment variable is shown to everybody who may see the function."""
    cloud = Cloud(tmp_path, None, **{setting: value})
    done = cloud.run("deploy.sh")
    assert done.code == 1
    assert setting in done.err
    assert not cloud.calls
