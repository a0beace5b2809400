"""The home page: health, open problems, current and next runs, and those who wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from cloudsched.dashboard.attention import CAUSES, build_attention, fetch_needs
from cloudsched.dashboard.life_chart import Bar, count_due, draw_lateness, draw_strip, make_bars
from cloudsched.dashboard.status import BAD, OPEN, Status
from cloudsched.dashboard.task_view import build_execution
from cloudsched.dashboard.times import parse_instant, write_duration
from cloudsched.dashboard.visit import Api, Json, Visit, write_count
from cloudsched.domain.documents.task import NeedCause
from cloudsched.domain.transitions.needs import LATE
from cloudsched.errors import CloudschedError, InvalidInput


@dataclass(frozen=True, slots=True)
class HealthRow:
    """The health of one part of the service."""

    part: str
    status: Status
    at: str | None
    detail: str


def build_health(health: Json, counts: Json, visit: Visit) -> list[HealthRow]:
    """Return the health of store, queue and sweep. Only those who see the tasks of all owners see the sweep."""
    return [
        *_build_store(health),
        _build_queue(health, counts, visit),
        *_build_sweep(counts, visit),
        *_build_threads(health, counts),
    ]


def _build_store(health: Json) -> Iterator[HealthRow]:
    if health.get("faults"):
        return  # that is why the process is not ready, and its store may answer or not
    if not health or "problem" in health:
        about = "What you see may be older than it seems."
        yield HealthRow("Store", _bad("does not answer"), None, health.get("problem", about))
    else:
        yield HealthRow("Store", _well("answers"), None, "")


def _build_threads(health: Json, counts: Json) -> Iterator[HealthRow]:
    if hanging := (counts.get("sweep") or {}).get("hanging") or health.get("hanging"):
        about = "Nothing can stop them from outside. Give what they wait for a timeout, and restart the process."
        yield HealthRow("Handlers", _bad("hang"), None, f"{hanging}. {about}")
    if faults := health.get("faults"):
        told = ", ".join(f"{name} {fault}" for name, fault in sorted(faults.items()))
        yield HealthRow("Process", _bad("has trouble"), None, f"It goes on trying, but {told}.")


def _build_queue(health: Json, counts: Json, visit: Visit) -> HealthRow:
    broken = sorted(name for name, state in health.get("circuits", {}).items() if state != "closed")
    if broken:
        return HealthRow("Queue", _bad("has failed"), None, f"Calls to {', '.join(broken)} are held back for a while.")
    since = counts.get("overdueSince")
    if since is None:
        held = sum(each["count"] for each in counts.get("needs", ()) if each["cause"] == NeedCause.HELD)
        besides = f"; {CAUSES[NeedCause.HELD].chip.lower()}: {held:,}" if held else ""
        return HealthRow("Queue", _well("on time"), None, f"nothing is overdue{besides}")
    if visit.now - parse_instant(since) > LATE:
        return HealthRow("Queue", _bad("late"), since, "the first that has not started was due")
    return HealthRow("Queue", _well("on time"), since, "the first that has not started was due")


def _build_sweep(counts: Json, visit: Visit) -> Iterator[HealthRow]:
    sweep = counts.get("sweep")
    if sweep is None:
        if visit.owner is None:
            yield HealthRow("Sweep", Status("due", "has not run yet", "due"), None, "")
        return
    trouble = [f"{sweep['failed']:,} could not be repaired"] * bool(sweep["failed"])
    trouble += [f"the queue did not take the dispatches of {sweep['unsent']:,}"] * bool(sweep["unsent"])
    sent = f"{sweep['dispatched']:,} dispatches sent again" if sweep["dispatched"] else "nothing repaired"
    ago = write_duration(timedelta(seconds=sweep["lag"]))
    if trouble or sweep["lag"] > LATE.total_seconds():
        word = "has trouble" if trouble else "is late"
        yield HealthRow("Sweep", _bad(word), None, f"{', '.join([*trouble, sent])}, {ago} ago")
    else:
        yield HealthRow("Sweep", _well("runs"), None, f"{sent}, {ago} ago")


def _well(word: str) -> Status:
    return Status("ok", word, "ok")


def _bad(word: str) -> Status:
    return Status("fail", word, "fail")


REACH: Final = timedelta(hours=12)
"""The reach of the strip, each way."""
ON_TIME: Final = timedelta(seconds=0.1)
"""A smaller delay does not count as late."""
_HOUR: Final = timedelta(hours=1)
_EXECUTIONS, _DUE, _LISTED, _BARS = 100, 250, 8, 48


@dataclass(frozen=True, slots=True)
class _Past:
    """The executions that ended in the last hours."""

    good: int
    bad: int
    is_at_least: bool
    """True if more have failed than were listed."""
    bars: Sequence[Bar]
    starts: Sequence[tuple[datetime, timedelta]]
    """The instants at which occurrences of schedules were due, and their delays."""


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for recent runs and failures, due tasks, waiting tasks, and the health."""
    since, until = (visit.now - REACH).isoformat(), (visit.now + REACH).isoformat()
    open_ones = [
        each
        for status in sorted(OPEN)
        for each in api.get("/v1/executions", status=status, pageSize=_LISTED)["executions"]
    ]
    counts = api.find("/v1/overview")
    due = api.get("/v1/occurrences", **{"from": visit.soonest}, until=until, pageSize=_DUE)
    return {
        "executions": api.get("/v1/executions", **{"from": since}, pageSize=_EXECUTIONS),
        "open": open_ones,
        "due": due,
        "next": []
        if due["occurrences"]
        else api.get("/v1/tasks", dueFrom=visit.soonest, orderBy="nextExecutionTime", pageSize=1)["tasks"],
        "queues": api.get("/v1/queues")["queues"],
        "needs": fetch_needs(api, visit, counts),
        "counts": counts or {},
        "health": _ask_for_health(api),
    }


def _ask_for_health(api: Api) -> Json:
    try:
        return api.get("/ready")
    except CloudschedError as error:
        return {**(api.find("/health") or {}), "problem": str(error)}


def build(answer: Json, visit: Visit) -> Json:
    """Return what Home shows."""
    past, occurrences = _read_past(answer, visit), answer["due"]["occurrences"]
    due = [parse_instant(each["utc"]) for each in occurrences]
    attention = build_attention(answer["needs"], answer["queues"], visit)
    rows = _group_due(occurrences)
    following = rows[0]["utc"] if rows else next((each.get("nextExecutionTime") for each in answer["next"]), None)
    opened = sum(answer["counts"].get("open", {}).values()) or len(answer["open"])
    is_cut = bool(due) and bool(answer["due"].get("nextPageToken"))
    drawn = f", drawn until {visit.moment(due[-1]).text}; what comes after that is hatched" if is_cut else ""
    coming = write_count(len(due), "is", "are", is_at_least=is_cut)
    return {
        **attention,
        "sentence": _write_sentence(attention, past, opened, rows, visit),
        "strip": draw_strip(count_due(past.bars, due), visit.now, REACH, visit.zone, due[-1] if is_cut else None),
        "stripText": f"{past.good:,} ended well and {_write_bad(past)} failed in the last 12 h; "
        f"{coming} due in the next 12 h{drawn}",
        "lateness": draw_lateness(past.starts, visit.now, REACH, visit.zone),
        "latenessText": _write_lateness([late for _, late in past.starts]),
        "open": [build_execution(each, visit) for each in answer["open"][:_LISTED]],
        "moreOpen": max(0, opened - _LISTED),
        "due": rows[:_LISTED],
        "nextDue": following,
        "notDue": f"Nothing is due until {visit.moment(following).text}." if following else "Nothing is due.",
        "moreDue": max(0, len(due) - sum(1 + row["more"] for row in rows[:_LISTED])),
        "queues": answer["queues"],
        "health": build_health(answer["health"], answer["counts"], visit),
    }


def _read_past(answer: Json, visit: Visit) -> _Past:
    """Return the ended runs, one by one if the API has listed all of them, otherwise as it has counted by hour.

    The record of the run that made a call has the call's end, so a failed call is not counted beside it, as in the list
    of runs. Failures are listed first, so their number is exact unless they fill the list.
    """
    listed = answer["executions"]["executions"]
    executions = [each for each in listed if each["status"] not in OPEN and not each.get("calledBy")]
    bad = [parse_instant(each["scheduledFor"]) for each in executions if each["status"] in BAD]
    hours = answer["counts"].get("hours")
    if answer["executions"].get("nextPageToken") and hours:
        is_cut = all(each["status"] in BAD for each in listed)
        starts = [parse_instant(each["start"]) for each in hours]
        failed = Counter(at.replace(minute=0, second=0, microsecond=0) for at in bad)
        counted = [
            (start, each["others"], each["failed"] if is_cut else failed[start])
            for start, each in zip(starts, hours, strict=True)
        ]
        return _Past(
            good=sum(others for _, others, _ in counted),
            bad=len(bad),
            is_at_least=is_cut,
            bars=[Bar(start, start + _HOUR, others, failed) for start, others, failed in counted]
            + [Bar(counted[-1][0] + _HOUR * each, counted[-1][0] + _HOUR * (each + 1)) for each in range(1, 14)],
            starts=[
                (parse_instant(each["scheduledFor"]), timedelta(seconds=each["lateness"]))
                for each in answer["counts"]["starts"]
                if parse_instant(each["scheduledFor"]) >= visit.now - REACH
            ],
        )
    good = [parse_instant(each["scheduledFor"]) for each in executions if each["status"] not in BAD]
    return _Past(
        good=len(good),
        bad=len(bad),
        is_at_least=False,
        bars=make_bars(good, bad, visit.now - REACH, visit.now + REACH, bins=_BARS),
        starts=[
            (at, max(timedelta(0), parse_instant(each["startedAt"]) - at))
            for each in executions
            if each.get("startedAt") and each.get("trigger", "SCHEDULE") == "SCHEDULE"
            for at in [parse_instant(each["scheduledFor"])]
        ],
    )


def _write_lateness(lateness: Iterable[timedelta]) -> str:
    ordered = sorted(lateness)
    if not ordered:
        return "Lateness: no schedule's occurrence has started in the last 12 h."
    if ordered[-1] < ON_TIME:
        return f"Lateness: all {len(ordered):,} that started did so on time."
    half = ordered[(len(ordered) - 1) // 2]
    return (
        f"Lateness: of {len(ordered):,} that started, half did so within {write_duration(half)}, "
        f"the latest after {write_duration(ordered[-1])}."
    )


def _write_bad(past: _Past) -> str:
    return f"{'at least ' if past.is_at_least else ''}{past.bad:,}"


def _write_sentence(attention: Json, past: _Past, opened: int, due: Sequence[Json], visit: Visit) -> str:
    if attention["needs"]:
        more = "At least " if attention["isAtLeast"] else ""
        wrong = f"{more}{write_count(attention['count'], 'thing needs you', 'things need you')}"
    else:
        wrong = attention["calm"].partition(":")[0].partition(".")[0]
    failed = f", {_write_bad(past)} failed in the last 12 h" if past.bad else ""
    coming = f" Next: {due[0]['title']}, {visit.moment(due[0]['utc']).relative}." if due else ""
    return f"{wrong}{failed}. {opened:,} open.{coming}"


def _group_due(occurrences: Iterable[Json]) -> list[Json]:
    """Return the first occurrence of each task, with the number of those that follow."""
    times: dict[str, list[Json]] = {}
    for each in occurrences:
        times.setdefault(each["taskId"], []).append(each)
    return [{**group[0], "more": len(group) - 1} for group in times.values()]


class LocalClock(Protocol):
    """A clock that can be frozen, resumed and moved ahead."""

    @property
    def mode(self) -> str:
        """Return whether the clock runs or is frozen, in a word."""
        ...

    def now(self) -> datetime:
        """Return the present instant, in UTC."""
        ...

    def move(self, command: dict[str, object]) -> dict[str, object]:
        """Carry out a command of ``/dev/clock``. Return the clock's state."""
        ...


_STEPS: Final = {"hour": "PT1H", "day": "P1D", "week": "P7D"}


def move_clock(clock: LocalClock, form: Mapping[str, str]) -> None:
    """Carry out a form's command on the clock."""
    verb = form.get("verb", "")
    if verb in {"freeze", "resume"}:
        clock.move({verb: True})
    elif verb in _STEPS:
        clock.move({"advance": _STEPS[verb]})
    elif verb == "to":
        clock.move({"advanceTo": _read_target(form.get("to", "")).isoformat()})
    else:
        raise InvalidInput("verb", "is nothing that a clock can do", "Choose a button of the page.")


def _read_target(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidInput("to", "is not an instant", "Write one with an offset.") from error
