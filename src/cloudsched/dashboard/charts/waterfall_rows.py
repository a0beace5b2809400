"""The parts of an execution as rows of bars: attempts of its handler, steps, sleeps, waits and calls."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.charts.axis import clip
from cloudsched.dashboard.charts.waterfall_scale import Interval, Scale, make_scale, merge
from cloudsched.dashboard.times import find_instant, parse_instant, write_duration
from cloudsched.dashboard.words import write_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cloudsched.dashboard.api import Json

_FOLDED: Final = 3
"""More neighbours of one kind and name that succeeded than this are one row."""
_SUSPENDED_KINDS: Final = frozenset({"SLEEP", "EVENT"})
_KINDS: Final = {"SUCCEEDED": "past", "WAITING": "run"}
"""The bars of steps by their status. All others have failed."""
WAITS: Final = {
    "calls": "its calls ran",
    "worker": "its calls waited to start",
    "lost": "was not reported",
    "lock": "waited for its lock",
    "retry": "between tries",
    "wait": "was suspended",
    "queue": "was queued",
}
"""The states of an execution while none of its code runs, as far as is known, the most telling first: the names of
bars, in words."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar in a row, or a part of all the time.

    Its kind is ``past``, ``fail`` or ``run``, ``ran`` for all of these, a name in `WAITS`, or ``due`` for the future.
    """

    start: datetime
    end: datetime
    kind: str

    @property
    def interval(self) -> Interval:
        """Return its beginning and end."""
        return self.start, self.end


@dataclass(frozen=True, slots=True)
class WaterfallRow:
    """One row, or several that were folded."""

    number: int
    """The step's number. 0 for the handler."""
    kind: str
    name: str
    status: str
    bars: tuple[Bar, ...]
    took: timedelta
    count: int = 1
    tries: int = 0
    waited: timedelta = timedelta(0)
    """The time that it waited between its tries, or to start."""
    note: str = ""
    """What a call waits for that has not started."""

    def is_within(self, start: datetime, end: datetime) -> bool:
        """Return whether a part of it is in this time."""
        return any(bar.end >= start and bar.start <= end for bar in self.bars)


@dataclass(frozen=True, slots=True)
class Waterfall:
    """All rows on one scale."""

    rows: tuple[WaterfallRow, ...]
    scale: Scale
    now: datetime
    sums: Mapping[str, timedelta]
    """The time that its own code ran (``ran``), and the time of each wait, by the names in `WAITS`. They add up to all
    of its time, from the instant at which it was due or requested to its end, or to now."""
    is_open: bool
    whole: Scale
    """The scale of the whole execution, of which `scale` may show a part."""

    @property
    def has_now(self) -> bool:
        """Return whether now is in sight."""
        start, end = self.scale.span
        return self.is_open and start <= self.now <= end

    @property
    def gaps_text(self) -> str:
        """Return the compressed segments, in words."""
        gaps = [gap for gap in self.scale.gaps if not gap.is_future]
        if not gaps:
            return ""
        idle = sum((gap.duration for gap in gaps), timedelta(0))
        ran = "is known to have run" if self.sums["lost"] else "ran"
        return f"{write_count(len(gaps), 'gap', 'gaps')} compressed: {write_duration(idle)} in which nothing {ran}"


def make_waterfall(
    record: Json, now: datetime, *, true_scale: bool = False, window: Interval | None = None
) -> Waterfall:
    """Return an execution's rows and their scale. With a window, only those in it, without the gaps outside."""
    finished = find_instant(record, "finishedAt")
    is_open = finished is None
    start = _find_start(record)
    end = max(start, finished or now)
    steps = record.get("steps", [])
    known_end = _find_known_end(record, steps) if is_open else None

    ran = _list_handler_bars(record, start, end, now)
    parts = _divide(_list_states(record, ran, end, now), start, end)
    sums = _sum_kinds(parts)
    rows = [_make_handler_row(record, ran, parts), *_fold(_make_step_row(step, now) for step in steps)]
    running = [bar.interval for row in rows for bar in row.bars if bar.kind not in {*WAITS, "due"}]
    whole = make_scale(running, start, end, known_end=known_end, true=true_scale)

    part = clip(window, *whole.span)
    if part is None:
        return Waterfall(tuple(rows), whole, now, sums, is_open, whole)
    begin, finish = part
    ahead = None
    if known_end is not None and finish > end:
        ahead = min(known_end, finish)
    scale = make_scale(
        [each for each in running if each[1] >= begin and each[0] <= finish],
        min(begin, end),
        min(finish, end),
        known_end=ahead,
        true=true_scale,
    )
    shown = [rows[0], *(row for row in rows[1:] if row.is_within(begin, finish))]
    return Waterfall(tuple(shown), scale, now, sums, is_open, whole)


def find_ran(record: Json, now: datetime) -> timedelta:
    """Return how long a function of an execution ran: without its waits, and without the time between its attempts."""
    start = _find_start(record)
    end = max(start, find_instant(record, "finishedAt") or now)
    ran = _list_handler_bars(record, start, end, now)
    return _sum_kinds(_divide(_list_states(record, ran, end, now), start, end))["ran"]


def _sum_kinds(parts: Sequence[Bar]) -> dict[str, timedelta]:
    return {kind: _sum(part for part in parts if part.kind == kind) for kind in ("ran", *WAITS)}


def _find_start(record: Json) -> datetime:
    """Return the instant at which an execution was due, if it was planned, or began."""
    due = parse_instant(record["scheduledFor"])
    started = find_instant(record, "startedAt") or due
    if record.get("trigger", "SCHEDULE") != "SCHEDULE":
        return started
    return min(started, due)


def _find_known_end(record: Json, steps: Iterable[Json]) -> datetime | None:
    ends = [parse_instant(step["dueAt"]) for step in steps if step["status"] == "WAITING" and step.get("dueAt")]
    if record.get("nextAttemptAt"):
        ends.append(parse_instant(record["nextAttemptAt"]))
    return min(ends, default=None)


def _list_handler_bars(record: Json, start: datetime, end: datetime, now: datetime) -> list[Bar]:
    """Return the bars of the handler's attempts, without the time in which it was suspended or waited for a retry."""
    steps = record.get("steps", [])
    idle = merge(
        [*(_find_interval(step, now) for step in steps if step["kind"] in _SUSPENDED_KINDS), *_list_retries(steps, now)]
    )
    bars = []
    last_end = None
    for attempt in record["attempts"]:
        begin, finish = _find_interval(attempt, now)
        kind = "past" if attempt["status"] == "SUCCEEDED" else "fail"
        bars += [Bar(*each, kind) for each in subtract((begin, finish), idle)]
        last_end = max(last_end or finish, finish)
    if record["status"] != "RUNNING":
        return bars

    begin = last_end or find_instant(record, "startedAt") or start
    kind = "run"
    if lost := _find_lost(record, end):
        kind, end = "past", lost[0]
    ended_calls = [
        _find_interval(step, now) for step in steps if step["kind"] == "CALL" and step["status"] != "WAITING"
    ]
    return bars + [Bar(*each, kind) for each in subtract((begin, end), merge([*idle, *ended_calls]))]


def _find_lost(record: Json, end: datetime) -> Interval | None:
    """Return the time since the lease of a run has ended, in which nobody knows whether it still runs."""
    until = find_instant(record, "leaseUntil")
    if record["status"] != "RUNNING" or until is None or until >= end:
        return None
    return until, end


def _list_states(record: Json, ran: Iterable[Bar], end: datetime, now: datetime) -> dict[str, list[Interval]]:
    """Return the intervals in which an execution was in each of its states, the most telling state first."""
    steps = record.get("steps", [])
    attempts = [(*_find_interval(each, now), each) for each in record["attempts"]]
    following = [*(begin for begin, _, _ in attempts[1:]), end]
    code = [bar.interval for bar in ran]
    code += [each for step in steps if step["kind"] == "STEP" for each in _list_tries(step, now)]
    retries = list(_list_retries(steps, now))
    retries += [
        (finish, max(finish, then))
        for (_, finish, each), then in zip(attempts, following, strict=False)  # the last of them ends here
        if each["status"] != "SUCCEEDED"
    ]
    locked = [
        (parse_instant(each["lockWaitedSince"]), begin) for begin, _, each in attempts if each.get("lockWaitedSince")
    ]

    return {
        "ran": merge(code),
        "calls": merge(each for step in steps if step["kind"] == "CALL" for each in _split_call(step, now)[1]),
        "worker": merge(each for step in steps if step["kind"] == "CALL" for each in _split_call(step, now)[0]),
        "lost": [lost] if (lost := _find_lost(record, end)) else [],
        "lock": merge(locked),
        "retry": merge(retries),
        "wait": merge(_find_interval(step, now) for step in steps if step["kind"] in _SUSPENDED_KINDS),
    }


def _divide(states: Mapping[str, Sequence[Interval]], start: datetime, end: datetime) -> list[Bar]:
    """Return all of the time as bars, one after the other, each of the first state that an execution was in then."""
    edges = {at for spans in states.values() for span in spans for at in span if start < at < end}
    parts: list[Bar] = []
    for begin, finish in pairwise(sorted({start, end, *edges})):
        kind = next((name for name, spans in states.items() if _covers(spans, begin, finish)), "queue")
        if parts and parts[-1].kind == kind:
            parts[-1] = replace(parts[-1], end=finish)
        else:
            parts.append(Bar(begin, finish, kind))
    return parts


def _covers(spans: Sequence[Interval], begin: datetime, finish: datetime) -> bool:
    """Return whether one of some intervals, which are in order and apart, contains another."""
    index = bisect_right(spans, begin, key=lambda span: span[0]) - 1
    return index >= 0 and spans[index][1] >= finish


def subtract(interval: Interval, holes: Iterable[Interval]) -> Iterator[Interval]:
    """Yield what remains of an interval without some others, which are in order and apart."""
    begin, end = interval
    for first, last in holes:
        if last <= begin or first >= end:
            continue
        if first > begin:
            yield begin, first
        begin = max(begin, last)
    if begin <= end:
        yield begin, end


def _find_interval(part: Json, now: datetime) -> Interval:
    """Return the time of an attempt or a step, until now if it is open."""
    begin = parse_instant(part["startedAt"])
    return begin, max(begin, find_instant(part, "finishedAt") or now)


def _split_call(step: Json, now: datetime) -> tuple[list[Interval], list[Interval]]:
    """Return when a call waited to start, and when it ran. It has not run before its own task has started."""
    begin, finish = _find_interval(step, now)
    if step.get("hasNotStarted"):
        return [(begin, finish)], []
    started = min(max(find_instant(step, "childStartedAt") or begin, begin), finish)
    return [(begin, started)] if started > begin else [], [(started, finish)]


def _list_tries(step: Json, now: datetime) -> list[Interval]:
    """Return the intervals in which a step's function ran. If it was never retried, that is all of its time."""
    tries = [(parse_instant(each["startedAt"]), parse_instant(each["finishedAt"])) for each in step.get("tries", ())]
    return tries or [_find_interval(step, now)]


def _list_retries(steps: Iterable[Json], now: datetime) -> Iterator[Interval]:
    """Yield the intervals in which steps waited for another try."""
    for step in steps:
        if step["kind"] != "STEP" or not step.get("tries"):
            continue
        tries = _list_tries(step, now)
        begin = parse_instant(step["startedAt"])
        if begin < tries[0][0]:  # the first tries are not kept
            yield begin, tries[0][0]
        for (_, finish), (then, _) in pairwise(tries):
            yield finish, then
        if step["status"] == "WAITING":
            last = tries[-1][1]
            yield last, max(last, now)


def _make_handler_row(record: Json, ran: Sequence[Bar], parts: Iterable[Bar]) -> WaterfallRow:
    waits = [part for part in parts if part.kind != "ran"]
    bars = tuple(sorted([*waits, *ran], key=lambda bar: bar.start))
    tries = len(record["attempts"]) + record.get("omittedAttempts", 0)
    waited = _sum(part for part in waits if part.kind != "lost")
    return WaterfallRow(0, "runs", "The handler", record["status"], bars, _sum(ran), tries=tries, waited=waited)


def _make_step_row(step: Json, now: datetime) -> WaterfallRow:
    begin, finish = _find_interval(step, now)
    bars = [Bar(begin, finish, _KINDS.get(step["status"], "fail"))]
    took = finish - begin
    waited = timedelta(0)
    if step["kind"] in _SUSPENDED_KINDS:
        bars = [Bar(begin, finish, "wait"), *_list_ahead(step, now)]
    elif step["kind"] == "CALL":
        idle, ran = _split_call(step, now)
        pauses = [Bar(*each, "worker") for each in idle]
        bars = [*pauses, *(Bar(*each, bars[0].kind) for each in ran)]
        took = sum((end - start for start, end in ran), timedelta(0))
        waited = _sum(pauses)
    elif step["kind"] == "STEP" and step.get("tries"):
        tries = [Bar(*each, "fail") for each in _list_tries(step, now)]
        if step["status"] == "SUCCEEDED":
            tries[-1] = replace(tries[-1], kind="past")
        pauses = [Bar(*each, "retry") for each in _list_retries([step], now)]
        bars = [*sorted([*tries, *pauses], key=lambda bar: bar.start), *_list_ahead(step, now)]
        took = _sum(tries)
        waited = _sum(pauses)

    kind = step["kind"].lower()
    name = step.get("name") or kind
    tried = step.get("attempts", 0)
    return WaterfallRow(
        step["number"], kind, name, step["status"], tuple(bars), took, 1, tried, waited, step.get("hasNotStarted", "")
    )


def _list_ahead(step: Json, now: datetime) -> list[Bar]:
    """Return a bar for the time that a step has still to wait, if that is known."""
    due = find_instant(step, "dueAt")
    if step["status"] != "WAITING" or due is None or due <= now:
        return []
    return [Bar(now, due, "due")]


def _fold(rows: Iterator[WaterfallRow]) -> Iterator[WaterfallRow]:
    def is_alike(row: WaterfallRow) -> tuple[str, str, int]:
        return row.kind, row.name, 0 if row.status == "SUCCEEDED" else row.number

    for _, neighbours in groupby(rows, key=is_alike):
        same = list(neighbours)
        if len(same) <= _FOLDED:
            yield from same
            continue
        first = same[0]
        spans = merge(bar.interval for row in same for bar in row.bars if bar.kind not in WAITS)
        bars = tuple(Bar(*span, first.bars[-1].kind) for span in spans)
        yield WaterfallRow(first.number, first.kind, first.name, "SUCCEEDED", bars, _sum(bars), count=len(same))


def _sum(bars: Iterable[Bar]) -> timedelta:
    return sum((bar.end - bar.start for bar in bars), timedelta(0))
