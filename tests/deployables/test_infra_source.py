"""The built source folder, run as in the cloud: in an environment that holds its requirements and nothing else."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from zipfile import ZipFile

import pytest
from tests.harness import ROOT, run_to_end

pytestmark = pytest.mark.timeout(400)
"""Installs seventy packages, the first time from the network."""

INSTALL = ("install", "--quiet", "--no-deps", "--no-compile")


@dataclass(frozen=True)
class Deployed:
    """A source folder as it is uploaded, and an environment with its requirements installed."""

    source: Path
    names: frozenset[str]
    """The folder's content before anything ran in it."""
    environment: Path

    def command(self, name: str) -> str:
        """Return the path of a program in the environment."""
        return str(self.environment / "bin" / name)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Deployed:
    """Build the source as deploy.sh does, and install its requirements. Offline the tests are skipped, except in CI."""
    folder = tmp_path_factory.mktemp("deployed")
    functions, source, environment = folder / "functions", folder / "source", folder / "environment"
    shutil.copytree(ROOT / "functions", functions, ignore=shutil.ignore_patterns("__pycache__"))
    (functions / ".env").write_text("CLOUDSCHED_SECRET=not-for-the-cloud", "utf-8")
    run = partial(subprocess.run, capture_output=True, text=True, check=False, timeout=300)
    names = frozenset[str]()
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    for command in (
        (str(ROOT / "infra/build_source.py"), str(functions), str(source)),
        (sys.executable, "-m", "venv", "--without-pip", str(environment)),
        # Only the pins are installed: a dependency that they lack would be missing in the cloud too.
        (*pip, "--python", str(environment), *INSTALL, "--requirement", "requirements.txt"),
        (*pip, "--python", str(environment), "check"),
    ):
        cwd = source if source.exists() else folder
        runtime = f"python3{sys.version_info.minor}"  # the pins are for that, and are installed here
        done = run(command, cwd=cwd, env=os.environ | {"PYTHON": sys.executable, "RUNTIME": runtime})
        if done.returncode and "Temporary failure in name resolution" in done.stderr and not os.environ.get("CI"):
            pytest.skip("The packages cannot be fetched without a network.")
        assert done.returncode == 0, done.stderr + done.stdout
        names = names or frozenset(file.name for file in source.iterdir())
    return Deployed(source, names, environment)


def test_the_source_contains_what_is_needed_and_nothing_else(built: Deployed) -> None:
    """The source has the functions, this checkout's package byte for byte, every dependency pinned, and no secrets."""
    (wheel,) = built.source.glob("*.whl")
    names = {"main.py", "handlers.py", "requirements.txt", "sbom.cdx.json", ".python-version", wheel.name}
    assert built.names == names
    with ZipFile(wheel) as archive:
        packed = {name: archive.read(name) for name in archive.namelist() if name.startswith("cloudsched/")}
    assert "cloudsched/app.py" in packed
    installed = next(built.environment.glob("lib/python3*/site-packages"))
    for name, content in packed.items():
        assert hashlib.sha256((installed / name).read_bytes()).digest() == hashlib.sha256(content).digest()
    first, *pins = (built.source / "requirements.txt").read_text("utf-8").splitlines()
    assert first == f"./{wheel.name} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}"
    assert pins
    assert all(re.fullmatch(r"[\w.-]+==[\w.+!-]+( --hash=sha256:[0-9a-f]{64})+", pin) for pin in pins)
    bill = json.loads((built.source / "sbom.cdx.json").read_text("utf-8"))["components"]
    assert [f"{part['name']}=={part['version']}" for part in bill if part["name"] != "cloudsched"] == [
        re.sub(r"[-_.]+", "-", pin.partition(" ")[0].partition("==")[0]).lower()
        + "=="
        + pin.partition(" ")[0].partition("==")[2]
        for pin in pins
    ]


def test_what_only_the_cloud_uses_can_be_imported(built: Deployed) -> None:
    """The adapters for Firestore and Cloud Tasks can be imported, holidays are known, and the three functions exist."""
    adapters = "cloudsched.adapters.firestore.store, cloudsched.adapters.google.cloud_tasks"
    code = f"import {adapters}, holidays, main; main.api, main.execute, main.sweep"
    command = [built.command("python"), "-I", "-c", f"import sys; sys.path.insert(0, ''); {code}"]
    done = run_to_end(command, cwd=built.source)
    assert done.returncode == 0, done.stderr
