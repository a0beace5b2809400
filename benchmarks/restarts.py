"""Restart a process again and again under handlers that take longer than it lives, and count what that costs.

    python -m benchmarks.restarts [--restarts 200] [--handlers 6] [--seconds 3] [--signal TERM|KILL] [--poison]

The process is `cloudsched serve` over one folder, as a supervisor starts it: again as soon as it has ended. Its
handlers take `--seconds`, and may not be retried (`retry=False`). The process is stopped by the signal after a random
time, from one second to twice what a handler takes. It gets `--grace` seconds to end, as from a container's runtime,
and then SIGKILL. `--poison` adds a task whose handler ends its process.

It prints how many attempts were lost, how many of the tasks' own retries were used, and how all runs ended.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
HANDLERS = """
import os, time
from cloudsched import App, Context

app = App()


@app.handler("work", retry=False)
def work(ctx: Context) -> str:
    time.sleep(float(os.environ["SECONDS"]))
    return "done"


@app.handler("poison", retry=False)
def poison(ctx: Context) -> None:
    time.sleep(0.5)
    os._exit(70)
"""


class Server:
    """`cloudsched serve` over one folder."""

    def __init__(self, folder: Path, port: int, seconds: float) -> None:
        self.url = f"http://127.0.0.1:{port}"
        command = (sys.executable, "-m", "cloudsched", "serve", "--data", "data", "--port", str(port))
        self._command = (*command, "--handlers", str(folder / "handlers.py"))
        env = {name: value for name, value in os.environ.items() if not name.startswith("CLOUDSCHED")}
        self._env = {**env, "CLOUDSCHED_OPEN": "on", "SECONDS": str(seconds)}
        self._folder = folder
        self._log = (folder / "log").open("wb")
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        """Start it, and wait until its API answers, or it has ended."""
        self.process = subprocess.Popen(  # noqa: S603 - the benchmark's own command
            self._command, cwd=self._folder, env=self._env, stdout=self._log, stderr=self._log
        )
        while self.process.poll() is None:
            try:
                self.ask("GET", "/health")
            except OSError:
                time.sleep(0.05)
            else:
                break
        return self.process

    def ask(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - JSON
        """Send a request, and return the answer's JSON."""
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)  # noqa: S310 - this machine
        with urllib.request.urlopen(asked, timeout=10) as answer:  # noqa: S310 - the same
            return json.loads(answer.read() or b"null")

    def stop(self, signum: int, grace: float) -> bool:
        """Send a signal, and return whether the process ended by it in time. If not, kill it."""
        self.process.send_signal(signum)
        try:
            self.process.wait(grace)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return False
        return True


class Load:
    """The tasks that run in a server, or have."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.created: list[str] = []

    def create(self, handler: str) -> None:
        """Create a task that is due now."""
        name = f"{handler}-{len(self.created)}"
        self._server.ask("POST", "/v1/tasks", {"id": name, "owner": "ada", "handler": handler, "title": handler})
        self.created.append(name)

    def list_open(self) -> list[str]:
        """Return those that have not ended."""
        return [each for each in self.created if self._server.ask("GET", f"/v1/tasks/{each}")["status"] == "ACTIVE"]

    def fill_up(self, count: int) -> None:
        """Let so many run. A handler may end the server meanwhile."""
        with suppress(OSError):
            for _ in range(count - sum(each.startswith("work") for each in self.list_open())):
                self.create("work")

    def wait(self, seconds: float) -> None:
        """Wait until all have ended, and start the server again whenever a handler has ended it."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                if not self.list_open():
                    return
            except OSError:
                self._server.start()
            time.sleep(0.2)

    def report(self) -> None:
        """Print what became of them."""
        records = {
            each: self._server.ask("GET", f"/v1/tasks/{each}/executions")["executions"][0] for each in self.created
        }
        attempts = [each for record in records.values() for each in record.get("attempts", ())]
        errors = Counter(each["error"]["type"] for each in attempts if "error" in each)
        lost = errors["ProcessEnded"] + errors["ResultLost"]
        own = sum(errors.values()) - lost
        print(f"tasks {len(records)}, attempts that were lost {lost}, attempts that failed by themselves {own}")
        print("ended as", dict(Counter(f"{each.split('-')[0]} {record['status']}" for each, record in records.items())))
        for each, record in records.items():
            if record["status"] != "SUCCEEDED":
                print(f"  {each}: {record['status']}, {record.get('error', {}).get('message', '')[:160]}")


def main() -> None:
    """Run it, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--restarts", type=int, default=200)
    parser.add_argument("--handlers", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--grace", type=float, default=0.5)
    parser.add_argument("--signal", choices=["TERM", "KILL"], default="TERM")
    parser.add_argument("--poison", action="store_true")
    parser.add_argument("--port", type=int, default=18_231)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance, signum = random.Random(options.seed), signal.Signals[f"SIG{options.signal}"]  # noqa: S311 - to be repeated
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "handlers.py").write_text(HANDLERS)
        server = Server(Path(name), options.port, options.seconds)
        load, killed, began = Load(server), 0, time.monotonic()
        if options.poison:
            load.create("poison")
        for _ in range(options.restarts):
            load.fill_up(options.handlers)
            time.sleep(chance.uniform(1.0, 2 * options.seconds))
            if server.process.poll() is None:
                killed += not server.stop(signum, options.grace)
            server.start()
        load.wait(60 + 20 * options.seconds)
        seconds = time.monotonic() - began
        print(f"{options.restarts} restarts by {signum.name} in {seconds:.0f} s; {killed} had to be killed")
        load.report()
        server.stop(signal.SIGTERM, 30)


if __name__ == "__main__":
    main()
