"""Past and due runs, by day, week or month. A row is a day, and its width is the wall-clock day."""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from cloudsched.dashboard.calendar.day_chart import DayBar, DayRow, draw_day, draw_hours
from cloudsched.dashboard.calendar.days import DayFacts, Part, gather
from cloudsched.dashboard.calendar.entries import Bin, DayTotals, Entry, add_bins, add_totals, find_most, write_scale
from cloudsched.dashboard.calendar.fetch import FILTERS, LISTED, choose_day, fetch
from cloudsched.dashboard.calendar.labels import OccurrenceMark
from cloudsched.dashboard.calendar.month import WEEKDAYS, DayAddresses, build_month
from cloudsched.dashboard.calendar.span import KINDS, choose_span, find_today, make_span_moves, write_address
from cloudsched.dashboard.calendar.worth import choose_lines
from cloudsched.dashboard.charts.legend import CALENDAR, list_legend
from cloudsched.dashboard.status import show_status
from cloudsched.dashboard.times import (
    BLANK,
    DAY,
    WallDay,
    find_clock_changes,
    find_start,
    make_day,
    parse_instant,
    write_duration,
    write_hours,
)
from cloudsched.dashboard.upcoming import BUSY
from cloudsched.dashboard.views.task_filters import CATEGORIES
from cloudsched.dashboard.words import SKIPPED_TOGETHER, join_phrases, only_if, shorten, write_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cloudsched.dashboard.api import Json
    from cloudsched.dashboard.visit import Visit

__all__ = ["build", "fetch"]

PARAMETERS: Final = (*FILTERS, *KINDS)
WEEK: Final = 7
"""A span of this many days has each weekday once."""
_LANES_OF_WEEK: Final = 2
_LANES_OF_DAY: Final = 12
_LONGEST_TITLE: Final = 40
"""What a row can hold."""


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
    }
    if span.kind == "month":
        addresses = {each.day: _write_addresses(each.day, visit) for each in days}
        shown["month"] = build_month(days, totals, find_today(visit), addresses)
        scale = write_scale([each.found for each in totals.values()])
        one_scale = only_if(scale, f"All days share one scale: {scale}.")
        shown["tail"] = join_phrases(one_scale, _tell_of_skipped(facts), separator=" ")
    else:
        shown |= _build_rows(facts, chosen.day, visit, is_cut=answer["moreRan"])
    drawn = [each["chart"] for each in itertools.chain(*shown["month"], shown["rows"]) if each]
    return {**shown, "legend": list_legend(CALENDAR, drawn)}


def _write_addresses(day: date, visit: Visit) -> DayAddresses:
    start, end = find_start(day, visit.zone), find_start(day + DAY, visit.zone)
    due = _write_list("due?", max(start, parse_instant(visit.soonest)), end, visit)
    failed = _write_list("runs?outcome=failed&", start, end, visit)
    return DayAddresses(write_address(visit, "day", day), due, failed)


def _write_list(path: str, start: datetime, end: datetime, visit: Visit) -> str:
    """Return the address of a list of what ran or is due between two instants, with the filters of the page.

    Only a list of all runs takes a status.
    """
    wanted = [name for name in FILTERS if visit.query.get(name) and (name != "status" or path == "runs?")]
    filters = {name: visit.query[name] for name in wanted}
    bounds = f"from={start:%Y-%m-%dT%H:%M:%SZ}&until={end:%Y-%m-%dT%H:%M:%SZ}"
    return f"{path}{bounds}&{urlencode(filters, safe=':')}" if filters else f"{path}{bounds}"


def _build_table(facts: DayFacts, visit: Visit) -> Json:
    """Return the table of the chosen day."""
    day = facts.day
    rows = make_table(facts.entries, facts.busy, visit, LISTED)
    return {
        "tableName": f"{day.day:%A} {day.day.day} {day.day:%B}",
        "tableNote": f"{only_if(day.spans, write_hours(day.length) + ', ')}{facts.totals.write()}",
        "table": rows,
        "rest": _write_rest(facts, rows, visit),
    }


def _write_rest(facts: DayFacts, rows: Sequence[Json], visit: Visit) -> Json | None:
    """Return how many of a day's occurrences its table has, and the lists that have all. None if it has them."""
    totals = facts.totals
    total, listed = sum(totals.found.numbers), sum(each["count"] for each in rows)
    if listed >= total and totals.is_past_whole and totals.is_future_whole:
        return None
    start, end = find_start(facts.day.day, visit.zone), find_start(facts.day.day + DAY, visit.zone)
    is_whole = totals.is_past_whole and totals.is_future_whole
    lists = []
    if start < visit.now:
        lists.append(("All runs of this day", _write_list("runs?", start, end, visit)))
    if totals.found.late:
        lists.append(("All that has not started", _write_list("due?", start, min(end, visit.now), visit)))
    if end > visit.now:
        soonest = max(start, parse_instant(visit.soonest))
        lists.append(("All that is due", _write_list("due?", soonest, end, visit)))
    least = only_if(not is_whole, "at least ")
    words = f"{listed:,} of {least}{total:,} {'is' if listed == 1 else 'are'} listed"
    failed = sum(each["failed"] for each in rows)
    if not listed:
        words = f"{least}{total:,} in all".capitalize()
    elif failed < totals.found.failed:
        of = totals.write_failed().removesuffix(" failed")
        words += f", among them {failed:,} of {of} failures, the latest and the rarest"
    return {"words": f"{words}.", "lists": lists}


def make_table(entries: Sequence[Entry], busy: set[str], visit: Visit, most: int) -> list[Json]:
    """Return the lines of a day that are worth most, the earliest first.

    There is one for each occurrence. Those of a busy task share three: for what ran, what is late, and what is due.
    """
    groups: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in sorted(entries, key=lambda each: (each.at, each.task_id)):
        name = f"{entry.at.isoformat()} {entry.href}"
        if entry.task_id in busy:
            name = join_phrases(entry.task_id, only_if(entry.kind in {"late", "due"}, entry.kind), separator=" ")
        groups[name].append(entry)
    chosen = choose_lines(groups, busy, visit.now, most)
    return [{"key": key, **_build_line(group, visit)} for key, group in groups.items() if key in chosen]


def _build_line(group: Sequence[Entry], visit: Visit) -> Json:
    """Return the line of one occurrence, or of several of a busy task."""
    first = group[0]
    bad = sum(each.kind == "failed" for each in group)
    count = sum(each.count for each in group)
    line = {
        "count": count,
        "failed": bad,
        "at": first.at,
        "title": first.title,
        "href": first.href,
        "move": "",
        "status": show_status("FAILED") if bad else first.status,
        "note": _describe_record(first, visit),
        "change": _describe_fold(first.at.astimezone(visit.zone)),
    }
    if first.kind == "due" and len(group) == 1 and visit.may_change:
        line["move"] = f"tasks/{first.task_id}?{urlencode({'move': first.at.isoformat()})}#acts"
    if len(group) > 1:
        last = (group[-1].until or group[-1].at).astimezone(visit.zone)
        skipped = sum(each.count for each in group if each.kind == "skipped")
        late = sum(each.started is not None for each in group)
        told = join_phrases(
            only_if(bad, f"{bad:,} failed"),
            only_if(skipped, f"{skipped:,} skipped"),
            only_if(late, f"{late:,} started late"),
        )
        line["href"] = f"tasks/{first.task_id}"
        line["note"] = f"and {count - 1:,} more until {last:%H:%M}{only_if(told, f': {told}')}"
        if not bad:  # the last whose time has come and that was more than skipped says how they went
            ended = (each.status for each in reversed(group) if each.kind not in {"skipped", "due"})
            line["status"] = next(ended, first.status)
    return line


def _describe_record(entry: Entry, visit: Visit) -> str:
    """Return what a record stands for beside its own time: a late start, or further occurrences."""
    if entry.started is not None:
        late = write_duration(entry.started - entry.at)
        return f"started {late} late, at {visit.moment(entry.started).text}"
    if entry.count > 1 and entry.until is not None:
        return f"this and {entry.count - 1:,} more until {visit.moment(entry.until).text}"
    return ""


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
    if answer["moreRan"] and answer.get("counts") is None:
        yield f"Only the latest {len(answer['ran']):,} runs are counted: these filters cannot be counted together."
    if until := answer.get("dueUntil"):
        yield f"From {visit.moment(until).text} on, not everything due is counted: there are too many tasks."
    if status := visit.query.get("status"):
        yield f"Only past runs with the status {show_status(status.upper()).word.lower()} are shown."
    if answer["paused"]:
        is_at_least = answer.get("morePaused")
        said = write_count(answer["paused"], "paused task", "paused tasks", is_at_least=is_at_least)
        yield f"Future runs of {said} are not shown."


def _build_rows(facts: Mapping[date, DayFacts], chosen: date, visit: Visit, *, is_cut: bool) -> Json:
    """Return a row for each day, and the note on bars below them."""
    is_week = len(facts) > 1
    parts = 24 if is_week else 96
    bar = "hour" if is_week else "quarter of an hour"
    bars = {day: [*_list_bars(each, parts, visit)] for day, each in facts.items()}
    found = [bar.found for row in bars.values() for bar in row]
    most = find_most(found) or 1

    rows = []
    for day, each in facts.items():
        address = write_address(visit, "day", day)
        is_today = day == find_today(visit)
        row = DayRow(
            day=each.day,
            name=f"{day:%a} {day.day} {day:%B}",
            marks=[*_list_marks(each, visit)],
            bars=bars[day],
            most=most,
            now=each.day.place(visit.now) if is_today else None,
            lanes=_LANES_OF_WEEK if is_week else _LANES_OF_DAY,
            more_href=address if is_week else "#table",
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
    marked = f"Of tasks that run more than {BUSY} times a day, only rare failures have marks."
    if is_cut:
        marked = "Of past runs, only open ones, rare failures and some of the latest have marks."
    scale = join_phrases(f"Each bar counts the runs due in one {bar}", write_scale(found), separator="; ")
    notes = (
        only_if(found, f"{scale}."),
        marked,
        _tell_of_skipped(facts),
    )
    return {"rows": rows, "tail": join_phrases(*notes, separator=" ")}


def _tell_of_skipped(facts: Mapping[date, DayFacts]) -> str:
    """Return how what was skipped is counted. Empty if no day has any."""
    return only_if(any(each.totals.found.skipped for each in facts.values()), SKIPPED_TOGETHER)


def _list_bars(facts: DayFacts, parts: int, visit: Visit) -> Iterator[DayBar]:
    """Yield a day's bars, unless its marks show everything."""
    if not facts.has_bars:
        return
    bins: defaultdict[int, list[Part]] = defaultdict(list)
    for each in facts.parts:
        if each.found != Bin():
            bins[min(parts - 1, int(facts.day.place(each.start) * parts))].append(each)
    for index, each_of in sorted(bins.items()):
        found = each_of[0].found if len(each_of) == 1 else add_bins(each.found for each in each_of)
        start, end = each_of[0].start, each_of[-1].end
        is_future = start >= visit.now or not (found.ran or found.failed or found.skipped)
        href = _write_list("due?" if is_future else "runs?", start, end, visit)
        is_whole = facts.totals.is_future_whole or not found.due
        numbers = replace(facts.totals, found=found, is_future_whole=is_whole).write()
        words = f"{start.astimezone(visit.zone):%H:%M} {numbers}"
        yield DayBar(index / parts, (index + 1) / parts, found, href, words)


def _list_marks(facts: DayFacts, visit: Visit) -> Iterable[OccurrenceMark]:
    """Yield the occurrences of the other tasks. If only the first of what is due is listed, its bars alone show it."""
    for each in facts.entries:
        is_sample = each.kind == "due" and not facts.is_due_listed
        if each.task_id not in facts.busy and not is_sample:
            label = f"{each.at.astimezone(visit.zone):%H:%M} {shorten(each.title, _LONGEST_TITLE)}"
            yield OccurrenceMark(
                at=facts.day.place(each.at),
                label=label,
                write_words=partial(_write_mark, each, label, visit),
                href=each.href,
                kind=each.kind,
                started=_place_start(facts.day, each, visit),
            )


def _write_mark(entry: Entry, label: str, visit: Visit) -> str:
    """Return what a mark says to those who do not see it: its label, and the rest of it."""
    title = only_if(not label.endswith(entry.title), f"{entry.title}, ")
    return f"{label}, {title}{visit.moment(entry.at).text}, {entry.status.word.lower()}"


def _place_start(day: WallDay, entry: Entry, visit: Visit) -> float | None:
    """Return the place at which a late run started, or the day's end. None if it was in time."""
    if entry.started is None:
        return None
    return 1.0 if entry.started >= find_start(day.day + DAY, visit.zone) else day.place(entry.started)
