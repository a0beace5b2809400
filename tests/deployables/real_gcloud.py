"""The real gcloud, as one process that has loaded its modules, of which a copy is made for each call."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from tests.deployables.fake_project import AT_END, ROOT, serve_python
from tests.deployables.python_server import CLIENT
from tests.harness import run_to_end


@dataclass(frozen=True)
class Gcloud:
    python: Path
    """Its interpreter."""
    root: Path
    """Where it is installed."""

    def parse(self, commands: list[list[str]], folder: Path) -> list[str | None]:
        """Have gcloud's own parser check commands without running them; return its errors."""
        done = run_to_end(
            [str(self.python), str(ROOT / "tests/deployables/gcloud_arguments.py"), str(self.root)],
            input=json.dumps(commands),
            env=os.environ | {"CLOUDSDK_CONFIG": str(folder), "CLOUDSDK_CORE_DISABLE_PROMPTS": "1"},
        )
        assert done.returncode == 0, done.stderr
        complaints: list[str | None] = json.loads(done.stdout)
        return [complaint and complaint + "\n" + done.stderr for complaint in complaints]


@cache
def find_gcloud() -> Gcloud:
    """Start the gcloud on the PATH. Without it the tests fail where CI is set, and are skipped elsewhere."""
    found = shutil.which("gcloud")
    if found is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(
            "No gcloud on the PATH: cloud.google.com/sdk/docs/install"
        )
    folder = Path(tempfile.mkdtemp(prefix="cloudsched-gcloud-"))
    AT_END.callback(shutil.rmtree, folder, ignore_errors=True)
    asked = run_to_end(
        [found, "info", "--format=value(installation.sdk_root,basic.python_location)"],
        check=True,
        env=os.environ | {"CLOUDSDK_CONFIG": str(folder / "config")},
    )
    root, python = map(Path, asked.stdout.strip().split("\t"))
    path = f"{root / 'lib'}:{root / 'lib' / 'third_party'}"
    waiting = folder / "python"
    port = serve_python(python, "googlecloudsdk.gcloud_main", path=path)
    waiting.write_text(CLIENT.format(python=python, port=port), "utf-8")
    waiting.chmod(0o755)
    return Gcloud(waiting, root)
