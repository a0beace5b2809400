"""The TypeScript client, built."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.clients.typescript_types import FOLDER
from tests.web.api.node_tools import install_node_tools

SOURCES = ("src", "tests", "build.mjs", "package.json", "tsconfig.json")


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the client, built."""
    tools = install_node_tools(FOLDER)
    folder = tmp_path_factory.mktemp("typescript")
    for name in SOURCES:
        source = FOLDER / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)
    (folder / "node_modules").symlink_to(tools / "node_modules")
    run_node(folder, "build.mjs")
    return folder


def find_node() -> str:
    return shutil.which("node") or "node"


def run_node(cwd: Path, *arguments: str) -> None:
    """Run a script, which must succeed."""
    done = subprocess.run(  # noqa: S603 - our own command
        [find_node(), *arguments], capture_output=True, text=True, check=False, timeout=300, cwd=cwd
    )
    assert done.returncode == 0, done.stdout + done.stderr
