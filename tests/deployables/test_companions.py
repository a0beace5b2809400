"""cloudsched installs beside what its users have: the newest release of each, and one conflict fails the test."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from infra.build_source import find_index_options, find_uv
from tests.harness import ROOT, run_to_end

COMPANIONS = (
    *("google-genai", "google-adk", "google-cloud-aiplatform", "fastapi", "django", "celery", "firebase-functions"),
    *("temporalio", "litestar", "openai", "anthropic", "mcp"),
)


def uv(*arguments: str, requirements: str) -> str:
    """Run a command of uv's on requirements; what it says of a conflict is the test's failure."""
    command = [find_uv(), "pip", *arguments, "--quiet", *find_index_options()]
    trusted = {"SSL_CERT_FILE": os.environ["PIP_CERT"]} if "PIP_CERT" in os.environ else {}
    done = run_to_end(command, input=requirements, env=trusted | os.environ)
    assert done.returncode == 0, done.stderr
    return done.stdout


def make_environment(folder: Path, *requirements: str) -> Path:
    subprocess.run([find_uv(), "venv", "--quiet", "--python", sys.executable, folder], check=True)  # noqa: S603
    uv("install", "--python", str(folder / "bin/python"), *requirements, requirements="")
    return folder / "bin/python"


def resolve(companion: str) -> str:
    options = ("compile", "-", "--python-version", "3.11", "--no-header", "--no-annotate")
    newest = uv(*options, "--no-deps", requirements=companion).strip()
    return uv(*options, requirements=f"{newest}\ncloudsched[gcp,server] @ {ROOT.as_uri()}\n")


def test_it_resolves_beside_the_newest_release_of_each_companion() -> None:
    """With all that a deployment and a server need; a conflict is told with both requirements."""
    with ThreadPoolExecutor(4) as pool:
        for companion, found in zip(COMPANIONS, pool.map(resolve, COMPANIONS), strict=True):
            assert f"\n{companion}==" in f"\n{found}"


def test_it_installs_and_runs_beside_each_companion(tmp_path: Path) -> None:
    """The packages themselves go together, too, not only what they declare."""
    for companion in COMPANIONS:
        pins = tmp_path / f"{companion}.txt"
        pins.write_text(resolve(companion), "utf-8")
        python = make_environment(tmp_path / companion, "--requirement", str(pins))
        code = "from cloudsched import App; from cloudsched.client import Client; import grpc, waitress"
        subprocess.run([python, "-c", code], check=True, cwd=tmp_path)  # noqa: S603


@pytest.mark.parametrize("major", ["2", "4"])
def test_it_installs_and_reads_rules_as_each_major_version_of_dateutil(tmp_path: Path, major: str) -> None:
    """Random rules beside dateutil's, whichever of the two a user has."""
    tools = ("pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "packaging", "time-machine")
    python = make_environment(tmp_path / "it", f"python-dateutil=={major}.*", *tools, str(ROOT))
    judged = ("tests/domain/recurrence/test_against_dateutil.py", "tests/domain/recurrence/test_rfc5545_cases.py")
    subprocess.run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *judged], check=True, cwd=ROOT)  # noqa: S603
