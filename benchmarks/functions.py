"""Measure the time from process start to the first response of each function, and the size of the deployed source.

    python -m benchmarks.functions [--rounds 7]

Each function is started as the buildpack starts it (functions-framework: gunicorn), in alternation with a function that
does nothing. The first response of `api` is a list, that of `sweep` the result of a sweep, and that of `execute` a 401,
for which it has opened its store and its queue. These are Google's Firestore emulator and the local Cloud Tasks. The
times hold for this machine: in the cloud the start of the container and its file system is added, the same for each.
"""

from __future__ import annotations

import argparse
import http.client
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.local_services import run_services
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parent.parent
_FIRST_REQUEST = {"empty": ("GET", "/"), "api": ("GET", "/v1/tasks"), "execute": ("POST", "/"), "sweep": ("POST", "/")}
_EXPECTED_STATUS = {"empty": 200, "api": 200, "execute": 401, "sweep": 200}
EMPTY = """import functions_framework

@functions_framework.http
def empty(request):
    return "nothing"
"""


def main() -> None:
    """Measure each function and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="how often each function is started")
    rounds = parser.parse_args().rounds
    with run_services() as service, tempfile.TemporaryDirectory() as folder:
        settings = {
            **service.settings.to_environment(),
            "FIRESTORE_EMULATOR_HOST": service.firestore,
            "CLOUDSCHED_OPEN": "on",
        }
        empty_source = Path(folder) / "main.py"
        empty_source.write_text(EMPTY)
        sources = {"empty": empty_source, **dict.fromkeys(("api", "execute", "sweep"), ROOT / "functions" / "main.py")}
        seconds: dict[str, list[float]] = {name: [] for name in sources}
        for _ in range(rounds):
            for name, source in sources.items():
                seconds[name].append(measure_first_response(name, source, settings))
        size = measure_deployed_source(Path(folder) / "source")
    table = Table(title="From process start to the first response")
    for heading in ("function", "median s", "minimum s", "above empty, s"):
        table.add_column(heading, justify="right" if heading != "function" else "left")
    for name, values in seconds.items():
        median = statistics.median(values)
        difference = median - statistics.median(seconds["empty"])
        table.add_row(name, f"{median:.2f}", f"{min(values):.2f}", f"{difference:+.2f}")
    Console(width=90).print(table)
    print(f"The deployed source has {size[0]} files and {size[1] / 1024:.0f} KiB.")


def measure_first_response(target: str, source: Path, settings: dict[str, str]) -> float:
    """Return the seconds from the start of a function's process to its first response; check the response's status."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    program = Path(sys.executable).with_name("functions-framework")
    command = (str(program), f"--target={target}", f"--source={source}", f"--port={port}", "--host=127.0.0.1")
    full_environment = {**os.environ, **settings}
    start = time.perf_counter()
    process = subprocess.Popen(command, env=full_environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
    try:
        while (status := _request_status(port, target)) is None:
            assert process.poll() is None, "the server has exited"
            time.sleep(0.01)
        seconds = time.perf_counter() - start
    finally:
        process.terminate()
        process.wait()
    assert status == _EXPECTED_STATUS[target], status
    return seconds


def _request_status(port: int, target: str) -> int | None:
    """Send one request and return its status, or None if the server does not accept connections yet."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(*_FIRST_REQUEST[target])
        response = connection.getresponse()
        response.read()
    except ConnectionError:
        return None
    return response.status


def measure_deployed_source(target: Path) -> tuple[int, int]:
    """Build the functions' source as the deployment does; return its number of files and of bytes."""
    script = ROOT / "infra" / "build_source.py"
    subprocess.run((str(script), str(ROOT / "functions"), str(target)), check=True, capture_output=True)  # noqa: S603
    files = [path for path in target.rglob("*") if path.is_file()]
    return len(files), sum(path.stat().st_size for path in files)


if __name__ == "__main__":
    main()
