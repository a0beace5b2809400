"""What ran and what is going to run, by week or by day: a row is a day, across is the clock on the wall."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.calendar_chart import HOUR_BINS, QUARTER_BINS, Mark, count_bins, draw_day, draw_hours
from cloudsched.dashboard.calendar_entries import BUSY, find_busy, read_entries
from cloudsched.dashboard.calendar_table import make_table
from cloudsched.dashboard.status import BAD, show_status
from cloudsched.dashboard.times import BLANK, find_clock_changes
from cloudsched.dashboard.visit import Visit, ZoneChoice, zone_choices
from cloudsched.dashboard.wall_clock import DAY, WallDay, find_start, make_day, write_hours

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markupsafe import Markup

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.calendar_entries import Entry
    from cloudsched.dashboard.calendar_table import TableRow

BOUND: Final = 1000
"""How many executions, and how many occurrences, one look asks for at most."""
FILTERS: Final = ("owner", "handler", "label", "status")
_PAGE: Final = 500
_LANES_OF_WEEK, _LANES_OF_DAY = 2, 12
_LISTED: Final = 200
_FIRST_DAY, _LAST_DAY = date(1971, 1, 1), date(9990, 1, 1)
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
    """Its length, if it is not 24 hours."""
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
    table_name: str
    table_note: str
    table: list[TableRow]
    more_rows: int
    spans: list[tuple[str, str, bool]]
    """Day and week: name, address, whether it is shown."""
    before: str
    today: str
    after: str
    filters: dict[str, str]
    kept: list[tuple[str, str]]
    """What of the address a filter form sends along."""
    only_failed: str
    is_only_failed: bool
    tail: str
    zones: list[ZoneChoice]


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API what ran and what will run in the days that are shown, at most `BOUND` of each."""
    first, count, _ = _choose_days(visit)
    room = DAY if _is_in_tasks_zones(visit) else timedelta(0)
    start, end = find_start(first, visit.zone) - room, find_start(first + count * DAY, visit.zone) + room
    wanted = {name: visit.query.get(name, "") for name in FILTERS}
    near = {"from": start.isoformat(), "until": end.isoformat()}
    ran: list[Json] = []
    due: list[Json] = []
    more_ran, more_due, complete_until = False, False, None
    if start <= visit.now:
        ran, more_ran = _fetch_ran(api, near, wanted)
    if end > visit.now - DAY:  # a status is one of what ran: what is to come has none, so it stays
        also = {name: wanted[name] for name in ("owner", "handler", "label")}
        due, more_due, complete_until = _fetch_all(api, "/v1/occurrences", "occurrences", {**near, **also})
    counts = None if wanted["handler"] or wanted["label"] else api.find("/v1/overview", owner=wanted["owner"])
    return {
        "ran": ran,
        "moreRan": more_ran,
        "due": due,
        "moreDue": more_due,
        "completeUntil": complete_until,
        "paused": (counts or {}).get("tasks", {}).get("PAUSED", 0),
    }


def _fetch_ran(api: Api, near: dict[str, str], wanted: dict[str, str]) -> tuple[list[Json], bool]:
    """Return what ran. What timed out has failed, too; and no index has both handler and label, so one is left here."""
    handler = wanted["handler"] if wanted["label"] else ""
    asked = {**near, **wanted, "handler": "" if handler else wanted["handler"]}
    found: list[Json] = []
    has_more = False
    for status in sorted(BAD) if wanted["status"].upper() == "FAILED" else [wanted["status"].upper()]:
        records, more, _ = _fetch_all(api, "/v1/executions", "executions", {**asked, "status": status})
        found += [each for each in records if not handler or each["handler"] == handler]
        has_more |= more
    return found, has_more


def _fetch_all(api: Api, path: str, name: str, query: dict[str, str]) -> tuple[list[Json], bool, str | None]:
    found: list[Json] = []
    token: str | None = ""
    complete_until: str | None = None
    while token is not None and len(found) < BOUND:
        page = api.get(path, **query, pageSize=_PAGE, pageToken=token)
        found += page[name]
        token = page.get("nextPageToken")
        complete_until = complete_until or page.get("completeUntil")
    return found[:BOUND], token is not None or len(found) > BOUND, complete_until


def build(answer: Json, visit: Visit) -> CalendarPage:
    """Return the view model of the API's answers."""
    first, count, is_week = _choose_days(visit)
    is_own = _is_in_tasks_zones(visit)
    days = [make_day(first + index * DAY, visit.zone) for index in range(count)]
    entries: dict[date, list[Entry]] = {each.day: [] for each in days}
    for entry in read_entries(answer, visit, is_own=is_own):
        entries.get(entry.at.astimezone(entry.zone).date(), []).append(entry)
    today = visit.now.astimezone(visit.zone).date()
    chosen = next((each for each in days if each.day == today), next((each for each in days if each.spans), days[0]))
    busy = {each.day: find_busy(entries[each.day]) for each in days}
    parts = HOUR_BINS if is_week else QUARTER_BINS
    bins = {
        each.day: count_bins(
            [(_place(item, each), item.kind) for item in entries[each.day] if item.task_id in busy[each.day]], parts
        )
        for each in days
    }
    most = max((max(part.ran, part.failed, part.due) for row in bins.values() for part in row), default=1) or 1
    rows = []
    for each in days:
        named = [item for item in entries[each.day] if item.task_id not in busy[each.day]]
        name = f"{each.day:%a} {each.day.day} {each.day:%B}"
        address = visit.with_query(day=each.day.isoformat(), week=None)
        chart = draw_day(
            None if is_own else each,
            [_make_mark(item, each, visit, is_own=is_own) for item in named],
            bins[each.day],
            most,
            each.place(visit.now) if each.day == today else None,
            lanes=_LANES_OF_WEEK if is_week else _LANES_OF_DAY,
            name=name,
            more_href=address if is_week else "#table",
        )
        rows.append(_make_row(each, entries[each.day], address, chart, today, is_chosen=is_week and each is chosen))
    table = make_table(entries[chosen.day], busy[chosen.day], visit)
    busiest = len(set().union(*busy.values()))
    step = timedelta(days=7) if is_week else DAY
    return CalendarPage(
        sentence=_write_sentence(days, [item for each in days for item in entries[each.day]], visit),
        notes=list(_write_notes(answer, visit)),
        hours=draw_hours(),
        rows=rows,
        table_name=f"{chosen.day:%A} {chosen.day.day} {chosen.day:%B}",
        table_note=f"{write_hours(chosen.length)}, {len(entries[chosen.day]):,} in all",
        table=table[:_LISTED],
        more_rows=len(table) - _LISTED,
        spans=[
            ("Day", visit.with_query(day=chosen.day.isoformat(), week=None), not is_week),
            ("Week", visit.with_query(week=first.isoformat(), day=None), is_week),
        ],
        before=_to_days(visit, first - step, is_week=is_week),
        today=visit.with_query(week=None, day=None) if is_week else _to_days(visit, today, is_week=False),
        after=_to_days(visit, first + step, is_week=is_week),
        filters={name: visit.query.get(name, "") for name in FILTERS},
        kept=[(name, visit.query[name]) for name in ("week", "day", "tz", "status") if visit.query.get(name)],
        only_failed=visit.with_query(status=None if visit.query.get("status") else "FAILED"),
        is_only_failed=bool(visit.query.get("status")),
        tail=(
            f"Tasks that run more than {BUSY} times a day are bars, one for each "
            f"{'hour' if is_week else 'quarter of an hour'}"
            + (f"; here {busiest:,}, at most {most:,} in a bar." if busiest else ".")
        ),
        zones=_choose_zones(visit, is_own=is_own),
    )


def _choose_days(visit: Visit) -> tuple[date, int, bool]:
    """Return the first day that is shown, how many there are, and whether they are a week."""
    today = visit.now.astimezone(visit.zone).date()
    if (day := _read_day(visit.query.get("day"))) is not None:
        return day, 1, False
    day = _read_day(visit.query.get("week")) or today
    return day - timedelta(days=day.weekday()), 7, True


def _read_day(text: str | None) -> date | None:
    try:
        day = date.fromisoformat(text or "")
    except ValueError:
        return None
    return min(max(day, _FIRST_DAY), _LAST_DAY)


def _to_days(visit: Visit, day: date, *, is_week: bool) -> str:
    shown = day.isoformat()
    return visit.with_query(week=shown if is_week else None, day=None if is_week else shown)


def _is_in_tasks_zones(visit: Visit) -> bool:
    return visit.query.get("tz") == TASKS_ZONE


def _choose_zones(visit: Visit, *, is_own: bool) -> list[ZoneChoice]:
    shared = [replace(each, is_chosen=each.is_chosen and not is_own) for each in zone_choices(visit)]
    own = ZoneChoice("Task's zone", visit.with_query(tz=TASKS_ZONE), is_own)
    return [*shared[:-1], own, shared[-1]] if len(shared) > 1 else [*shared, own]


def _place(entry: Entry, day: WallDay) -> float:
    return (day if entry.zone is day.zone else make_day(day.day, entry.zone)).place(entry.at)


def _make_mark(entry: Entry, day: WallDay, visit: Visit, *, is_own: bool) -> Mark:
    local = entry.at.astimezone(entry.zone)
    zone = f" {entry.zone.key}" if is_own else ""
    title = entry.title if len(entry.title) <= 40 else f"{entry.title[:39]}…"  # noqa: PLR2004 - what a row can hold
    return Mark(
        at=_place(entry, day),
        label=f"{local:%H:%M} {title}{zone}",
        words=f"{entry.title}, {replace(visit, zone=entry.zone).sure(entry.at).text}, {entry.status.word.lower()}",
        href=entry.href,
        is_future=entry.kind == "due",
        is_bad=entry.kind == "failed",
    )


def _make_row(
    day: WallDay, entries: Sequence[Entry], address: str, chart: Markup, today: date, *, is_chosen: bool
) -> DayRow:
    due = sum(each.kind == "due" for each in entries)
    failed = sum(each.kind == "failed" for each in entries)
    ran = len(entries) - due - failed
    said = [f"{ran:,} ran"] * bool(ran) + [f"{due:,} due"] * bool(due)
    return DayRow(
        name=f"{day.day:%a}{BLANK}{day.day.day}",
        href=address,
        counts=", ".join(said) or ("" if failed else "nothing"),
        failed=f"{failed:,} failed" if failed else "",
        hours=write_hours(day.length) if day.spans else "",
        is_today=day.day == today,
        is_chosen=is_chosen,
        chart=chart,
    )


def _write_sentence(days: Sequence[WallDay], entries: Sequence[Entry], visit: Visit) -> str:
    first, last = days[0].day, days[-1].day
    start = f"{first.day} {first:%B}" + (f" {first.year}" if first.year != last.year else "")
    span = f"{start} to {last.day} {last:%B %Y}" if len(days) > 1 else f"{first:%A} {first.day} {first:%B %Y}"
    count = {kind: sum(each.kind == kind for each in entries) for kind in ("ran", "failed", "due")}
    said = [f"{number:,} {word}" for word, number in count.items() if number]
    zone = "each task in its own zone" if _is_in_tasks_zones(visit) else visit.zone.key
    sentences = [f"{span}, {zone}: {', '.join(said) or 'nothing'}."]
    start_at, end_at = find_start(first, visit.zone), find_start(last + DAY, visit.zone)
    for change in find_clock_changes(start_at, end_at, visit.zone):
        after = change.at.astimezone(visit.zone)
        before = (change.at - timedelta(seconds=1)).astimezone(visit.zone) + timedelta(seconds=1)
        direction = "forward" if change.shift > timedelta(0) else "back"
        sentences.append(
            f"Clocks go {direction} on {after:%A}: {before:%H:%M}{BLANK}{before:%z} becomes "
            f"{after:%H:%M}{BLANK}{after:%z}."
        )
    return " ".join(sentences)


def _write_notes(answer: Json, visit: Visit) -> Iterator[str]:
    if answer["moreRan"]:
        yield f"More than {BOUND:,} ran: what failed and the latest are counted. Choose a day, or a filter."
    until = answer["completeUntil"]
    if answer["moreDue"] or until:
        last = answer["due"][-1]["utc"] if answer["moreDue"] and answer["due"] else until
        yield f"From {visit.sure(last).text} on, only the first {BOUND:,} that are due are counted."
    if status := visit.query.get("status"):
        yield f"Of what ran, only what has the status {show_status(status.upper()).word.lower()} is shown."
    if answer["paused"]:
        one = answer["paused"] == 1
        yield f"{answer['paused']:,} paused {'task is' if one else 'tasks are'} not shown."
