"""From a new process to its first answer, for each function; and the size of what is deployed.

    python -m benchmarks.functions [--rounds 7]

Each is started as the buildpack starts it (functions-framework: gunicorn), beside a function that does nothing, turn by
turn. The first answer of `api` is a list, that of `sweep` a sweep, that of `execute` a refusal, for which it has opened
its store and its queue; they are Google's Firestore emulator and the local Cloud Tasks. The time is that of this
machine: in the cloud a container and its file system come on top, the same for all.
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

from benchmarks.local_services import services
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parent.parent
_FIRST = {"empty": ("GET", "/"), "api": ("GET", "/v1/tasks"), "execute": ("POST", "/"), "sweep": ("POST", "/")}
_EXPECTED = {"empty": 200, "api": 200, "execute": 401, "sweep": 200}
EMPTY = """import functions_framework

@functions_framework.http
def empty(request):
    return "nothing"
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    with services() as service, tempfile.TemporaryDirectory() as folder:
        settings = {
            **service.settings.to_environment(),
            "FIRESTORE_EMULATOR_HOST": service.firestore,
            "CLOUDSCHED_OPEN": "on",
        }
        nothing = Path(folder) / "main.py"
        nothing.write_text(EMPTY)
        sources = {"empty": nothing, **dict.fromkeys(("api", "execute", "sweep"), ROOT / "functions" / "main.py")}
        seconds: dict[str, list[float]] = {name: [] for name in sources}
        for _ in range(rounds):
            for name, source in sources.items():
                seconds[name].append(first_answer(name, source, settings))
        size = deployed_size(Path(folder) / "source")
    table = Table(title="From a new process to its first answer")
    for heading in ("function", "median s", "least s", "more than empty, s"):
        table.add_column(heading, justify="right" if heading != "function" else "left")
    for name, values in seconds.items():
        median = statistics.median(values)
        more = median - statistics.median(seconds["empty"])
        table.add_row(name, f"{median:.2f}", f"{min(values):.2f}", f"{more:+.2f}")
    Console(width=90).print(table)
    print(f"The deployed source has {size[0]} files and {size[1] / 1024:.0f} KiB.")


def first_answer(target: str, source: Path, settings: dict[str, str]) -> float:
    """Start a function, ask it once, and return how long that took together; what it says does not matter."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    program = Path(sys.executable).with_name("functions-framework")
    command = (str(program), f"--target={target}", f"--source={source}", f"--port={port}", "--host=127.0.0.1")
    whole = {**os.environ, **settings}
    began = time.perf_counter()
    process = subprocess.Popen(command, env=whole, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
    try:
        while (status := _status(port, target)) is None:
            assert process.poll() is None, "the server has ended"
            time.sleep(0.01)
        seconds = time.perf_counter() - began
    finally:
        process.terminate()
        process.wait()
    assert status == _EXPECTED[target], status
    return seconds


def _status(port: int, target: str) -> int | None:
    """Ask a function once; None if nobody listens yet."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(*_FIRST[target])
        answer = connection.getresponse()
        answer.read()
    except ConnectionError:
        return None
    return answer.status


def deployed_size(target: Path) -> tuple[int, int]:
    """Make the functions' source as the deployment does; return how many files and bytes it has."""
    script = ROOT / "infra" / "build-source.sh"
    subprocess.run((str(script), str(ROOT / "functions"), str(target)), check=True, capture_output=True)  # noqa: S603
    files = [path for path in target.rglob("*") if path.is_file()]
    return len(files), sum(path.stat().st_size for path in files)


if __name__ == "__main__":
    main()
