"""The built source folder, run as in the cloud: in an environment that holds its requirements and nothing else."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from tests.harness import ROOT, free_port, process, request, wait_until

from cloudsched import App
from cloudsched.config.settings import Settings
from cloudsched.domain.documents.policy import Priority
from cloudsched.emulator import CloudTasksEmulator

pytestmark = pytest.mark.timeout(400)
"""Installs seventy packages, the first time from the network."""

SECRET = "a-secret-of-the-tests"  # noqa: S105 - a secret for tests
THREADS = 10
INSTALL = ("install", "--quiet", "--no-deps", "--no-compile")
HANDLERS = '''
"""A user's handlers: one that ends only when enough others run at the same time."""

import threading

from cloudsched import App

app = App()
together = threading.Barrier({threads}, timeout=60)


@app.handler("meet")
def meet() -> str:
    """Wait until as many handlers run at the same time as there are threads."""
    together.wait()
    return "met"
'''


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
    (functions / "handlers.py").write_text(HANDLERS.format(threads=THREADS), encoding="utf-8")
    (functions / ".env").write_text("CLOUDSCHED_SECRET=not-for-the-cloud", encoding="utf-8")
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
    first, *pins = (built.source / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert first == f"./{wheel.name} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}"
    assert pins
    assert all(re.fullmatch(r"[\w.-]+==[\w.+!-]+( --hash=sha256:[0-9a-f]{64})+", pin) for pin in pins)
    bill = json.loads((built.source / "sbom.cdx.json").read_text(encoding="utf-8"))["components"]
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
    done = subprocess.run(command, cwd=built.source, capture_output=True, text=True, check=False, timeout=200)  # noqa: S603
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def served(built: Deployed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[App, dict[str, str]]]:
    """Serve the functions as the buildpack does; yield an app that shares their store and queues."""
    ports = {function: free_port() for function in ("api", "execute", "sweep")}
    with CloudTasksEmulator(auto_create_queues=True) as emulator:
        settings = Settings(
            executor_url=f"http://127.0.0.1:{ports['execute']}",
            secret=SECRET,
            store="sqlite",
            data=tmp_path_factory.mktemp("store") / "tasks.db",
            tasks_emulator=emulator.address,
            default_lead=timedelta(seconds=1),
        )
        app = App(settings)

        @app.handler("meet")
        def _meet() -> None:
            """Only the executor runs this handler."""

        environment = {
            "PATH": f"{built.environment / 'bin'}:/usr/bin:/bin",
            **settings.to_environment(),
            "CLOUDSCHED_OPEN": "on",
        }
        # As google/buildpacks does (cmd/python/functions_framework): no arguments, only environment variables.
        command = built.command("functions-framework")
        with (
            process(command, env=_function_environment(environment, "api", ports), cwd=built.source) as api,
            process(command, env=_function_environment(environment, "execute", ports), cwd=built.source) as execute,
            process(command, env=_function_environment(environment, "sweep", ports), cwd=built.source) as sweep,
        ):
            for one, (name, port) in zip((api, execute, sweep), ports.items(), strict=True):
                wait_until(partial(_is_serving, port), f"{name}: {one.output}")
            yield app, {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}
        app.close()


def _function_environment(environment: dict[str, str], function: str, ports: dict[str, int]) -> dict[str, str]:
    own = {"FUNCTION_TARGET": function, "FUNCTION_SIGNATURE_TYPE": "http", "PORT": str(ports[function])}
    return environment | own | {"THREADS": str(THREADS)}


def _is_serving(port: int) -> bool:
    try:
        request(f"http://127.0.0.1:{port}", "GET", "/")
    except OSError:
        return False
    return True


def test_tasks_run_in_the_built_source(served: tuple[App, dict[str, str]]) -> None:
    """The function runs as many handlers at the same time as it has threads, from any queue."""
    app, _ = served
    priorities = list(Priority)
    ids = [f"task-{number}" for number in range(THREADS)]
    for number, task_id in enumerate(ids):
        priority = priorities[number % len(priorities)]
        app.create(id=task_id, owner="ada", title="Meet", handler="meet", priority=priority)

    def states() -> set[str]:
        with ThreadPoolExecutor(4) as pool:
            return {str(task.status) for task in pool.map(app.get, ids)}

    wait_until(lambda: states() == {"COMPLETED"}, "all of them met")


def test_each_function_responds(served: tuple[App, dict[str, str]]) -> None:
    """`api` answers with problem documents, `execute` refuses requests without a token, `sweep` reports what it did."""
    _, urls = served
    assert request(urls["api"], "GET", "/v1/nothing").headers["Content-Type"].startswith("application/problem+json")
    assert request(urls["execute"], "POST", "/v1/tasks/execute", {}).status == 401
    swept: Any = request(urls["sweep"], "POST", "/", {})
    assert (swept.status, swept.body["dispatched"]) == (200, 0)
