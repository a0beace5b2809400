"""What is overdue, since an open run blocks it, is not what is due next."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import requests
from tests.dashboard.conftest import START, get, make_app, send
from tests.web.callers import DAY, HOUR, MINUTE

from cloudsched.emulator.runtime.clock import MovableClock
from cloudsched.local.stack import Stack, run_stack

HOURLY = {"rrule": "FREQ=HOURLY", "dtstart": START.replace(tzinfo=None).isoformat(), "timezone": "UTC"}
GPU = {"queue": "gpu"}


@contextmanager
def run_until(hours: float, *, is_paused: bool = False, **fields: Any) -> Iterator[Stack]:
    """Let a task be for so many hours, in which its queue may be paused."""
    with run_stack(make_app(), store="sqlite", clock=MovableClock(START, frozen=True)) as stack:
        if is_paused:
            queue = f"{stack.url}/v1/dispatch-queues/cloudsched"
            assert requests.patch(queue, json={"state": "PAUSED"}, timeout=60).ok
        task = {"id": "t", "owner": "ada", "title": "T", "handler": "report", **fields}
        assert send(f"{stack.url}/v1/tasks", task).ok
        stack.mover.move({"advanceTo": (START + timedelta(hours=hours)).isoformat()})
        yield stack


def read(stack: Stack, path: str) -> str:
    return get(f"{stack.url}/ui/{path}").text


def explain(url: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = get(f"{url}/v1/tasks/t/explain").json()["findings"]
    return found


def test_home_names_what_is_to_come() -> None:
    """A run that waits for a worker leaves its task's next occurrences behind; the clock is not moved back to them."""
    with run_until(5.5, schedule=HOURLY, pull=GPU) as stack:
        found = get(f"{stack.url}/v1/tasks/t").json()
        assert found["nextExecutionTime"] < "2027-03-20T13:00:00Z", "it is overdue"
        home = read(stack, "").replace("\N{NO-BREAK SPACE}", " ")
    assert "Next: T, in 30 min" in home
    assert 'name="to" value="2027-03-20T13:30:00+00:00"' in home
    due = home.partition("<caption>Due next")[2].partition("</table>")[0]
    assert re.findall(r'data-abs="[^"]*">([^<]*)<', due) == ["in 30 min"]
    assert (late := re.search(r"(\d+) more were due and have not started", home)), "it counts what has not started"
    assert f", {late[1]} not started. " in home, "in both sentences"
    assert sum(map(int, re.findall(r"<title>\d\d:00 (\d+) not started", home))) == int(late[1]), "and draws it"


def test_a_run_that_waits_for_a_worker_is_told_before_it_is_recorded() -> None:
    """The task's page knows of it, and says once that the task is paused and then waits for nobody."""
    with run_until(1 / 12, pull=GPU) as stack:
        page = read(stack, "tasks/t")
        assert "Nothing has run yet: a run waits for a worker." in page
        assert send(f"{stack.url}/v1/tasks/t/pause").ok
        summary = " ".join(each["sentence"] for each in explain(stack.url))
        assert "waits for a worker on the queue 'gpu' once its task is resumed" in summary
        assert summary.lower().count("paused") == 1


def test_a_run_that_no_worker_has_taken_waits_on_each_calendar() -> None:
    """It has no record and is no longer due, and is counted and listed once. It is open after it was tried.

    On Home, its queue has the same mark.
    """
    with run_until(1 / 12, title="Render", pull=GPU) as stack:
        for query in ("day=2027-03-20", "week=2027-03-15", "month=2027-03", "owner=ada&handler=report"):
            page = read(stack, f"calendar?{query}")
            assert "1 waits for a worker" in page, query
            assert "1 open" not in page
            assert '#s-offer"' in page
            assert re.search(r'<a href="[^"]*/tasks/t" data-row>Render</a>', page)
        for query in ("owner=bob", "handler=other", "status=FAILED"):
            assert "1 waits" not in read(stack, f"calendar?{query}"), query
        assert '#s-offer"' in read(stack, "")
        assert send(f"{stack.url}/v1/queues/gpu/claim", {"worker": "w"}).ok
        assert "1 open" in read(stack, "calendar?day=2027-03-20")


def test_what_is_late_since_yesterday_is_in_the_calendar_of_yesterday() -> None:
    """Its table names it, and leads to all that is late; the list of that time does not call it due.

    What is due more often than its marks show has a line, too, also where it is too much to be listed.
    """
    rarely = {"rrule": "FREQ=HOURLY;INTERVAL=5", "dtstart": "2027-03-20T08:00:00", "timezone": "UTC"}
    often: dict[str, Any] = {"owner": "ada", "title": "often", "handler": "report", "pull": GPU}
    often["schedule"] = {**rarely, "rrule": "FREQ=MINUTELY;INTERVAL=5"}
    with run_until(0, title="rarely", schedule=rarely, pull=GPU) as stack:
        assert send(f"{stack.url}/v1/tasks", often).ok
        stack.mover.move({"advanceTo": (START + DAY).isoformat()})
        page = read(stack, "calendar?day=2027-03-20&tz=UTC")
        table = page.partition('id="table"')[2]
        link = re.search(r'href="([^"]*)">All that has not started', table)
        assert link is not None
        text = read(stack, html.unescape(link[1]))
        for query in ("day=2027-03-23", "week=2027-03-22", "month=2027-04"):
            to_come = read(stack, f"calendar?{query}&tz=UTC")
            assert re.search(r"data-row>often</a>\s*<small>and \d+ more until", to_come), query
    assert "rarely" in table
    assert re.search(r"data-row>often</a>\s*<small>and \d+ more until \d\d:\d\d</small>", table)
    assert "Not started" in table
    assert "have not started that were due" in text


def test_a_late_task_is_called_late_wherever_it_stands() -> None:
    """While its queue is paused for hours: in the list, on its page, and on Home."""
    with run_until(2.5, is_paused=True, schedule=HOURLY) as stack:
        home, tasks, page = (read(stack, path) for path in ("", "tasks", "tasks/t"))
    assert "were due and have not started" in home
    (told,) = re.findall(r"Of the runs due since ([^:]*:\d\d)", home)
    assert told.endswith((START - 9 * HOUR + 30 * MINUTE).strftime("%H:%M")), "twelve hours"
    assert ">late</small>" in tasks
    assert "Late since" in page
    assert "Next:" not in page


def test_what_waits_for_an_open_run_is_not_called_late() -> None:
    """Nothing is wrong: it starts, or is skipped, once that run has ended. Home counts it as not started."""
    with run_until(3.5, schedule=HOURLY, pull=GPU) as stack:
        home, tasks, page = (read(stack, path) for path in ("", "tasks", "tasks/t"))
    assert "were due and have not started" in home
    assert "Due since" in page
    assert "Late since" not in page
    assert ">late</small>" not in tasks


def test_no_overdue_occurrence_is_offered_as_one_to_come() -> None:
    """The task's page calls it overdue, and only what is ahead can be moved. If all are, it does not say upcoming."""
    for hours, overdue in ((3.5, 4), (39.5, 10)):
        with run_until(hours, is_paused=True, schedule=HOURLY) as stack:
            page = read(stack, "tasks/t")
            panel = page.partition('<th scope="col" class="num wide">In</th>')
            assert ("Upcoming" in panel[0][-600:]) == (overdue < 10)
            rows = re.findall("<tr>.*?</tr>", panel[2].partition("</table>")[0], re.DOTALL)
            assert ["overdue" in row for row in rows] == [True] * overdue + [False] * (10 - overdue)
            assert ["Move…" in row for row in rows] == [False] * overdue + [True] * (10 - overdue)
