"""The worker of ``docs/guides/worker-protocol.md``, which needs no Python, is run as it stands there."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.web.callers import MINUTE
from werkzeug.wrappers import Request

from cloudsched import App, Settings
from cloudsched.client import Client
from cloudsched.config.access import Access
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.local.wsgi_server import WebServer
from cloudsched.testing import Simulation
from cloudsched.web.auth.authentication import create_key
from cloudsched.web.auth.roles import Role
from cloudsched.web.functions import serve_api

PAGE = (Path(__file__).parents[3] / "docs" / "guides" / "worker-protocol.md").read_text()
(SCRIPT,) = re.findall(r"^```bash\n(.*?)^```$", PAGE.replace('"wait": 20', '"wait": 1'), re.MULTILINE | re.DOTALL)
TOOLS = ("bash", "curl", "jq")
app = App(Settings())
"""It has no handlers: only the worker knows what `render` is."""


@pytest.fixture
def worker_api() -> Iterator[tuple[Simulation, str, str, Client]]:
    """An API with a worker's key for one queue, and a client of an admin's."""
    (worker, kept), (admin, other) = create_key("box", Role.WORKER, queues=["gpu"]), create_key("admin", Role.ADMIN)
    with (
        Simulation(app, access=Access(api_keys=(str(kept), str(other)))) as sim,
        WebServer(Request.application(lambda request: serve_api(sim.app, request))) as server,
    ):
        server.serve()
        url = f"http://{server.address}"
        with Client(url, key=admin) as client:
            yield sim, url, worker, client


@pytest.mark.skipif(not all(map(shutil.which, TOOLS)), reason=f"needs {', '.join(TOOLS)}")
def test_the_example_worker_of_the_page_runs(worker_api: tuple[Simulation, str, str, Client]) -> None:
    """Without work it does nothing; with a task, it renews the lease, reports progress, and completes the run."""
    sim, url, key, client = worker_api

    path = ":".join({str(Path(shutil.which(tool) or "").parent) for tool in TOOLS})

    def work() -> None:
        said = subprocess.run(  # noqa: S603 - the page's own words
            [shutil.which("bash") or "", "-euo", "pipefail", "-c", SCRIPT],
            env={"URL": url, "KEY": key, "PATH": path},
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert said.returncode == 0, said.stdout + said.stderr

    work()
    task = client.create(owner="ada", title="Render", handler="render", pull={"queue": "gpu", "skill": "cuda"})
    sim.advance(5 * MINUTE)
    work()
    assert client.get(task.id).status is TaskStatus.COMPLETED
    record = client.wait(task.id, timedelta(0))
    assert (record.content, [step.text for step in record.progress]) == ({"frames": 240}, ["half"])
    assert record.attempts[0].worker == "box-1"
