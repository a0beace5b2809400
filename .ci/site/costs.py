"""The figures of docs/run/costs.md: what the code counts, and that times the default prices.

The site has them from the code as it is. ``python .ci/site/costs.py`` writes them into the page, too.
"""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from marks import write

from cloudsched.config.settings import DEFAULT_PRICES, Settings
from cloudsched.domain.documents.usage import UsageCounts
from cloudsched.domain.responses.overview_responses import to_amounts

PAGE = Path(__file__).parents[2] / "docs" / "run" / "costs.md"
OCCURRENCE = UsageCounts(executions=1, reads=1, writes=3, dispatches=1)
"""A successful occurrence."""
LOCK = UsageCounts(reads=2, writes=1, deletes=1)
"""What a lock key adds, if it never has to wait."""
WORKER = UsageCounts(reads=2, writes=2, deletes=1)
"""What a worker at the store adds."""
DELIVERY = UsageCounts(reads=2, writes=5, dispatches=1)
"""What a delivery by one channel other than the web inbox adds."""
STEP = UsageCounts(writes=2)
"""What a step of a durable handler adds."""
HOP = UsageCounts(reads=1, dispatches=1)
"""What a task that waits longer than Cloud Tasks holds a call costs, every 30 days."""
CREATION = UsageCounts(writes=1, dispatches=1)
REMOVAL = UsageCounts(deletes=2)
"""What Firestore's TTL deletes of an ended one-time task: it and its record. Nothing reads them."""
REMOVAL_OF_CALL = UsageCounts(reads=5, deletes=2)
"""What the sweep does to remove a call: it looks whether its caller may still read it."""
REMOVAL_AFTER_THREE = UsageCounts(reads=5, deletes=4)
"""What it does to remove a recurring task with three records: a read and a deletion for each, and for the task,
and a read that says that its use is noted."""
BRIEF_REMOVAL = UsageCounts(reads=3, writes=2, deletes=2)
"""What it does to remove a task that is kept for less than a month: it also notes what that has used."""
DELETION = UsageCounts(reads=4, writes=4, deletes=2)
"""What a deletion by hand does to a task with one record."""
COUNTED = {
    "create": CREATION,
    "run and plan the next": OCCURRENCE,
    "hop": HOP,
    "remove a one-time task": REMOVAL,
    "remove a task with a lock key": REMOVAL,
    "remove a call": REMOVAL_OF_CALL,
    "remove a recurring task with 3 records": REMOVAL_AFTER_THREE,
    "remove a task that is kept for less than a month": BRIEF_REMOVAL,
    "delete a task with a record by hand": DELETION,
}
"""What `python -m benchmarks.costs` counts on the Firestore emulator, by its names. A test compares the two."""
RUN = OCCURRENCE + UsageCounts(deletes=1)
"""An occurrence, until its record is gone."""
TASK_BYTES = 2_207
RECORD_BYTES = 945
"""What Firestore stores of an hourly task without content, and of a record of it, each with its index entries. A test
counts both."""
_LOG_BYTES = 2_500
"""What Cloud Logging stores of an occurrence: our two lines measured, its overhead and the request log estimated."""
_SECONDS = 0.1
"""For how long an occurrence has an instance for itself."""
# Prices that no setting has: those of us-central1 as Google published them in November 2026, without free tiers.
_VCPU_SECOND = 0.000_025_25
"""Dollars for a vCPU-second with 0.5 GiB of memory."""
_STORED_GIB = 0.15
"""Dollars for a GiB in Firestore for a month."""
_LOGGED_GIB = 0.50
_BACKUP_GIB = 0.03
"""Dollars for a GiB of backups for a month. Each backup is a whole copy."""
_SECRET_VERSION = 0.06
"""Dollars for a version of a secret for a month."""
_BACKUPS = 7
"""How many daily backups there are, with the default of BACKUP_RETENTION."""
_SCHEDULER_JOB = 0.10
"""Dollars for the sweep's job in Cloud Scheduler for a month."""
_SWEEP_SECONDS = 4_000 / 43_200
"""For how long a sweep that finds nothing has an instance."""
_MONTH_DAYS = 30
_SWEEPS = _MONTH_DAYS * 24 * 60
_GIB = 1024**3
_MILLION = 1_000_000
_SHOWN_WHOLE = 100
_COMPUTE = 2
"""How many of the last parts depend on handlers and settings: the time of instances, and logs."""
_OPERATIONS = {
    "documents read": "read",
    "documents written": "write",
    "documents deleted": "delete",
    "queue operations": "queueOperation",
    "requests": "request",
}
"""What a part counts, by the names of their prices."""
_ROWS = {
    "creation of a task": CREATION,
    "successful occurrence": OCCURRENCE,
    "… more, with a lock key that is free": LOCK,
    "… more, run by a worker at the store": WORKER,
    "… more, for each channel but `WEB`": DELIVERY,
    "every 30 days that a task waits": HOP,
    "removal of an ended one-time task, by TTL": REMOVAL,
    "removal of a recurring task with 3 records": REMOVAL_AFTER_THREE,
    "removal of a call": REMOVAL_OF_CALL,
    "removal of a task that is kept for less than a month": BRIEF_REMOVAL,
}


class CostLine(NamedTuple):
    """One part of what a month costs."""

    part: str
    amount: float
    dollars: float


def price_million(seconds: float = _SECONDS, counts: UsageCounts = RUN, runs: int = 1) -> list[CostLine]:
    """Return what a million of something cost, by default of runs, with records that are kept for a month.

    Args:
        seconds: For how long each has an instance for itself.
        counts: What each does.
        runs: How many records and logs each leaves.
    """
    lines = []
    for part, name in _OPERATIONS.items():
        amount = _MILLION * to_amounts(counts)[name]
        lines.append(CostLine(part, amount, amount / _MILLION * DEFAULT_PRICES[name]))
    kept, logs = (_MILLION * runs * each / _GIB for each in (RECORD_BYTES, _LOG_BYTES))
    return [
        *lines,
        CostLine("GiB-months of records", kept, kept * _STORED_GIB),
        CostLine("vCPU-seconds", _MILLION * seconds, _MILLION * seconds * _VCPU_SECOND),
        CostLine("GiB of logs", logs, logs * _LOGGED_GIB),
    ]


def render() -> str:
    """Return the table."""
    lines = [
        "| a million of | read | written | deleted | queue operations | requests | USD |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, counts in _ROWS.items():
        amounts = to_amounts(counts)
        dollars = sum(amount * DEFAULT_PRICES[each] for each, amount in amounts.items())
        shown = " | ".join(f"{amounts[each]:,} M" if amounts[each] else "" for each in _OPERATIONS.values())
        lines.append(f"| {name} | {shown} | {dollars:.2f} |")
    return "\n".join(lines) + "\n"


def render_million() -> str:
    """Return the table of a million occurrences."""
    parts = price_million()
    lines = [f"| {each.part} | {_show(each.amount)} | {each.dollars:.2f} |" for each in parts]
    lines.insert(-_COMPUTE, _sum("**before compute and logs**", parts[:-_COMPUTE]))
    return "\n".join(["| part | amount | USD |", "|---|---|---|", *lines, _sum("**together**", parts)]) + "\n"


def _sum(name: str, parts: list[CostLine]) -> str:
    return f"| {name} | | **{sum(each.dollars for each in parts):.2f}** |"


def _show(amount: float) -> str:
    return f"{amount:,.0f}" if amount >= _SHOWN_WHOLE else f"{amount:.2f}"


def render_examples() -> str:
    """Return what a million of several things cost, each alone on its instance and ten on one."""
    once = CREATION + OCCURRENCE + REMOVAL
    lines = ["| a million | alone | ten share |", "|---|---|---|"]
    for name, counts, runs, seconds in (
        ("runs of recurring tasks", RUN, 1, _SECONDS),
        ("one-off reminders: created, run and removed", once, 1, _SECONDS),
        ("one-off reminders, each with a mail", once + DELIVERY + REMOVAL, 2, 2 * _SECONDS),
        ("turns of an agent that take 30 seconds, each a run with a step", RUN + STEP, 1, 30.0),
    ):
        costs = (sum(each.dollars for each in price_million(part, counts, runs)) for part in (seconds, seconds / 10))
        lines.append(f"| {name} | {' | '.join(f'{each:.2f}' for each in costs)} |")
    return "\n".join(lines) + "\n"


def render_standing() -> str:
    """Return what a deployment costs in a month in which nothing runs, as far as that follows from its settings."""
    operations = sum(DEFAULT_PRICES[each] for each in ("read", "write", "request"))
    rows = [
        (f"the sweep's {_SWEEPS:,} runs, each a read, a write and a request", _SWEEPS * operations / _MILLION),
        (f"{_SWEEP_SECONDS:.2f} seconds of an instance for each of them", _SWEEPS * _SWEEP_SECONDS * _VCPU_SECOND),
        ("the sweep's job in Cloud Scheduler", _SCHEDULER_JOB),
        ("a version of a secret", _SECRET_VERSION),
    ]
    lines = [f"| {name} | {usd:.2f} |" for name, usd in rows]
    lines.append(f"| **together** | **{sum(usd for _, usd in rows):.2f}** |")
    lines.append(f"| {_BACKUPS} daily backups, for each GiB in the database | {_BACKUPS * _BACKUP_GIB:.2f} |")
    return "\n".join(["| part | USD a month |", "|---|---|", *lines]) + "\n"


def render_prices() -> str:
    """Return the default prices, for as many of each as Google's pages say."""
    rows = [
        ("document read", 100_000, DEFAULT_PRICES["read"] / 10),
        ("document written", 100_000, DEFAULT_PRICES["write"] / 10),
        ("document deleted, also by TTL", 100_000, DEFAULT_PRICES["delete"] / 10),
        ("queue operation (a creation or a delivery, for each 32 KB)", _MILLION, DEFAULT_PRICES["queueOperation"]),
        ("request to a function", _MILLION, DEFAULT_PRICES["request"]),
        ("GiB in Firestore for a month, with indexes", 1, _STORED_GIB),
        ("GiB of logs", 1, _LOGGED_GIB),
        ("GiB of backups for a month", 1, _BACKUP_GIB),
        ("version of a secret for a month", 1, _SECRET_VERSION),
        ("job in Cloud Scheduler for a month", 1, _SCHEDULER_JOB),
    ]
    lines = [f"| {name} | {of:,} | {usd:.2f} |" for name, of, usd in rows]
    lines.insert(5, f"| vCPU-second, with 0.5 GiB | 1 | {_VCPU_SECOND:.8f} |")
    return "\n".join(["| price | of | USD |", "|---|---|---|", *lines]) + "\n"


def render_sizes() -> str:
    """Return what a task, a record and the logs of an occurrence are counted at, and what a million are a month."""
    kept = Settings().retention or timedelta(0)
    waiting, month = (_STORED_GIB * _MILLION * each / _GIB for each in (TASK_BYTES, RECORD_BYTES))
    return (
        f"The tables count {RECORD_BYTES:,} bytes for a record and {_LOG_BYTES:,} for the logs of an occurrence. "
        f"A task takes {TASK_BYTES:,}.\n"
        f"A million tasks cost {waiting:.2f} USD a month, and a million records {month:.2f}. Records cost "
        f"{month * kept.days / _MONTH_DAYS:.2f} USD if you\nkeep them until they are removed with "
        f"their ended tasks after {kept.days} days (`CLOUDSCHED_RETENTION_DAYS`).\n"
    )


TABLES = {
    "costs": render,
    "prices": render_prices,
    "sizes": render_sizes,
    "million": render_million,
    "examples": render_examples,
    "standing": render_standing,
}


def put(text: str) -> str:
    """Return the page with the tables in their places."""
    for name, make in TABLES.items():
        place = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- /{name} -->)", re.DOTALL)
        text = place.sub(lambda _, make=make: make(), text)
    return text


if __name__ == "__main__":
    write(PAGE, put)
