"""The calendar: where instants lie in a day, what is busy, and what finds room."""

from __future__ import annotations

import re
import uuid
from datetime import date, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dashboard.conftest import NOW, get, look, send, visit
from tests.web.callers import HOUR

from cloudsched.dashboard.api import Json
from cloudsched.dashboard.calendar import view as calendar_view
from cloudsched.dashboard.calendar.day_chart import DayBar, DayRow, draw_day
from cloudsched.dashboard.calendar.entries import Bin, Entry
from cloudsched.dashboard.calendar.labels import TIERS, OccurrenceMark, Placed, measure, place_marks
from cloudsched.dashboard.calendar.view import make_table
from cloudsched.dashboard.status import show_status
from cloudsched.dashboard.times import DAY, find_start, make_day
from cloudsched.local.stack import Stack

ZONES = st.sampled_from(
    [
        "Europe/Paris",
        "America/New_York",
        "Australia/Lord_Howe",
        "America/Havana",
        "America/St_Johns",
        "Asia/Beirut",
        "UTC",
    ]
).map(ZoneInfo)
DAYS = st.one_of(
    st.dates(date(1990, 1, 1), date(2035, 12, 31)),
    st.sampled_from([date(2027, 3, 28), date(2027, 10, 31), date(2027, 11, 7), date(2010, 11, 7), date(2027, 4, 4)]),
)
MARKS = st.lists(
    st.builds(
        lambda at, size, kind, late: OccurrenceMark(
            at,
            "x" * size,
            lambda: "words",
            "tasks/x",
            kind,
            started=late and min(1.0, at + late),
        ),
        st.floats(0, 1),
        st.integers(6, 48),
        st.sampled_from(["ran", "failed", "open", "offered"]),
        st.none() | st.floats(0.01, 1),
    ),
    max_size=30,
)


@given(DAYS, ZONES)
def test_what_is_later_is_not_further_left(day: date, zone: ZoneInfo) -> None:
    """All instants of a day lie in its row, in their order, also in an hour that comes twice; none in a skipped one."""
    wall = make_day(day, zone)
    start = find_start(day, zone) - 3 * HOUR
    instants = [start + timedelta(minutes=7 * step) for step in range(300)]
    ours = [at for at in instants if at.astimezone(zone).date() == day]
    places = [wall.place(at) for at in ours]
    assert places == sorted(places)
    for one, other in pairwise(places):
        assert one < other
    assert all(0 <= place <= 1 for place in places)
    for span in wall.spans:
        if span.is_skipped:
            assert not any(span.start / DAY < place < span.end / DAY for place in places)


@given(DAYS, ZONES)
def test_a_day_is_as_long_as_it_is(day: date, zone: ZoneInfo) -> None:
    """Its length is how many of its minutes there are."""
    start = find_start(day, zone) - 3 * HOUR
    minutes = sum((start + timedelta(minutes=minute)).astimezone(zone).date() == day for minute in range(32 * 60))
    assert make_day(day, zone).length == timedelta(minutes=minutes)


@given(MARKS, st.one_of(st.none(), st.floats(0, 1)), st.integers(1, 4), st.integers(0, 3), st.integers(0, 500))
def test_labels_never_meet(marks: list[OccurrenceMark], now: float | None, lanes: int, tier: int, more: int) -> None:
    """At no width does a label lie on another, on a failed cross or on the now line.

    Nothing is lost: what is not shown is counted, and what failed or is open is always there.
    """
    placed, left_out = place_marks(marks, now, lanes)
    width = TIERS[tier] + more
    seen = [each for each in placed if each.tier <= tier < each.until]
    assert len(seen) + left_out[tier] == len(marks)
    for kind in ("failed", "open", "offered"):
        assert sum(each.kind == kind for each in marks) == sum(each.mark.kind == kind for each in seen)
    for lane in range(lanes):
        mine = [each for each in seen if each.lane == lane]
        if not any(each.has_label for each in mine):
            continue  # crosses that have room nowhere else
        spans = [_span(each, width) for each in mine]
        tails = [(each.mark.started or 0) * width for each in mine]
        ends = sorted((start, max(end, tail)) for (start, end), tail in zip(spans, tails, strict=True))
        assert all(one[1] <= other[0] for one, other in pairwise(ends)), "a tail strikes no other label"
        if now is not None:
            assert not any(start + 6.1 < now * width < end - 6.1 for start, end in spans)
    assert not any(each.has_label for each in seen if each.lane == lanes), (
        "crosses without labels have a lane of theirs"
    )


def test_what_failed_has_its_name_wherever_there_is_room() -> None:
    """On a screen too narrow for it, it is a bare cross; each shows it once. No success has that room instead."""
    failed = OccurrenceMark(0.1, "x" * 55, lambda: "words", "tasks/x", "failed")
    succeeded = OccurrenceMark(0.3, "x" * 10, lambda: "words", "tasks/x", "ran")
    for others in ([], [succeeded]):
        placed, _ = place_marks([*others, failed], None, 1)
        mine = [each for each in placed if each.mark is failed]
        told = [[each.has_label for each in mine if each.tier <= tier < each.until] for tier in range(len(TIERS))]
        assert told == [[False], [True], [True], [True]]


def test_an_open_run_has_its_mark_in_a_crowded_day() -> None:
    """It is the one to look after, so others give way to it."""
    marks = [OccurrenceMark(0.2, "x" * 20, lambda: "words", f"tasks/{n}", "ran") for n in range(9)]
    placed, left_out = place_marks([*marks, OccurrenceMark(0.2, "x" * 20, lambda: "", "tasks/open", "open")], None, 2)
    assert "tasks/open" in {each.mark.href for each in placed}
    assert left_out[-1] == 8


def _span(each: Placed, width: float) -> tuple[float, float]:
    label = 9 + measure(each.mark.label) if each.has_label else 6
    at = each.mark.at * width
    return (at - label, at + 6) if each.is_left else (at - 6, at + label)


def occurrence(at: str, task: str = "t") -> Json:
    return {"utc": at, "taskId": task, "title": task.upper()}


def answer(*due: Json, **more: object) -> Json:
    nothing = {"ran": [], "moreRan": False, "counts": None, "offered": [], "dueUntil": None, "paused": 0}
    return {**nothing, "due": list(due), **more}


def test_a_clock_change_is_said_in_words_and_at_its_day() -> None:
    """The sentence names it, the day says 23 or 25 hours, and which of two equal times is meant is said."""
    spring = calendar_view.build(answer(), look(week="2027-03-28"))
    text = spring["sentence"].replace("\N{NO-BREAK SPACE}", " ")
    assert "Clocks go forward on Sunday: 02:00 +0100 becomes 03:00 +0200." in text
    assert [row["hours"] for row in spring["rows"]] == [""] * 6 + ["23 hours"]
    assert "url(#gapped)" in spring["rows"][6]["chart"]
    text = calendar_view.build(answer(), look(week="2027-10-25"))["sentence"].replace("\N{NO-BREAK SPACE}", " ")
    assert "Clocks go back on Sunday: 03:00 +0200 becomes 02:00 +0100." in text
    twice = [occurrence("2027-10-31T00:30:00Z"), occurrence("2027-10-31T01:30:00Z")]
    autumn = calendar_view.build(answer(*twice), look(day="2027-10-31"))
    assert "25 hours" in autumn["tableNote"]
    assert [row["change"] for row in autumn["table"]] == ["the first 02:30 of two", "the second 02:30 of two"]


@pytest.mark.parametrize("text", ["", "soon", "2027-02-30", "0001-01", "0001-01-01", "9999-12", "9999-12-31", "-1"])
@pytest.mark.parametrize("name", ["month", "week", "day"])
def test_any_text_in_the_address_shows_some_days(name: str, text: str) -> None:
    """What is no day shows this week; what lies beyond the calendar shows its end."""
    page = calendar_view.build(answer(), look(**{name: text}))
    assert len(page["rows"]) in {1, 7} or len(page["month"]) > 3


def ended(at: str, status: str = "SUCCEEDED", task: str = "t") -> Json:
    return {"id": at, "taskId": task, "title": task.upper(), "status": status, "scheduledFor": at}


def test_paused_tasks_are_named_only_where_something_is_to_come(stack: Stack, ui: str) -> None:
    """What they ran before is shown, so a day that is over leaves nothing out."""
    name = f"idle-{uuid.uuid4().hex[:8]}"
    task = {"id": name, "owner": name, "handler": "report", "schedule": {"at": "2030-01-01T00:00:00Z"}}
    assert send(f"{stack.url}/v1/tasks", task).ok
    assert send(f"{stack.url}/v1/tasks/{name}/pause").ok
    for day, is_told in (("2027-03-25", False), ("2027-03-27", True), ("2027-03-28", True)):
        text = get(f"{ui}/calendar", day=day, owner=name).text
        assert ("1 paused task are not shown" in text) == is_told, day


def test_what_nobody_has_begun_is_late_and_not_due() -> None:
    """An instant in the past is no promise: in the row, the table, and the words; what was passed over did not run."""
    page = calendar_view.build(
        answer(
            occurrence("2027-03-27T09:00:00Z"),
            occurrence("2027-03-27T18:00:00Z"),
            ran=[ended("2027-03-27T08:00:00Z", "SKIPPED")],
        ),
        look(day="2027-03-27"),
    )
    assert "1 skipped, 1 not started, 1 due" in page["sentence"]
    assert [row["status"].word for row in page["table"]] == ["Skipped", "Not started", "Due"]


@pytest.mark.parametrize("span", [{"day": "2027-03-27"}, {"week": "2027-03-22"}, {"month": "2027-03"}])
def test_what_is_late_never_looks_due(span: dict[str, str]) -> None:
    """Its mark, its part of a bar and of a month's day, and its entry in the legend are its own."""
    part = {"start": "2027-03-27T09:00:00Z", "end": "2027-03-27T09:15:00Z", "due": 9}
    found = answer(occurrence("2027-03-27T09:00:00Z"), counts=[], lateCounts=[part], dueCounts=[])
    page = calendar_view.build(found, look(**span))
    words = [each.word for each in page["legend"]]
    assert [each for each in words if "not started" in each]
    assert not [each for each in words if "due" in each]


def test_a_busy_task_that_is_late_says_so_in_the_table() -> None:
    """What it is late with and what is yet to come have a line each, which says until when."""
    due = [occurrence(f"2027-03-27T{hour:02}:00:00Z") for hour in range(12, 22)]
    lines = calendar_view.build(answer(*due), look(day="2027-03-27"))["table"]
    assert [(each["status"].word, each["count"]) for each in lines] == [("Not started", 3), ("Due", 7)]
    assert lines[0]["note"] == "and 2 more until 15:00"


KINDS = st.sampled_from(["ran", "failed", "skipped", "open", "offered", "late", "due"])
ENTRIES = st.lists(
    st.builds(
        lambda hours, task, kind, handler: Entry(
            NOW + (1 if kind == "due" else -1) * timedelta(hours=hours),
            f"t{task}",
            "T",
            f"tasks/t{task}/{hours}",
            show_status("SUCCEEDED"),
            kind,
            handler=f"h{handler}",
        ),
        st.integers(0, 12),
        st.integers(0, 9),
        KINDS,
        st.integers(0, 2),
    ),
    max_size=60,
)


@given(ENTRIES, st.sets(st.integers(0, 9)), st.integers(1, 30))
def test_a_short_table_has_what_needs_somebody(entries: list[Entry], busy: set[int], most: int) -> None:
    """No run that ended or is due takes the place of what failed, is late or open, and no other that of a busy task."""
    names = {f"t{each}" for each in busy}
    whole, shown = (make_table(entries, names, visit(), size) for size in (10_000, most))
    assert shown == [each for each in whole if each in shown], "in their order"
    assert len(shown) == min(most, len(whole))
    assert sum(each["count"] for each in whole) == len(entries)
    if len(shown) < len(whole):
        keys = [each["key"] for each in shown]
        missing = [each["key"] for each in whole if each["key"] not in keys]
        worst = [min(_rank(each, key, names) for each in entries) for key in missing]
        assert max(min(_rank(each, key, names) for each in entries) for key in keys) <= min(worst)


def _rank(entry: Entry, key: str, busy: set[str]) -> int:
    """Return how urgent an entry is, if it belongs to a line of a table."""
    if entry.task_id in busy:
        phase = {"late": " late", "due": " due"}.get(entry.kind, "")
        rank, name = 2, f"{entry.task_id}{phase}"
    else:
        rank, name = 3, f"{entry.at.isoformat()} {entry.href}"
    if name != key:
        return 9
    return {"failed": 0, "late": 0, "open": 1, "offered": 1}.get(entry.kind, rank)


def test_a_short_table_has_the_latest_failures_of_each_handler() -> None:
    """Hundreds of one handler do not hide the only one of another, which does not hide the latest of these."""
    times = [f"2027-03-27T0{n // 60}:{n % 60:02}:00Z" for n in range(180)]
    many = [{**ended(at, "FAILED", f"t{n}"), "handler": "feed"} for n, at in enumerate(times)]
    payroll = {**ended("2027-03-27T00:00:00Z", "FAILED", "payroll"), "handler": "payroll"}
    page = calendar_view.build(answer(ran=[*many, payroll]), look(day="2027-03-27"))
    titles = [each["title"] for each in page["table"]]
    assert titles == ["PAYROLL", *(f"T{n}" for n in range(131, 180))]


def test_the_week_shows_past_and_future(ui: str) -> None:
    """Of the demo's week: what failed and ran, and on Sunday what is due, an hour later by the clock change."""
    week = {"week": "2027-03-22", "tz": "Europe/Paris"}
    text = get(f"{ui}/calendar", **week).text
    assert "Weekday report, Fri\N{NO-BREAK SPACE}26" in text
    assert "23 hours" in text
    assert "03:30 Sync catalogue" in text
    only = get(f"{ui}/calendar", week="2027-03-22", owner="shop").text
    assert "Weekday report" not in only
    failed = get(f"{ui}/calendar", **week, status="FAILED").text
    assert "Only past runs with the status failed are shown" in failed
    assert "Weekday report, Fri" not in failed  # which ran
    assert "Weekday report, Mon" not in failed  # likewise
    assert "03:30 Sync catalogue" in failed  # which is due


def test_a_category_hides_other_tasks(ui: str) -> None:
    """In the past and the future; with a label as well, both must match; one that there is not is a bad request."""
    for week in ("2027-03-29", "2027-03-22"):
        asked = {"week": week, "tz": "Europe/Paris"}
        others = get(f"{ui}/calendar", **asked, category="others").text
        assert "Weekday report" in others
        assert '<option value="OTHERS" selected>' in others
        for more in ({}, {"label": "team=sales"}, {"handler": "report"}):
            hidden = get(f"{ui}/calendar", **asked, **more, category="REPORT")
            assert hidden.status_code == 200
            assert "Weekday report" not in hidden.text
        both = {**asked, "label": "team=sales", "handler": "report", "category": "OTHERS"}
        assert "Weekday report" in get(f"{ui}/calendar", **both).text
    assert get(f"{ui}/calendar", category="news").status_code == 400


def test_what_was_skipped_is_counted_whole_and_has_its_own_word() -> None:
    """A record that stands for 400 occurrences says so, and is neither due nor a success."""
    covers = {"count": 400, "until": "2027-03-25T06:39:00Z"}
    skipped = {**ended("2027-03-25T00:00:00Z", "SKIPPED"), "covers": covers, "finishedAt": "2027-03-25T06:39:01Z"}
    page = calendar_view.build(answer(ran=[skipped]), look(week="2027-03-22"))
    assert "400 skipped" in page["sentence"]
    row = next(each for each in page["table"] if each["title"]) if page["table"] else None
    day = calendar_view.build(answer(ran=[skipped]), look(day="2027-03-25"))["table"]
    row = row or day[0]
    assert row["status"].word == "Skipped"
    assert "399 more" in row["note"]


def test_the_folded_row_of_a_busy_task_says_how_many_started_late() -> None:
    """Runs of a busy task that succeeded hours too late are not only said to have succeeded."""
    late = [
        {**ended(f"2027-03-25T00:{minute:02}:00Z", "SUCCEEDED"), "startedAt": "2027-03-25T04:00:00Z"}
        for minute in range(30)
    ]
    (line,) = calendar_view.build(answer(ran=late), look(day="2027-03-25"))["table"]
    assert "30 started late" in line["note"]


@pytest.mark.parametrize("listed_until", [None, "2027-03-28T10:00:00Z"])
def test_a_sample_of_what_is_due_has_no_marks(listed_until: str | None) -> None:
    """Where the list has only the first of all that is due, bars alone show it. Days before its end have marks."""
    parts = [
        {"start": f"2027-03-{day}T10:00:00Z", "end": f"2027-03-{day}T11:00:00Z", "due": due}
        for day, due in ((27, 20), (28, 900))
    ]
    due = [occurrence("2027-03-27T16:00:00Z"), occurrence("2027-03-28T10:00:00Z")]
    found = answer(*due, dueCounts=parts, dueListedUntil=listed_until)
    page = calendar_view.build(found, look(week="2027-03-22"))
    saturday, sunday = (each["chart"] for each in page["rows"][-2:])
    assert "17:00 T" in saturday
    assert ("12:00 T" in sunday) == (listed_until is None)
    assert '<path class="o"' in sunday


@given(st.floats(0.001, 0.999), st.integers(0, 99), st.integers(0, 99), st.integers(1, 99))
def test_now_divides_the_bar_of_the_present_hour(now: float, ran: int, failed: int, due: int) -> None:
    """What ended lies before the line, and what is due after it."""
    hour = int(now * 24)
    bar = DayBar(hour / 24, (hour + 1) / 24, Bin(ran, failed, due), "runs", "words")
    day = make_day(date(2027, 3, 24), ZoneInfo("Europe/Paris"))
    row = DayRow(day=day, name="Wed", marks=[], bars=[bar], most=99, now=now, lanes=2, more_href="")
    boxes = re.findall(r'class="(f-past|f-fail|o)" d="M(\d+) \d+h(\d+)', draw_day(row))
    assert len(boxes) == (ran > 0) + (failed > 0) + 1
    gap = 0.05 / 24
    for css, left, width in boxes:
        if css == "o":
            assert int(left) / 9600 > min(now, (hour + 1) / 24 - 2 * gap) - gap
        else:
            assert (int(left) + int(width)) / 9600 < max(now, hour / 24 + 2 * gap) + gap


def test_a_cut_table_says_how_many_failures_it_has() -> None:
    """The rare ones are listed among the latest of others: nobody takes them for all."""
    part = {"start": "2027-03-25T05:00:00Z", "end": "2027-03-25T05:15:00Z", "ran": 9, "failed": 80, "skipped": 0}
    ran = [ended(f"2027-03-25T05:0{n}:00Z", "FAILED", f"t{n}") for n in range(3)]
    page = calendar_view.build(answer(ran=ran, counts=[part], moreRan=True), look(day="2027-03-25"))
    assert page["rest"]["words"].startswith("3 of 89 are listed, among them 3 of 80 failures")


def test_a_busy_task_gives_way_to_what_fails_rarely() -> None:
    """A handler that fails for many tasks has bars, and payroll its mark."""
    many = [{**ended(f"2027-03-25T0{n % 9}:00:00Z", "FAILED", f"t{n}"), "handler": "broken"} for n in range(60)]
    payroll = {**ended("2027-03-25T05:30:00Z", "FAILED", "payroll"), "handler": "payroll"}
    page = calendar_view.build(answer(ran=[*many, payroll]), look(week="2027-03-22"))
    chart = next(each["chart"] for each in page["rows"] if "Thu" in each["name"])
    assert "tasks/payroll/" in chart
    assert "tasks/t1/" not in chart
