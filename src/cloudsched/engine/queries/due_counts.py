"""Count what will run in each part of a time: that of a steady interval is computed, all else is walked over."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from cloudsched.domain.recurrence.allowance import TASK_STEPS, Allowance, spend_from, take_part
from cloudsched.domain.recurrence.iso8601 import UTC_EPOCH
from cloudsched.domain.responses.count import Count
from cloudsched.engine.ports.search import OccurrenceQuery, TaskQuery
from cloudsched.engine.queries.occurrences import MAX_TASKS, DueReader, iter_occurrences
from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.store import Store

MAX_READ_OF_MORE: Final = 100
"""The tasks that a count reads where there are more than `MAX_TASKS`: it would be a bound with these as well."""
COUNT_STEPS: Final = 50_000
"""The most steps that the searches of one count take: a thousand daily tasks in six weeks take 42,000."""
_TICK: Final = timedelta(microseconds=1)


def count_due(store: Store, query: OccurrenceQuery, edges: Sequence[datetime]) -> list[Count]:
    """Return how many unclaimed occurrences, without jitter, matching tasks have in each part.

    The query's times are the first edge and the last. The occurrences are those that `list_occurrences` lists. A count
    is exact up to `MAX_TASKS` tasks, unless its search takes too many steps: then later parts have at least as many.
    """
    marks = [(each - UTC_EPOCH) // _TICK for each in edges]
    counts = [0] * (len(marks) - 1)
    due = store.search.count_tasks(TaskQuery(query.owner, due_until=query.until), MAX_TASKS + 1)
    most = MAX_READ_OF_MORE if due.value > MAX_TASKS else MAX_TASKS
    reader = DueReader(store, query, part=most)
    read = 0
    with spend_from(Allowance(COUNT_STEPS)):
        while tasks := reader.take():
            read += len(tasks)
            for task in tasks:
                times, cut = _list_times(task, edges[0], edges[-1])
                if cut is not None:
                    reader.note_missing(cut)
                _add(counts, times, marks)
            if read > most:
                reader.leave_rest()
                break
    cut = reader.complete_until
    return [
        Count(value=each, at_least=cut is not None and end > cut) for each, end in zip(counts, edges[1:], strict=True)
    ]


def _add(counts: list[int], times: Sequence[int], marks: Sequence[int]) -> None:
    """Count times, in microseconds since 1970, in the parts between marks."""
    if len(times) <= len(counts):
        for at in times:
            counts[bisect_right(marks, at) - 1] += 1
        return
    places = [bisect_left(times, mark) for mark in marks]
    for number, (one, other) in enumerate(pairwise(places)):
        counts[number] += other - one


def _list_times(task: Task, begin: datetime, end: datetime) -> tuple[Sequence[int], datetime | None]:
    """Return the occurrences of a task from one instant until another, and from when on some are missing."""
    due = task.next_execution_time
    schedule = task.schedule
    if (
        due is not None
        and not task.backlog
        and not any("COUNT=" in each or "UNTIL=" in each for each in schedule.rules)
    ):
        interval = schedule.interval
        if interval is not None:
            if task.until is not None:
                end = min(end, task.until + _TICK)
            if task.max_runs is not None:
                end = min(end, due + interval * (task.max_runs - task.run_count))
            first = due + max(0, -((due - begin) // interval)) * interval
            return range((first - UTC_EPOCH) // _TICK, (end - UTC_EPOCH) // _TICK, interval // _TICK), None

    times: list[int] = []
    reached = begin
    try:
        with spend_from(take_part(TASK_STEPS)):
            for at in iter_occurrences(task, begin):
                if at >= end:
                    break
                times.append((at - UTC_EPOCH) // _TICK)
                reached = at + _TICK
    except InvalidSchedule:  # so sparse that the search gave up, or more than a count may spend
        return times, reached
    return times, None
