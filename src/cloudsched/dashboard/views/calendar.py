"""The calendar: what ran and what is due in a day, a week or a month. Each number leads to the list that it counts."""

from __future__ import annotations

import operator
from calendar import day_abbr
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import reduce
from itertools import groupby
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from cloudsched.dashboard.charts import RunPart, draw_bars, fetch_due, read_parts
from cloudsched.dashboard.filters import DUE, WINDOWS, find_window, name_parameters, read_filters, show_filters
from cloudsched.dashboard.status import say_halts
from cloudsched.dashboard.times import DAY, find_clock_changes, find_start, parse_instant
from cloudsched.dashboard.views.tasks import PAGE_SIZE
from cloudsched.dashboard.words import SKIPPED_TOGETHER, add_counts, join_phrases, only_if
from cloudsched.domain.responses.count import Count

if TYPE_CHECKING:
    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

_FIRST_DAY: Final = date(1971, 1, 1)
_LAST_DAY: Final = date(9990, 1, 1)


@dataclass(frozen=True, slots=True)
class _Grain:
    """How a span of days is divided into rows, and these into bars, by the wall clock."""

    per: str
    """The length of a bar, as the API counts."""
    find_row: Callable[[datetime], Hashable]
    """Returns what the instants of one row have in common."""
    find_place: Callable[[datetime], int]
    """Returns the number of an instant's bar in its row."""
    places: int
    """The number of bars in a row."""
    axis: Sequence[str]
    within: str | None
    """The span that a row leads to."""


_GRAINS: Final = {
    "day": _Grain(
        "PT15M",
        lambda at: (at.hour, at.utcoffset()),
        lambda at: at.minute // 15,
        4,
        (":00", ":15", ":30", ":45"),
        None,
    ),
    "week": _Grain("PT1H", datetime.date, lambda at: at.hour, 24, ("00:00", "06:00", "12:00", "18:00"), "day"),
    "month": _Grain(
        "P1D", lambda at: at.date() - at.weekday() * DAY, lambda at: at.weekday(), 7, tuple(day_abbr), "week"
    ),
}
PARAMETERS: Final = tuple(_GRAINS)


@dataclass(frozen=True, slots=True)
class DaySpan:
    """The days that are shown."""

    kind: str
    first: date
    end: date
    """The day after the last one."""


def choose_span(visit: Visit) -> DaySpan:
    """Return the day, the week from Monday, or the month that the address names, or this week. See `require_times`."""
    kind = next((each for each in ("day", "month") if visit.query.get(each)), "week")
    text = visit.query.get(kind) or visit.now.astimezone(visit.zone).date().isoformat()
    day = date.fromisoformat(f"{text}{only_if(kind == 'month', '-01')}")
    day = min(max(day, _FIRST_DAY), _LAST_DAY)
    if kind == "day":
        return DaySpan(kind, day, day + DAY)
    if kind == "week":
        first = day - day.weekday() * DAY
        return DaySpan(kind, first, first + 7 * DAY)
    first = day.replace(day=1)
    return DaySpan(kind, first, (first + timedelta(days=32)).replace(day=1))


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for the numbers of each part of the days."""
    span = choose_span(visit)
    start, end = find_start(span.first, visit.zone), find_start(span.end, visit.zone)
    parts = {"per": _GRAINS[span.kind].per, "timezone": visit.zone.key}
    found = fetch_due(api, visit, start, end, **parts)
    if start <= visit.now:
        until = min(end, parse_instant(visit.soonest))
        near = {"from": start.isoformat(), "until": until.isoformat()}
        found["ran"] = api.get("/v1/executions/counts", **near, **parts)["parts"]
    return {"parts": found}


def build(answer: Json, visit: Visit) -> Json:
    """Return what the calendar shows."""
    span = choose_span(visit)
    grain = _GRAINS[span.kind]

    def find_row(at: datetime) -> Hashable:
        return grain.find_row(at.astimezone(visit.zone))

    def find_bar(at: datetime) -> Hashable:
        return find_row(at), grain.find_place(at.astimezone(visit.zone))  # an hour that comes twice is one bar

    parts = read_parts(answer["parts"], find_bar)
    rows = [[*row] for _, row in groupby(parts, lambda each: find_row(each.start))]
    most = max(each.height for each in parts)
    today = visit.now.astimezone(visit.zone).date()
    chosen = today if span.first <= today < span.end else span.first
    return {
        "sentence": _write_sentence(span, visit),
        "numbers": [*reduce(operator.add, parts).list_numbers(visit)],
        "axis": grain.axis,
        "scale": join_phrases(
            only_if(most, f"A full bar is {most:,}; what was skipped may be more."),
            only_if(
                "ran" in answer["parts"],
                f"Open runs, and those offered to workers, are not counted. {SKIPPED_TOGETHER}",
            ),
            separator=" ",
        ),
        "rows": [_build_row(row, grain, most, visit) for row in rows],
        "moves": (
            ("← Before", "ArrowLeft", _write_address(visit, span.kind, span.first - DAY)),
            ("Today", "0 t", _write_address(visit, span.kind, today)),
            ("After →", "ArrowRight", _write_address(visit, span.kind, span.end)),
        ),
        "spans": [(kind.capitalize(), _write_address(visit, kind, chosen), kind == span.kind) for kind in _GRAINS],
    }


def _build_row(parts: Sequence[RunPart], grain: _Grain, most: int, visit: Visit) -> Json:
    whole = reduce(operator.add, parts)
    local = whole.start.astimezone(visit.zone)
    name, href = visit.moment(whole.start).clock, ""
    if grain.within:
        name, href = f"{local:%a} {local.day} {local:%b}", _write_address(visit, grain.within, local.date())
    places = [
        (place / grain.places, (place + 1) / grain.places, each)
        for each in parts
        for place in [grain.find_place(each.start.astimezone(visit.zone))]
    ]
    return {
        "name": name,
        "href": href,
        "isNow": whole.start <= visit.now < whole.end,
        "numbers": [*whole.list_numbers(visit)],
        "chart": draw_bars(places, most, name, visit),
    }


def _write_address(visit: Visit, kind: str, day: date) -> str:
    """Return the address of the day, week or month that contains a day."""
    text = f"{day:%Y-%m}" if kind == "month" else day.isoformat()
    return visit.with_query(**{**dict.fromkeys(_GRAINS), kind: text})


def _write_sentence(span: DaySpan, visit: Visit) -> str:
    """Return the days in words, with their zone and their clock changes."""
    first, last = span.first, span.end - DAY
    days = f"{first:%A} {first.day} {first:%B %Y}"
    if first < last:
        days = f"{first.day} {first:%B} to {last.day} {last:%B %Y}"
    changes = find_clock_changes(find_start(first, visit.zone), find_start(span.end, visit.zone), visit.zone)
    said = [f" Clocks go {each.direction}: {each.write_clocks(visit.zone)}." for each in changes]
    return f"{days}, {visit.zone.key}.{''.join(said)}"


DUE_PARAMETERS: Final = name_parameters(DUE)


def list_due(visit: Visit) -> tuple[str, dict[str, str | None]]:
    """Return the list of the API that the view shows a page of, and its filters."""
    found = read_filters(visit, DUE)
    length = find_window(found) or WINDOWS["PT12H"][1]
    found.pop("within", None)
    return "/v1/occurrences", {"from": visit.soonest, "until": (visit.now + length).isoformat(), **found}


def fetch_rows(api: Api, visit: Visit) -> Json:
    """Ask the API for a page of occurrences, for the number of all of them, and for what nothing would run."""
    path, asked = list_due(visit)
    page = api.get(path, **asked, pageSize=PAGE_SIZE, pageToken=visit.query.get("page"))
    counted = api.find(f"{path}/counts", **asked, per="P1D")
    return {
        **page,
        "asked": asked,
        "counted": counted,
        "overview": api.find("/v1/overview", owner=asked.get("owner")),
    }


def build_rows(answer: Json, visit: Visit) -> Json:
    """Return what the list of due occurrences shows."""
    asked = answer["asked"]
    rows = [_build_due(each, visit) for each in answer["occurrences"]]
    count = Count(value=len(rows), at_least=True)  # of more days than the API counts
    if answer["counted"]:
        count = add_counts(each["due"] for each in answer["counted"]["parts"])
    is_over = parse_instant(asked["until"]) <= parse_instant(visit.soonest)
    nouns = ("run is", "runs are")
    if is_over:
        nouns = "run has not started that was", "runs have not started that were"
    elif asked["from"] != visit.soonest and parse_instant(asked["from"]) < visit.now:
        nouns = "run has not started that was or is", "runs have not started that were or are"
    said = count.write(*nouns)
    since = "after" if asked["from"] == visit.soonest else "from"
    window = f"{since} {visit.moment(asked['from']).text} until {visit.moment(asked['until']).text}"
    note = only_if(is_over, "Runs offered to workers are not among them, but on Queues.")
    if cut := answer.get("completeUntil"):
        note = f"The list has only some of what is due after {visit.moment(cut).text}: too many tasks are due before."
    return {
        "title": "Due",
        "sentence": f"{said} due {window}.",
        "note": note,
        "halts": say_halts(answer, rows),
        "rows": rows,
        "filters": show_filters(visit, DUE),
        "nothing": "None of it is listed." if note else "Nothing is due in this time.",
        "next": answer.get("nextPageToken"),
    }


def _build_due(row: Json, visit: Visit) -> Json:
    """Return an occurrence, and the address to move it. That is empty if it cannot be."""
    may_move = visit.may_change and parse_instant(row["utc"]) > visit.now
    move = f"tasks/{row['taskId']}?{urlencode({'move': parse_instant(row['utc']).isoformat()})}#acts"
    return {**row, "move": only_if(may_move, move)}
