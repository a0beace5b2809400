"""What is published is the package of the tag, with its changes written down, and nothing else."""

from __future__ import annotations

import re
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml
from tests.harness import ROOT, run_to_end

VERSION = "9.8.7"
WORKFLOW_TEXT = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
WORKFLOW = yaml.safe_load(WORKFLOW_TEXT)


def check(tmp_path: Path, tag: str, *, packed: str = "", changelog: str = f"## {VERSION} (2027-01-01)\n") -> str:
    """Return what the check says of packages of this version, in a checkout of its own."""
    (tmp_path / ".ci").mkdir()
    script = tmp_path / ".ci" / "check_release.py"
    script.write_bytes((ROOT / ".ci" / "check_release.py").read_bytes())
    (tmp_path / "CHANGELOG.md").write_text(changelog)
    dist = tmp_path / "dist"
    dist.mkdir()
    with ZipFile(dist / f"cloudsched-{VERSION}-py3-none-any.whl", "w") as wheel:
        for name in ("cloudsched/app.py", f"cloudsched-{VERSION}.dist-info/METADATA", *filter(None, [packed])):
            wheel.writestr(name, "")
    with tarfile.open(dist / f"cloudsched-{VERSION}.tar.gz", "w:gz") as source:
        source.add(script, f"cloudsched-{VERSION}/src/cloudsched/app.py")
        source.add(script, f"cloudsched-{VERSION}/pyproject.toml")
    command = [sys.executable, str(script), tag, str(dist)]
    done = run_to_end(command)
    assert done.returncode == (0 if "belong together" in done.stdout else 1), done.stderr
    return done.stdout


def test_a_whole_release_is_accepted(tmp_path: Path) -> None:
    """The version of the tag, a section of the changelog, and the package alone."""
    assert check(tmp_path, f"v{VERSION}") == f"v{VERSION}: tag, packages and changelog belong together\n"


@pytest.mark.parametrize(
    ("tag", "packed", "changelog", "fault"),
    [
        ("v9.8.6", "", f"## {VERSION}\n## 9.8.6\n", "is not of version 9.8.6"),
        (f"v{VERSION}", "", "## Unreleased\n", f"no section '## {VERSION}'"),
        (f"v{VERSION}", "tests/test_app.py", f"## {VERSION}\n", "the wheel packs tests/test_app.py"),
        (f"v{VERSION}", "cloudsched/__pycache__/app.pyc", f"## {VERSION}\n", "app.pyc is packed"),
    ],
)
def test_a_release_is_refused(tmp_path: Path, tag: str, packed: str, changelog: str, fault: str) -> None:
    """Another version's packages, changes that nobody wrote down, and files that do not belong there."""
    assert fault in check(tmp_path, tag, packed=packed, changelog=changelog)


def test_the_workflow_publishes_without_a_password() -> None:
    """Only the jobs that publish may ask for a token, after an approval; they get what the build has signed."""
    jobs = WORKFLOW["jobs"]
    assert WORKFLOW["permissions"] == {}
    assert jobs["publish"]["environment"] == "pypi"
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["needs"] == "sign"
    assert jobs["sign"]["needs"] == "build"
    assert jobs["publish-npm"]["environment"] == "npm"
    assert jobs["publish-npm"]["permissions"] == {"id-token": "write"}
    assert jobs["publish-npm"]["needs"] == "publish"
    assert "password" not in WORKFLOW_TEXT
    assert "secrets." not in WORKFLOW_TEXT


def test_no_tool_of_development_runs_where_a_token_is() -> None:
    """A job that can get one checks nothing out, and runs nothing but pinned actions and the client that publishes."""
    trusted = [job for job in WORKFLOW["jobs"].values() if job["permissions"].get("id-token") == "write"]
    assert len(trusted) > 1
    for job in trusted:
        steps = job["steps"]
        assert not [each for each in steps if "checkout" in each.get("uses", "")]
        assert all(each["run"].startswith("npx --yes npm@") for each in steps if "run" in each)
    assert "id-token" not in WORKFLOW["jobs"]["build"]["permissions"]


def test_actions_are_pinned() -> None:
    """By the hash of a commit, with the version beside it: a tag can be moved by whoever takes over the repository."""
    used = re.findall(r"uses: (\S+)@(\S+)(.*)", WORKFLOW_TEXT)
    assert used
    for action, commit, comment in used:
        assert re.fullmatch(r"[0-9a-f]{40}", commit), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), action


@pytest.mark.parametrize(
    ("changelog", "notes"),
    [
        (
            "# Changelog\n\n## Unreleased\n\n## 9.8.7 (2027-01-01)\n\n- A.\n\n### B\n\n- C.\n\n## 9.8.6\n\n- D.\n",
            "- A.\n\n### B\n\n- C.",
        ),
        ("## 9.8.7\n\n- last", "- last"),
        ("## 9.8.7\n\n## 9.8.6\n\n- D.\n", ""),
        ("## 9.8.70\n\n- E.\n", ""),
    ],
)
def test_the_notes_are_the_section_of_the_version(changelog: str, notes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it and nothing else, whatever stands around it."""
    monkeypatch.syspath_prepend(str(ROOT / ".ci"))
    import read_changes  # type: ignore[import-not-found]  # noqa: PLC0415 - of the folder of scripts

    assert read_changes.read_section(changelog, VERSION) == notes
