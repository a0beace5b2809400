"""How a second terminal joins a stack: its variables, for this user alone, and only while it runs."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from cloudsched import Settings
from cloudsched.errors import Misconfigured
from cloudsched.local.environment_file import publish_environment, read_environment


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_shell_gets_the_settings_of_the_stack(folder: Path) -> None:
    """A shell that evaluates the file gets the same settings, for any earlier environment and any characters."""
    odd = 'it\'s $HOME `x` \\ "y"'
    settings = Settings(store="sqlite", secret=odd, data=folder / "a b.db")
    with publish_environment(8080, settings.to_environment(), settings.unset_variables):
        script = read_environment(8080) + "env -0"
        env = {"PATH": os.environ["PATH"], "K_SERVICE": "left over", "CLOUDSCHED_FALLBACK": "on"}
        said = subprocess.run(["/bin/sh", "-c", script], capture_output=True, env=env, check=True).stdout  # noqa: S603 - ours
    variables = dict(each.split("=", 1) for each in said.decode().split("\0") if each)
    assert Settings.from_environment(variables) == settings


def test_nobody_else_can_read_it(folder: Path) -> None:
    """The file holds the secret: its folder and itself are the user's alone, and a folder of others is refused."""
    with publish_environment(8080, {"A": "b"}):
        (own,) = folder.iterdir()
        (file,) = own.iterdir()
        assert (own.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)
        own.chmod(0o755)
        with pytest.raises(Misconfigured, match="only you can read"):
            read_environment(8080)
        own.chmod(0o700)


def test_it_is_there_only_while_the_stack_runs(folder: Path) -> None:
    """Without a stack the error says how to start one, or which port has one; the file of a killed stack is removed."""
    with pytest.raises(Misconfigured, match=r"Start it in another terminal: cloudsched dev\."):
        read_environment(8080)
    with (
        publish_environment(9000, {"A": "b"}),
        pytest.raises(Misconfigured, match=r"on port 8080\. Give --port 9000 for the one that runs"),
    ):
        read_environment(8080)
    with pytest.raises(Misconfigured):
        read_environment(9000)
    dead = subprocess.Popen(["true"])  # noqa: S607 - any process that ends
    dead.wait()
    (own,) = folder.iterdir()
    left = own / "dev-8080.env"
    left.write_text(f"# {dead.pid}\nexport A=b\n")
    with pytest.raises(Misconfigured):
        read_environment(8080)
    assert not left.exists()
