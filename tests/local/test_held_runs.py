"""A run that has ended, or waits for longer than the queue holds it, leaves nothing in the memory of its process."""

from __future__ import annotations

import gc
import itertools
import json
import logging
import sys
import weakref
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from functools import _lru_cache_wrapper
from pathlib import Path
from typing import Any, Final

from tests.harness import run_to_end, wait_until

from cloudsched import App, AsyncContext, Cancel, Context, Schedule, Settings, Snooze
from cloudsched.adapters import in_process_queue
from cloudsched.config.access import Access
from cloudsched.engine.storage.known_tasks import KnownTasks
from cloudsched.local.embedded_app import embedded

HOUR: Final = timedelta(hours=1)
RUNS: Final = 8
ROOT: Final = Path(__file__).parents[2]


def succeed() -> int:
    return 1


def fail() -> None:
    raise ValueError("wrong")


def cancel() -> Cancel:
    return Cancel("not needed")


def put_off() -> Snooze:
    return Snooze(HOUR, "not yet")


def sleep(ctx: Context) -> None:
    ctx.sleep(HOUR)


def fail_in_step(ctx: Context) -> None:
    ctx.step("one", fail, retry=False)


async def sleep_async(ctx: AsyncContext) -> None:
    await ctx.sleep(HOUR)


HANDLERS: Final[tuple[Callable[..., Any], ...]] = (
    *(succeed, fail, cancel, put_off),
    *(sleep, fail_in_step, sleep_async),
)


def count_held() -> int:
    """Count what Python's containers hold. Caches that have a limit are emptied before.

    SQLite's connections keep weak references to their last 200 cursors.
    """
    for each in gc.get_objects():
        is_own = isinstance(each, _lru_cache_wrapper) and (each.__module__ or "").startswith("cloudsched.")
        if is_own and each.cache_parameters()["maxsize"] is not None:
            each.cache_clear()
    gc.collect()
    modules = [vars(module) for name, module in sys.modules.items() if name.startswith("cloudsched")]  # may be frozen
    tracked = gc.get_objects() + modules
    others = [each for each in gc.get_referents(*tracked) if isinstance(each, dict) and not gc.is_tracked(each)]
    containers = {id(each): each for each in (*tracked, *others) if isinstance(each, dict | list | set | tuple | deque)}
    containers.pop(id(tracked), None)
    return sum(
        len(each)
        for each in containers.values()
        if not (isinstance(each, list) and each and isinstance(each[0], weakref.ref))
    )


def test_runs_leave_nothing_behind(tmp_path: Path) -> None:
    """However many there are, and however many wait, which is up to the disk. Another test's threads would count."""
    command = [sys.executable, "-m", __name__, str(tmp_path)]
    done = run_to_end(command, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    grown = [after - before for before, after in itertools.pairwise(counts)]
    assert min(grown) < RUNS, grown  # what is made once, as by the first sweep, is in one of them


def main(folder: Path) -> None:
    """Print how much is held after each round of runs."""
    logging.disable(logging.CRITICAL)
    vars(in_process_queue)["MAX_REMEMBERED_NAMES"] = 0
    app = App(Settings())
    for each in HANDLERS:
        app.handler(each.__name__, retry=False)(each)

    def run_all() -> None:
        for each in HANDLERS * RUNS:
            app.create(handler=each.__name__)
        for _ in range(RUNS):
            app.create(handler=succeed.__name__, schedule=Schedule.once(app.container.clock.now() + HOUR))
        wait_until(lambda: not queue.pending, "nothing is due soon", 30)

    with embedded(app, folder, settings=Settings(access=Access(open=True)), threads=4):
        handed_over: Any = app.container.dispatcher
        queue = handed_over._queue._queue  # noqa: SLF001 - behind the window of what is due soon
        vars(app.container.store)["_known"] = KnownTasks(0)
        counts = list[int]()
        for _ in range(6):
            run_all()
            counts.append(count_held())
    sys.stdout.write(json.dumps(counts))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
