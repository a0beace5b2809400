"""Count what will run in each part of a time, without listing it: the tasks of one plan are searched once.

Tasks that share the key of their plan (`find_plan_key`) are due at the same times, from the next time of each on. The
store groups them. What is due once a day or at a steady interval is not searched either, but computed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from cloudsched.domain.recurrence.allowance import TASK_STEPS, Allowance, spend_from, spend_steps, take_part
from cloudsched.domain.transitions.plan_keys import ONCE
from cloudsched.domain.transitions.planning import occurrence_after, occurrence_from
from cloudsched.engine.queries.plan_times import (
    COUNT_STEPS,
    MAX_GROUPS,
    PlanTimes,
    ceil_second,
    floor_second,
    load_of_groups,
    search_plans,
)
from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.storage.due_groups import DueGroup, DueQuery

_TICK: Final = timedelta(microseconds=1)
_TICKS: Final = 1_000_000
"""Those of a second."""


@dataclass(frozen=True, slots=True)
class DueCounts:
    """The numbers of occurrences in the parts of a time."""

    edges: Sequence[datetime]
    """The start of each part, and the end of the last."""
    due: Sequence[int]
    complete_until: datetime | None
    """From this instant on, some are missing. None if none is."""


def count_due(store: Store, query: DueQuery, edges: Sequence[datetime]) -> DueCounts:
    """Count what is due as `_count` does, with the steps of a count, which are more than those of other requests."""
    with spend_from(Allowance(COUNT_STEPS)):
        return _count(store, query, edges)


def _count(store: Store, query: DueQuery, edges: Sequence[datetime]) -> DueCounts:
    """Return how many unclaimed occurrences, without jitter, matching tasks have in each part.

    They are those that `list_occurrences` lists. A count is cut if its search takes too many steps.
    """
    found = store.search.group_due(query, MAX_GROUPS)
    window = _Window(edges)
    cuts = [found.complete_until] if found.complete_until else []
    searched: defaultdict[str, list[DueGroup]] = defaultdict(list)
    singles = []
    for group in found.items:
        if group.key is None:
            singles.append(group)
        elif group.key == ONCE:
            window.add_once(group.ticks // _TICKS, group.size)
        elif (times := window.plans.read(group.key)) is None:
            searched[group.key].append(group)
        else:
            window.add(times, group.size, -(-group.ticks // _TICKS))

    for key, (times, cut) in search_plans(store, window.plans, [each[0] for each in searched.values()]).items():
        cuts += [max(cut, edges[0])] if cut is not None else []
        for group in searched[key]:
            window.add(times, group.size, -(-group.ticks // _TICKS))
    for task in load_of_groups(store, singles).values():
        times, cut = _walk(task, edges)
        cuts += [cut] if cut is not None else []
        window.add(times, 1)
    return DueCounts(edges, window.sum_up(), min(cuts, default=None))


class _Window:
    """The parts of a time, in seconds, and what was counted in each."""

    def __init__(self, edges: Sequence[datetime]) -> None:
        self.edges = [ceil_second(each) for each in edges]
        self._counts = [0] * (len(edges) - 1)
        self._weights: defaultdict[int, int] = defaultdict(int)
        """How often each second was counted that is not in `_counts`."""
        self.plans = PlanTimes(self.edges[0], self.edges[-1])

    def add_once(self, at: int, weight: int) -> None:
        """Count one time, as often as the weight says."""
        if at >= self.edges[0]:
            self._weights[at] += weight

    def add(self, times: Sequence[int], weight: int, since: int = 0) -> None:
        """Count the times that are not before a second, each as many times as the weight says."""
        begin = max(self.edges[0], since)
        if len(times) <= 2 * len(self._counts):
            weights = self._weights
            for at in times:
                if at >= begin:
                    weights[at] += weight
            return
        places = [bisect_left(times, max(edge, begin)) for edge in self.edges]
        for index, (one, other) in enumerate(pairwise(places)):
            self._counts[index] += weight * (other - one)

    def sum_up(self) -> list[int]:
        """Return what was counted in each part."""
        counts = [*self._counts]
        for at, weight in self._weights.items():
            if at < self.edges[-1]:
                counts[bisect_right(self.edges, at) - 1] += weight
        return counts


def _walk(task: Task, edges: Sequence[datetime]) -> tuple[Sequence[int], datetime | None]:
    """Return the times of one task in a window, each searched for, and the instant at which the search gave up."""
    part = take_part(TASK_STEPS)
    times = []
    at = task.next_execution_time
    left = None if task.max_runs is None else task.max_runs - task.run_count
    reached = edges[0]
    try:
        with spend_from(part):
            if at is not None and at < edges[0] and left is None:
                at = occurrence_from(task, edges[0])
            while at is not None and at < edges[-1] and (left is None or left > 0):
                if at >= edges[0]:
                    times.append(floor_second(at))
                reached = max(reached, at + _TICK)
                left = None if left is None else left - 1
                at = occurrence_after(task, at)
                spend_steps()
    except InvalidSchedule:
        return times, reached
    return times, None
