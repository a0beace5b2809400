"""What the tests of ``infra/`` share: a fake project, and the scripts run against it."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import time
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.deployables.fake_gcloud import CLIENT, FakeCloud
from tests.deployables.fake_resources import NUMBER, State

ROOT = Path(__file__).parents[2]
PROJECT = "demo-project"

_PYTHON = """#!/bin/sh
# Stands for the pip that builds the wheel: the source is built for real by test_infra_source.py.
if [ "$2" = pip ] && [ "$3" = wheel ]; then touch "$8/cloudsched-0-py3-none-any.whl"; exit; fi
if [ "$2" = pip ]; then echo '{{"install": []}}' > pins.json; exit; fi
exec {python} "$@"
"""


@dataclass(frozen=True)
class Ran:
    """How a script ended."""

    code: int
    out: str
    err: str


class FakeProject:
    """A fake project, and the scripts on it."""

    def __init__(self, folder: Path, state: State | None = None, **config: str) -> None:
        self.folder = folder
        self.checkout = folder / "checkout"
        shutil.copytree(_snapshot(), self.checkout)
        self.config = folder / "config.sh"
        self.configure(**config)
        self.fake = FakeCloud({f"project/{PROJECT}": {"projectNumber": NUMBER}} if state is None else deepcopy(state))
        (folder / "bin").mkdir()
        for name in ("gcloud", "curl"):
            self._command(name, CLIENT.format(name=name, port=self.fake.server_address[1]))
        self._command("python", _PYTHON.format(python=sys.executable))
        self.now = int(time.time())
        """What `date` says to the scripts: it stands still, since how busy the machine is is no matter of theirs."""
        self._command("date", f'#!/bin/sh\nexec {shutil.which("date")} --date=@{self.now} "$@"\n')

    def configure(self, **config: str) -> None:
        """Write the configuration anew; the values are bash."""
        settings = {"PROJECT": PROJECT} | config
        self.config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), encoding="utf-8")

    @property
    def state(self) -> State:
        """What the project has."""
        return self.fake.state

    @property
    def calls(self) -> list[list[str]]:
        """Every call of gcloud and curl of the last run."""
        return self.fake.calls

    @property
    def changes(self) -> int:
        """How many calls of the last run changed something."""
        return self.fake.changes

    @property
    def ledger(self) -> dict[str, str]:
        """The annotations of the secret."""
        annotations: dict[str, str] = self.state["secret/cloudsched-dispatch"]["annotations"]
        return annotations

    def run(self, script: str, *arguments: str, die_at: int = 0, deny: str = "") -> Ran:
        """Run a script of ``infra/`` to its end, or until the fake cloud kills it."""
        self.fake.forget()
        self.fake.die_at, self.fake.deny = die_at, deny
        environment = {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "PATIENCE": "0",
            "PYTHON": str(self.folder / "bin" / "python"),
        }
        done = subprocess.run(  # noqa: S603 - a script of this repository
            [str(self.checkout / "infra" / script), f"--config={self.config}", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
            start_new_session=True,  # what the fake cloud kills is the script and nothing else
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def ok(self, script: str, *arguments: str) -> Ran:
        """Run a script that must succeed."""
        ran = self.run(script, *arguments)
        assert ran.code == 0, ran.err + ran.out
        return ran

    def bindings(self) -> set[tuple[str, str, str, str]]:
        """Who may do what: resource, member, role, condition."""
        found = ((key, rows) for key, rows in self.state.items() if key.startswith("iam/"))
        return {(key.removeprefix("iam/"), *row) for key, rows in found for row in rows}

    def serving(self, function: str) -> dict[str, int]:
        """How many requests in a hundred each revision of a function gets."""
        parts = self.state[f"service/cloudsched-{function}"]["status"]["traffic"]
        return {part["revisionName"]: part["percent"] for part in parts}

    def _command(self, name: str, content: str) -> None:
        file = self.folder / "bin" / name
        file.write_text(content, encoding="utf-8")
        file.chmod(0o755)


@cache
def _snapshot() -> Path:
    """Copy what the scripts read, once: nobody's editing comes between two runs."""
    snapshot = Path(tempfile.mkdtemp(prefix="cloudsched-infra-"))
    atexit.register(shutil.rmtree, snapshot, ignore_errors=True)
    for part in ("infra", "functions", "pyproject.toml", "src/cloudsched/domain/documents/document.py"):
        source, target = ROOT / part, snapshot / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("config.sh", "__pycache__"))
        else:
            shutil.copy2(source, target)
    return snapshot
