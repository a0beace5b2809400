"""Passwords reach the functions through Secret Manager only."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.deployables.fake_project import IN_USE, PROJECT, Cloud
from tests.deployables.fake_resources import NUMBER, get_env

API = f"https://cloudsched-api-{NUMBER}.us-central1.run.app"
URL = "smtps://mailer:s3cret@mail.example:465"
SENDER = "(CLOUDSCHED_MAIL_FROM=ada@example.com)"


def test_passwords_are_mounted_where_they_are_used(tmp_path: Path) -> None:
    """The mail server's and the channels': in each function, by version, readable by their accounts alone.

    A teardown takes that back.
    """
    secrets = "(CLOUDSCHED_SMTP_URL=mail-server:{} CLOUDSCHED_APPRISE_URLS=channels:1)"
    cloud = Cloud(tmp_path, IN_USE, SECRETS=secrets.format(2), SETTINGS=SENDER)
    for name, versions in (("mail-server", {"1": "old", "2": URL}), ("channels", {"1": "slack://token"})):
        cloud.state[f"secret/{name}"] = {"name": name, "annotations": {}, "versions": versions}
    cloud.ok("deploy.sh")
    for function in ("api", "execute", "sweep"):
        mounted = {"CLOUDSCHED_SMTP_URL=mail-server:2", "CLOUDSCHED_APPRISE_URLS=channels:1"}
        assert mounted <= {*cloud.revision(function)["set-secrets"].split(",")}
    for name in ("mail-server", "channels"):
        readers = {member for member, role, _ in cloud.state[f"iam/secret/{name}"] if role.endswith("secretAccessor")}
        assert readers == {
            f"serviceAccount:cloudsched-{account}@{PROJECT}.iam.gserviceaccount.com" for account in ("api", "executor")
        }
    cloud.ok("deploy.sh", "--check")
    cloud.configure(SECRETS=secrets.format(1), SETTINGS=SENDER)
    assert "infra/upgrade.sh" in cloud.run("deploy.sh", "--check", "--step=functions").out
    cloud.configure(SECRETS=secrets.format(2), SETTINGS=SENDER)
    cloud.ok("teardown.sh", "--yes")
    assert not cloud.state.get("iam/secret/mail-server")
    assert not cloud.state.get("iam/secret/channels")


def test_only_the_sweep_knows_the_address_of_its_switch(tmp_path: Path) -> None:
    """Whoever knows it can silence the alarm: the api and handlers get it neither as a variable nor by a role."""
    secrets = "(CLOUDSCHED_SMTP_URL=mail-server:1 CLOUDSCHED_SWEEP_PING=sweep-ping:1)"
    cloud = Cloud(tmp_path, IN_USE, SECRETS=secrets, SETTINGS=SENDER)
    for name in ("mail-server", "sweep-ping"):
        cloud.state[f"secret/{name}"] = {"name": name, "annotations": {}, "versions": {"1": URL}}
    cloud.ok("deploy.sh")
    for function in ("api", "execute", "sweep"):
        mounted = cloud.revision(function)["set-secrets"].split(",")
        assert "CLOUDSCHED_SMTP_URL=mail-server:1" in mounted
        assert ("CLOUDSCHED_SWEEP_PING=sweep-ping:1" in mounted) == (function == "sweep")
    (reader,) = [member for member, role, _ in cloud.state["iam/secret/sweep-ping"] if role.endswith("secretAccessor")]
    assert reader == f"serviceAccount:cloudsched-executor@{PROJECT}.iam.gserviceaccount.com"
    cloud.ok("deploy.sh", "--check")


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
    for function in ("api", "execute", "sweep"):
        assert get_env(cloud.revision(function)).get("CLOUDSCHED_PUBLIC_URL") == expected


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("SETTINGS", f"(CLOUDSCHED_SMTP_URL={URL})"),
        ("SETTINGS", "(CLOUDSCHED_APPRISE_URLS=slack://token)"),
        ("SETTINGS", "(CLOUDSCHED_SWEEP_PING=https://hc-ping.com/1)"),
        ("SECRETS", "(CLOUDSCHED_SMTP_URL=mail-server)"),
        ("SECRETS", f"(CLOUDSCHED_SMTP_URL={URL})"),
        ("SECRETS", "(CLOUDSCHED_SECRET=mine:1)"),
        ("SECRETS", "(CLOUDSCHED_SMTP_URL=mail-server:0)"),
        ("SECRETS", "(CLOUDSCHED_SMTP_URL=mail-server:1)"),  # without a sender, no function would start
    ],
)
def test_a_password_in_the_configuration_is_refused(tmp_path: Path, setting: str, value: str) -> None:
    """Before any command: an environment variable is shown to everybody who may see the function."""
    cloud = Cloud(tmp_path, None, **{setting: value})
    assert setting in cloud.fails("deploy.sh").err
    assert not cloud.calls
