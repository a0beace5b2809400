"""Show what a deployment takes at each size, and where it breaks: the real engine, in virtual time, on models.

    python -m benchmarks.scale [--quick] [--markdown] [--write]

The engine, the planner, the sweep and both adapters are those that run in production. Firestore and Cloud Tasks are
models (`tests/scale`): index entries are derived from ``infra/firestore.indexes.json``, as the scripts choose them for
so many shards, and 500 writes a second fit into each sequential range; documents, ramps, queues' rates and concurrency
have their limits; every call has a latency; what does not fit is ABORTED and retried. Of large deployments a part is
simulated: ``docs/run/capacity.md`` says how, and what none of this measures.
"""

from __future__ import annotations

import argparse
import logging
import math
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from benchmarks.scale_limits import CEILING_RATES, Ceiling, make_ceilings_sheet, make_limits_sheet
from benchmarks.scale_settings import choose_settings, make_settings_sheet
from benchmarks.scale_tables import PAGE, Sheet, make_loads_sheet, make_sizes_sheet, put
from rich.console import Console
from tests.scale.cloud_tasks_model import QueueSetup
from tests.scale.google_limits import (
    DOCUMENT_WINDOW,
    DOCUMENT_WRITES_PER_SECOND,
    RANGE_WRITES_PER_SECOND,
    to_seconds,
)
from tests.scale.world import LEAD_SECONDS, Deployment, World

from cloudsched.config.settings import DEFAULT_PRICES, Prices
from cloudsched.emulator.model.task import HORIZON
from cloudsched.engine.ports.sweep import choose_shard

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

SIZES: Final = (10**4, 10**6, 10**8)
RATES: Final = (10, 1_000, 50_000)
MONTH_SECONDS: Final = 30 * 86_400
CONCURRENCY: Final = 10
"""Deliveries at a time of one instance (EXECUTE_CONCURRENCY): an instance costs the same whatever it does."""
INSTANCE_DOLLARS_PER_SECOND: Final = 0.000024 + 0.5 * 0.0000025
"""One vCPU and 512 MiB (Cloud Run)."""
STORAGE_DOLLARS_PER_BYTE: Final = 0.15 / 2**30
OUTAGE_SECONDS: Final = 3_600.0
BEGIN: Final = 100.0
"""When the load begins, in virtual seconds: tasks are created before."""
DRAIN_SECONDS: Final = 5.0
"""How long what came due in a window may be on its way after it. A backlog does not run within that time."""
GROWTH_SECONDS: Final = 0.5
"""By how much runs may be later at the end of a window than at its beginning before that counts as falling behind."""
_ENTRY_BYTES: Final = 100
"""About what an index entry takes."""
_MINUTE: Final = 60.0
_MOST: Final = 0.98
"""Which part of what came due has to run for a deployment not to fall behind."""
_OFTEN: Final = 0.1
"""For which part of all runs a limit has to refuse something to be what a deployment breaks at."""
CEILING_STEP: Final = 1.5
"""By how much a load is raised until a deployment falls behind; then the middle is tried, again and again."""
_RATE_OF_CEILINGS: Final = 20.0
"""How much is simulated at most while a ceiling is looked for, since that takes many tries."""
_RATE_OF_RISING_IDS: Final = 80.0
"""What any settings carry of tasks whose ids rise."""
_TOO_EARLY: Final = 18.0
"""A sweep that comes so soon after something was due leaves it to the next one: a purge at its worst."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is simulated.

    Attributes:
        rate: About how many occurrences a second are simulated, of however many there are.
        recovery_rate: The same while a backlog is recovered: too small a part has no thread of a sweep to itself.
        window: Over how many seconds; a multiple of ten. A minute at least says whether a deployment falls behind.
        backlog: How many overdue tasks are recovered.
        hashed: How many ids show how evenly the hash spreads them.
        ceiling_steps: How many rates are tried before one counts as the highest that a deployment carries.
    """

    rate: float
    recovery_rate: float
    window: int
    backlog: int
    hashed: int
    ceiling_steps: int = 3


QUICK: Final = Effort(rate=15.0, recovery_rate=40.0, window=60, backlog=600, hashed=50_000)
FULL: Final = Effort(rate=60.0, recovery_rate=60.0, window=60, backlog=2_000, hashed=1_000_000, ceiling_steps=7)


@dataclass(frozen=True, slots=True)
class Steady:
    """A steady load, as it was simulated."""

    occurrences: int
    """How many came due in the window."""
    served: int
    """How many of them have ended, not later than `DRAIN_SECONDS` after the window."""
    lateness: tuple[float, float]
    """The median, and what 99 % were below; those that did not run count as late until the end."""
    growth: float
    """By how many seconds what came due in the last third of the window ran later than what did in the first."""
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
    calls_use: float
    """Which part of the calls that all queues may make at the same time were under way, on average."""
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
    """How many ended a second, of the whole deployment, while as many came due."""

    @property
    def is_saturated(self) -> bool:
        """Whether the deployment falls behind: fewer ran than came due, or each later than the one before."""
        return self.growth > GROWTH_SECONDS or self.served < _MOST * self.occurrences

    @property
    def nearest_limit(self) -> tuple[str, float]:
        """The limit that has the least room left, and the part of it that is used."""
        of_range = f"an index range (`{self.hottest_range}`)"
        refused = {name.removeprefix("aborted by "): count for name, count in self.aborted.items()}
        uses = {
            of_range: self.range_writes / RANGE_WRITES_PER_SECOND,
            "one document": self.document_writes / DOCUMENT_WRITES_PER_SECOND,
            "calls a second of a queue": self.queue_use,
            "calls at the same time of a queue": self.calls_use,
        }
        if self.is_saturated and sum(refused.values()) > _OFTEN * self.occurrences:
            cause = max(refused, key=lambda each: refused[each])
            found = {"range": of_range, "document": "one document"}.get(cause, cause)
            return found, max(1.0, uses.get(found, 1.0))
        return max(uses.items(), key=lambda each: each[1])


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


@dataclass(frozen=True, slots=True)
class Result:
    """What was found out about one deployment; no recovery if it falls behind anyway."""

    deployment: Deployment
    steady: Steady
    fan_out: float
    """How many seconds after the sweep's job the sweep of every shard has begun."""
    purge: Recovery | None
    outage: Recovery | None

    @property
    def backlog(self) -> float:
        """How many tasks are overdue after an hour: each is, once, however often it was due."""
        return min(self.deployment.tasks, OUTAGE_SECONDS * self.deployment.possible_rate)

    @property
    def purge_seconds(self) -> float | None:
        """How long it takes until everything has run that was lost while as much was due as comes in an hour."""
        return None if self.purge is None else self.purge.seconds_for(self.backlog)

    @property
    def outage_seconds(self) -> float | None:
        """How long it takes until everything has run that came due in an hour without executor."""
        return None if self.outage is None else self.outage.seconds_for(self.backlog)

    def to_dollars(self, prices: Mapping[str, float] = DEFAULT_PRICES) -> dict[str, float]:
        """Return what a month costs, of what is served: operations, instances, storage, sweeps."""
        steady, deployment = self.steady, self.deployment
        rate = steady.served_rate if steady.is_saturated else deployment.possible_rate
        occurrences = rate * MONTH_SECONDS
        amounts = {
            "read": steady.reads,
            "write": steady.writes,
            "delete": steady.deletes,
            "queueOperation": 2 * steady.dispatches,
            "request": steady.dispatches,
        }
        table = Prices(table=tuple(prices.items()))
        parts = deployment.shards if deployment.shards > 1 else 0
        sweep = {"read": 1.0 + parts, "write": 1.0, "queueOperation": 2.0 * parts, "request": 1.0 + parts}
        return {
            "operations": table.cost({name: amount * occurrences for name, amount in amounts.items()}),
            "instances": steady.busy_seconds * occurrences / CONCURRENCY * INSTANCE_DOLLARS_PER_SECOND,
            "storage": steady.task_bytes * deployment.tasks * STORAGE_DOLLARS_PER_BYTE,
            "sweeps": table.cost(sweep) * MONTH_SECONDS / 60,
        }

    def to_row(self) -> dict[str, Any]:
        """Return the row of the JSON; null where something never ends."""
        steady, deployment, dollars = self.steady, self.deployment, self.to_dollars()
        seconds = [self.purge_seconds, self.outage_seconds]
        recovery = None if None in seconds else max(each for each in seconds if each is not None)
        million = None if self.purge is None else self.purge.seconds_for(1e6)
        return {
            "tasks": deployment.tasks,
            "occurrencesPerSecond": deployment.rate,
            "shards": deployment.shards,
            "queues": deployment.queues.count,
            "hottestRangeWritesPerSecond": round(steady.range_writes, 1),
            "latenessP99Seconds": round(steady.lateness[1], 3),
            "readsPerOccurrence": round(steady.reads, 3),
            "writesPerOccurrence": round(steady.writes, 3),
            "dispatchesPerOccurrence": round(steady.dispatches, 3),
            "recoverySeconds": _round(recovery),
            "dollarsPerMonth": round(math.fsum(dollars.values()), 2),
            "possibleOccurrencesPerSecond": round(deployment.possible_rate, 1),
            "servedPerSecond": round(steady.served_rate, 1),
            "isSaturated": steady.is_saturated,
            "latenessMedianSeconds": round(steady.lateness[0], 3),
            "hottestRange": steady.hottest_range,
            "hottestDocument": steady.hottest_document,
            "hottestDocumentWritesPerSecond": round(steady.document_writes, 2),
            "queueUse": round(steady.queue_use, 3),
            "callsUse": round(steady.calls_use, 3),
            "nearestLimit": steady.nearest_limit[0],
            "nearestLimitUse": round(steady.nearest_limit[1], 3),
            "owners": deployment.owner_count,
            "isOneTime": deployment.is_one_time,
            "hasRisingIds": deployment.has_rising_ids,
            "latenessGrowthSeconds": round(steady.growth, 3),
            "abortedCommits": {name.removeprefix("aborted by "): number for name, number in steady.aborted.items()},
            "hashImbalance": round(steady.imbalance, 4),
            "recoveryAfterPurgeSeconds": _round(self.purge_seconds),
            "recoveryAfterOutageSeconds": _round(self.outage_seconds),
            "recoveryOfAMillionSeconds": _round(million),
            "sweepFanOutSeconds": round(self.fan_out, 3),
            "dollars": {name: round(each, 2) for name, each in dollars.items()},
            "simulatedOccurrences": steady.occurrences,
            "simulatedFraction": round(steady.fraction, 6),
            "error": round(steady.error, 4),
        }


def choose_deployment(tasks: int, rate: float, **others: Any) -> Deployment:
    """Return a deployment with the settings that `docs/run/capacity.md` advises for a rate."""
    found = choose_settings(rate)
    queues = QueueSetup(found.queues_per_priority, found.calls_a_second, found.calls)
    return Deployment(tasks, rate, found.shards, queues, **others)


def list_sizes() -> list[Deployment]:
    """Return the deployments of all sizes: as advised, and with one shard."""
    advised = [choose_deployment(tasks, rate) for tasks in SIZES for rate in RATES]
    return list(dict.fromkeys(each for one in advised for each in (one, replace(one, shards=1))))


def list_loads() -> list[Deployment]:
    """Return deployments that differ in what their tasks are: whose, with which ids, and whether they run again."""
    many: dict[str, Any] = {"owners": 1_000}
    beyond = [Deployment(10**6, rate) for rate in (150, 200)]
    return [
        *(choose_deployment(10**6, 1_000, owners=owners) for owners in (1, 20, 1_000)),
        choose_deployment(10**6, 1_000, is_one_time=True, **many),
        *(choose_deployment(10**6, rate, has_rising_ids=True, **many) for rate in (150, 1_000)),
        choose_deployment(10**6, 250, has_rising_ids=True, is_one_time=True, **many),
        *(replace(each, **many) for each in beyond),
    ]


def measure(deployments: Iterable[Deployment], effort: Effort) -> Iterator[Result]:
    """Yield what is found out about each deployment.

    A recovery depends on the rate, the shards and the queues alone: it is simulated once for each, and every size has
    a backlog of its own.
    """
    recoveries: dict[Deployment, tuple[Recovery, Recovery]] = {}
    for deployment in deployments:
        steady, fan_out = measure_steady(deployment, effort), measure_fan_out(deployment)
        if steady.is_saturated:
            yield Result(deployment, steady, fan_out, None, None)
            continue
        key = replace(deployment, tasks=0)
        if key not in recoveries:
            recoveries[key] = measure_purge(deployment, effort), measure_outage(deployment, effort)
        yield Result(deployment, steady, fan_out, *recoveries[key])


def list_ceilings() -> list[tuple[Deployment, float]]:
    """Return deployments of which the ceiling is looked for, and from which rate on."""
    kinds = (False, True)
    found = [(choose_deployment(10**6, rate, is_one_time=kind), rate) for rate in CEILING_RATES for kind in kinds]
    middle = choose_deployment(10**6, CEILING_RATES[1], has_rising_ids=True)
    return [*found, *((replace(middle, is_one_time=kind), _RATE_OF_RISING_IDS) for kind in kinds)]


def measure_ceiling(settings: Deployment, effort: Effort, start: float) -> Ceiling:
    """Raise the load of a deployment from a rate that it carries until it falls behind."""
    carried = start
    broke_at, limit = 0.0, ""
    rate = carried * CEILING_STEP
    for _ in range(effort.ceiling_steps):
        # Each task is due every ten minutes, so that the rate is what is asked for.
        steady = measure_steady(replace(settings, tasks=round(600 * rate), rate=rate, owners=1_000), effort)
        if steady.is_saturated:
            broke_at, limit = rate, steady.nearest_limit[0]
        else:
            carried = rate
        rate = (carried + broke_at) / 2 if broke_at else carried * CEILING_STEP
    load = {"is_one_time": settings.is_one_time, "has_rising_ids": settings.has_rising_ids}
    return Ceiling(settings.rate, load, carried, broke_at, limit)


def choose_part(deployment: Deployment, rate: float) -> Deployment:
    """Return the deployment with the part that has about so many occurrences a second.

    The part of the calls at the same time that each simulated queue has is a whole number.
    """
    queues = replace(deployment.queues, fraction=min(1.0, rate / deployment.possible_rate))
    share = queues.limits.max_concurrent_dispatches / queues.concurrent
    return replace(deployment, queues=replace(queues, fraction=share * queues.simulated / queues.count))


def measure_steady(deployment: Deployment, effort: Effort, seed: int = 0) -> Steady:
    """Simulate a steady load for a while."""
    deployment = choose_part(deployment, effort.rate)
    end = BEGIN + effort.window
    with World(deployment, seed) as world:
        dues = _draw_dues(world, BEGIN, end)
        ids = world.plan_tasks(dues) if deployment.is_one_time else world.create_tasks(dues)
        first_dues = dict(zip(ids, dues, strict=True))
        world.time.seconds = BEGIN - LEAD_SECONDS - 1
        world.enforce_limits()
        world.queues.run(end + DRAIN_SECONDS)
        limits, counts = world.firestore.limits, world.firestore.counts
        begun = {(task_id, due): at for task_id, each in world.starts.items() for due, at in reversed(each)}
        wanted = [
            (task_id, due + number * deployment.period)
            for task_id, due in first_dues.items()
            for number in range(1 if deployment.is_one_time else math.ceil((end - due) / deployment.period))
        ]
        count, (served, served_in_time) = len(wanted), _count_finished(world, end)
        lateness = {(task_id, due): begun.get((task_id, due), end + DRAIN_SECONDS) - due for task_id, due in wanted}
        late = sorted(lateness.values())
        growth = _measure_growth([(due, each) for (_, due), each in lateness.items()], BEGIN, end)
        ran = max(1, sum(len(each) for each in world.starts.values()))
        until = end if deployment.period > effort.window else end + DRAIN_SECONDS
        hottest, range_writes = limits.ranges.find_hottest(BEGIN, until)
        documents = limits.documents.sum_by_key(BEGIN, until + DOCUMENT_WINDOW)
        document = max(documents, key=lambda each: documents[each])
        imbalance = measure_imbalance(deployment.tasks, deployment.shards, effort.hashed)
        lasts = 0 if deployment.is_one_time else deployment.period
        hops = max(0, math.ceil(lasts / HORIZON.total_seconds()) - 1)
        is_behind = growth > GROWTH_SECONDS or served < _MOST * count
        calls = deployment.queues.simulated * deployment.queues.limits.max_concurrent_dispatches
        return Steady(
            occurrences=count,
            served=served,
            lateness=(late[len(late) // 2], late[min(len(late) - 1, int(len(late) * 0.99))]),
            growth=growth,
            reads=counts["reads"] / ran + hops,
            writes=counts["writes"] / ran,
            deletes=counts["deletes"] / ran,
            dispatches=world.queues.counts["created"] / ran + hops,
            hottest_range=", ".join(hottest.index.fields),
            range_writes=range_writes * (imbalance if limits.ranges.is_of_shard(hottest) and not is_behind else 1.0),
            hottest_document=str(document).partition("/documents/")[2],
            document_writes=documents[document] / (until - BEGIN),
            queue_use=world.queues.find_use(BEGIN, end),
            calls_use=min(1.0, world.queues.busy_seconds / (until - BEGIN) / calls),
            busy_seconds=world.queues.busy_seconds / ran,
            aborted={name: number for name, number in counts.items() if name.startswith("aborted")},
            imbalance=imbalance,
            error=2 / math.sqrt(count) if deployment.fraction < 1 else 0.0,
            task_bytes=_measure_tasks(world),
            fraction=deployment.fraction,
            served_rate=(served_in_time if is_behind else count) / effort.window / deployment.fraction,
        )


def measure_purge(deployment: Deployment, effort: Effort) -> Recovery:
    """Lose all dispatches when many tasks are just due, in the worst second, and let the sweep find them."""
    deployment = choose_part(deployment, effort.recovery_rate)
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
    deployment = choose_part(deployment, effort.recovery_rate)
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


def _measure_growth(late: list[tuple[float, float]], begin: float, end: float) -> float:
    """Return how much later what came due in the last third of a time ran, on average, than what did in the first."""
    third = (end - begin) / 3
    first = [each for due, each in late if due < begin + third]
    last = [each for due, each in late if due >= end - third]
    return math.fsum(last) / max(1, len(last)) - math.fsum(first) / max(1, len(first))


def _count_finished(world: World, end: float) -> tuple[int, int]:
    """Return how much of what came due before `end` has succeeded, and how much of that before `end`."""
    ended = [
        each.written_at
        for each in world.firestore.list_documents("executions")
        if each.values["status"] == "SUCCEEDED" and to_seconds(each.values["scheduledFor"]) < end
    ]
    return sum(at <= end + DRAIN_SECONDS for at in ended), sum(at <= end for at in ended)


def _measure_tasks(world: World) -> float:
    tasks = world.firestore.list_documents("tasks")
    total: float = sum(each.message.ByteSize() + _ENTRY_BYTES * len(each.entries) for each in tasks)
    return total / max(1, len(tasks))


def _draw_dues(world: World, begin: float, end: float) -> list[float]:
    """Return when the tasks that come due in a window do first: at whole seconds, as schedules are."""
    deployment = world.deployment
    span = min(deployment.period, int(end - begin))
    count = round(deployment.possible_rate * deployment.fraction * span)
    dues = [begin + world.chance.randrange(span) for _ in range(count)]
    return sorted(dues) if deployment.has_rising_ids else dues  # then the ids have that order, too


def _round(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)


def make_sheets(effort: Effort) -> Iterator[Sheet]:
    """Yield the tables of the page in the documentation."""
    yield make_settings_sheet()
    yield make_limits_sheet()
    small = replace(effort, rate=min(effort.rate, _RATE_OF_CEILINGS))
    yield make_ceilings_sheet([measure_ceiling(settings, small, start) for settings, start in list_ceilings()])
    yield make_sizes_sheet([_report(each.to_row()) for each in measure(list_sizes(), effort)])
    loads = (Result(each, measure_steady(each, effort), 0.0, None, None) for each in list_loads())
    yield make_loads_sheet([_report(each.to_row()) for each in loads])


def _report(row: dict[str, Any]) -> dict[str, Any]:
    print(f"{row}", file=sys.stderr, flush=True)
    return row


def main() -> None:
    """Simulate, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="simulate less: within two minutes")
    parser.add_argument("--markdown", action="store_true", help="print the tables as the page has them")
    parser.add_argument("--write", action="store_true", help="write them into the page, too")
    options = parser.parse_args()
    logging.getLogger("cloudsched").setLevel(logging.CRITICAL)  # what is aborted is counted, and in the figures
    sheets = list(make_sheets(QUICK if options.quick else FULL))
    if options.write:
        PAGE.write_text(put(PAGE.read_text(encoding="utf-8"), sheets), encoding="utf-8")
    for sheet in sheets:
        if options.markdown:
            print(sheet.to_markdown())
        else:
            Console(width=190).print(sheet.to_table())


if __name__ == "__main__":
    main()
