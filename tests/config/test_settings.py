"""Settings and arguments that mean nothing are refused where they are read, in words."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from tests.cases import try_each
from tests.harness import ROOT

from cloudsched import Settings
from cloudsched.config.access import Access
from cloudsched.errors import InvalidInput, Misconfigured
from cloudsched.testing import Simulation


@try_each(
    "variable, value, says",
    [
        (
            "CLOUDSCHED_TIME_LIMIT_SECONDS",
            "0.0",
            "is '0.0'; it must be a number of seconds from 1 to 31536000.",
        ),
        ("CLOUDSCHED_DEFAULT_TIME", "24:00", "is '24:00'; it must be a time of day from 00:00 to 23:59."),
        (
            "CLOUDSCHED_DEFAULT_CALENDAR",
            "fr holidays",
            "is 'fr holidays'; it must be the id of a calendar: letters, digits, hyphens and underscores.",
        ),
        ("CLOUDSCHED_DEFAULT_LEAD_SECONDS", "nan", "is 'nan'; it must be a number of seconds from 0 to "),
        ("CLOUDSCHED_RETENTION_DAYS", "-1", "is '-1'; it must be a number of days above 0, or never."),
        ("CLOUDSCHED_FALLBACK", "yes", "is 'yes'; it must be on or off."),
        ("CLOUDSCHED_STORE", "redis", "is 'redis'; it must be firestore or sqlite."),
        ("CLOUDSCHED_MAX_ACTIVE_TASKS", "-1", "is '-1'; it must be a whole number from 1 on or unlimited."),
        ("CLOUDSCHED_LOG_LEVEL", "info", "is 'info'; it must be one of DEBUG, INFO, WARNING, ERROR, CRITICAL."),
        ("CLOUDSCHED_METRIC_LABELS", "team Env", "has 'Env'; each must be the key of a label, such as team."),
        ("CLOUDSCHED_METRIC_LABELS", "a b c d", "has 4 words; there may be 3"),
        ("CLOUDSCHED_REACHABLE", "10.1", "has '10.1'; each must be a network such as 10.1.0.0/16 ("),
        ("CLOUDSCHED_REACHABLE", "10.0.0.0/8 10.1.2.3/16", "has '10.1.2.3/16'; each must be a network such as"),
    ],
)
def test_an_invalid_setting_is_refused(variable: str, value: str, says: str) -> None:
    """The message names the variable, its value, and what it must be."""
    with pytest.raises(Misconfigured) as refused:
        Settings.from_environment({variable: value})
    assert str(refused.value).startswith(f"{variable} {says}")


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({"CLOUDSCHED_EXECUTOR_URL": "execute.example"}, "it must be an address such as https://"),
        ({"CLOUDSCHED_PUBLIC_URL": "https://user@tasks.example"}, "it must be an address such as https://"),
        ({"CLOUDSCHED_SMTP_URL": "hunter2:25"}, "must be smtps://user:password@host:465"),
        ({"CLOUDSCHED_SMTP_URL": "smtp://ada:hun/ter2@mail.example"}, "must be smtps://user:password@host:465"),
        ({"CLOUDSCHED_SMTP_URL": "smtp://ada:hunter2@mail.example"}, "CLOUDSCHED_MAIL_FROM is not"),
        ({"CLOUDSCHED_MAIL_FROM": "Ada"}, "it must be an address such as ada@example.com"),
        ({"CLOUDSCHED_APPRISE_URLS": "slack://x hunter2"}, "must be Apprise's URLs"),
    ],
)
def test_what_would_fail_at_the_first_use_fails_at_the_start(environment: dict[str, str], says: str) -> None:
    """A mail server without a sender said that all is ready, and failed at the first mail. Secrets are not shown."""
    with pytest.raises(Misconfigured, match=says) as raised:
        Settings.from_environment(environment)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("variable", "says"),
    [
        ("CLOUDSCHED_RETENTION_DAY", "did you mean CLOUDSCHED_RETENTION_DAYS?"),
        ("CLOUDSCHED_STOER", "did you mean CLOUDSCHED_STORE?"),
        ("CLOUDSCHED_COLOUR_OF_PAGE", "docs/reference/settings.md lists them."),
    ],
)
def test_a_misspelt_setting_is_refused(variable: str, says: str) -> None:
    """It would be ignored, and nobody would notice before it matters. Its value may be a secret, and is not shown."""
    with pytest.raises(Misconfigured) as raised:
        Settings.from_environment({variable: "hunter2"})
    assert f"{variable} is no setting of cloudsched: {says}" in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_variables_that_are_no_settings_are_left_alone() -> None:
    """Those of commands and of tests, and what Kubernetes gives each pod beside a service of our name."""
    commands, kubernetes = "URL KEY TOKEN COMPLETE TEST_RUN", "PORT PORT_8080_TCP PORT_8080_TCP_ADDR API_SERVICE_HOST"
    others = f"{commands} {kubernetes} SERVICE_PORT_HTTP API_PORT_80_TCP_PROTO".split()
    environment = {f"CLOUDSCHED_{name}": "x" for name in others} | {"CLOUDS": "x", "cloudsched_store": "x"}
    assert Settings.from_environment(environment) == Settings()


@pytest.mark.parametrize(
    ("mistake", "kind", "says"),
    [
        (lambda sim: sim.run_until_idle(timedelta(days=-1)), ValueError, "only moves forward"),
        (lambda sim: sim.add_worker("a b"), InvalidInput, "queue: is no name"),
        (lambda sim: sim.add_worker("gpu", "cuda", "a b"), InvalidInput, "skill: is no name"),
    ],
)
def test_a_simulation_refuses_invalid_arguments(
    mistake: Callable[[Simulation], object], kind: type[Exception], says: str, sim: Simulation
) -> None:
    """A test that passes one fails there, and not later at something that does not happen."""
    with pytest.raises(kind, match=says):
        mistake(sim)


def test_scripts_need_the_filter_unless_a_machine_outside_the_cloud_accepts_less() -> None:
    """The default is to run no script without the filter of system calls; the cloud refuses any other setting."""
    variables = {"CLOUDSCHED_SANDBOX_FILTER": "best-effort"}
    assert Settings.from_environment({}).sandbox.requires_filter
    accepting = Settings.from_environment(variables)
    assert not accepting.sandbox.requires_filter
    assert not Settings.from_environment(accepting.to_environment()).sandbox.requires_filter
    with pytest.raises(Misconfigured, match="CLOUDSCHED_SANDBOX_FILTER=best-effort"):
        Settings.from_environment({**variables, "K_SERVICE": "execute"})


def test_the_page_has_every_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables and values of config.sh have one row each, as ``.ci/site/setting_tables.py`` writes it."""
    monkeypatch.syspath_prepend(str(ROOT / ".ci" / "site"))
    import setting_tables  # type: ignore[import-not-found]  # noqa: PLC0415 - a module of the site's own folder

    page = setting_tables.PAGE.read_text("utf-8")
    assert setting_tables.find_missing(page) == []
    assert setting_tables.put(page) == page
    given = set(re.findall(r"^([A-Z_]+)=", setting_tables.EXAMPLE.read_text("utf-8"), re.MULTILINE))
    assert given <= setting_tables.render_rows().keys()


def test_every_setting_survives_the_way_through_the_environment() -> None:
    """What is written to variables is read back as it was, defaults and other values alike."""
    assert Settings.from_environment(Settings().to_environment()) == Settings()
    changed = Settings(retention=None, fallback=True, default_lead=timedelta(seconds=1.5), access=Access(open=True))
    assert Settings.from_environment(changed.to_environment()) == changed
