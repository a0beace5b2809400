"""``cloudsched worker`` on the command line: what it refuses."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import CommandResult

from cloudsched.testing import Simulation

Typed = Callable[..., CommandResult]

HANDLERS = "from cloudsched import App\napp = App()\n@app.handler('note')\ndef note() -> None: ...\n"
WORKER = ("worker", "--queue", "gpu", "--handlers", "handlers.py")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a handler, and no setting in the environment."""
    (tmp_path / "handlers.py").write_text(HANDLERS)
    monkeypatch.chdir(tmp_path)
    for log in (logging.getLogger(), logging.getLogger("cloudsched")):
        monkeypatch.setattr(log, "handlers", [])
    for name in ("CLOUDSCHED_URL", "CLOUDSCHED_KEY", "CLOUDSCHED_TOKEN", "CLOUDSCHED_PLATFORM_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLOUDSCHED_STORE", "sqlite")
    monkeypatch.delenv("CLOUDSCHED_DATA", raising=False)
    return tmp_path


@pytest.mark.parametrize("name", ["key", "token", "platform-token"])
@pytest.mark.parametrize("is_in_environment", [True, False])
def test_a_credential_without_a_url_is_refused(
    name: str,
    is_in_environment: bool,  # noqa: FBT001 - a case
    run_command: Typed,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would not be used: the worker would go to the store. `--url ''` says that this is meant."""
    variable = f"CLOUDSCHED_{name.upper().replace('-', '_')}"
    if is_in_environment:
        monkeypatch.setenv(variable, "csk_x")
    given = [] if is_in_environment else [f"--{name}", "csk_x"]
    said = run_command(*WORKER, *given)
    assert said.code == 2
    assert f"--{name} ({variable}) is for the API: give its address" in said.err
    said = run_command(*WORKER, *given, "--url", "")
    assert "CLOUDSCHED_STORE is sqlite, and CLOUDSCHED_DATA is not set" in said.err, "it looks at the store's settings"


@pytest.mark.parametrize(
    ("options", "env", "says"),
    [
        (("--queue", "a/b"), {}, "--queue 'a/b'"),
        (("--name", "a\nb"), {}, "--name"),
        (("--url", "api.example"), {}, "write the API's address"),
        (("--handlers", "empty.py"), {}, "registers no handler"),
        ((), {"CLOUDSCHED_STORE": "sqlite", "CLOUDSCHED_DATA": "no.db"}, "there is no such file"),
        (("--once", "--url", "http://127.0.0.1:1"), {}, "The API at http://127.0.0.1:1 cannot be reached"),
        (("--url", "http://127.0.0.1:1"), {"CLOUDSCHED_KEY": "csk\n"}, "cloudsched: The key has characters"),
    ],
)
def test_a_mistake_of_the_user_is_reported_without_a_traceback(
    options: tuple[str, ...],
    env: dict[str, str],
    says: str,
    folder: Path,
    run_command: Typed,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The message says what is wrong, and the exit code is 2, or 6 if nothing answers."""
    (folder / "empty.py").write_text("from cloudsched import App\napp = App()\n")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    said = run_command("worker", "--queue", "gpu", *options)
    assert said.code == (6 if "cannot be reached" in says else 2)
    assert says in said.err
    assert "Traceback" not in said.err


def test_a_chosen_task_is_run_or_why_it_cannot_be_is_told(sim: Simulation, url: str, run_command: Typed) -> None:
    """`--task` runs that one and ends."""
    sim.app.create(id="mine", owner="ada", handler="note", pull="gpu")
    sim.advance_to(sim.now)
    said = [run_command(*WORKER, "--url", url, "--task", task_id) for task_id in ("mine", "mine", "none")]
    assert "succeeded  mine" in said[0].out
    assert ["COMPLETED" in said[1].err, "no task 'none'" in said[2].err] == [True, True]
