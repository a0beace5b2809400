"""Settings that are refused, are refused before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cloudsched import App, Settings
from cloudsched.config.access import Access
from cloudsched.config.settings import AssistantSettings, ModelSettings
from cloudsched.errors import Misconfigured
from cloudsched.local.embedded_app import embedded
from cloudsched.local.service import run_service
from cloudsched.local.stack import run_stack

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a short secret": ({"secret": "short"}, "CLOUDSCHED_SECRET"),
    "a short previous secret": ({"secret": "x" * 16, "previous_secret": "short"}, "CLOUDSCHED_SECRET"),
    "a mail server": ({"smtp_url": "smtp://user@host", "mail_from": "a@b.example"}, "password"),
    "a mail server without a sender": ({"smtp_url": "smtp://host"}, "CLOUDSCHED_MAIL_FROM"),
    "a sender": ({"smtp_url": "smtp://host", "mail_from": "nobody"}, "sender of mail"),
    "a model without a key": ({"model": ModelSettings(name="openai:x")}, "CLOUDSCHED_MODEL_KEY"),
    "a model without TLS": (
        {"model": ModelSettings(name="openai:x", key="k", url="http://far.example")},
        "CLOUDSCHED_MODEL_URL",
    ),
    "an assistant without a model": ({"assistant": AssistantSettings(is_on=True)}, "CLOUDSCHED_MODEL"),
    "a key": ({"access": Access(api_keys=("nonsense",))}, "CLOUDSCHED_API_KEYS"),
}


@pytest.mark.parametrize("case", WRONG)
def test_nothing_starts_with_a_setting_that_is_refused(tmp_path: Path, case: str) -> None:
    """One server, an embedded app or the local stack: the error names the setting."""
    fields, name = WRONG[case]
    settings = Settings(**{"access": Access(open=True), **fields})
    app = App()
    with pytest.raises(Misconfigured, match=name), run_service(app, settings, data=tmp_path / "serve"):
        pass
    with pytest.raises(Misconfigured, match=name), embedded(app, tmp_path / "embedded", settings=settings):
        pass
    with pytest.raises(Misconfigured, match=name), run_stack(app, base=settings, store="sqlite"):
        pass
