"""The local stack's clock: what time it is, where it can go, what lies on the way, and what ran on the way."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Protocol

from cloudsched.dashboard.life_chart import draw_changes, draw_ticks
from cloudsched.dashboard.svg import element, percent
from cloudsched.dashboard.task_view import ExecutionRow, build_execution
from cloudsched.dashboard.times import find_clock_changes, parse_instant
from cloudsched.dashboard.visit import Visit, ZoneChoice, zone_choices
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    import zoneinfo
    from collections.abc import Mapping, Sequence

    from markupsafe import Markup

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.times import Moment


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
        """Carry out a command of ``/dev/clock``; return the clock's state.

        Raises:
            CloudschedError: The command is malformed, or the clock is being moved.
        """
        ...


_HEIGHT, _BASE = 72, 46


def draw_way(due: Sequence[datetime], now: datetime, end: datetime, zone: zoneinfo.ZoneInfo) -> Markup:
    """Return the chart of the time from now until where the slider ends."""
    marks = [
        *draw_ticks(now, end, zone, _HEIGHT),
        element("line", cls="base", x1=0, x2="100%", y1=_BASE, y2=_BASE),
        *draw_changes(find_clock_changes(now, end, zone), now, end, _HEIGHT, y=26),
    ]
    marks += [
        element("circle", cls="o", cx=percent((at - now) / (end - now)), cy=_BASE, r=4.5)
        for at in due
        if now <= at <= end
    ]
    marks.append(element("line", cls="nowl", x1=0, x2=0, y1=12, y2=_HEIGHT))
    marks.append(element("text", "now", cls="nowt", x=0, dx=5, y=_HEIGHT - 2))
    return element("svg", element("g", *marks), cls="c", height=_HEIGHT, **{"aria-hidden": "true"})


REACHES: Final = {"day": 1, "month": 30, "year": 366}
"""How far the slider goes, in days."""


_LISTED, _DRAWN = 40, 200
_REACH_WORDS: Final = {"day": "24 hours", "month": "30 days", "year": "366 days"}
OFTEN: Final = 6
"""What is due more often than this within reach is listed once."""
_STEPS: Final = {"hour": "PT1H", "day": "P1D", "week": "P7D"}


@dataclass(frozen=True, slots=True)
class DueRow:
    """An occurrence that lies on the way."""

    at: Moment
    epoch: int
    task_id: str
    title: str
    more: str
    """How many further times it is due within reach, if that is too often to list them."""


@dataclass(frozen=True, slots=True)
class QuietRow:
    """A task of which all that ran succeeded, summed up."""

    task_id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class TimePage:
    """The view model."""

    now: Moment
    now_epoch: int
    last_epoch: int
    zone: str
    reach: str
    reaches: list[tuple[str, str, bool]]
    """How far the slider may go: in words, the address, and whether it does."""
    way: Markup
    way_note: str
    due: list[DueRow]
    due_count: str
    changes: list[str]
    ran: list[ExecutionRow]
    quiet: list[QuietRow]
    zones: list[ZoneChoice]
    may_change: bool
    """Whether the caller may move the clock."""
    role: str


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API what is due within reach, and what ran in the last day."""
    until = (visit.now + _find_reach(visit)[1]).isoformat()
    since = (visit.now - timedelta(days=1)).isoformat()
    return {
        "occurrences": api.get("/v1/occurrences", **{"from": visit.soonest}, until=until, pageSize=_DRAWN),
        "executions": api.get("/v1/executions", **{"from": since}, pageSize=200)["executions"],
    }


def build(answer: Json, visit: Visit) -> TimePage:
    """Return the view model of the API's answers."""
    executions = answer["executions"]
    reach, ahead = _find_reach(visit)
    rows = _list_due(answer["occurrences"]["occurrences"], visit)
    instants = [parse_instant(each["utc"]) for each in answer["occurrences"]["occurrences"]]
    quiet = Counter(each["taskId"] for each in executions if each["status"] == "SUCCEEDED")
    titles = {each["taskId"]: each.get("title") or each["taskId"] for each in reversed(executions)}
    return TimePage(
        now=visit.sure(visit.now),
        now_epoch=int(visit.now.timestamp()),
        last_epoch=int((visit.now + ahead).timestamp()),
        zone=visit.zone.key,
        reach=_REACH_WORDS[reach],
        reaches=[(f"A {name}", visit.with_query(reach=name), name == reach) for name in REACHES],
        way=draw_way(instants, visit.now, visit.now + ahead, visit.zone),
        due=rows[:_LISTED],
        due_count=f"{len(instants):,}{' or more' if answer['occurrences'].get('nextPageToken') else ''}",
        way_note=(
            f"From {visit.sure(instants[-1]).text} on, only the first {_DRAWN} are shown."
            if answer["occurrences"].get("nextPageToken")
            else ""
        ),
        changes=[
            f"{visit.sure(change.at).text}: {change.describe(visit.zone)}"
            for change in find_clock_changes(visit.now, visit.now + ahead, visit.zone)
        ],
        ran=[build_execution(each, visit) for each in executions if each["status"] != "SUCCEEDED"][:20],
        quiet=[QuietRow(task, titles[task], f"{count:,} succeeded") for task, count in quiet.most_common(20)],
        zones=zone_choices(visit),
        may_change=visit.may_move_clock,
        role=visit.role,
    )


def _find_reach(visit: Visit) -> tuple[str, timedelta]:
    chosen = visit.query.get("reach", "")
    name = chosen if chosen in REACHES else "month"
    return name, timedelta(days=REACHES[name])


def move(clock: LocalClock, form: Mapping[str, str]) -> None:
    """Do with the clock what a form asks for.

    Raises:
        InvalidInput: The form says nothing that the clock can do.
        CloudschedError: The clock refuses.
    """
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
        return (
            datetime.fromtimestamp(int(text), UTC) if text.isdigit() else datetime.fromisoformat(text).astimezone(UTC)
        )
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidInput("to", "is not an instant", "Write one with an offset.") from error


def _list_due(occurrences: list[Json], visit: Visit) -> list[DueRow]:
    """Return what lies on the way, the soonest first; what is due very often only once."""
    counts = Counter(each["taskId"] for each in occurrences)
    last = {each["taskId"]: each["utc"] for each in occurrences}
    rows: dict[object, DueRow] = {}
    for each in occurrences:
        task_id, at = each["taskId"], parse_instant(each["utc"])
        is_often = counts[task_id] > OFTEN
        more = f"and {counts[task_id] - 1:,} more until {visit.sure(last[task_id]).short}" if is_often else ""
        key = task_id if is_often else (task_id, at)
        rows.setdefault(key, DueRow(visit.sure(at), int(at.timestamp()), task_id, each["title"], more))
    return list(rows.values())
