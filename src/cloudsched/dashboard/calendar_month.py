"""A month as a table of weeks: each day's numbers, failures below the line, and clock changes."""

from __future__ import annotations

import calendar
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.calendar_chart import Bin
from cloudsched.dashboard.chart_axis import draw_picture, element, percent
from cloudsched.dashboard.status import BAD, Status, show_status
from cloudsched.dashboard.times import DAY, WallDay, parse_instant, write_hours
from cloudsched.domain.documents.execution import NOT_RUN_STATUSES

if TYPE_CHECKING:
    from markupsafe import Markup

    from cloudsched.dashboard.visit import Json

_DUE, _LATE = Status("due", "Due", "due"), Status("late", "Late", "timeout")
MOST_COUNTED: Final = 10_000
"""The largest number that the API counts."""
BUSY: Final = 6
"""A task that is due more often than this on a day is busy that day, and goes into the bars."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An occurrence in a calendar, past or to come."""

    at: datetime
    task_id: str
    title: str
    href: str
    status: Status
    kind: str
    """Its field in a `Bin`: ``ran``, ``failed``, ``skipped``, ``late`` or ``due``."""


def read_entries(answer: Json, now: datetime) -> Iterator[Entry]:
    """Yield the API's answers as entries."""
    for each in answer["ran"]:
        href = f"tasks/{each['taskId']}/executions/{each['id']}"
        kind = "failed" if each["status"] in BAD else "skipped" if each["status"] in NOT_RUN_STATUSES else "ran"
        at = parse_instant(each["scheduledFor"])
        yield Entry(at, each["taskId"], each["title"], href, show_status(each["status"]), kind)
    for each in answer["due"]:
        at = parse_instant(each["utc"])
        # nobody has begun what is late, a worker that does not come for example
        status, kind = (_LATE, "late") if at <= now else (_DUE, "due")
        yield Entry(at, each["taskId"], each["title"], f"tasks/{each['taskId']}", status, kind)


def find_busy(entries: Sequence[Entry]) -> set[str]:
    """Return the tasks that are busy on a day, from all entries of the day."""
    times = Counter(each.task_id for each in entries)
    return {task_id for task_id, count in times.items() if count > BUSY}


def count_entries(entries: Sequence[Entry]) -> Bin:
    """Return the number of entries of each kind."""
    return Bin(**Counter(each.kind for each in entries))


@dataclass(frozen=True, slots=True)
class DayTotals:
    """The facts about a day: the occurrences that were listed, and those that were counted."""

    found: Bin
    """The listed occurrences."""
    ended: tuple[int, int] | None
    """The numbers of failures and of other ends. None if these were not counted."""
    is_past_listed: bool = True
    """True if all executions that ended were listed."""
    is_future_listed: bool = True
    """True if all due occurrences were listed."""

    @property
    def failed(self) -> int:
        """Return the number of failures."""
        return self.found.failed if self.is_past_listed or self.ended is None else self.ended[0]

    @property
    def others(self) -> int:
        """Return the number that ended otherwise, whether they ran or not. Listed open ones count, too."""
        return self.found.ran + self.found.skipped if self.is_past_listed or self.ended is None else self.ended[1]

    def write_failed(self) -> str:
        """Return the number of failures, in words. Empty if there are none."""
        return f"{self._write_least(self.failed)} failed" if self.failed else ""

    def write_others(self) -> str:
        """Return the rest of the day in words. It is never "nothing" unless the whole day was requested."""
        found = self.found
        if self.is_past_listed:
            said = [f"{found.ran:,} ran"] * bool(found.ran) + [f"{found.skipped:,} not run"] * bool(found.skipped)
        elif self.ended is None:
            said = [f"at least {self.others:,} ended" if self.others else "more is not counted"]
        else:
            said = [f"{self._write_least(self.others)} ended"] * bool(self.others)
        said += [f"{found.late:,} late"] * bool(found.late)
        if self.is_future_listed:
            said += [f"{found.due:,} due"] * bool(found.due)
        else:
            said.append(f"at least {found.due:,} due" if found.due else "what is due is not counted")
        return ", ".join(said) or ("" if self.failed else "nothing")

    def _write_least(self, count: int) -> str:
        is_least = not self.is_past_listed and (self.ended is None or count >= MOST_COUNTED)
        return f"at least {count:,}" if is_least else f"{count:,}"


def add_totals(days: Sequence[DayTotals]) -> DayTotals:
    """Return the totals of several days together."""
    found = Bin(**{each.name: sum(getattr(day.found, each.name) for day in days) for each in fields(Bin)})
    is_past_listed = all(each.is_past_listed for each in days)
    known = [(each.failed, each.others) for each in days if each.is_past_listed or each.ended is not None]
    is_counted = len(known) == len(days)
    ended = (sum(failed for failed, _ in known), sum(others for _, others in known)) if is_counted else None
    return DayTotals(found, ended, is_past_listed, all(each.is_future_listed for each in days))


_HEIGHT, _TALL, _LINE, _LEAST = 12, 6, 7, 0.04
WEEKDAYS: Final = tuple((name[:2], name) for name in calendar.day_name)


def build_month(
    days: Sequence[WallDay], totals: Mapping[date, DayTotals], today: date, addresses: Mapping[date, str]
) -> list[list[Json | None]]:
    """Return the weeks of a month. None stands for a day of another month."""
    most = max((each.others + each.found.late + each.found.due for each in totals.values()), default=0)
    cells: list[Json | None] = [None] * days[0].day.weekday()
    cells += [_build_day(each, totals[each.day], most, today, addresses[each.day]) for each in days]
    cells += [None] * (-len(cells) % 7)
    return [cells[index : index + 7] for index in range(0, len(cells), 7)]


def draw_density(totals: DayTotals, most: int) -> Markup:
    """Return a day's bar: past runs are filled, due ones outlined after them, and failures below the line.

    A part that was neither listed nor counted is hatched. All days of the month have one scale, up to `most`.
    """
    waiting = totals.found.due + totals.found.late
    others, due, failed = (_scale(count, most) for count in (totals.others, waiting, totals.failed))
    parts = []
    if others:
        is_known = totals.is_past_listed or totals.ended is not None
        shown = {"cls": "f-past"} if is_known else {"cls": "full", "fill": "url(#full)"}
        parts.append(element("rect", **shown, x="0", y=0, width=percent(others), height=_TALL))
    if due:
        left = min(others, 1 - _LEAST)
        width = percent(min(due, 1 - left))
        parts.append(element("rect", cls="o", x=percent(left), y=0.5, width=width, height=_TALL - 1))
    if not totals.is_future_listed:
        left = min(others + due, 1 - _LEAST)
        parts.append(element("rect", fill="url(#full)", x=percent(left), y=0, width=percent(1 - left), height=_TALL))
    if failed:
        tall = _HEIGHT - _LINE - 1
        parts.append(element("rect", cls="f-fail", x="0", y=_LINE + 1, width=percent(failed), height=tall))
    return draw_picture(_HEIGHT, *parts)


def _scale(count: int, most: int) -> float:
    return min(1.0, max(_LEAST, count / most)) if count and most else _LEAST if count else 0.0


def _build_day(day: WallDay, totals: DayTotals, most: int, today: date, address: str) -> Json:
    said = ", ".join(filter(None, [totals.write_others(), totals.write_failed()]))
    is_today = day.day == today
    length = f", {write_hours(day.length)}" if day.spans else ""
    return {
        "number": day.day.day,
        "href": address,
        "words": f"{day.day.day} {day.day:%B}, {said}{length}{', today' if is_today else ''}",
        "chart": draw_density(totals, most),
        "failed": totals.write_failed(),
        "hours": _write_change(day.length - DAY) if day.spans else "",
        "isToday": is_today,
    }


def _write_change(change: timedelta) -> str:
    """Return the difference of a day's length from 24 hours, or "clock change" if there is none."""
    return f"{change / timedelta(hours=1):+g} h".replace("-", "\N{MINUS SIGN}") if change else "clock change"
