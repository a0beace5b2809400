"""Count the steps of a creation and of a dispatch: how many of our functions run, and in how many files they are.

    python -m benchmarks.steps [--list 'a creation']

It exits with 1 if a count is more than a tenth above the one of docs/contributors/benchmarks.md.

A step is one call of a named function of ours; comprehensions, lambdas and the bodies of classes do not count. The
count says how much you must read to follow a task through the code. It says little about time: the other benchmarks do.

The task is hourly, its store a file (SQLite), and each is counted warm, after the first few have filled every cache.
Two handlers are dispatched: one takes the context, the other only its payload. Nothing is logged, as in a process that
has not set up logging.
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
from cloudsched import App, Context, Schedule, Settings
from cloudsched.adapters.clocks import ManualClock
from cloudsched.adapters.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.engine.ports.queue import QueueMessage

PACKAGE = str(Path(cloudsched.__file__).parent)
_STARTS = (datetime(2041, 1, 1, tzinfo=UTC) + number * timedelta(days=100) for number in count())
"""Each count has dates of its own, far from those of tests: a process keeps names of dates that it has met."""
_WARM_UP = 5
CREATE, RUN, RUN_WITH_CONTEXT = "a creation", "a dispatch", "a dispatch, with the context"
PAGE = Path(__file__).parents[1] / "docs/contributors/benchmarks.md"
_ROOM = 1.1
"""How many times as many as on the page there may be."""


@dataclass
class Steps:
    """The calls of our functions in one block, by (file, function); files are relative to the package."""

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def count(self) -> int:
        """How many calls there were."""
        return self.calls.total()

    @property
    def files(self) -> int:
        """In how many files."""
        return len({file for file, _name in self.calls})


@contextmanager
def count_steps() -> Iterator[Steps]:
    """Count the steps of this thread during a block."""
    steps, generators = Steps(), set[FrameType]()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        is_ours = event == "call" and not code.co_name.startswith("<") and code.co_filename.startswith(PACKAGE)
        if not is_ours or frame in generators:  # a generator is called once, however often it is resumed
            return
        if code.co_flags & inspect.CO_GENERATOR:
            generators.add(frame)
        steps.calls[code.co_filename[len(PACKAGE) + 1 :], code.co_qualname] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield steps
    finally:
        sys.setprofile(before)


class Site(BaseModel):
    """The payload of both handlers."""

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
    """Return the steps of a warm creation and of two warm dispatches, whose store is a file in the folder."""
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

    @app.handler("check-with-context")
    def check_with_context(ctx: Context, site: Site) -> str:
        return f"{site.url} {ctx.attempt}"

    try:
        for number in range(_WARM_UP):
            _create(app, "check", f"warm-{number}", timedelta(days=3000))
        queue.messages.clear()
        with count_steps() as creation:
            _create(app, "check", "counted", timedelta(days=3000))
        found = {CREATE: creation}
        for name, handler in ((RUN, "check"), (RUN_WITH_CONTEXT, "check-with-context")):
            queue.messages.clear()
            _create(app, handler, f"run-{handler}", timedelta(hours=1))
            found[name] = _count_dispatch(app, clock, queue)
    finally:
        app.container.close()
    return found


def _create(app: App, handler: str, task_id: str, delay: timedelta) -> None:
    start = (app.container.clock.now() + delay).strftime("%Y-%m-%dT%H:00:00")
    app.create(
        id=task_id,
        owner="ada",
        title="Is the site up?",
        handler=handler,
        payload={"url": "https://example.com/health"},
        schedule=Schedule(rrule="FREQ=HOURLY", dtstart=start, timezone="UTC"),
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


def read_recorded(page: str) -> dict[str, tuple[int, int]]:
    """Return the calls and the files that the page has, by what takes them."""
    rows = re.findall(r"^\| (a [^|]*) \| (\d+) \| (\d+) \|$", page, re.MULTILINE)
    return {name: (int(calls), int(files)) for name, calls, files in rows}


def find_excess(found: dict[str, Steps], recorded: dict[str, tuple[int, int]]) -> list[str]:
    """Return what has grown by more than a tenth since it was recorded."""
    return [
        f"{name}: {count} {unit}, recorded {known}"
        for name, steps in found.items()
        for unit, count, known in zip(("calls", "files"), (steps.count, steps.files), recorded[name], strict=True)
        if count > known * _ROOM
    ]


def main() -> None:
    """Count and print; exit with 1 if there are many more than were recorded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", choices=(CREATE, RUN, RUN_WITH_CONTEXT), help="print each function of one of them")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = count_all(Path(folder))
    if arguments.list:
        for (file, name), count in sorted(found[arguments.list].calls.items()):
            print(f"{count:4} {file}  {name}")
        return
    recorded = read_recorded(PAGE.read_text("utf-8"))
    table = Table("what", title="Steps, warm, SQLite in a file")
    for column in ("calls", "recorded", "files", "recorded"):
        table.add_column(column, justify="right")
    for name, each in found.items():
        calls, files = recorded[name]
        table.add_row(name, *map(str, (each.count, calls, each.files, files)))
    Console().print(table)
    if excess := find_excess(found, recorded):
        sys.exit("\n".join([*excess, "Say why on the page and record it there, or see what --list names."]))


if __name__ == "__main__":
    main()
