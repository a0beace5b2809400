"""Kill a service while people answer and broken code is deployed, then count the answers that were accepted and lost.

    python -m benchmarks.answers [--rounds 200] [--seed 0]

Each round is a release that breaks, and its mending, with real processes (``cloudsched serve``) over one SQLite file:

1. The good code is served, and tasks wait for an answer, some of them in a call of theirs.
2. That process is killed with SIGKILL, and one of `FAULTS` is deployed.
3. Several people send their answers. The process is killed at any point of that, and started again in half the rounds.
4. The good code is served again. What has failed is retried by hand, in half the rounds with another kill meanwhile.
5. Who got no answer to their answer sends it again, if the task still waits for it.

An answer counts as accepted if the API said so, with 200. It is *lost* if its task did not succeed with it, or waits
for it again. It is *taken twice* if its task takes it a second time. The exit status is 1 if either has happened.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.local_services import serve

from cloudsched.client import Client
from cloudsched.errors import CloudschedError, NotAllowed, NotAwaited

if TYPE_CHECKING:
    from cloudsched import Execution

TASKS = 6
"""The tasks of a round: as many people answer at once."""
PATIENCE = 120.0
"""The seconds after which a task that has not ended counts as one that never will."""
FAULTS = {
    "another order of steps": "ctx.sleep(timedelta(days=1))",
    "another payload": "Order(number='none')",
    "a bug before the wait": "raise KeyError('a bug')",
    "a wrong outcome": "return Fail('a wrong decision')",
    "a crash": "os.kill(os.getpid(), 9)",
    "another name": "",
}
"""What a release may break, and the line at the top of the handler that breaks it."""
HANDLERS = """
import os
from datetime import timedelta
from pydantic import BaseModel
from cloudsched import App, Context, EventTimedOut, Fail

app = App()


class Order(BaseModel):
    number: int


@app.handler("NAME", retry=RETRY, expected_duration=timedelta(seconds=20))
def order(ctx: Context, order: Order) -> object:
    BROKEN
    ctx.step("ask", lambda: None)
    answer = ctx.wait_for("answer", timeout=timedelta(days=30))
    try:
        return [answer, ctx.wait_for("answer", timeout=timedelta(0))]
    except EventTimedOut:
        return [answer]


@app.handler("parent", retry=False)
def parent(ctx: Context, order: Order) -> object:
    return ctx.call("order", order, retry=RETRY).result()
"""


def write_code(folder: Path, fault: str | None) -> None:
    """Deploy the handlers, whole, or with a fault."""
    name = "renamed" if fault == "another name" else "order"
    code = HANDLERS.replace("BROKEN", "pass" if fault is None else FAULTS[fault] or "pass")
    (folder / "handlers.py").write_text(code.replace("NAME", name).replace("RETRY", "False"))


class Round:
    """The tasks of one round, and what was said to those who answered."""

    def __init__(self, number: int, rng: random.Random) -> None:
        self.tasks = [f"round-{number}-{each}" for each in range(TASKS)]
        self.addresses: dict[str, str] = {}
        """The tasks that wait, which are calls of some of `tasks`."""
        self.accepted = set[str]()
        self._rng = rng

    def create(self, client: Client) -> None:
        """Create the tasks, and wait until each waits for its answer."""
        for number, task_id in enumerate(self.tasks):
            handler = "parent" if number % 3 == 2 else "order"
            client.create(id=task_id, owner="ada", title="Order", handler=handler, payload={"number": number})
        begin = time.monotonic()
        while len(self.addresses) < TASKS:
            for task_id in self.tasks:
                tree = client.tree(task_id)
                asked = tree.children[0].task.id if tree.children else task_id
                for run in client.executions(asked):
                    if waits_for_answer(run):
                        self.addresses[task_id] = asked
            require_time(begin, "the tasks wait")

    def answer(self, address: str) -> list[threading.Thread]:
        """Let each person answer, at an address that may go away meanwhile."""

        def send(task_id: str) -> None:
            time.sleep(self._rng.random() / 20)
            with suppress(CloudschedError), Client(address, timeout=10) as client:
                client.send_event(self.addresses[task_id], "answer", task_id)
                self.accepted.add(task_id)

        threads = [threading.Thread(target=send, args=(each,)) for each in self.tasks if each not in self.accepted]
        for thread in threads:
            thread.start()
        return threads

    def retry(self, client: Client, *, until_done: bool = True) -> None:
        """Retry by hand what has failed, until every task waits or has ended."""
        begin = time.monotonic()
        while True:
            statuses = Counter(self._retry_one(client, task_id) for task_id in self.tasks)
            if not until_done or not statuses["unfinished"]:
                return
            require_time(begin, f"the tasks go on: {statuses}")

    def _retry_one(self, client: Client, task_id: str) -> str:
        run = next(iter(client.executions(task_id)))
        if run.status in {"FAILED", "TIMED_OUT"}:
            with suppress(NotAllowed):
                client.retry(task_id, run.id)
            return "unfinished"
        if run.status == "SUCCEEDED":
            return "done"
        asked = next(iter(client.executions(self.addresses[task_id])))
        return "waits" if waits_for_answer(asked) and task_id not in self.accepted else "unfinished"

    def send_rest(self, client: Client) -> None:
        """Send again the answers that were cut off, which the tasks may have all the same."""
        for task_id in self.tasks:
            if task_id not in self.accepted:
                with suppress(NotAwaited):
                    client.send_event(self.addresses[task_id], "answer", task_id)
                    self.accepted.add(task_id)

    def count(self, client: Client) -> Counter[str]:
        """Return how many answers were accepted, and what became of them."""
        counts = Counter(answers=TASKS, accepted=len(self.accepted))
        for task_id in self.tasks:
            run = next(iter(client.executions(task_id)))
            taken = run.content if run.status == "SUCCEEDED" else []
            counts["lost"] += task_id in self.accepted and task_id not in taken
            counts["unanswered"] += not taken
            counts["taken twice"] += len(taken) > 1
        return counts


def waits_for_answer(run: Execution) -> bool:
    """Return whether a run waits for its answer, as its record says."""
    return run.status == "SUSPENDED" and "'answer'" in (run.message or "")


def require_time(begin: float, what: str) -> None:
    """Wait a little. Raises TimeoutError once it has been too long."""
    if time.monotonic() - begin > PATIENCE:
        raise TimeoutError(f"not in {PATIENCE} s: {what}")
    time.sleep(0.02)


def play(folder: Path, number: int, rng: random.Random) -> Counter[str]:
    """Play one round, and return its counts."""
    counts, one = Counter[str](), Round(number, rng)
    fault = [*FAULTS][number % len(FAULTS)]
    write_code(folder, None)
    with serve(folder) as (_, address), Client(address) as client:
        one.create(client)
    write_code(folder, fault)
    for _ in range(rng.choice([1, 2])):
        with suppress(AssertionError), serve(folder) as (service, address):  # code that crashes may crash at once
            threads, wanted = one.answer(address), len(one.accepted) + rng.randint(1, TASKS)
            while len(one.accepted) < wanted and any(each.is_alive() for each in threads):
                time.sleep(0.005)
            time.sleep(rng.random() / 5)
            service.kill()
            for thread in threads:
                thread.join()
        counts["kills"] += 1
    counts[f"accepted with {fault}"] = len(one.accepted)
    write_code(folder, None)
    if rng.random() < 0.5:
        with serve(folder) as (service, address), Client(address) as client:
            killer = threading.Timer(rng.random() / 5, service.kill)
            killer.start()
            with suppress(CloudschedError):
                one.retry(client)
            killer.join()
        counts["kills"] += 1
    with serve(folder) as (_, address), Client(address) as client:
        with suppress(TimeoutError):
            one.retry(client)
            one.send_rest(client)
            one.retry(client)
        counts += one.count(client)
    return counts


def run(rounds: int, seed: int) -> Counter[str]:
    """Play the rounds over one file, and return the sum of their counts."""
    counts, rng, begin = Counter[str](rounds=0), random.Random(seed), time.monotonic()  # noqa: S311 - to be repeated
    with tempfile.TemporaryDirectory(prefix="cloudsched-") as folder:
        for number in range(rounds):
            counts.update(play(Path(folder), number, rng))
            counts["rounds"] += 1
            print(f"{dict(counts)}, {time.monotonic() - begin:.0f} s", file=sys.stderr)
    return counts


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counts = run(options.rounds, options.seed)
    print("\n".join(f"{name}: {each:,}" for name, each in counts.items()))
    sys.exit(1 if counts["lost"] or counts["taken twice"] else 0)


if __name__ == "__main__":
    main()
