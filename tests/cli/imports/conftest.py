"""An app in a simulation, and a function that types an import."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cloudsched import App
from cloudsched.cli.apply import import_jobs
from cloudsched.local import app_loader
from cloudsched.local.app_loader import LoadedApp
from cloudsched.testing import Simulation


@pytest.fixture(name="sim")
def open_simulation(monkeypatch: pytest.MonkeyPatch) -> Iterator[Simulation]:
    """An app whose handlers return what they get."""
    app = App()

    @app.handler("any-job")
    def take_anything(payload: dict[str, Any]) -> dict[str, Any]:
        return payload

    @app.handler("report")
    def report(payload: dict[str, Any]) -> dict[str, Any]:
        return payload

    @app.handler("plain")
    def take_nothing() -> None: ...

    with Simulation(app) as sim:
        monkeypatch.setattr(App, "close", lambda _: None)
        monkeypatch.setattr(app_loader, "load_app", lambda *_, **__: LoadedApp(app, "here"))
        yield sim


@pytest.fixture(name="load")
def type_command(sim: Simulation, tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """Write a file, import it, and return the exit code and what is printed."""
    del sim  # it is open

    def load(kind: str, content: str | bytes, *options: str, answer: str = "") -> tuple[int, str]:
        file = tmp_path / "jobs"
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        result = CliRunner().invoke(import_jobs, [kind, str(file), *options], input=answer)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.output

    return load
