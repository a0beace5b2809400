"""The usage of tasks: counted in each task's own document, and summed up by owner, handler and month.

A task counts for itself, month by month, in commits that write it anyway, so counting costs no operation. The
counts only grow. Months are those of UTC.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from pydantic import Field, StringConstraints

from cloudsched.domain.documents.document import Packed, WireModel

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Month = Annotated[str, StringConstraints(pattern=r"^[0-9]{4}-(0[1-9]|1[0-2])$")]
"""A month in UTC, such as ``2026-11``."""


def month_of(instant: datetime) -> str:
    """Return the month in which an instant lies, in UTC."""
    utc = instant.astimezone(UTC)
    return f"{utc.year:04}-{utc.month:02}"


def start_of_next_month(instant: datetime) -> datetime:
    """Return when the month after that of an instant begins, in UTC."""
    first = instant.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return (first + timedelta(days=32)).replace(day=1)


class Amounts(NamedTuple):
    """What limits of usage count."""

    queries: int = 0
    tokens: int = 0


class UsageCounts(WireModel):
    """Amounts of usage. The Firestore and Cloud Tasks operations are those that running the tasks needed."""

    executions: int = Field(default=0, ge=0)
    """Executions that started and ended. One that is retried by hand counts once more."""
    queries: int = Field(default=0, ge=0)
    """The queries that the handlers have reported."""
    tokens: int = Field(default=0, ge=0)
    """The tokens of a language model that the handlers have reported."""
    estimated_queries: float = Field(default=0, ge=0)
    """The queries that the tasks had estimated for these executions."""
    estimated_tokens: float = Field(default=0, ge=0)
    reads: int = Field(default=0, ge=0)
    """Documents read in Firestore."""
    writes: int = Field(default=0, ge=0)
    """Documents written."""
    deletes: int = Field(default=0, ge=0)
    """Documents deleted."""
    dispatches: int = Field(default=0, ge=0)
    """Messages in Cloud Tasks: each is created, delivered, and a request to the executor."""

    def __add__(self, other: UsageCounts) -> UsageCounts:
        sums = {**self.__dict__}
        for name, more in other.__dict__.items():
            if more:
                sums[name] += more
        return UsageCounts.build(**sums)

    def __sub__(self, other: UsageCounts) -> UsageCounts:
        theirs = other.__dict__
        return UsageCounts.build(**{name: round(mine - theirs[name], 9) for name, mine in self.__dict__.items()})

    def latest(self, other: UsageCounts) -> UsageCounts:
        """Return the later of two counts of one thing: counts only grow."""
        theirs = other.__dict__
        return UsageCounts.build(**{name: max(mine, theirs[name]) for name, mine in self.__dict__.items()})


class TaskUsage(WireModel):
    """The usage of a task in a month, while it had one handler."""

    month: Month
    handler: str
    counts: UsageCounts = UsageCounts.build()


MAX_HANDLERS: Final = 20
"""The most handlers that a task counts in its two months. The usage of others is counted for
`OTHER_HANDLERS`."""
OTHER_HANDLERS: Final = "(others)"


def sum_usage(usage: Iterable[TaskUsage]) -> Amounts:
    """Return the queries and tokens of months and handlers together."""
    counts = [each.counts for each in usage]
    return Amounts(sum(each.queries for each in counts), sum(each.tokens for each in counts))


@lru_cache(maxsize=100)
def begin_usage(handler: str, month: str) -> tuple[TaskUsage, ...]:
    """Return the usage of a new task: it was written once."""
    return (TaskUsage.build(month=month, handler=handler, counts=UsageCounts.build(writes=1)),)


def add_usage(
    usage: tuple[TaskUsage, ...], handler: str, now: datetime, used: Mapping[str, float]
) -> tuple[TaskUsage, ...]:
    """Return a task's usage with this added for a handler and the month, by the names of `UsageCounts`.

    Only this month and the one before are kept, since the sweep sums up what has changed at least once a day.
    """
    utc = now.astimezone(UTC)
    month, before = _find_months(utc.year, utc.month)
    kept = dict[tuple[str, str], TaskUsage]()
    for each in usage:
        if each.month >= before:
            kept[each.month, each.handler] = each
    if (month, handler) not in kept and len(kept) >= MAX_HANDLERS:
        handler = OTHER_HANDLERS
    known = kept.pop((month, handler), None)
    if known is None:
        entry = TaskUsage.build(month=month, handler=handler, counts=UsageCounts.build(**used))
    else:
        counts = known.counts.__dict__
        sums = {**counts}
        for name, more in used.items():
            sums[name] += more
        entry = known.model_copy(update={"counts": known.counts.model_copy(update=sums)})
    return (*kept.values(), entry)


@lru_cache(maxsize=4)
def _find_months(year: int, month: int) -> tuple[str, str]:
    return f"{year:04}-{month:02}", f"{year - (month == 1):04}-{month - 1 or 12:02}"


_NAMES: Final = (
    *("executions", "queries", "tokens", "estimated_queries", "estimated_tokens"),
    *("reads", "writes", "deletes", "dispatches"),
)
"""The order of the packed counts. It is part of the stored format: more are appended."""

_in_order: Final = itemgetter(*_NAMES)


def _pack(used: tuple[TaskUsage, ...]) -> tuple[str, ...]:
    """Return a text for each month and handler: the month, the counts without zeros, the handler."""
    packed = list[str]()
    for each in used:
        numbers = ""
        for one in _in_order(each.counts.__dict__):
            numbers += f"{one if one % 1 else int(one)}," if one else ","
        packed.append(f"{each.month} {numbers.rstrip(',')} {each.handler}")
    return tuple(packed)


def _unpack(stored: object) -> object:
    """Return the usage of its packed form. Return an unpacked value as it is."""
    if not isinstance(stored, list | tuple):
        return stored
    return [_unpack_one(each) if isinstance(each, str) else each for each in stored]


@lru_cache(maxsize=500)  # many tasks have used the same
def _unpack_one(text: str) -> TaskUsage:
    month, counts, handler = (*text.split(" ", 2), "", "")[:3]
    numbers = counts.split(",")
    if len(numbers) > len(_NAMES):
        raise ValueError("has counts that this version does not know")
    known = {name: number for name, number in zip(_NAMES, numbers, strict=False) if number}
    return TaskUsage.model_validate({"month": month, "handler": handler, "counts": known})


Usage = Annotated[tuple[TaskUsage, ...], Packed(_pack, _unpack)]
"""The usage of a task, stored as texts such as ``2027-01 39,,,,,39,118,,39 tick``."""


class RunUsage(WireModel):
    """The usage that the attempts of an open run have reported until now."""

    queries: int = 0
    tokens: int = 0
    step_queries: int = 0
    """The part of these queries that each later attempt reports again: those of the journal's steps and beside them."""
    step_tokens: int = 0
    called_queries: int = 0
    """The queries of the calls that have ended, not among the others. Each later attempt reports them again."""
    called_tokens: int = 0

    def add(self, reported: RunUsage) -> RunUsage:
        """Return the usage with an attempt's report added.

        The part that is reported again covers the whole run.
        """
        step_queries = max(self.step_queries, reported.step_queries)
        step_tokens = max(self.step_tokens, reported.step_tokens)
        return RunUsage.build(
            queries=self.queries + reported.queries - reported.step_queries + step_queries - self.step_queries,
            tokens=self.tokens + reported.tokens - reported.step_tokens + step_tokens - self.step_tokens,
            step_queries=step_queries,
            step_tokens=step_tokens,
            called_queries=max(self.called_queries, reported.called_queries),
            called_tokens=max(self.called_tokens, reported.called_tokens),
        )
