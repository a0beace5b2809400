"""Starting the emulator: the program, queues.yaml, the pytest fixture; what it imports."""

from __future__ import annotations

import ast
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from tests.cases import try_each
from tests.harness import WAIT_SECONDS

from cloudsched.emulator import BadQueue, CloudTasksEmulator
from cloudsched.emulator.cli import emulator as command
from cloudsched.emulator.storage.queue_yaml import read_queues_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.emulator.conftest import Connect

pytest_plugins = ["pytester"]

LOCATION = "projects/demo/locations/us-central1"
PACKAGE = Path(__file__).parents[2] / "src" / "cloudsched" / "emulator"

QUEUES = """
project: demo
location: us-central1
queues:
  - name: flags
    max-dispatches-per-second: 10
    max-concurrent-dispatches: 2
    max-attempts: unlimited
    max-retry-duration: 90s
    min-backoff: 2s
    max-backoff: 2.5s
    max-doublings: 3
    routing-override: service:worker,version:v1
    log-sampling-ratio: 0.5
  - name: projects/demo/locations/us-central1/queues/described
    rateLimits: {maxBurstSize: 100, maxConcurrentDispatches: 1, maxDispatchesPerSecond: 0.5}
    retryConfig: {maxAttempts: 5, minBackoff: 0.100s}
    state: PAUSED
---
name: projects/demo/locations/europe-west1/queues/listed
state: RUNNING
"""


def test_queues_yaml_accepts_the_names_of_gcloud(tmp_path: Path, connect: Connect) -> None:
    path = tmp_path / "queues.yaml"
    path.write_text(QUEUES, "utf-8")
    with CloudTasksEmulator(queues=path) as emulator:
        client = connect(emulator.address)
        flags = client.get_queue(name=f"{LOCATION}/queues/flags")
        assert flags.rate_limits.max_dispatches_per_second == 10
        assert flags.retry_config.max_attempts == -1
        assert flags.retry_config.max_retry_duration.total_seconds() == 90
        assert flags.retry_config.max_backoff.total_seconds() == 2.5
        assert flags.app_engine_routing_override.service == "worker"
        described = client.get_queue(name=f"{LOCATION}/queues/described")
        assert described.state == 2
        assert described.rate_limits.max_dispatches_per_second == 0.5
        assert [queue.name[-6:] for queue in client.list_queues(parent="projects/demo/locations/europe-west1")] == [
            "listed"
        ]


@try_each(
    "text, problem",
    [
        ("queues: [", "not YAML"),
        ("just text", "mapping"),
        ("queue: []", "needs a list"),
        ("queues: [{max-attempts: 1}]", "needs a `name`"),
        ("queues: [{name: short}]", "needs `project` and `location`"),
        ("queues: [{name: projects/d/locations/l/queues/under_score}]", "must be formatted"),
        ("queues: [{name: projects/d/locations/l/queues/q, max-attempt: 5}]", "max-attempt"),
        ("queues: [{name: projects/d/locations/l/queues/q, max-attempts: many}]", "many"),
        ("queues: [{name: projects/d/locations/l/queues/q, max-dispatches-per-second: -1}]", "cannot be negative"),
        ("queues: [{name: projects/d/locations/l/queues/q, min-backoff: 2s, max-backoff: 1s}]", "minBackoff"),
        ("queues: [{name: projects/d/locations/l/queues/q, rateLimits: 5}]", "queues/q"),
    ],
)
def test_an_invalid_queues_yaml_is_reported(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "queues.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(BadQueue, match=problem):
        read_queues_file(path)


def test_queues_can_be_declared_in_python() -> None:
    settings = {f"{LOCATION}/queues/q": {"max-attempts": 3, "rateLimits": {"maxConcurrentDispatches": 4}}}
    with CloudTasksEmulator(queues=settings), pytest.raises(BadQueue):
        CloudTasksEmulator(queues=["short"]).start()


@pytest.fixture
def _same_signals() -> Iterator[None]:
    """Restore the handlers of SIGINT and SIGTERM that the program replaces when it runs in this process."""
    heard_by = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    yield
    for each, handler in heard_by.items():
        signal.signal(each, handler)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_the_program_prints_when_it_is_ready_and_stops_cleanly(signum: signal.Signals, connect: Connect) -> None:
    arguments = ["--port", "0", "--queue", f"{LOCATION}/queues/q", "--freeze", "2030-01-01T00:00:00Z"]
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-m", "cloudsched.emulator", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert ready.startswith("Cloud Tasks emulator ready on 127.0.0.1:")
        queue = connect(ready.split()[-1]).get_queue(name=f"{LOCATION}/queues/q")
        assert queue.state == 1
        process.send_signal(signum)
        output, errors = process.communicate(timeout=WAIT_SECONDS)
        assert (process.returncode, output, errors) == (0, "", "")
    finally:
        process.kill()
        process.communicate()


@try_each(
    "arguments",
    [
        ["--port", "70000"],
        ["--freeze", "yesterday"],
        ["--freeze", "2030-01-01T00:00:00"],
        ["--queue", "short"],
        ["--queues", "/no/such/file.yaml"],
        ["--fault", "explode=1"],
        ["--fault", "duplicate"],
        ["--fault", "duplicate=often"],
        ["--tokens", "forged"],
        ["--host", "203.0.113.1", "--port", "1"],
    ],
)
@pytest.mark.usefixtures("_same_signals")
def test_an_invalid_option_is_reported_without_a_traceback(arguments: list[str]) -> None:
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 2
    assert "Error: " in result.output
    assert "Traceback" not in result.output


@pytest.mark.usefixtures("_same_signals")
def test_a_taken_port_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        result = CliRunner().invoke(command, ["--port", str(port)])
    assert result.exit_code == 2
    assert f"Cannot listen on 127.0.0.1, port {port}: " in result.output
    assert "in use" in result.output
    assert "Choose another port, or 0 for a free one." in result.output


@pytest.mark.usefixtures("_same_signals")
def test_a_data_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """The error is about the file, not about the port, and a partial file is removed."""
    resource = pytest.importorskip("resource")
    data = tmp_path / "queues.data"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        result = CliRunner().invoke(command, ["--port", "0", "--data", str(data)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert result.exit_code == 2
    assert f"{data} cannot be written: File too large." in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["queues.data.lock"]


@pytest.mark.usefixtures("_same_signals")
def test_a_missing_file_is_named() -> None:
    result = CliRunner().invoke(command, ["--queues", "nope.yaml"])
    assert result.exit_code == 2
    assert "nope.yaml cannot be opened: No such file or directory." in result.output


def test_the_fixture_gives_each_test_an_emulator_of_its_own(pytester: pytest.Pytester) -> None:
    """It stops with its test; the system may reuse its port for the next one."""
    pytester.makepyfile(
        """
        import urllib.request

        import pytest

        others = []

        def test_one(cloud_tasks):
            others.append(cloud_tasks)
            assert urllib.request.urlopen(f"http://{cloud_tasks.address}/healthz").status == 200

        def test_other(cloud_tasks):
            assert cloud_tasks.attempts() == []
            assert cloud_tasks not in others
            with pytest.raises(RuntimeError, match="not running"):
                others[0].waiting()
        """
    )
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)


def test_the_emulator_starts_without_heavy_libraries() -> None:
    """They are imported once it serves. `architecture/test_imports.py` says that it imports nothing of the rest."""
    modules = "cloudsched.emulator, cloudsched.emulator.pytest_plugin, cloudsched.emulator.cli"
    script = f"import sys, {modules}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout  # noqa: S603
    assert not {"grpc", "aiohttp", "google.protobuf", "cryptography", "yaml", "asyncio"} & set(loaded.split())


def test_the_pure_model_does_no_io_and_has_no_clock() -> None:
    for path in (*(PACKAGE / "model").glob("*.py"), PACKAGE / "runtime" / "history.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                assert not {alias.name for alias in node.names} & {"os", "io", "time", "asyncio", "socket", "threading"}
            elif isinstance(node, ast.Attribute):
                assert node.attr not in {"now", "utcnow", "today"}, path.name
