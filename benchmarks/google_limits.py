"""The limits of Google's services, each with Google's line, and what capacity.md makes of that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_BEST_PRACTICES: Final = "https://firebase.google.com/docs/firestore/best-practices"
_TASKS_QUOTAS: Final = "https://cloud.google.com/tasks/docs/quotas"
_TASKS_SCALING: Final = "https://cloud.google.com/tasks/docs/manage-cloud-task-scaling"
_TASKS_RATES: Final = "https://cloud.google.com/tasks/docs/reference/rpc/google.cloud.tasks.v2#ratelimits"


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of one of Google's services.

    Attributes:
        name: What is limited.
        value: How much we count on.
        said: Google's line about it.
        source: Where it stands.
        assumed: What we make of that line, if it says less.
    """

    name: str
    value: float
    said: str
    source: str
    assumed: str = ""


RANGE = Limit(
    "writes a second into rising values of an index",
    500,
    "If you index a field that increases or decreases sequentially between documents in a collection, like a "
    "timestamp, then the maximum write rate to the collection is 500 writes per second.",
    _BEST_PRACTICES,
    "for each place in an index: the values before the one that rises",
)
NAMES = Limit(
    "writes a second to documents whose names follow each other",
    500,
    "Do not use monotonically increasing document IDs (…) Such sequential IDs can lead to hotspots that impact "
    "latency.",
    _BEST_PRACTICES,
    "no figure is documented: the same 500, a task and its records together",
)
DOCUMENT = Limit(
    "writes a second to one document",
    1,
    "The exact maximum rate that an app can update a single document depends highly on the workload.",
    _BEST_PRACTICES,
    "no figure is documented any more: 1, over ten seconds, as the page of limits said before",
)
RAMP = Limit(
    "operations a second on a collection that is new or was idle",
    500,
    "We recommend starting with a maximum of 500 operations per second to a new collection and then increasing traffic "
    "by 50% every 5 minutes.",
    _BEST_PRACTICES,
)
QUEUE_RATE = Limit(
    "calls a second of a queue", 500, "500 task dispatches per second per queue", _TASKS_QUOTAS, "as you set it"
)
QUEUE_CALLS = Limit(
    "calls at the same time of a queue", 5_000, "The maximum allowed value is 5,000.", _TASKS_RATES, "as you set it"
)
QUEUE_RAMP = Limit(
    "tasks a second that all queues together begin with",
    2_000,
    "A high-TPS queue group is a contiguous set of queues (…) that have at least 2000 tasks created or dispatched in "
    "total. (…) increase traffic by no more than 50% every 5 minutes.",
    _TASKS_SCALING,
)
QUEUE_API = Limit(
    "calls a second of the API of Cloud Tasks, in a project",
    100_000,
    "API requests: 6,000,000 requests per minute",
    _TASKS_QUOTAS,
)
QUEUE_COUNT = Limit("queues in a region", 1_000, "Number of queues per region: 1,000 per region", _TASKS_QUOTAS)
INSTANCES = Limit(
    "handlers at the same time of all instances",
    0,
    "Maximum number of container instances: depends on selected region and CPU and memory configurations.",
    "https://cloud.google.com/run/quotas",
    "the scripts refuse queues that call more",
)
WRITES = Limit("writes a second of a database", 0, "", "https://firebase.google.com/docs/firestore/quotas", "none")
