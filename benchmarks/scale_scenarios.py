"""What is measured of a deployment: a steady load, and how it recovers from a purge of its queues or an outage."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from benchmarks.scale_limits import DOCUMENT_WINDOW, to_seconds
from benchmarks.scale_world import Deployment, World

from cloudsched.emulator.model.task import HORIZON
from cloudsched.engine.ports.store import choose_shard

BEGIN: Final = 100.0
"""When the load begins, in virtual seconds: tasks are created before."""
DRAIN_SECONDS: Final = 15.0
"""How long what came due in a window may take to run."""
_ENTRY_BYTES: Final = 100
"""About what an index entry takes."""
_MINUTE: Final = 60.0
_TOO_EARLY: Final = 18.0
"""A sweep that comes so soon after something was due leaves it to the next one: a purge at its worst."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is simulated.

    Attributes:
        rate: About how many occurrences a second are simulated, of however many there are.
        window: Over how many seconds; a multiple of ten.
        backlog: How many overdue tasks are recovered.
        hashed: How many ids show how evenly the hash spreads them.
    """

    rate: float
    window: int
    backlog: int
    hashed: int


@dataclass(frozen=True, slots=True)
class Steady:
    """A steady load, as it was simulated."""

    occurrences: int
    """How many came due in the window."""
    served: int
    """How many of them have ended, not later than `DRAIN_SECONDS` after the window."""
    lateness: tuple[float, float]
    """The median, and what 99 % were below; those that did not run count as late until the end."""
    reads: float
    writes: float
    deletes: float
    dispatches: float
    """Of each occurrence that ran; dispatches are tasks created in queues."""
    hottest_range: str
    range_writes: float
    """A second, into that range, of the whole deployment."""
    hottest_document: str
    document_writes: float
    queue_use: float
    """Which part of its rate the busiest queue dispatched."""
    busy_seconds: float
    """How long a delivery took, for each occurrence."""
    aborted: dict[str, int]
    imbalance: float
    error: float
    """The sampling error of rates, at two standard deviations."""
    task_bytes: float
    """What a task takes in storage, with its index entries."""

    fraction: float
    """The part of the deployment that was simulated."""
    served_rate: float
    """How many ended a second, of the whole deployment: in the window, or as long as it fell behind."""

    @property
    def is_saturated(self) -> bool:
        """Whether the deployment falls behind."""
        return is_behind(self.occurrences, self.served)


@dataclass(frozen=True, slots=True)
class Recovery:
    """How a part of a backlog was recovered."""

    simulated: int
    recovered: int
    first: float
    """How long the first tenth took, from the loss on."""
    last: float
    """How long nine tenths took."""
    fraction: float
    """The part of the deployment."""

    def seconds_for(self, backlog: float) -> float | None:
        """Return how long a backlog of the whole deployment takes; None if it never ends."""
        if self.recovered < 0.9 * self.simulated:
            return None
        rate = 0.8 * self.simulated / max(self.last - self.first, 1e-3)
        return self.first + max(0.0, backlog * self.fraction - 0.1 * self.simulated) / rate


def choose_part(deployment: Deployment, rate: float) -> Deployment:
    """Return the deployment with the part that has about so many occurrences a second."""
    fraction = min(1.0, rate / deployment.possible_rate)
    return replace(deployment, queues=replace(deployment.queues, fraction=fraction))


def measure_steady(deployment: Deployment, effort: Effort, seed: int = 0) -> Steady:
    """Simulate a steady load for a while."""
    deployment = choose_part(deployment, effort.rate)
    end = BEGIN + effort.window
    with World(deployment, seed) as world:
        dues = _draw_dues(world, BEGIN, end)
        first_dues = dict(zip(world.create_tasks(dues), dues, strict=True))
        world.time.seconds = BEGIN
        world.enforce_limits()
        world.queues.run(end + DRAIN_SECONDS)
        limits, counts = world.firestore.limits, world.firestore.counts
        begun = {(task_id, due): at for task_id, each in world.starts.items() for due, at in reversed(each)}
        wanted = [
            (task_id, due + number * deployment.period)
            for task_id, due in first_dues.items()
            for number in range(math.ceil((end - due) / deployment.period))
        ]
        count, served = len(wanted), _count_finished(world, end)
        late = sorted(begun.get((task_id, due), end + DRAIN_SECONDS) - due for task_id, due in wanted)
        ran = max(1, sum(len(each) for each in world.starts.values()))
        until = end if deployment.period > effort.window else end + DRAIN_SECONDS
        hottest, range_writes = limits.ranges.find_hottest(BEGIN, until)
        documents = limits.documents.sum_by_key(BEGIN, until + DOCUMENT_WINDOW)
        document = max(documents, key=lambda each: documents[each])
        imbalance = measure_imbalance(deployment.tasks, deployment.shards, effort.hashed)
        hops = max(0, math.ceil(deployment.period / HORIZON.total_seconds()) - 1)
        return Steady(
            occurrences=count,
            served=served,
            lateness=(late[len(late) // 2], late[min(len(late) - 1, int(len(late) * 0.99))]),
            reads=counts["reads"] / ran + hops,
            writes=counts["writes"] / ran,
            deletes=counts["deletes"] / ran,
            dispatches=world.queues.counts["created"] / ran + hops,
            hottest_range=str(hottest),
            range_writes=range_writes
            * (imbalance if limits.ranges.is_of_shard(hottest) and not is_behind(count, served) else 1.0),
            hottest_document=str(document).partition("/documents/")[2],
            document_writes=documents[document] / (until - BEGIN),
            queue_use=world.queues.find_use(BEGIN, end),
            busy_seconds=world.queues.busy_seconds / ran,
            aborted={name: number for name, number in counts.items() if name.startswith("aborted")},
            imbalance=imbalance,
            error=2 / math.sqrt(count) if deployment.fraction < 1 else 0.0,
            task_bytes=_measure_tasks(world),
            fraction=deployment.fraction,
            served_rate=_measure_rate(deployment, effort.window, count, served),
        )


def measure_purge(deployment: Deployment, effort: Effort) -> Recovery:
    """Lose all dispatches when many tasks are just due, in the worst second, and let the sweep find them."""
    deployment = choose_part(deployment, effort.rate)
    with World(deployment) as world:
        due = math.floor(_MINUTE - _TOO_EARLY)
        lost = world.create_tasks([due] * effort.backlog, period=10**7)
        world.queues.run(due - 1.0)
        world.queues.purge()
        return _recover(world, lost, due - 1.0, 2 * _MINUTE, effort)


def measure_fan_out(deployment: Deployment) -> float:
    """Return how many seconds after the sweep's job the sweep of each shard has begun, with nothing else to do."""
    with World(replace(deployment, queues=replace(deployment.queues, fraction=1.0))) as world:
        world.sweep_each_minute(_MINUTE, _MINUTE)
        world.queues.run(2 * _MINUTE)
        return max(world.swept.values(), default=_MINUTE) - _MINUTE


def measure_outage(deployment: Deployment, effort: Effort) -> Recovery:
    """Answer no dispatch while many tasks come due, sweeping all the while, then let the executor work again."""
    deployment = choose_part(deployment, effort.rate)
    length = 60.0
    with World(deployment) as world:
        dues = [BEGIN + math.floor(length * number / effort.backlog) for number in range(effort.backlog)]
        missed = world.create_tasks(dues, period=10**7)
        world.time.seconds = BEGIN
        world.is_executor_down = True
        world.enforce_limits()
        world.sweep_each_minute(BEGIN, BEGIN + length - 1)
        world.queues.run(BEGIN + length)
        world.is_executor_down = False
        return _recover(world, missed, BEGIN + length, BEGIN + length, effort)


def _recover(world: World, overdue: list[str], lost_at: float, load_from: float, effort: Effort) -> Recovery:
    """Recover overdue tasks beside the usual load, which begins when the recovery does."""
    deployment, now = world.deployment, world.time.seconds
    load = deployment.possible_rate * deployment.fraction
    spare = max(1.0, deployment.queues.count * deployment.fraction * deployment.queues.rate - load)
    expected = max(20.0, 2 * len(overdue) / spare)
    limits = world.firestore.limits.is_enforced
    world.firestore.limits.is_enforced = world.queues.is_enforced = False
    span = max(1, round(min(expected, effort.window)))
    count = int(load * span)
    world.create_tasks([load_from + math.floor(span * number / count) for number in range(count)], 10**7)
    world.time.seconds = now
    if limits:
        world.firestore.limits.is_enforced = world.queues.is_enforced = True
    else:
        world.enforce_limits()
    end = load_from + 60 * math.ceil(expected / 60 + 2)
    world.sweep_each_minute(now + 1, end)
    wanted = set(overdue)
    at = load_from
    while at < end and not wanted <= world.starts.keys():
        at += 1.0
        world.queues.run(at)
    starts = sorted(each[0][1] - lost_at for task_id, each in world.starts.items() if task_id in wanted)
    size = len(overdue)
    first = starts[min(len(starts) - 1, size // 10)] if starts else 0.0
    last = starts[min(len(starts) - 1, size * 9 // 10)] if starts else 0.0
    return Recovery(size, len(starts), first, last, deployment.fraction)


def measure_imbalance(tasks: int, shards: int, hashed: int) -> float:
    """Return how many tasks the fullest shard has, beside the mean, by the real hash.

    Of more tasks than are hashed here the excess is the smaller the more there are, by the square root.
    """
    if shards == 1:
        return 1.0
    count = min(tasks, hashed)
    sizes = [0] * shards
    for number in range(count):
        sizes[choose_shard(f"t{number}", shards)] += 1
    excess = max(sizes) * shards / count - 1
    return 1 + excess * math.sqrt(count / tasks)


def is_behind(occurrences: int, served: int) -> bool:
    """Return whether so few ran that the others are not just on their way."""
    return served < 0.98 * occurrences


def _measure_rate(deployment: Deployment, window: int, count: int, served: int) -> float:
    seconds = window + DRAIN_SECONDS if is_behind(count, served) else window
    return served / seconds / deployment.fraction


def _count_finished(world: World, end: float) -> int:
    """Return how much of what came due before `end` has succeeded."""
    return sum(
        each.values["status"] == "SUCCEEDED"
        and each.written_at <= end + DRAIN_SECONDS
        and to_seconds(each.values["scheduledFor"]) < end
        for each in world.firestore.list_documents("executions")
    )


def _measure_tasks(world: World) -> float:
    tasks = world.firestore.list_documents("tasks")
    total: float = sum(each.message.ByteSize() + _ENTRY_BYTES * len(each.entries) for each in tasks)
    return total / max(1, len(tasks))


def _draw_dues(world: World, begin: float, end: float) -> list[float]:
    """Return when the tasks that come due in a window do first: at whole seconds, as schedules are."""
    deployment = world.deployment
    span = min(deployment.period, int(end - begin))
    count = round(deployment.possible_rate * deployment.fraction * span)
    return [begin + world.chance.randrange(span) for _ in range(count)]
