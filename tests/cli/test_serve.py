"""``cloudsched serve`` on the command line: what it refuses before it serves anything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import CommandResult

from cloudsched.config.supervisor import Supervisor

HANDLERS = "from cloudsched import App\napp = App()\n@app.handler('greet')\ndef greet() -> None: ...\n"
KEYS = f"ops:admin:{'0' * 64}"


@pytest.mark.parametrize(
    ("variables", "options", "says"),
    [
        ({"CLOUDSCHED_OPEN": "off"}, (), "Nobody may use this API yet"),
        ({"K_SERVICE": "api", "CLOUDSCHED_OPEN": "off", "CLOUDSCHED_API_KEYS": KEYS}, (), "Cloud Run"),
        ({"CLOUDSCHED_SECRET": "short"}, (), "CLOUDSCHED_SECRET"),
        ({"CLOUDSCHED_SMTP_URL": "smtp://localhost"}, (), "CLOUDSCHED_MAIL_FROM"),
        ({}, ("--data", "file"), "file"),
        ({}, ("--handlers", "nowhere.py"), "There is no file nowhere.py"),
    ],
    ids=["closed", "Cloud Run", "a short secret", "mail without a sender", "no folder", "no handlers"],
)
def test_it_says_what_is_wrong_with_its_settings(
    variables: dict[str, str],
    options: tuple[str, ...],
    says: str,
    run_command: Callable[..., CommandResult],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without credentials configured, in Cloud Run, with a setting that is refused, without handlers: exit code 2."""
    (tmp_path / "handlers.py").write_text(HANDLERS)
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Supervisor, "wait", lambda *_: pytest.fail("it serves"))
    monkeypatch.delenv("CLOUDSCHED_API_KEYS", raising=False)
    for name, value in {"CLOUDSCHED_OPEN": "on", **variables}.items():
        monkeypatch.setenv(name, value)
    said = run_command("serve", "--port", "0", "--data", "data", *options)
    assert said.code == 2
    assert "Ready." not in said.out
    assert says in said.out + said.err
