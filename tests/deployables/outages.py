"""What may break, and after how many minutes which alert says so.

Usage: python -m tests.deployables.outages     writes the table in docs/run/dashboard.md
"""

from __future__ import annotations

import json
import re
import runpy
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

from tests.deployables.alerting import Monitoring
from tests.deployables.cloud_world import HANDLERS, NAME, WATCHES, World
from tests.deployables.fake_project import ROOT
from tests.deployables.series import Lateness, at_worst, usually
from tests.instants import SECOND

from cloudsched import Schedule
from cloudsched.emulator.model.task import RateLimits

PAGE: Final = ROOT / "docs/run/dashboard.md"
BEFORE: Final = 20
"""For how many minutes all is well first: a policy may look back so far, or miss what it has never seen."""
LASTS: Final = 25
"""For how many minutes a part is broken."""
AFTER: Final = 65
"""For how many minutes it is whole again: longer than any policy looks back."""
MOUNTED: Final = "shop"
"""A Cloud Run service in which cloudsched is mounted."""
DOLLARS: Final = 0.5
"""The limit of the alert on spending, a day: low, so that few runs reach it."""
_PLACE = re.compile(r"(?<=<!-- outages -->\n).*?(?=<!-- /outages -->)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Outage:
    part: str
    breaks: Callable[[World], AbstractContextManager[None]]
    """What breaks it, and mends it at its end."""


def _set(**values: Any) -> Callable[[World], AbstractContextManager[None]]:
    @contextmanager
    def breaks(world: World) -> Iterator[None]:
        before = {name: getattr(world, name) for name in values}
        for name, value in values.items():
            setattr(world, name, value)
        yield
        for name, value in before.items():
            setattr(world, name, value)

    return breaks


@contextmanager
def _pause_queue(world: World) -> Iterator[None]:
    world.queue.paused = True
    yield
    world.queue.paused = False


@contextmanager
def _throttle(world: World) -> Iterator[None]:
    """Let the queue deliver six dispatches a minute, where ten come due."""
    before = world.queue.config
    world.queue.set_config(replace(before, rate_limits=RateLimits(0.1, 1, burst=1)), world.clock.now())
    yield
    world.queue.set_config(before, world.clock.now())


def _refuse(**values: bool) -> Callable[[World], AbstractContextManager[None]]:
    """Let the store refuse calls."""

    @contextmanager
    def breaks(world: World) -> Iterator[None]:
        for name in values:
            setattr(world.store, name, True)
        yield
        for name in values:
            setattr(world.store, name, False)

    return breaks


def _skew(seconds: int) -> Callable[[World], AbstractContextManager[None]]:
    @contextmanager
    def breaks(world: World) -> Iterator[None]:
        world.functions_clock.error = timedelta(seconds=seconds)
        yield
        world.functions_clock.error = timedelta(0)

    return breaks


def _fail(count: int) -> Callable[[World], AbstractContextManager[None]]:
    @contextmanager
    def breaks(world: World) -> Iterator[None]:
        world.failing.update(f"handler-{number}" for number in range(count))
        yield
        world.failing.clear()

    return breaks


@contextmanager
def _run_away(world: World) -> Iterator[None]:
    """Create, as somebody may by mistake, what runs far too often."""
    tasks = []
    for number in range(15):
        every = Schedule.every(10 * SECOND, start=world.clock.now() + SECOND)
        handler = f"handler-{number % HANDLERS}"
        tasks.append(world.app.create(owner="bob", title=f"again {number}", handler=handler, schedule=every).id)
    yield
    for task in tasks:
        world.app.cancel(task)


OUTAGES: Final = (
    Outage("the executor does not start: Cloud Run answers 503", _set(executor_status=503)),
    Outage("the account that calls the functions loses `roles/run.invoker`", _set(has_invoker_role=False)),
    Outage("the functions lose `roles/datastore.user`", _refuse(is_refused=True)),
    Outage("the sweep is not called: its job is paused or gone", _set(is_sweep_scheduled=False)),
    Outage("each request to the API ends with 500", _set(is_api_broken=True)),
    Outage("the queue is paused", _pause_queue),
    Outage("the queue takes nothing new", _set(is_queue_down=True)),
    Outage("the queue's rate is too low for what is due", _throttle),
    Outage("the store takes no writes", _refuse(is_read_only=True)),
    Outage("the functions' clock is a minute fast", _skew(60)),
    Outage("the functions' clock is a minute slow", _skew(-60)),
    Outage("half of all handlers fail", _fail(HANDLERS // 2)),
    Outage("one handler of twenty fails always", _fail(1)),
    Outage("runs cost more than `ALERT_DOLLARS_A_DAY`", _run_away),
)


def read_policies(mounted: str = "") -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the policies and the metrics of a deployment, as infra/deploy.sh applies them."""
    script = runpy.run_path(str(ROOT / "infra/lib/monitoring.py"))
    policies, metrics = (
        json.loads(script["fill"](json.dumps(script["read_files"](kind)), NAME, DOLLARS, mounted))
        for kind in ("policy", "metric")
    )
    return policies, metrics


@dataclass(slots=True)
class Story:
    """What somebody who watches sees of a part that breaks and is mended."""

    noticed: dict[str, int] = field(default_factory=dict)
    """After how many minutes each policy opened while the part was broken."""
    notified: Counter[str] = field(default_factory=Counter)
    """How often each policy notified, the time after the repair included."""
    lasted: int = 0
    """How many minutes after the repair the last incident ended."""


def tell(
    outage: Outage, policies: Mapping[str, Any], metrics: Mapping[str, Any], mounted: str = ""
) -> dict[Lateness, list[Story]]:
    """Break a part twice, mend it each time, and return what each of those who watch sees.

    Raises:
        AssertionError: An incident is open although all has been well for long.
    """
    told: dict[Lateness, list[Story]] = {who: [] for who in WATCHES}
    with World(policies, metrics, mounted).opened() as world:
        world.run(BEFORE)
        _require_silence(world)
        for _ in range(2):
            told_now = {who: Story() for who in WATCHES}
            before = {who: _count(watch) for who, watch in world.watches.items()}
            with outage.breaks(world):
                for minute in range(1, LASTS + 1):
                    world.run(1)
                    for who, watch in world.watches.items():
                        told_now[who].noticed |= dict.fromkeys(watch.list_open() - set(told_now[who].noticed), minute)
            for minute in range(1, AFTER + 1):
                world.run(1)
                for who, watch in world.watches.items():
                    if watch.list_open():
                        told_now[who].lasted = minute + 1
            _require_silence(world)
            for who, watch in world.watches.items():
                told_now[who].notified = _count(watch) - before[who]
                told[who].append(told_now[who])
    return told


def _require_silence(world: World) -> None:
    found = {who.__name__: watch.list_open() for who, watch in world.watches.items()}
    if any(found.values()):
        raise AssertionError(f"open although all is well: {found}")


def _count(watch: Monitoring) -> Counter[str]:
    return Counter({key: len(incident.opened) for key, incident in watch.incidents.items()})


def render(stories: Mapping[Outage, Mapping[Lateness, list[Story]]]) -> str:
    """Return the table of the page."""
    lines = [
        "| what breaks | usually noticed by, after minutes | at the latest | all ended after |",
        "|---|---|---|---|",
    ]
    for outage, told in stories.items():
        noticed = [_show(told[who][0].noticed) for who in (usually, at_worst)]
        lasted = max(story.lasted for seen in told.values() for story in seen)
        lines.append(f"| {outage.part} | {noticed[0]} | {noticed[1]} | {lasted} |")
    return "\n".join(lines) + "\n"


def _show(noticed: Mapping[str, int]) -> str:
    return ", ".join(
        f"`{key}` {minute}" for key, minute in sorted(noticed.items(), key=lambda each: (each[1], each[0]))
    )


def put(text: str, table: str) -> str:
    return _PLACE.sub(lambda _: table, text)


if __name__ == "__main__":
    found = {outage: tell(outage, *read_policies()) for outage in OUTAGES}
    PAGE.write_text(put(PAGE.read_text("utf-8"), render(found)), "utf-8")
