"""Past and due runs, by day, week or month. A row is a day, and its width is the wall-clock day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.calendar_chart import (
    KINDS,
    Mark,
    Unlisted,
    choose_span,
    count_bins,
    draw_day,
    draw_hours,
    make_span_moves,
    write_address,
)
from cloudsched.dashboard.calendar_month import (
    BUSY,
    WEEKDAYS,
    DayTotals,
    Entry,
    add_totals,
    build_month,
    count_entries,
    find_busy,
    read_entries,
)
from cloudsched.dashboard.lists_view import CATEGORIES
from cloudsched.dashboard.status import BAD, OPEN, shorten, show_status
from cloudsched.dashboard.times import (
    BLANK,
    DAY,
    WallDay,
    find_clock_changes,
    find_start,
    make_day,
    parse_instant,
    write_hours,
)

if TYPE_CHECKING:
    from cloudsched.dashboard.visit import Api, Json, Visit

_LISTED: Final = 200
"""The number of a day's lines that are shown."""


def make_table(entries: Sequence[Entry], busy: set[str], visit: Visit) -> list[Json]:
    """Return a day's lines, the earliest first: one for each occurrence, or for all of a busy task's."""
    groups: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in sorted(entries, key=lambda each: (each.at, each.task_id)):
        name = entry.task_id if entry.task_id in busy else f"{entry.at.isoformat()} {entry.href}"
        groups[name].append(entry)
    rows = []
    for key, group in groups.items():
        first, more = group[0], len(group) - 1
        bad = sum(each.kind == "failed" for each in group)
        said = [f"and {more:,} more until {group[-1].at.astimezone(visit.zone):%H:%M}"] * bool(more)
        said += [f"{bad:,} failed"] * bool(bad and more)
        rows.append(
            {
                "key": key,
                "at": first.at,
                "title": first.title,
                "href": f"tasks/{first.task_id}" if more else first.href,
                "status": show_status("FAILED") if bad else first.status,
                "note": ", ".join(said),
                "change": _describe_fold(first.at.astimezone(visit.zone)),
            }
        )
    return rows


def _describe_fold(local: datetime) -> str:
    other = local.replace(fold=1 - local.fold)
    if local.utcoffset() == other.utcoffset():
        return ""
    if other.astimezone(UTC).astimezone(local.tzinfo).replace(tzinfo=None) != local.replace(tzinfo=None):
        return ""  # a time next to a gap, not one that comes twice
    return f"the {'second' if local.fold else 'first'} {local:%H:%M} of two"


WEEK: Final = 7
"""A span of this many days has each weekday once."""


def write_sentence(days: Sequence[WallDay], totals: Sequence[DayTotals], visit: Visit) -> str:
    """Return the totals of the days, their zone, and their clock changes, in words."""
    first, last = days[0].day, days[-1].day
    start = f"{first.day} {first:%B}" + (f" {first.year}" if first.year != last.year else "")
    span = f"{start} to {last.day} {last:%B %Y}" if len(days) > 1 else f"{first:%A} {first.day} {first:%B %Y}"
    whole = add_totals(totals)
    said = ", ".join(filter(None, [whole.write_others(), whole.write_failed()]))
    sentences = [f"{span}, {visit.zone.key}: {said}."]
    start_at, end_at = find_start(first, visit.zone), find_start(last + DAY, visit.zone)
    for change in find_clock_changes(start_at, end_at, visit.zone):
        local = change.at.astimezone(visit.zone)
        direction = "forward" if change.shift > timedelta(0) else "back"
        on = f"{local:%A}" if len(days) <= WEEK else f"{local:%A} {local.day} {local:%B}"
        sentences.append(f"Clocks go {direction} on {on}: {change.write_clocks(visit.zone)}.")
    return " ".join(sentences)


def write_notes(answer: Json, visit: Visit) -> Iterator[str]:
    """Yield notes on the entries that are not drawn or counted, with the reasons."""
    has_counts = answer.get("counts") is not None
    if answer.get("isSearchCut") and not has_counts:
        yield f"At least {len(answer['ran']):,} ran: too many others were looked through to find more. Choose a day."
    elif answer["moreRan"]:
        known = "Days with more are hatched, and counted" if has_counts else "Others are neither drawn nor counted"
        drawn = f"The latest {len(answer['ran']):,} that ended are drawn, failures first"
        yield f"{drawn}. {known}. Choose a day, or a filter."
    if until := answer.get("dueUntil"):
        yield f"From {visit.moment(until).text} on, only some of what is due are drawn: the hatched days have more."
    if status := visit.query.get("status"):
        yield f"Of what ran, only what has the status {show_status(status.upper()).word.lower()} is shown."
    if answer["paused"]:
        one = answer["paused"] == 1
        yield f"{answer['paused']:,} paused {'task is' if one else 'tasks are'} not shown."


BOUND: Final = 500
"""The most executions that are requested, and the most occurrences of a day or a week. More executions are counted."""
BOUND_OF_MONTH: Final = 2000
"""The most occurrences of a month that are requested, if they are of few tasks."""
_MANY_TASKS: Final = 250
FILTERS: Final = ("owner", "handler", "label", "category", "status")
_ONE_OF: Final = ("label", "handler", "category")
"""Filters of which the API takes one for executions: the first given one, since few share a label."""
_PAGE: Final = 500
_MAX_PAGES: Final = 4
"""The most pages that are requested. Where no index has a filter, a page may have few items or none."""
_LANES_OF_WEEK, _LANES_OF_DAY = 2, 12


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for each day's counts, and for at most `BOUND` of the executions and of the due occurrences."""
    span = choose_span(visit)
    start, end = find_start(span.first, visit.zone), find_start(span.end, visit.zone)
    wanted = {name: visit.query.get(name, "") for name in FILTERS}
    wanted["category"] = wanted["category"].upper()
    near = {"from": start.isoformat(), "until": end.isoformat()}
    ran: list[Json] = []
    due: list[Json] = []
    is_cut, more_due, complete_until, days = False, False, None, None
    ran_from: str | None = None
    ran_until: str | None = None
    if start <= visit.now:
        days = _fetch_counts(api, visit, start, min(end, visit.now), wanted)
        if span.kind == "month" and days is not None:  # the month draws counts, and its table has one day
            listed = _choose_day([make_day(each, visit.zone) for each in span.days], visit).day
            ran_from, ran_until = (find_start(each, visit.zone).isoformat() for each in (listed, listed + DAY))
        within = {"from": ran_from, "until": ran_until} if ran_from and ran_until else near
        ran, cut_from, is_cut = _fetch_ran(api, within, wanted)
        ran_from = cut_from or ran_from
    if end > visit.now - DAY:  # a status is one of what ran: what is to come has none, so it stays
        also = {name: wanted[name] for name in ("owner", "handler", "label", "category")}
        bound = BOUND_OF_MONTH if span.kind == "month" else BOUND
        due, more_due, complete_until = _fetch_all(api, "/v1/occurrences", "occurrences", {**near, **also}, bound)
    is_narrow = any(wanted[name] for name in _ONE_OF)
    counts = None if is_narrow else api.find("/v1/overview", owner=wanted["owner"])
    ends = [at for at in (due[-1]["utc"] if more_due and due else None, complete_until) if at]
    return {
        "ran": ran,
        "moreRan": ran_from is not None and ran_until is None,
        "ranFrom": ran_from,
        "ranUntil": ran_until,
        "isSearchCut": is_cut,
        "counts": days,
        "due": due,
        "dueUntil": min(ends, key=parse_instant, default=None),
        "paused": (counts or {}).get("tasks", {}).get("PAUSED", 0),
    }


def _fetch_counts(
    api: Api, visit: Visit, start: datetime, until: datetime, wanted: Mapping[str, str]
) -> list[Json] | None:
    """Return the counts of each day. None if the API cannot count for these filters."""
    if start >= until or wanted["status"].upper() not in {"", "FAILED"}:
        return None
    query = {name: wanted[name] for name in ("owner", *_ONE_OF)}
    near = {"from": start.isoformat(), "until": until.isoformat(), "timezone": visit.zone.key}
    found = api.find("/v1/executions/counts", **near, **query)
    if found is None:
        return None
    days: list[Json] = found["days"]
    return [{**each, "others": 0} for each in days] if wanted["status"] else days


def _fetch_ran(api: Api, near: dict[str, str], wanted: dict[str, str]) -> tuple[list[Json], str | None, bool]:
    """Return the ended executions, the start of their complete list, and whether the search was given up.

    Timeouts count as failures. No index has two of `_ONE_OF`, so the others are filtered here.
    """
    others = [name for name in _ONE_OF if wanted[name]][1:]
    asked = {**near, **{name: value for name, value in wanted.items() if name not in others}}
    found: list[Json] = []
    since: list[str] = []
    is_cut = False
    is_failed = wanted["status"].upper() == "FAILED"
    for status in sorted(BAD) if is_failed else [wanted["status"].upper()]:
        records, more, _ = _fetch_all(api, "/v1/executions", "executions", {**asked, "status": status})
        found += [each for each in records if all(each.get(name) == wanted[name] for name in others)]
        is_cut |= more and len(records) < BOUND
        if more:  # failures come first: as long as there are more of them, nothing is known of all others
            is_known = records and (bool(status) or records[-1]["status"] not in {*BAD, *OPEN})
            since.append(records[-1]["scheduledFor"] if is_known else near["until"])
    return found, max(since, key=parse_instant, default=None), is_cut


def _fetch_all(
    api: Api, path: str, name: str, query: dict[str, str], bound: int = BOUND
) -> tuple[list[Json], bool, str | None]:
    found: list[Json] = []
    token: str | None = ""
    complete_until: str | None = None
    pages = 0
    while token is not None and len(found) < bound and pages < _MAX_PAGES:
        pages += 1
        page = api.get(path, **query, pageSize=_PAGE, pageToken=token)
        found += page[name]
        token = page.get("nextPageToken")
        complete_until = complete_until or page.get("completeUntil")
        if len({each["taskId"] for each in found}) > _MANY_TASKS:  # each further page reads all of these again
            break
    return found[:bound], token is not None or len(found) > bound, complete_until


def build(answer: Json, visit: Visit) -> Json:
    """Return what the calendar shows."""
    span = choose_span(visit)
    days = [make_day(each, visit.zone) for each in span.days]
    entries: dict[date, list[Entry]] = {each.day: [] for each in days}
    for entry in read_entries(answer, visit.now):
        entries.get(entry.at.astimezone(visit.zone).date(), []).append(entry)
    today = visit.now.astimezone(visit.zone).date()
    chosen = _choose_day(days, visit)
    facts = _gather(answer, days, entries, visit)
    listed = entries[chosen.day]
    table = make_table(listed, facts[chosen.day].busy, visit)
    is_month = span.kind == "month"
    rows, tail = ([], "") if is_month else _build_rows(days, facts, chosen, visit)
    addresses = {each.day: write_address(visit, "day", each.day) for each in days}
    totals = {day: each.totals for day, each in facts.items()}
    is_whole = totals[chosen.day].is_past_listed and totals[chosen.day].is_future_listed
    kept = "in all" if is_whole else "of those that are drawn"
    return {
        "sentence": write_sentence(days, [*totals.values()], visit),
        "notes": list(write_notes(answer, visit)),
        "hours": draw_hours(),
        "rows": rows,
        "month": build_month(days, totals, today, addresses) if is_month else [],
        "monthName": f"{span.first:%B %Y}",
        "weekdays": WEEKDAYS,
        "tableName": f"{chosen.day:%A} {chosen.day.day} {chosen.day:%B}",
        "tableNote": f"{write_hours(chosen.length)}, {len(listed):,} {kept}",
        "table": table[:_LISTED],
        "moreRows": len(table) - _LISTED,
        "spans": [(kind.capitalize(), write_address(visit, kind, chosen.day), kind == span.kind) for kind in KINDS],
        "moves": make_span_moves(visit, span, chosen.day),
        "categories": CATEGORIES,
        "kept": [(name, visit.query[name]) for name in (*KINDS, "tz", "status") if visit.query.get(name)],
        "tail": tail or "All days have one scale: the longest bar is the day with the most.",
    }


def _choose_day(days: Sequence[WallDay], visit: Visit) -> WallDay:
    """Return the day whose table is shown: today, one with a clock change, or the first."""
    today = visit.now.astimezone(visit.zone).date()
    return next((each for each in days if each.day == today), next((each for each in days if each.spans), days[0]))


@dataclass(frozen=True, slots=True)
class DayFacts:
    """A day as it is drawn."""

    entries: Sequence[Entry]
    busy: set[str]
    """The tasks that are busy then."""
    totals: DayTotals
    unlisted: Sequence[Unlisted]
    """Its parts that are not drawn completely."""


def _gather(
    answer: Json, days: Sequence[WallDay], entries: Mapping[date, Sequence[Entry]], visit: Visit
) -> dict[date, DayFacts]:
    counted: dict[date, tuple[int, int]] = {}
    for each in answer.get("counts") or ():
        middle = parse_instant(each["start"]) + timedelta(hours=6)  # its day, also if clocks change at midnight
        day = middle.astimezone(visit.zone).date()
        failed, others = counted.get(day, (0, 0))
        counted[day] = failed + each["failed"], others + each["others"]
    past, future = _find_listed(answer)
    last = parse_instant(answer["ranUntil"]) if answer.get("ranUntil") else None
    facts = {}
    for each in days:
        begin, end = find_start(each.day, visit.zone), find_start(each.day + DAY, visit.zone)
        is_listed = (past is None or begin >= past) and (last is None or end <= last)
        is_past_listed = is_listed or begin >= visit.now or counted.get(each.day) == (0, 0)
        totals = DayTotals(
            count_entries(entries[each.day]),
            counted.get(each.day),
            is_past_listed=is_past_listed,
            is_future_listed=future is None or end <= future,
        )
        unlisted = list(_list_unlisted(each, totals, answer, visit))
        facts[each.day] = DayFacts(entries[each.day], find_busy(entries[each.day]), totals, unlisted)
    return facts


def _find_listed(answer: Json) -> tuple[datetime | None, datetime | None]:
    """Return the start of the complete list of ended runs, and the end of that of due ones. None for no limit."""
    since, until = answer.get("ranFrom"), answer.get("dueUntil")
    return parse_instant(since) if since else None, parse_instant(until) if until else None


def _list_unlisted(day: WallDay, totals: DayTotals, answer: Json, visit: Visit) -> Iterator[Unlisted]:
    """Yield the parts of a day that are not drawn completely, with their counts."""
    begin, end = find_start(day.day, visit.zone), find_start(day.day + DAY, visit.zone)

    def place(at: datetime) -> float:
        return 0.0 if at <= begin else 1.0 if at >= end else day.place(at)

    past, future = _find_listed(answer)
    if past is not None and not totals.is_past_listed:
        left, right = place(begin), place(min(past, end, max(visit.now, begin)))
        said = ", ".join(filter(None, [totals.write_others(), totals.write_failed()]))
        if left < right:
            yield Unlisted(left, right, f"not all drawn: {said}" if totals.ended else "not all drawn")
    if future is not None and not totals.is_future_listed:
        left = place(max(future, begin))
        if left < 1:
            yield Unlisted(left, 1.0, "more is due")


def _build_rows(
    days: Sequence[WallDay], facts: Mapping[date, DayFacts], chosen: WallDay, visit: Visit
) -> tuple[list[Json], str]:
    """Return a row for each day, and the note on bars below them."""
    is_week = len(days) > 1
    today = visit.now.astimezone(visit.zone).date()
    parts, bar = (24, "hour") if is_week else (96, "quarter of an hour")
    bins = {}
    for each in days:
        fact = facts[each.day]
        places = [(each.place(item.at), item.kind) for item in fact.entries if item.task_id in fact.busy]
        bins[each.day] = count_bins(places, parts)
    heights = (max(one.ran + one.skipped + one.late, one.failed, one.due) for row in bins.values() for one in row)
    most = max(heights, default=1) or 1
    rows = []
    for each in days:
        entries, busy, totals = facts[each.day].entries, facts[each.day].busy, facts[each.day].totals
        is_today, address = each.day == today, write_address(visit, "day", each.day)
        chart = draw_day(
            each,
            [_make_mark(item, each.place(item.at), visit) for item in entries if item.task_id not in busy],
            bins[each.day],
            most,
            each.place(visit.now) if is_today else None,
            lanes=_LANES_OF_WEEK if is_week else _LANES_OF_DAY,
            name=f"{each.day:%a} {each.day.day} {each.day:%B}",
            more_href=address if is_week else "#table",
            unlisted=facts[each.day].unlisted,
        )
        rows.append(
            {
                "name": f"{each.day:%a}{BLANK}{each.day.day}",
                "href": address,
                "counts": totals.write_others(),
                "failed": totals.write_failed(),
                "hours": write_hours(each.length) if each.spans else "",
                "isToday": is_today,
                "isChosen": is_week and each is chosen,
                "chart": chart,
            }
        )
    busiest = len(set().union(*(each.busy for each in facts.values())))
    tail = f"Tasks that run more than {BUSY} times a day are bars, one for each {bar}"
    return rows, tail + (f"; here {busiest:,}, at most {most:,} in a bar." if busiest else ".")


def _make_mark(entry: Entry, place: float, visit: Visit) -> Mark:
    title = shorten(entry.title, 40)  # what a row can hold
    return Mark(
        at=place,
        label=f"{entry.at.astimezone(visit.zone):%H:%M} {title}",
        words=f"{entry.title}, {visit.moment(entry.at).text}, {entry.status.word.lower()}",
        href=entry.href,
        is_future=entry.kind not in {"ran", "failed"},
        is_bad=entry.kind == "failed",
    )
