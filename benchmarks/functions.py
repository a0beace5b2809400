"""From a new process to its first answer, for each function; and the size of what is deployed.

    python -m benchmarks.functions [--rounds 7]

Each is started as the buildpack starts it (functions-framework: gunicorn), beside a function that does nothing, turn by
turn. The time is that of this machine: in the cloud a container and its file system come on top, the same for all.
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

from rich.console import Console
from rich.table import Table

from cloudsched import Settings

ROOT = Path(__file__).parent.parent
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
    with tempfile.TemporaryDirectory() as folder:
        nothing = Path(folder) / "main.py"
        nothing.write_text(EMPTY)
        sources = {"empty": nothing, **dict.fromkeys(("api", "execute", "sweep"), ROOT / "functions" / "main.py")}
        seconds: dict[str, list[float]] = {name: [] for name in sources}
        for _ in range(rounds):
            for name, source in sources.items():
                seconds[name].append(first_answer(name, source))
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


def first_answer(target: str, source: Path) -> float:
    """Start a function, ask it once, and return how long that took together; what it says does not matter."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    settings = Settings(secret="x" * 32, executor_url="http://127.0.0.1:9", store="sqlite")
    program = Path(sys.executable).with_name("functions-framework")
    command = (str(program), f"--target={target}", f"--source={source}", f"--port={port}", "--host=127.0.0.1")
    whole = {**os.environ, **settings.to_environment()}
    began = time.perf_counter()
    process = subprocess.Popen(command, env=whole, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
    try:
        while True:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                connection.request("POST" if target != "api" else "GET", "/" if target != "api" else "/v1/tasks")
                connection.getresponse().read()
                return time.perf_counter() - began
            except ConnectionError:
                assert process.poll() is None, "the server has ended"
                time.sleep(0.01)
    finally:
        process.terminate()
        process.wait()


def deployed_size(target: Path) -> tuple[int, int]:
    """Make the functions' source as the deployment does; return how many files and bytes it has."""
    script = ROOT / "infra" / "build-source.sh"
    subprocess.run((str(script), str(ROOT / "functions"), str(target)), check=True, capture_output=True)  # noqa: S603
    files = [path for path in target.rglob("*") if path.is_file()]
    return len(files), sum(path.stat().st_size for path in files)


if __name__ == "__main__":
    main()
