"""What may break, and after how many minutes which alert says so.

Usage: python -m tests.deployables.outages     writes the table in docs/run/dashboard.md
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from tests.deployables.cloud_world import HANDLERS, NAME, World
from tests.deployables.fake_project import ROOT

from cloudsched import Schedule
from cloudsched.emulator.model.task import RateLimits

PAGE: Final = ROOT / "docs/run/dashboard.md"
BEFORE: Final = 15
"""For how many minutes all is well first: a policy may look back so far, or miss what it has never seen."""
LONGEST: Final = 10
DOLLARS: Final = 1
"""The limit of the alert on spending, a day: low, so that few runs reach it."""
_PLACE = re.compile(r"(?<=<!-- outages -->\n).*?(?=<!-- /outages -->)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Outage:
    part: str
    begin: Callable[[World], None]


def _set(**values: Any) -> Callable[[World], None]:
    def begin(world: World) -> None:
        for name, value in values.items():
            setattr(world, name, value)

    return begin


def _pause_queue(world: World) -> None:
    world.queue.paused = True


def _refuse_dispatches(world: World) -> None:
    world.is_queue_down = True


def _throttle(world: World) -> None:
    """Let the queue deliver six dispatches a minute, where ten come due."""
    world.queue.set_config(replace(world.queue.config, rate_limits=RateLimits(0.1, 1, burst=1)), world.clock.now())


def _refuse_writes(world: World) -> None:
    world.store.is_read_only = True


def _refuse_reads(world: World) -> None:
    world.store.is_refused = True


def _skew(seconds: int) -> Callable[[World], None]:
    def begin(world: World) -> None:
        world.functions_clock.error = timedelta(seconds=seconds)

    return begin


def _fail(count: int) -> Callable[[World], None]:
    return lambda world: world.failing.update(f"handler-{number}" for number in range(count))


def _run_away(world: World) -> None:
    """Create, as somebody may by mistake, what runs far too often."""
    for number in range(30):
        every = Schedule.every(timedelta(seconds=10), start=world.clock.now() + timedelta(seconds=1))
        world.app.create(owner="bob", title=f"again {number}", handler=f"handler-{number % HANDLERS}", schedule=every)


OUTAGES: Final = (
    Outage("the executor does not start: Cloud Run answers 503", _set(executor_status=503)),
    Outage("the account that calls the functions loses `roles/run.invoker`", _set(has_invoker_role=False)),
    Outage("the functions lose `roles/datastore.user`", _refuse_reads),
    Outage("the sweep is not called: its job is paused or gone", _set(is_sweep_scheduled=False)),
    Outage("the queue is paused", _pause_queue),
    Outage("the queue takes nothing new", _refuse_dispatches),
    Outage("the queue's rate is too low for what is due", _throttle),
    Outage("the store takes no writes", _refuse_writes),
    Outage("the functions' clock is a minute fast", _skew(60)),
    Outage("the functions' clock is a minute slow", _skew(-60)),
    Outage("half of all handlers fail", _fail(HANDLERS // 2)),
    Outage("one handler of twenty fails always", _fail(1)),
    Outage("runs cost more than `ALERT_DOLLARS_A_DAY`", _run_away),
)


def read_policies() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the policies and the metrics of a deployment, as infra/deploy.sh applies them."""
    script = [sys.executable, str(ROOT / "infra/lib/monitoring.py"), "render"]
    listed = subprocess.run([*script, "policy", NAME, str(DOLLARS)], capture_output=True, text=True, check=True).stdout  # noqa: S603 - our own script
    policies = {line.split("\t")[0]: json.loads(line.split("\t")[2]) for line in listed.splitlines()}
    text = (ROOT / "infra/monitoring/metrics.json").read_text(encoding="utf-8")
    return policies, json.loads(text.replace("${NAME}", NAME))


def notice(outage: Outage, policies: Mapping[str, Any], metrics: Mapping[str, Any]) -> list[set[str]]:
    """Return which alerts are open at the end of each minute after a part has broken."""
    with World(policies, metrics).opened() as world:
        quiet = world.run(BEFORE)
        if any(quiet):
            raise AssertionError(f"alerts while all is well: {quiet}")
        outage.begin(world)
        return world.run(LONGEST)


def render(policies: Mapping[str, Any], metrics: Mapping[str, Any]) -> str:
    lines = ["| what breaks | alert, and after how many minutes |", "|---|---|"]
    for outage in OUTAGES:
        found = notice(outage, policies, metrics)
        first: dict[str, int] = {}
        for minute, alerts in enumerate(found, 1):
            for alert in sorted(alerts):
                first.setdefault(alert, minute)
        lines.append(f"| {outage.part} | {', '.join(f'`{alert}` {minute}' for alert, minute in first.items())} |")
    return "\n".join(lines) + "\n"


def put(text: str, table: str) -> str:
    return _PLACE.sub(lambda _: table, text)


if __name__ == "__main__":
    PAGE.write_text(put(PAGE.read_text("utf-8"), render(*read_policies())), "utf-8")
