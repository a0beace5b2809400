"""A new project requires cloudsched from where it was installed, so that another environment gets the same."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from tests.cli.conftest import CommandResult
from tests.installs import ROOT

from cloudsched.config.own_requirement import find_own_requirement, read_own_requirement

COMMIT = "6bf053293af2703e91757ebfdbf1ec2c304eda6a"


def read(origin: dict[str, Any] | None) -> tuple[str | None, str, bool]:
    """Return the URL and the version that a requirement names, and whether it is for this machine only."""
    found = read_own_requirement("1.2.3", None if origin is None else json.dumps(origin))
    requirement = Requirement(f"cloudsched[dev]{found.specifier}")
    assert requirement.extras == {"dev"}
    return requirement.url, str(requirement.specifier), found.local_path is not None


@pytest.mark.parametrize(
    ("origin", "url", "version"),
    [
        (None, None, ">=1.2.3"),
        (
            {"url": "ssh://git@git.example/it", "vcs_info": {"vcs": "git", "commit_id": COMMIT}, "subdirectory": "a/b"},
            f"git+ssh://git@git.example/it@{COMMIT}#subdirectory=a/b",
            "",
        ),
        ({"url": "https://files.example/c-1.2.3.whl", "archive_info": {}}, "https://files.example/c-1.2.3.whl", ""),
        ({"url": "file:///gone/c-1.2.3.whl", "archive_info": {}}, None, ">=1.2.3"),
    ],
)  # fmt: skip
def test_what_other_machines_can_reach(origin: dict[str, Any] | None, url: str | None, version: str) -> None:
    """A version of an index, the very commit of a repository, an archive; never a file that is gone."""
    assert read(origin) == (url, version, False)


@pytest.mark.parametrize("about", [{"dir_info": {"editable": True}}, {"dir_info": {}}, {"archive_info": {}}])
def test_a_path_of_this_machine(about: dict[str, Any], tmp_path: Path) -> None:
    """A clone or a wheel, also in a folder with a blank, is named, and known to be of this machine only."""
    place = tmp_path / "my clone"
    place.mkdir()
    assert read({"url": place.as_uri(), **about}) == (place.as_uri(), "", True)


def test_a_new_project_requires_what_is_installed(tmp_path: Path, run_command: Any) -> None:  # noqa: ANN401 - a fixture
    """In all its files, and the command says so if it is a path of this machine."""
    done: CommandResult = run_command("init", str(tmp_path / "shop"))
    wanted = find_own_requirement()
    project = tomllib.loads((tmp_path / "shop" / "pyproject.toml").read_text())
    assert project["project"]["dependencies"] == [f"cloudsched{wanted.specifier}"]
    assert f"cloudsched[dev]{wanted.specifier}" in project["dependency-groups"]["dev"]
    assert f"cloudsched[gcp]{wanted.pinned}\n" in (tmp_path / "shop" / "functions" / "requirements.txt").read_text()
    assert (str(wanted.local_path) in done.out) == (wanted.local_path is not None)
    if wanted.local_path is not None:
        assert wanted.local_path.samefile(ROOT) or wanted.local_path.suffix == ".whl"
