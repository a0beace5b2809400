"""Starting the emulator: the program, the pytest fixture; what it imports."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
from click.testing import CliRunner
from tests.cases import try_each
from tests.emulator.conftest import LOCATION, Connect
from tests.harness import WAIT_SECONDS, run_to_end

from cloudsched.emulator.cli import emulator as command

pytest_plugins = ["pytester"]


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
        [sys.executable, "-m", "cloudsched", "emulator", *arguments],
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
        ["--freeze", "2030-01-01T00:00:00"],
        ["--queue", "short"],
        ["--fault", "explode=1"],
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
                others[0].run_until_idle()
        """
    )
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)


def test_the_emulator_starts_without_heavy_libraries() -> None:
    """They are imported once it serves. `architecture/test_imports.py` says that it imports nothing of the rest."""
    modules = "cloudsched.emulator, cloudsched.testing.pytest_plugin, cloudsched.emulator.cli"
    script = f"import sys, {modules}; print(*sys.modules)"
    loaded = run_to_end([sys.executable, "-c", script], check=True).stdout
    assert not {"grpc", "aiohttp", "google.protobuf", "cryptography", "yaml", "asyncio"} & set(loaded.split())
