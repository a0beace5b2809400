"""Show that ended tasks are removed as fast as they come, and that nothing waits behind them, in virtual time.

    python -m benchmarks.removals

The world is that of `benchmarks.scale`: the real engine over models of Firestore and Cloud Tasks. A minute of one-time
tasks ran as long ago as ended tasks are kept, and another minute of them runs now, while Firestore's TTL deletes the
first ones. Google says that documents are "typically deleted within 24 hours after the expiration date"
(firebase.google.com/docs/firestore/ttl), and nothing of a rate: here they go at once, and each deletion takes room in
the ranges of its indexes, which is harsher than to delete them later. The second table has tasks that the sweep
removes itself, since they are kept for less than a month, and a dispatch that was lost behind them.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from benchmarks.scale import BEGIN, DRAIN_SECONDS, choose_deployment, choose_part
from rich.console import Console
from rich.table import Table
from tests.scale.world import LEAD_SECONDS, World

from cloudsched.config.settings import Settings
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.testing import START

RETENTION: Final = Settings().retention or timedelta(0)
BRIEF: Final = timedelta(days=1)
_MINUTE: Final = 60.0


@dataclass(frozen=True, slots=True)
class Removal:
    """How one-time tasks were removed while others came."""

    rate: float
    """How many ran a second, of the whole deployment, and how many reached the end of their retention."""
    created: int
    ran: int
    expired: int
    """Documents that the TTL has deleted."""
    left: int
    """Documents whose retention has passed, and which are still there."""
    late_p99: float
    hottest_range: str
    range_writes: float
    reads: float
    """Documents that were read for each task, its run and its removal together."""


def measure_removal(rate: float, simulated: float, window: int) -> Removal:
    """Run one-time tasks for a while, as others that ran so long ago as they are kept are removed."""
    deployment = choose_part(choose_deployment(10**6, rate, is_one_time=True), simulated)
    with World(deployment) as world:
        count = round(rate * deployment.fraction * window)
        dues = [BEGIN + window * number / count for number in range(count)]
        world.plan_tasks([at + LEAD_SECONDS + 1 for at in dues])
        world.queues.run(BEGIN + window + _MINUTE)
        world.starts.clear()
        begin = RETENTION.total_seconds() + BEGIN
        world.queues.run(begin)
        world.enforce_limits()
        shift = begin - BEGIN + LEAD_SECONDS + 1
        wanted = set(world.plan_tasks([at + shift for at in dues]))
        end = begin + window + LEAD_SECONDS + 1
        world.expire_each_second(begin, end + DRAIN_SECONDS)
        world.sweep_each_minute(begin, end)
        world.queues.run(end + DRAIN_SECONDS)
        late = sorted(at - due for each in world.starts.values() for due, at in each)
        hottest, writes = world.firestore.limits.ranges.find_hottest(begin, end)
        return Removal(
            rate=rate,
            created=len(wanted),
            ran=len(wanted & world.starts.keys()),
            expired=world.firestore.counts["expired"],
            left=len(world.firestore.list_expired()),
            late_p99=late[int(len(late) * 0.99)],
            hottest_range=str(hottest),
            range_writes=writes,
            reads=world.firestore.counts["reads"] / len(wanted),
        )


@dataclass(frozen=True, slots=True)
class Rescue:
    """How lost work fared behind tasks that the sweep had to remove."""

    waiting: int
    late: float
    """How many seconds after its time the work that was lost ran."""
    removed_after: float
    """How many seconds after that time the last of the tasks was gone."""


def measure_rescue(waiting: int) -> Rescue:
    """Lose a dispatch while so many ended tasks of one shard wait for the sweep to remove them."""
    with World(choose_deployment(waiting, 10)) as world:
        for number in range(waiting):
            at = START + timedelta(seconds=BEGIN + number / 100)
            world.app.create(
                id=f"ended-{number}", title="T", handler="tick", schedule=Schedule.once(at), retention=BRIEF
            )
            world.time.seconds = 0.0
        world.queues.run(BEGIN + waiting / 10 + _MINUTE)
        due = BRIEF.total_seconds() + BEGIN + waiting / 10 + 10 * _MINUTE
        (lost,) = world.create_tasks([due], period=10**7)
        world.queues.run(due - 1.0)
        world.queues.purge()
        world.starts.clear()
        world.enforce_limits()
        end = due + 60 * _MINUTE
        world.sweep_each_minute(due, end)
        while (lost not in world.starts or world.count_ended()) and world.time.seconds < end:
            world.queues.run(world.time.seconds + 10.0)
        began_at = world.starts[lost][0][1]
        return Rescue(waiting, began_at - due, world.time.seconds - due)


def main() -> None:
    """Print both tables."""
    logging.getLogger("cloudsched").setLevel(logging.CRITICAL)
    table = Table(title="One-time tasks that Firestore's TTL removes, simulated")
    for heading in (
        "a second",
        "created",
        "ran",
        "deleted by TTL",
        "left over",
        "late, p99",
        "hottest range",
        "reads a task",
    ):
        table.add_column(heading, justify="right")
    for rate in (50, 500, 5_000):
        found = measure_removal(rate, 100.0, 60)
        table.add_row(
            *(f"{found.rate:,.0f}", f"{found.created:,}", f"{found.ran:,}", f"{found.expired:,}", f"{found.left:,}"),
            *(f"{found.late_p99:.2f} s", f"{found.range_writes:,.0f}/s {found.hottest_range}", f"{found.reads:.2f}"),
        )
    Console(width=190).print(table)
    table = Table(title="Lost work behind tasks that the sweep removes, one shard, simulated")
    for heading in ("waiting", "the lost run is late", "all are removed after"):
        table.add_column(heading, justify="right")
    for waiting in (0, 1_000, 10_000):
        rescue = measure_rescue(waiting)
        table.add_row(f"{waiting:,}", f"{rescue.late:.0f} s", f"{rescue.removed_after:,.0f} s")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
