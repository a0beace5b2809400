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
from tests.web.callers import DAY

from cloudsched.emulator.runtime.clock import MovableClock
from cloudsched.local.stack import Stack, run_stack

HOURLY = {"rrule": "FREQ=HOURLY", "dtstart": START.replace(tzinfo=None).isoformat(), "timezone": "UTC"}
GPU = {"queue": "gpu"}


@contextmanager
def run_until(hours: float, *, is_paused: bool = False, **fields: Any) -> Iterator[Stack]:
    """Let a task be for so many hours, in which its queue may be paused."""
    with run_stack(make_app(), store="sqlite", clock=MovableClock(START, frozen=True)) as stack:
        if is_paused:
            pause_queue(stack)
        task = {"id": "t", "owner": "ada", "handler": "report", **fields}
        assert send(f"{stack.url}/v1/tasks", task).ok
        stack.mover.move({"advanceTo": (START + timedelta(hours=hours)).isoformat()})
        yield stack


def pause_queue(stack: Stack) -> None:
    assert requests.patch(f"{stack.url}/v1/dispatch-queues/cloudsched", json={"state": "PAUSED"}, timeout=60).ok


def read(stack: Stack, path: str) -> str:
    return get(f"{stack.url}/ui/{path}").text


def explain(url: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = get(f"{url}/v1/tasks/t/explain").json()["findings"]
    return found


def test_a_run_that_waits_for_a_worker_is_told_before_it_is_recorded() -> None:
    """The task's page knows of it, and says once that the task is paused and then waits for nobody.

    After its expiration no page says that it waits, though its record is not made while its queue is paused.
    """
    with run_until(1 / 12, pull=GPU) as stack:
        assert "waits for a worker on the queue" in read(stack, "tasks/t")
        assert send(f"{stack.url}/v1/tasks/t/pause").ok
        summary = " ".join(each["sentence"] for each in explain(stack.url))
        assert "waits for a worker on the queue 'gpu' once its task is resumed" in summary
        assert summary.lower().count("paused") == 1
    with run_until(1 / 12, pull=GPU, expiration=1800) as stack:
        assert "1 run waits" in read(stack, "")
        pause_queue(stack)
        stack.mover.move({"advanceTo": (START + DAY).isoformat()})
        assert "offeredAt" in get(f"{stack.url}/v1/tasks/t").json()
        for path in ("", "queues?queue=gpu", "tasks", "tasks/t"):
            assert not re.search("run waits|waits for a|Waiting in gpu.*report", read(stack, path), re.DOTALL), path


def test_what_cannot_start_is_not_next() -> None:
    """While its queue is paused: not on Home, in lists, or on its page, which say why. Nor while its run is open."""
    with run_until(0.5, is_paused=True, schedule={**HOURLY, "dtstart": "2027-03-20T09:00:00"}) as stack:
        pages = {path: read(stack, path) for path in ("", "due", "tasks", "tasks/t")}
    for path, page in pages.items():
        assert "Next:" not in page, path
        assert "The queue cloudsched is paused" in page.partition("<h1")[2], path
    assert "The queue cloudsched is paused" in pages[""].partition("<caption>Next")[2]
    for hours, row in ((0.5, "No worker on the queue"), (1.5, "Nothing is next.")):  # its open run keeps it from that
        with run_until(hours, schedule=HOURLY, pull=GPU) as stack:
            head, _, following = read(stack, "").partition("<caption>Next")
        assert "Next: T" not in head
        assert row in following


def test_what_is_late_since_yesterday_is_in_the_calendar_of_yesterday() -> None:
    """Its number leads to all that is late; neither the calendar nor the list of that time calls it due."""
    with run_until(0, schedule={**HOURLY, "rrule": "FREQ=HOURLY;INTERVAL=5"}, pull=GPU) as stack:
        stack.mover.move({"advanceTo": (START + DAY).isoformat()})
        for query in ("day=2027-03-20", "week=2027-03-15", "month=2027-03"):
            page = read(stack, f"calendar?{query}&tz=UTC")
            link = re.search(r'href="([^"]*)">\s*<svg[^>]*><rect class="overdue"[^>]*></svg>\s*\d', page)
            assert link is not None
            assert "have not started that were due" in read(stack, html.unescape(link[1]))
        assert " due</" not in read(stack, "calendar?day=2027-03-20&tz=UTC")


def test_a_late_task_is_called_late_wherever_it_stands() -> None:
    """With its queue paused for hours: in the list, on its page, and with its queue on Home and among queues."""
    with run_until(2.5, is_paused=True, schedule=HOURLY) as stack:
        home, tasks, page, queues = (read(stack, path) for path in ("", "tasks", "tasks/t", "queues"))
    for each in (home, queues):
        assert "1 task is late and has not started." in each
    assert "dispatches, with those to come" in queues, "those to come do not wait"
    assert "The queue cloudsched is paused" in home
    assert ">late</small>" in tasks
    assert "Late since" in page
    assert "Next:" not in page


def test_no_overdue_occurrence_is_offered_as_one_to_come() -> None:
    """The task's page calls it overdue, and only what is ahead can be moved. If all are, it does not say upcoming."""
    for hours, overdue in ((3.5, 4), (39.5, 10)):
        with run_until(hours, is_paused=True, schedule=HOURLY, catchUp={"mode": "ALL"}) as stack:
            page = read(stack, "tasks/t")
            panel = page.partition('<th class="num wide">In</th>')
            assert ("Upcoming" in panel[0][-600:]) == (overdue < 10)
            rows = re.findall("<tr>.*?</tr>", panel[2].partition("</table>")[0], re.DOTALL)
            assert ["overdue" in row for row in rows] == [True] * overdue + [False] * (10 - overdue)
            assert ["Move…" in row for row in rows] == [False] * overdue + [True] * (10 - overdue)
