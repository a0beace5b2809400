"""Count the steps of a creation and of a dispatch: how many of our functions and frames run, and in how many files.

    python -m benchmarks.steps [--list 'a creation']

It exits with 1 if a count is above the one of docs/contributors/benchmarks.md. A test holds that, too.

A step is one call of a named function of ours; comprehensions, lambdas and the bodies of classes do not count. An own
frame is each entry of a frame of ours, those and what generators resume included: it costs time, more than profilers
say. A change of file is counted when the next function of ours that runs is in another file than the last one: after a
call, after a return, and each time a generator yields or goes on. Steps and changes say how much you must read to
follow a task through the code.

The task is hourly, its store a file (SQLite), and each is counted warm, after the first few have filled every cache.
Two tasks are dispatched. The second has a lock, which nobody else wants. Nothing is logged, as in a process that has
not set up logging.
"""

from __future__ import annotations

import argparse
import inspect
import logging
import re
import sys
import tempfile
from collections import Counter, deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from pydantic import BaseModel
from rich.console import Console
from rich.table import Table

import cloudsched
from cloudsched import App, Schedule, Settings
from cloudsched.adapters.clocks import ManualClock
from cloudsched.adapters.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.engine.ports.queue import QueueMessage

PACKAGE = str(Path(cloudsched.__file__).parent)
_STARTS = (datetime(2041, 1, 1, tzinfo=UTC) + number * timedelta(days=100) for number in count())
"""Each count has dates of its own, far from those of tests: a process keeps names of dates that it has met."""
_WARM_UP = 5
CREATE = "a creation"
RUN = "a dispatch"
RUN_WITH_LOCK = "a dispatch, with a lock"
PAGE = Path(__file__).parents[1] / "docs/contributors/benchmarks.md"


@dataclass
class Steps:
    """The calls of our functions in one block, by (file, function); files are relative to the package."""

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    frames: int = 0
    """How often a frame of ours was entered."""
    changes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often control went from one file to another, by the two."""

    @property
    def count(self) -> int:
        """How many calls there were."""
        return self.calls.total()

    @property
    def files(self) -> int:
        """In how many files."""
        return len({file for file, _name in self.calls})

    @property
    def figures(self) -> dict[str, int]:
        """What is recorded, by the columns of the page."""
        return {
            "calls": self.count,
            "own frames": self.frames,
            "files": self.files,
            "changes of file": self.changes.total(),
        }


@contextmanager
def count_steps() -> Iterator[Steps]:
    """Count the steps of this thread during a block."""
    steps = Steps()
    generators = set[FrameType]()
    running: list[str] = []  # the files of our functions that run, the innermost last

    def move(before: str | None, after: str | None) -> None:
        if before is not None and after is not None and before != after:
            steps.changes[before, after] += 1

    def note(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event not in {"call", "return"} or not code.co_filename.startswith(PACKAGE):
            return
        file = code.co_filename[len(PACKAGE) + 1 :]
        if event == "return":
            if running:  # else it is what the block itself returns from
                running.pop()
                move(file, running[-1] if running else None)
            return
        move(running[-1] if running else None, file)
        running.append(file)
        steps.frames += 1

        if code.co_name.startswith("<") or frame in generators:  # a generator is one call, however often it goes on
            return
        if code.co_flags & inspect.CO_GENERATOR:
            generators.add(frame)
        steps.calls[file, code.co_qualname] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield steps
    finally:
        sys.setprofile(before)


class Site(BaseModel):
    """The payload of the handler."""

    url: str


class Queue:
    """A queue that keeps its messages, for the caller to deliver."""

    def __init__(self) -> None:
        self.messages: deque[QueueMessage] = deque()

    def create(self, message: QueueMessage) -> None:
        """Keep the message."""
        self.messages.append(message)

    def close(self) -> None:
        """Keep nothing open."""


def count_all(folder: Path) -> dict[str, Steps]:
    """Return the steps of a warm creation and of warm dispatches, whose store is a file in the folder."""
    logger = logging.getLogger("cloudsched")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        return _count_all(folder)
    finally:
        logger.setLevel(level)


def _count_all(folder: Path) -> dict[str, Steps]:
    clock, queue = ManualClock(next(_STARTS)), Queue()
    app = App(
        Settings(secret="a secret of this benchmark"),
        store=SqliteStore(folder / "tasks.db"),
        dispatcher=queue,
        clock=clock,
    )

    @app.handler("check")
    def check(site: Site) -> str:
        return site.url

    try:
        for number in range(_WARM_UP):
            _create(app, f"warm-{number}", timedelta(days=3000))
        queue.messages.clear()
        with count_steps() as creation:
            _create(app, "counted", timedelta(days=3000))
        found = {CREATE: creation}
        for name, lock_key in ((RUN, None), (RUN_WITH_LOCK, "the site")):
            queue.messages.clear()
            _create(app, f"run-{lock_key is None}", timedelta(hours=1), lock_key)
            found[name] = _count_dispatch(app, clock, queue)
    finally:
        app.container.close()
    return found


def _create(app: App, task_id: str, delay: timedelta, lock_key: str | None = None) -> None:
    start = (app.container.clock.now() + delay).strftime("%Y-%m-%dT%H:00:00")
    app.create(
        id=task_id,
        owner="ada",
        title="Is the site up?",
        handler="check",
        payload={"url": "https://example.com/health"},
        schedule=Schedule(rrule="FREQ=HOURLY", dtstart=start, timezone="UTC"),
        lock_key=lock_key,
    )


def _count_dispatch(app: App, clock: ManualClock, queue: Queue) -> Steps:
    for _ in range(_WARM_UP):
        _deliver_next(app, clock, queue)
    return _deliver_next(app, clock, queue)


def _deliver_next(app: App, clock: ManualClock, queue: Queue) -> Steps:
    """Move the clock to the next message, deliver it, and return the steps of that."""
    message = queue.messages.popleft()
    clock.move_to(max(clock.now(), message.at))
    with count_steps() as steps:
        result = app.deliver(message.body, message.token)
    if result.action.value not in {"ran", "hopped"}:
        raise RuntimeError(f"the dispatch did not run: {result}")
    return steps


def read_recorded(page: str) -> dict[str, list[int]]:
    """Return the figures that the page has, by what takes them, in the order of `Steps.figures`."""
    rows = re.findall(r"^\| (a [^|]*) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", page, re.MULTILINE)
    return {name: [int(each) for each in figures] for name, *figures in rows}


def find_excess(found: dict[str, Steps], recorded: dict[str, list[int]]) -> list[str]:
    """Return what has grown since it was recorded."""
    return [
        f"{name}: {count} {unit}, recorded {known}"
        for name, steps in found.items()
        for (unit, count), known in zip(steps.figures.items(), recorded[name], strict=True)
        if count > known
    ]


def main() -> None:
    """Count and print; exit with 1 if there are more than were recorded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    choices = (CREATE, RUN, RUN_WITH_LOCK)
    parser.add_argument("--list", choices=choices, help="print each function, and each change of file, of one of them")
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        found = count_all(Path(folder))
    if arguments.list:
        steps = found[arguments.list]
        for (file, name), count in sorted(steps.calls.items()):
            print(f"{count:4} {file}  {name}")
        for (before, after), count in sorted(steps.changes.items()):
            print(f"{count:4} {before} -> {after}")
        return

    recorded = read_recorded(PAGE.read_text("utf-8"))
    table = Table("what", title="Steps, warm, SQLite in a file")
    for column in found[CREATE].figures:
        table.add_column(column, justify="right")
        table.add_column("recorded", justify="right")
    for name, each in found.items():
        pairs = zip(each.figures.values(), recorded[name], strict=True)
        table.add_row(name, *[str(figure) for pair in pairs for figure in pair])
    Console().print(table)
    if excess := find_excess(found, recorded):
        sys.exit("\n".join([*excess, "Say why on the page and record it there, or see what --list names."]))


if __name__ == "__main__":
    main()
