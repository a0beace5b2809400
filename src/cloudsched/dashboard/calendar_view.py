"""Past and due runs, by day, week or month. A row is a day, and its width is the wall-clock day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from cloudsched.dashboard.calendar_chart import (
    HOUR_BINS,
    KINDS,
    Mark,
    Unlisted,
    choose_bins,
    choose_part,
    choose_span,
    count_bins,
    draw_day,
    draw_hours,
    is_in,
    make_day_moves,
    place_in,
    write_address,
    write_part,
)
from cloudsched.dashboard.calendar_month import (
    BUSY,
    WEEKDAYS,
    DayTotals,
    Entry,
    MonthDay,
    add_totals,
    build_month,
    count_entries,
    find_busy,
    read_entries,
)
from cloudsched.dashboard.status import BAD, OPEN, Status, show_status
from cloudsched.dashboard.times import (
    BLANK,
    DAY,
    Moment,
    WallDay,
    find_clock_changes,
    find_start,
    make_day,
    parse_instant,
    write_hours,
)
from cloudsched.dashboard.visit import Api, Json, Visit, ZoneChoice, zone_choices
from cloudsched.domain.documents.category import Category

if TYPE_CHECKING:
    from markupsafe import Markup

    from cloudsched.dashboard.chart_axis import Move, Part


@dataclass(frozen=True, slots=True)
class TableRow:
    """A line of the chosen day's table: one occurrence, or all of a busy task's."""

    at: Moment
    utc: str
    title: str
    href: str
    status: Status
    note: str
    change: str
    key: str


_LISTED: Final = 200
"""The number of a day's lines that are shown."""


def make_table(entries: Sequence[Entry], busy: set[str], visit: Visit) -> tuple[list[TableRow], int]:
    """Return the first of a day's lines, the earliest first, and the number of further ones."""
    groups: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in sorted(entries, key=lambda each: (each.at, each.task_id)):
        name = entry.task_id if entry.task_id in busy else f"{entry.at.isoformat()} {entry.href}"
        groups[name].append(entry)
    rows = []
    for key, group in islice(groups.items(), _LISTED):
        first = group[0]
        seen = replace(visit, zone=first.zone)
        last = group[-1].at.astimezone(first.zone)
        bad = sum(each.kind == "failed" for each in group)
        note = f"and {len(group) - 1:,} more until {last:%H:%M}" if len(group) > 1 else ""
        utc = first.at.astimezone(UTC)
        rows.append(
            TableRow(
                at=seen.sure(first.at),
                utc=f"{utc:%a}{BLANK}{utc:%H:%M}{BLANK}UTC",
                title=first.title,
                href=f"tasks/{quote(first.task_id, safe='')}" if len(group) > 1 else first.href,
                status=show_status("FAILED") if bad else first.status,
                note=", ".join(filter(None, [note, f"{bad:,} failed" if bad and len(group) > 1 else ""])),
                change=_describe_fold(first),
                key=key,
            )
        )
    return rows, len(groups) - len(rows)


def _describe_fold(entry: Entry) -> str:
    local = entry.at.astimezone(entry.zone)
    if local.utcoffset() == local.replace(fold=1 - local.fold).utcoffset():
        return ""
    other = local.replace(fold=1 - local.fold)
    if other.astimezone(UTC).astimezone(entry.zone).replace(tzinfo=None) != local.replace(tzinfo=None):
        return ""  # a time next to a gap, not one that comes twice
    return f"the {'second' if local.fold else 'first'} {local:%H:%M} of two"


WEEK: Final = 7
"""A span of this many days has each weekday once."""


def write_sentence(days: Sequence[WallDay], totals: Sequence[DayTotals], zone: str, visit: Visit) -> str:
    """Return the totals of the days, their zone, and their clock changes, in words."""
    first, last = days[0].day, days[-1].day
    start = f"{first.day} {first:%B}" + (f" {first.year}" if first.year != last.year else "")
    span = f"{start} to {last.day} {last:%B %Y}" if len(days) > 1 else f"{first:%A} {first.day} {first:%B %Y}"
    whole = add_totals(totals)
    said = ", ".join(filter(None, [whole.write_others(), whole.write_failed()]))
    sentences = [f"{span}, {zone}: {said}."]
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
        yield f"From {visit.sure(until).text} on, only some of what is due are drawn: the hatched days have more."
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
TASKS_ZONE: Final = "task"
"""The zone in the address in which each task stands at its own wall-clock time."""


@dataclass(frozen=True, slots=True)
class DayRow:
    """A day in the calendar."""

    name: str
    href: str
    counts: str
    failed: str
    hours: str
    """Its length, if that is not 24 hours."""
    is_today: bool
    is_chosen: bool
    chart: Markup


@dataclass(frozen=True, slots=True)
class CalendarPage:
    """The view model."""

    sentence: str
    notes: list[str]
    hours: Markup
    rows: list[DayRow]
    """The days, in the view of a day or a week."""
    month: list[list[MonthDay | None]]
    """The weeks, in the view of a month."""
    month_name: str
    weekdays: tuple[tuple[str, str], ...]
    table_name: str
    table_note: str
    table: list[TableRow]
    more_rows: int
    spans: list[tuple[str, str, bool]]
    """Day, week and month: name, address, whether it is shown."""
    moves: dict[str, Move]
    """The effects of the time axis's keys."""
    filters: dict[str, str]
    category: str
    categories: tuple[str, ...]
    kept: list[tuple[str, str]]
    """The parameters of the address that a filter form sends along."""
    only_failed: str
    is_only_failed: bool
    tail: str
    zones: list[ZoneChoice]


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for each day's counts, and for at most `BOUND` of the executions and of the due occurrences."""
    span = choose_span(visit)
    room = DAY if _is_in_tasks_zones(visit) else timedelta(0)
    start, end = find_start(span.first, visit.zone) - room, find_start(span.end, visit.zone) + room
    wanted = {name: visit.query.get(name, "") for name in FILTERS} | {"category": _read_category(visit)}
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
    """Return the counts of each day. None if the API cannot count: for these filters, or in each task's own zone."""
    if _is_in_tasks_zones(visit) or start >= until or wanted["status"].upper() not in {"", "FAILED"}:
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


def build(answer: Json, visit: Visit) -> CalendarPage:
    """Return the view model of the API's answers."""
    span, is_own = choose_span(visit), _is_in_tasks_zones(visit)
    days = [make_day(each, visit.zone) for each in span.days]
    entries: dict[date, list[Entry]] = {each.day: [] for each in days}
    for entry in read_entries(answer, visit, is_own=is_own):
        entries.get(entry.at.astimezone(entry.zone).date(), []).append(entry)
    today = visit.now.astimezone(visit.zone).date()
    chosen = _choose_day(days, visit)
    part = choose_part(visit, span)
    facts = _gather(answer, days, entries, visit, part)
    listed = [item for item in entries[chosen.day] if is_in(part, _place(item, chosen))]
    table, more_rows = make_table(listed, facts[chosen.day].busy, visit)
    is_month = span.kind == "month"
    zone_words = "each task in its own zone" if is_own else visit.zone.key
    rows, tail = ([], "") if is_month else _build_rows(days, facts, chosen, visit, part)
    addresses = {each.day: write_address(visit, "day", each.day) for each in days}
    return CalendarPage(
        sentence=write_sentence(days, [facts[each.day].totals for each in days], zone_words, visit),
        notes=list(write_notes(answer, visit)),
        hours=draw_hours(part),
        rows=rows,
        month=build_month(days, {day: each.totals for day, each in facts.items()}, today, addresses)
        if is_month
        else [],
        month_name=f"{span.first:%B %Y}",
        weekdays=WEEKDAYS,
        table_name=f"{chosen.day:%A} {chosen.day.day} {chosen.day:%B}",
        table_note=_write_note(len(listed), facts[chosen.day].totals, write_part(part) or write_hours(chosen.length)),
        table=table,
        more_rows=more_rows,
        spans=[(kind.capitalize(), write_address(visit, kind, chosen.day), kind == span.kind) for kind in KINDS],
        moves=make_day_moves(visit, span, part, chosen.day, chosen.place(visit.now) if chosen.day == today else None),
        filters={name: visit.query.get(name, "") for name in FILTERS},
        category=_read_category(visit),
        categories=tuple(Category),
        kept=[(name, visit.query[name]) for name in (*KINDS, "at", "tz", "status") if visit.query.get(name)],
        only_failed=visit.with_query(status=None if visit.query.get("status") else "FAILED"),
        is_only_failed=bool(visit.query.get("status")),
        tail=tail or "All days have one scale: the longest bar is the day with the most.",
        zones=_choose_zones(visit, is_own=is_own),
    )


def _choose_day(days: Sequence[WallDay], visit: Visit) -> WallDay:
    """Return the day whose table is shown: today, one with a clock change, or the first."""
    today = visit.now.astimezone(visit.zone).date()
    return next((each for each in days if each.day == today), next((each for each in days if each.spans), days[0]))


def _write_note(count: int, totals: DayTotals, span: str) -> str:
    is_whole = totals.is_past_listed and totals.is_future_listed
    return f"{span}, {count:,} {'in all' if is_whole else 'of those that are drawn'}"


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
    answer: Json, days: Sequence[WallDay], entries: Mapping[date, Sequence[Entry]], visit: Visit, part: Part
) -> dict[date, DayFacts]:
    """Return the facts to draw for each day."""
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
        unlisted = [] if _is_in_tasks_zones(visit) else list(_list_unlisted(each, totals, part, answer, visit))
        facts[each.day] = DayFacts(entries[each.day], find_busy(entries[each.day]), totals, unlisted)
    return facts


def _find_listed(answer: Json) -> tuple[datetime | None, datetime | None]:
    """Return the start of the complete list of ended runs, and the end of that of due ones. None for no limit."""
    since, until = answer.get("ranFrom"), answer.get("dueUntil")
    return parse_instant(since) if since else None, parse_instant(until) if until else None


def _list_unlisted(day: WallDay, totals: DayTotals, part: Part, answer: Json, visit: Visit) -> Iterator[Unlisted]:
    """Yield the parts of a day that are not drawn completely, with their counts."""
    begin, end = find_start(day.day, visit.zone), find_start(day.day + DAY, visit.zone)

    def place(at: datetime) -> float:
        where = 0.0 if at <= begin else 1.0 if at >= end else day.place(at)
        return min(1.0, max(0.0, place_in(part, where)))

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
    days: Sequence[WallDay], facts: Mapping[date, DayFacts], chosen: WallDay, visit: Visit, part: Part
) -> tuple[list[DayRow], str]:
    """Return a row for each day, and the note on bars below them."""
    is_week, is_own = len(days) > 1, _is_in_tasks_zones(visit)
    today = visit.now.astimezone(visit.zone).date()
    parts, bar = (HOUR_BINS, "hour") if is_week else choose_bins(part)
    shown = {
        each.day: [
            (item, place_in(part, place))
            for item in facts[each.day].entries
            if is_in(part, place := _place(item, each))
        ]
        for each in days
    }
    bins = {
        each.day: count_bins(
            [(place, item.kind) for item, place in shown[each.day] if item.task_id in facts[each.day].busy], parts
        )
        for each in days
    }
    heights = (max(one.ran + one.skipped + one.late, one.failed, one.due) for row in bins.values() for one in row)
    most = max(heights, default=1) or 1
    rows = []
    for each in days:
        named = [(item, place) for item, place in shown[each.day] if item.task_id not in facts[each.day].busy]
        has_now = each.day == today and is_in(part, each.place(visit.now))
        address = write_address(visit, "day", each.day)
        chart = draw_day(
            None if is_own else each,
            [_make_mark(item, place, visit, is_own=is_own) for item, place in named],
            bins[each.day],
            most,
            place_in(part, each.place(visit.now)) if has_now else None,
            lanes=_LANES_OF_WEEK if is_week else _LANES_OF_DAY,
            name=f"{each.day:%a} {each.day.day} {each.day:%B}",
            more_href=address if is_week else "#table",
            part=part,
            unlisted=facts[each.day].unlisted,
        )
        rows.append(
            _make_row(each, facts[each.day].totals, address, chart, today, is_chosen=is_week and each is chosen)
        )
    busiest = len(set().union(*(each.busy for each in facts.values())))
    tail = f"Tasks that run more than {BUSY} times a day are bars, one for each {bar}"
    return rows, tail + (f"; here {busiest:,}, at most {most:,} in a bar." if busiest else ".")


def _read_category(visit: Visit) -> str:
    return visit.query.get("category", "").upper()


def _is_in_tasks_zones(visit: Visit) -> bool:
    return visit.query.get("tz") == TASKS_ZONE


def _choose_zones(visit: Visit, *, is_own: bool) -> list[ZoneChoice]:
    shared = [replace(each, is_chosen=each.is_chosen and not is_own) for each in zone_choices(visit)]
    own = ZoneChoice("Task's zone", visit.with_query(tz=TASKS_ZONE), is_own)
    return [*shared[:-1], own, shared[-1]] if len(shared) > 1 else [*shared, own]


def _place(entry: Entry, day: WallDay) -> float:
    return (day if entry.zone is day.zone else make_day(day.day, entry.zone)).place(entry.at)


def _make_mark(entry: Entry, place: float, visit: Visit, *, is_own: bool) -> Mark:
    local = entry.at.astimezone(entry.zone)
    zone = f" {entry.zone.key}" if is_own else ""
    title = entry.title if len(entry.title) <= 40 else f"{entry.title[:39]}…"  # noqa: PLR2004 - what a row can hold
    return Mark(
        at=place,
        label=f"{local:%H:%M} {title}{zone}",
        words=f"{entry.title}, {replace(visit, zone=entry.zone).sure(entry.at).text}, {entry.status.word.lower()}",
        href=entry.href,
        is_future=entry.kind not in {"ran", "failed"},
        is_bad=entry.kind == "failed",
    )


def _make_row(day: WallDay, totals: DayTotals, address: str, chart: Markup, today: date, *, is_chosen: bool) -> DayRow:
    return DayRow(
        name=f"{day.day:%a}{BLANK}{day.day.day}",
        href=address,
        counts=totals.write_others(),
        failed=totals.write_failed(),
        hours=write_hours(day.length) if day.spans else "",
        is_today=day.day == today,
        is_chosen=is_chosen,
        chart=chart,
    )
