"""The settings that a rate needs, by the formulas of ``docs/run/capacity.md``, which has them as its table.

Tests give them to ``infra/deploy.sh``, which must accept them.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.scale_tables import Sheet

RESOURCES: Final = Path(__file__).parents[1] / "infra" / "resources.json"
DEFAULT_RATE: Final = 100
"""Up to here the default settings do. They break down at about 150 (`benchmarks.scale_limits`)."""
MAX_QUEUES: Final = 200
"""The most queues of a priority that the scripts accept."""
RATE_OF_A_SHARD: Final = 125
"""Half of what a shard takes."""
RATE_OF_A_QUEUE: Final = 312.5
"""Five eighths of what a queue dispatches, so that a backlog can drain beside the load."""
MAX_RATE: Final = MAX_QUEUES * RATE_OF_A_QUEUE
QUEUE_RATE: Final = 500
"""The most calls a second of a queue."""
HANDLER_SECONDS: Final = 0.1
OVERHEAD_SECONDS: Final = 0.1
"""How long a delivery takes beside its handler."""
ROOM: Final = 1.2
"""A fifth more calls at the same time than are needed on average."""
_FEW_CALLS: Final = 1_000
"""Up to so many calls at the same time an instance takes ten, as by default."""
IDLE_CALLS: Final = {"critical": "100/10", "high": "100/10", "low": "50/10"}
"""What the priorities get that hardly run, where each has several queues."""
SHOWN_RATES: Final = (DEFAULT_RATE, 250, 1_000, 10_000, 50_000)


@dataclass(frozen=True, slots=True)
class ScaleSettings:
    """The settings of ``infra/config.sh`` that a rate needs."""

    shards: int
    queues_per_priority: int
    queues: dict[str, str]
    """The limits of the queues of each priority: calls a second, then calls at the same time."""
    concurrency: int
    instances: int

    @property
    def variables(self) -> dict[str, str]:
        """The lines of the configuration."""
        queues = {f"QUEUE_{name.upper()}": limits for name, limits in self.queues.items()}
        return {
            "SHARDS": f"{self.shards}",
            "QUEUES_PER_PRIORITY": f"{self.queues_per_priority}",
            **queues,
            "EXECUTE_CONCURRENCY": f"{self.concurrency}",
            "EXECUTE_MAX_INSTANCES": f"{self.instances}",
        }

    @property
    def calls_a_second(self) -> float:
        """The calls a second of each queue of the priority `normal`."""
        return float(self.queues["normal"].partition("/")[0])

    @property
    def calls(self) -> int:
        """The calls at the same time of each queue of the priority `normal`."""
        return int(self.queues["normal"].partition("/")[2])


def choose_settings(rate: float, handler_seconds: float = HANDLER_SECONDS) -> ScaleSettings:
    """Return the settings for so many runs a second of the priority `normal`.

    Raises ValueError above `MAX_RATE`: one deployment has no more queues.
    """
    if rate > MAX_RATE:
        raise ValueError(f"{rate:,} runs a second need more than {MAX_QUEUES} queues, and so a second deployment")
    table = json.loads(RESOURCES.read_text(encoding="utf-8"))
    priorities: list[str] = table["priorities"]
    limits: dict[str, str] = table["queues"]
    if rate <= DEFAULT_RATE and handler_seconds <= HANDLER_SECONDS:
        executor = table["functions"]["execute"]
        chosen = {name: limits[name] for name in priorities}
        return ScaleSettings(1, 1, chosen, executor["concurrency"], executor["maximum"])
    count = math.ceil(rate / RATE_OF_A_QUEUE)
    calls = math.ceil(QUEUE_RATE * (handler_seconds + OVERHEAD_SECONDS) * ROOM)
    queues = {name: limits[name] if count == 1 else IDLE_CALLS.get(name, "") for name in priorities}
    queues["normal"] = f"{QUEUE_RATE}/{calls}"
    others = sum(_read_calls(each) for name, each in limits.items() if name not in priorities)
    every = count * sum(map(_read_calls, queues.values())) + others
    concurrency = 10 if every <= _FEW_CALLS else 40
    shards = 2 ** max(0, math.ceil(math.log2(rate / RATE_OF_A_SHARD)))
    return ScaleSettings(shards, count, queues, concurrency, math.ceil(every / concurrency))


def _read_calls(limits: str) -> int:
    return int(limits.partition("/")[2])


def make_settings_sheet() -> Sheet:
    """Return the page's table of settings."""
    priorities = ("normal", "critical", "high", "low")
    names = [f"`QUEUE_{name.upper()}`" for name in priorities]
    executor = ("`EXECUTE_CONCURRENCY`", "`EXECUTE_MAX_INSTANCES`")
    rows = []
    for rate in SHOWN_RATES:
        found = choose_settings(rate)
        queues = [found.queues[name] for name in priorities]
        cells = [f"{rate:,}", found.shards, found.queues_per_priority, *queues, found.concurrency, found.instances]
        rows.append(tuple(map(str, cells)))
    headings = ("runs a second, up to", "`SHARDS`", "`QUEUES_PER_PRIORITY`", *names, *executor)
    return Sheet("settings", headings, tuple(rows))
