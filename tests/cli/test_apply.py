"""``cloudsched apply``: what it shows, changes and exits with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from cloudsched import App
from cloudsched.cli.apply import apply
from cloudsched.local import app_loader
from cloudsched.local.app_loader import LoadedApp
from cloudsched.testing import Simulation


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    """An app that declares a task in an open simulation, which has none."""
    app = App()
    with Simulation(app):

        @app.scheduled("every day at 9", id="daily")
        @app.handler("report")
        def report() -> None: ...

        monkeypatch.setattr(App, "close", lambda _: None)
        monkeypatch.setattr(app_loader, "load_app", lambda *_, **__: LoadedApp(app, "here"))
        yield app


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(apply, arguments)
    return result.exit_code, result.output


def test_check_and_dry_run_show_the_difference_and_store_nothing(app: App) -> None:
    """A check exits with 1 where something differs, a dry run with 0."""
    code, output = run("--check")
    assert code == 1
    assert output.startswith("+ create daily: report, ")
    assert run("--dry-run") == (0, output)
    assert not app.tasks().items


def test_apply_makes_the_changes_once(app: App) -> None:
    """The second run finds nothing to do, and a check agrees."""
    code, output = run()
    assert (code, output.splitlines()[-1]) == (0, "1 change made.")
    assert app.get("daily").handler == "report"
    assert run() == (0, "Nothing differs.\n")
    assert run("--check") == (0, "Nothing differs.\n")


def test_prune_deletes_what_is_gone(app: App) -> None:
    """Without the option the task is paused."""
    run()
    app.container.registry.registrations.declarations.clear()
    assert run("--check", "--prune")[1] == "- delete daily: is gone from the code\n"
    assert run()[1].startswith("- pause daily: is gone from the code\n")
    run("--prune")
    assert not app.tasks().items
