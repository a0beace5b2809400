"""Past and due runs, by day, week or month. A row is a day, and its width is the wall-clock day."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.calendar.day_chart import DayRow, count_bins, draw_day, draw_hours
from cloudsched.dashboard.calendar.days import DayFacts, gather
from cloudsched.dashboard.calendar.entries import BUSY, DayTotals, Entry, add_totals
from cloudsched.dashboard.calendar.fetch import choose_day, fetch
from cloudsched.dashboard.calendar.labels import OccurrenceMark
from cloudsched.dashboard.calendar.month import WEEKDAYS, build_month
from cloudsched.dashboard.calendar.span import KINDS, choose_span, find_today, make_span_moves, write_address
from cloudsched.dashboard.status import show_status
from cloudsched.dashboard.times import BLANK, DAY, WallDay, find_clock_changes, find_start, make_day, write_hours
from cloudsched.dashboard.views.task_filters import CATEGORIES
from cloudsched.dashboard.words import only_if, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cloudsched.dashboard.api import Json
    from cloudsched.dashboard.visit import Visit

__all__ = ["build", "fetch"]

WEEK: Final = 7
"""A span of this many days has each weekday once."""
_LISTED: Final = 200
"""The number of a day's lines that are shown."""
_LANES_OF_WEEK: Final = 2
_LANES_OF_DAY: Final = 12
_LONGEST_TITLE: Final = 40
"""What a row can hold."""
_ONE_SCALE: Final = "All days have one scale: the longest bar is the day with the most."


def build(answer: Json, visit: Visit) -> Json:
    """Return what the calendar shows."""
    span = choose_span(visit)
    days = [make_day(each, visit.zone) for each in span.days]
    facts = gather(answer, days, visit)
    chosen = choose_day(days, visit)
    totals = {day: each.totals for day, each in facts.items()}

    shown = {
        **_build_table(facts[chosen.day], visit),
        "sentence": write_sentence(days, [*totals.values()], visit),
        "notes": list(write_notes(answer, visit)),
        "hours": draw_hours(),
        "rows": [],
        "month": [],
        "monthName": f"{span.first:%B %Y}",
        "weekdays": WEEKDAYS,
        "spans": [(kind.capitalize(), write_address(visit, kind, chosen.day), kind == span.kind) for kind in KINDS],
        "moves": make_span_moves(visit, span, chosen.day),
        "categories": CATEGORIES,
        "kept": [(name, visit.query[name]) for name in (*KINDS, "tz", "status") if visit.query.get(name)],
        "tail": _ONE_SCALE,
    }
    if span.kind == "month":
        addresses = {each.day: write_address(visit, "day", each.day) for each in days}
        shown["month"] = build_month(days, totals, find_today(visit), addresses)
    else:
        shown |= _build_rows(facts, chosen.day, visit)
    return shown


def _build_table(facts: DayFacts, visit: Visit) -> Json:
    """Return the table of the chosen day."""
    day = facts.day
    rows = make_table(facts.entries, facts.busy, visit)
    is_whole = facts.totals.is_past_listed and facts.totals.is_future_listed
    kept = "in all" if is_whole else "of those that are drawn"
    return {
        "tableName": f"{day.day:%A} {day.day.day} {day.day:%B}",
        "tableNote": f"{write_hours(day.length)}, {len(facts.entries):,} {kept}",
        "table": rows[:_LISTED],
        "moreRows": len(rows) - _LISTED,
    }


def make_table(entries: Sequence[Entry], busy: set[str], visit: Visit) -> list[Json]:
    """Return a day's lines, the earliest first: one for each occurrence, or for all of a busy task's."""
    groups: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in sorted(entries, key=lambda each: (each.at, each.task_id)):
        name = entry.task_id if entry.task_id in busy else f"{entry.at.isoformat()} {entry.href}"
        groups[name].append(entry)
    return [{"key": key, **_build_line(group, visit)} for key, group in groups.items()]


def _build_line(group: Sequence[Entry], visit: Visit) -> Json:
    """Return the line of one occurrence, or of all of a busy task's."""
    first = group[0]
    bad = sum(each.kind == "failed" for each in group)
    line = {
        "at": first.at,
        "title": first.title,
        "href": first.href,
        "status": show_status("FAILED") if bad else first.status,
        "note": "",
        "change": _describe_fold(first.at.astimezone(visit.zone)),
    }
    if len(group) > 1:
        last = group[-1].at.astimezone(visit.zone)
        line["href"] = f"tasks/{first.task_id}"
        line["note"] = f"and {len(group) - 1:,} more until {last:%H:%M}{only_if(bad, f', {bad:,} failed')}"
    return line


def _describe_fold(local: datetime) -> str:
    other = local.replace(fold=1 - local.fold)
    if local.utcoffset() == other.utcoffset():
        return ""
    if other.astimezone(UTC).astimezone(local.tzinfo).replace(tzinfo=None) != local.replace(tzinfo=None):
        return ""  # a time next to a gap, not one that comes twice
    which = "second" if local.fold else "first"
    return f"the {which} {local:%H:%M} of two"


def write_sentence(days: Sequence[WallDay], totals: Sequence[DayTotals], visit: Visit) -> str:
    """Return the totals of the days, their zone, and their clock changes, in words."""
    first = days[0].day
    last = days[-1].day
    span = f"{first:%A} {first.day} {first:%B %Y}"
    if len(days) > 1:
        year = only_if(first.year != last.year, f" {first.year}")
        span = f"{first.day} {first:%B}{year} to {last.day} {last:%B %Y}"
    sentences = [f"{span}, {visit.zone.key}: {add_totals(totals).write()}."]
    for change in find_clock_changes(find_start(first, visit.zone), find_start(last + DAY, visit.zone), visit.zone):
        local = change.at.astimezone(visit.zone)
        on = f"{local:%A}"
        if len(days) > WEEK:
            on = f"{local:%A} {local.day} {local:%B}"
        sentences.append(f"Clocks go {change.direction} on {on}: {change.write_clocks(visit.zone)}.")
    return " ".join(sentences)


def write_notes(answer: Json, visit: Visit) -> Iterator[str]:
    """Yield notes on the entries that are not drawn or counted, with the reasons."""
    has_counts = answer.get("counts") is not None
    ran = len(answer["ran"])
    if answer.get("isSearchCut") and not has_counts:
        yield f"At least {ran:,} ran: too many others were looked through to find more. Choose a day."
    elif answer["moreRan"]:
        known = "Days with more are hatched, and counted" if has_counts else "Others are neither drawn nor counted"
        yield f"The latest {ran:,} that ended are drawn, failures first. {known}. Choose a day, or a filter."
    if until := answer.get("dueUntil"):
        yield f"From {visit.moment(until).text} on, only some of what is due are drawn: the hatched days have more."
    if status := visit.query.get("status"):
        yield f"Of what ran, only what has the status {show_status(status.upper()).word.lower()} is shown."
    if answer["paused"]:
        noun = "task is" if answer["paused"] == 1 else "tasks are"
        yield f"{answer['paused']:,} paused {noun} not shown."


def _build_rows(facts: Mapping[date, DayFacts], chosen: date, visit: Visit) -> Json:
    """Return a row for each day, and the note on bars below them."""
    is_week = len(facts) > 1
    parts = 24 if is_week else 96
    bar = "hour" if is_week else "quarter of an hour"
    bins = {day: count_bins(_list_busy(each), parts) for day, each in facts.items()}
    heights = (max(one.ran + one.skipped + one.late, one.failed, one.due) for row in bins.values() for one in row)
    most = max(heights, default=1) or 1

    rows = []
    for day, each in facts.items():
        address = write_address(visit, "day", day)
        is_today = day == find_today(visit)
        row = DayRow(
            day=each.day,
            name=f"{day:%a} {day.day} {day:%B}",
            marks=[*_list_marks(each, visit)],
            bins=bins[day],
            most=most,
            now=each.day.place(visit.now) if is_today else None,
            lanes=_LANES_OF_WEEK if is_week else _LANES_OF_DAY,
            more_href=address if is_week else "#table",
            unlisted=each.unlisted,
        )
        rows.append(
            {
                "name": f"{day:%a}{BLANK}{day.day}",
                "href": address,
                "counts": each.totals.write_others(),
                "failed": each.totals.write_failed(),
                "hours": only_if(each.day.spans, write_hours(each.day.length)),
                "isToday": is_today,
                "isChosen": is_week and day == chosen,
                "chart": draw_day(row),
            }
        )
    busiest = len(set().union(*(each.busy for each in facts.values())))
    here = only_if(busiest, f"; here {busiest:,}, at most {most:,} in a bar")
    return {"rows": rows, "tail": f"Tasks that run more than {BUSY} times a day are bars, one for each {bar}{here}."}


def _list_busy(facts: DayFacts) -> list[tuple[float, str]]:
    """Return the places of busy tasks' occurrences in a day, and their kinds."""
    return [(facts.day.place(each.at), each.kind) for each in facts.entries if each.task_id in facts.busy]


def _list_marks(facts: DayFacts, visit: Visit) -> Iterable[OccurrenceMark]:
    """Yield the occurrences of the other tasks."""
    for each in facts.entries:
        if each.task_id not in facts.busy:
            title = shorten(each.title, _LONGEST_TITLE)
            yield OccurrenceMark(
                at=facts.day.place(each.at),
                label=f"{each.at.astimezone(visit.zone):%H:%M} {title}",
                words=f"{each.title}, {visit.moment(each.at).text}, {each.status.word.lower()}",
                href=each.href,
                is_future=each.kind not in {"ran", "failed"},
                is_bad=each.kind == "failed",
            )
