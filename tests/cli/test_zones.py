"""``cloudsched zones diff``: which zones and tasks a release moves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from tests.zone_data import CAIRO, MEXICO, load_release

from cloudsched import App, Schedule, Settings
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.adapters.zone_releases import open_release
from cloudsched.cli.main import cloudsched
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path


def unpack(release: str, folder: Path) -> Path:
    """Write a folder as a wheel of a release has it, with three zones."""
    data, package = load_release(release), folder / release / "tzdata"
    names = (MEXICO, CAIRO, "Europe/Berlin")
    for name in names:
        file = package / "zoneinfo" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data.load_file(name))
    (package / "zones").write_text("\n".join(names), "utf-8")
    (package / "__init__.py").write_text(f'IANA_VERSION = "{release}"\n', "utf-8")
    return folder / release


def test_zones_and_tasks_that_move_are_shown(tmp_path: Path) -> None:
    """It names each zone with the first instant at which it differs, and each task with what moves; changes nothing."""
    old, new, file = unpack("2022a", tmp_path), unpack("2023c", tmp_path), tmp_path / "store.sqlite"
    store = SqliteStore(file)
    app = App(Settings(secret="a" * 32), store=store, dispatcher=_NoQueue())

    @app.handler("note")
    def note() -> None:
        pass

    rule = {"rrule": "FREQ=DAILY", "dtstart": "2026-01-01T09:00:00"}
    fields: dict[str, Any] = {"owner": "ada", "handler": "note"}
    moving = app.create(title="Mexico", schedule=Schedule(**rule, timezone=MEXICO), **fields)
    app.create(title="Berlin", schedule=Schedule(**rule, timezone="Europe/Berlin"), **fields)
    store.close()
    command = ["zones", "diff", str(old), str(new), "--store", str(file)]
    printed = CliRunner().invoke(cloudsched, command, catch_exceptions=False).output
    assert "tzdata 2022a → 2023c: 2 zones differ from now on" in printed
    assert "America/Mexico_City  from 20" in printed
    assert "UTC-05:00 → UTC-06:00" in printed
    assert "1 active tasks have occurrences that move within 366 days." in printed
    found = json.loads(CliRunner().invoke(cloudsched, [*command, "--json"], catch_exceptions=False).output)
    assert [each["zone"] for each in found["zones"]] == [CAIRO, MEXICO]
    (task,) = found["tasks"]
    assert task["id"] == moving.id
    assert all(each["executionId"].endswith("T090000-America.Mexico_City") for each in task["occurrences"])
    hours = {(each["before"][11:13], each["after"][11:13]) for each in task["occurrences"]}
    assert hours == {("14", "15")}
    assert len(task["occurrences"]) > 200


class _NoQueue:
    def create(self, message: object) -> None:
        """Take it."""

    def close(self) -> None:
        """Do nothing."""


def test_what_is_no_release_is_refused(tmp_path: Path) -> None:
    """A folder without the package, and a word, say what to give instead."""
    for name in (str(tmp_path), "tuesday", str(tmp_path / "no.whl")):
        with pytest.raises(InvalidInput):
            open_release(name)
