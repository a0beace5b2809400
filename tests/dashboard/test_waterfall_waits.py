"""The waterfall divides all of a run's time: what ran, and what was waited for; and a page shows what a run got."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dashboard.conftest import NOW

from cloudsched.dashboard.charts.waterfall import draw_axis, draw_background, draw_row
from cloudsched.dashboard.charts.waterfall_rows import WAITS, find_ran, make_waterfall
from cloudsched.dashboard.views.execution_content import FOLDED, find_payload, show_content

START = datetime(2027, 3, 20, 8, tzinfo=UTC)
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
PARIS = ZoneInfo("Europe/Paris")


def at(seconds: float) -> str:
    return (START + seconds * SECOND).isoformat()


def attempt(number: int, start: float, end: float, status: str = "FAILED", **more: str) -> dict[str, Any]:
    return {"number": number, "startedAt": at(start), "finishedAt": at(end), "status": status, **more}


def step(kind: str, start: float, end: float | None, number: int = 1, **more: Any) -> dict[str, Any]:
    ended = {} if end is None else {"finishedAt": at(end)}
    status = "WAITING" if end is None else "SUCCEEDED"
    return {"number": number, "kind": kind, "name": "s", "startedAt": at(start), "status": status, **ended, **more}


def record(*attempts: dict[str, Any], steps: list[dict[str, Any]] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "status": "FAILED",
        "scheduledFor": at(0),
        "startedAt": attempts[0]["startedAt"] if attempts else at(0),
        "finishedAt": attempts[-1]["finishedAt"] if attempts else at(9),
        "attempts": list(attempts),
        "steps": steps or [],
        **more,
    }


def seconds(sums: Mapping[str, timedelta]) -> dict[str, float]:
    return {name: each.total_seconds() for name, each in sums.items() if each}


def test_tries_and_the_waits_between_them_are_told_apart() -> None:
    """Three instant tries with hours between them: a function ran for three seconds, and waited for the rest."""
    found = make_waterfall(record(attempt(1, 0, 1), attempt(2, 3600, 3601), attempt(3, 7800, 7801)), NOW)
    assert seconds(found.sums) == {"ran": 3, "retry": 7798}
    assert [bar.kind for bar in found.rows[0].bars] == ["fail", "retry", "fail", "retry", "fail"]
    assert found.rows[0].took == 3 * SECOND
    assert found.rows[0].waited == 7798 * SECOND


def test_a_run_that_was_lost_ran_until_its_lease_ended() -> None:
    """Nobody knows of anything later, however long ago that is: it neither runs nor waits then, it is not reported."""
    lost = record(status="RUNNING", finishedAt=None, leaseUntil=at(300))
    assert find_ran(lost, NOW) == 300 * SECOND
    assert find_ran({**lost, "leaseUntil": (NOW + HOUR).isoformat()}, NOW) == NOW - START
    for before in ([], [attempt(1, 0, 100)]):
        found = make_waterfall({**lost, "attempts": before}, NOW)
        assert found.sums["ran"] == 300 * SECOND
        assert found.sums["lost"] == NOW - START - 300 * SECOND
        assert not found.sums["queue"]
        assert "run" not in {bar.kind for bar in found.rows[0].bars}
        assert not found.rows[0].waited
        assert "nothing ran" not in found.gaps_text


def test_a_retried_step_shows_its_tries() -> None:
    """Each try has a bar, and the waits between them; of one that is to be tried again, what lies ahead is outlined."""
    tries = [{"startedAt": at(begin), "finishedAt": at(begin + 1)} for begin in (0, 3600, 7739)]
    tried = step("STEP", 0, None, attempts=3, tries=tries, dueAt=(NOW + HOUR).isoformat())
    found = make_waterfall(record(steps=[tried], status="SUSPENDED", finishedAt=None), NOW)
    assert [bar.kind for bar in found.rows[1].bars] == ["fail", "retry", "fail", "retry", "fail", "retry", "due"]
    assert found.rows[1].took == 3 * SECOND
    assert found.sums["ran"] == 3 * SECOND
    assert found.sums["retry"] == NOW - START - 3 * SECOND


def test_an_axis_has_a_time_on_the_narrowest_screen_too() -> None:
    """A phone hides the class `alt`: the day that it began on is not of it, and what is shown does not overlap."""
    for tries in ([(0, 1), (3600, 3601), (7800, 7801)], [(0, 7000)], [(0, 1), (90_000, 90_001)]):
        found = make_waterfall(record(*(attempt(number, *each) for number, each in enumerate(tries, 1))), NOW)
        texts = re.findall(
            r'<text(?: class="([^"]*)")? x="([0-9.]+)%" dx="2" y="(\d+)">([^<]+)<', draw_axis(found, PARIS)
        )
        for y in ("15", "32"):
            shown = [(float(x) * 2.7, text) for css, x, row, text in texts if row == y and "alt" not in css.split()]
            for (one, text), (other, _) in pairwise(shown):
                assert one + len(text) * 6.6 <= other, (tries, text)
            assert all(x + len(text) * 6.6 <= 290 for x, text in shown)
        assert any(text == "20 Mar" and "alt" not in css.split() for css, _, _, text in texts), tries


def test_a_lock_a_queue_and_a_sleep_are_what_they_are() -> None:
    """Queued from when it was due, then for its lock, then it ran; a sleep is a suspension, a call runs beside it."""
    waited = attempt(1, 60, 70, "SUCCEEDED", lockWaitedSince=at(10))
    found = make_waterfall(record(waited, status="SUCCEEDED"), NOW)
    assert seconds(found.sums) == {"queue": 10, "lock": 50, "ran": 10}
    slept = [step("SLEEP", 1, 100), step("CALL", 100, 150, 2)]
    done = attempt(1, 150, 151, "SUCCEEDED")
    found = make_waterfall(record(done, steps=slept, status="SUCCEEDED", startedAt=at(0)), NOW)
    assert seconds(found.sums) == {"queue": 1, "wait": 99, "calls": 50, "ran": 1}


SPANS = st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 900)), max_size=6)


@given(
    SPANS,
    st.lists(st.tuples(st.sampled_from(["STEP", "SLEEP", "EVENT", "CALL"]), st.integers(0, 5000), st.integers(0, 900))),
    st.sampled_from(["FAILED", "SUCCEEDED", "RUNNING", "RETRYING", "SUSPENDED"]),
    st.integers(0, 600),
)
def test_the_sums_add_up(
    spans: list[tuple[int, int]], steps: list[tuple[str, int, int]], status: str, lock: int
) -> None:
    """Whatever overlaps: each moment counts once, and the handler's row covers all of it without a hole."""
    attempts, begin = [], 0
    for number, (pause, took) in enumerate(spans, 1):
        begin += pause
        waited = {"lockWaitedSince": at(max(0, begin - lock))} if lock % 2 else {}
        attempts.append(attempt(number, begin, begin + took, **waited))
        begin += took
    made = [step(kind, start, start + took, index + 1) for index, (kind, start, took) in enumerate(steps)]
    is_open = status in {"RUNNING", "RETRYING", "SUSPENDED"}
    ended = {} if is_open else {"finishedAt": at(max([begin, *(start + took for _, start, took in steps)]))}
    one = {**record(*attempts, steps=made, status=status), "finishedAt": None, **ended}
    found = make_waterfall(one, NOW)
    start, end = START, NOW if is_open else datetime.fromisoformat(ended["finishedAt"])
    assert sum(found.sums.values(), timedelta(0)) == end - start
    waits = [bar for bar in found.rows[0].bars if bar.kind in WAITS]
    assert all(bar.end <= following.start for bar, following in pairwise(waits))
    ground = draw_background(found, PARIS)
    assert all("NaN" not in draw_row(row, found.scale, ground) for row in found.rows)
    assert "NaN" not in draw_axis(found, PARIS)


@pytest.mark.parametrize(
    ("record_has", "history", "revision", "payload", "words"),
    [
        ({"payload": {"a": 1}}, None, 1, {"a": 1}, "its own payload"),
        ({"hasUnrecordedPayload": True}, None, 1, None, "too large"),
        ({}, None, 1, {"now": 2}, "The task's payload."),
        ({}, None, 2, None, "was not recorded"),
        (
            {},
            {
                "entries": [
                    {"number": 4, "at": at(5), "action": "PAUSED"},
                    {"number": 2, "at": at(-5), "action": "EDITED"},
                ]
            },
            9,
            None,
            "was not recorded",
        ),
        (
            {},
            {
                "entries": [
                    {"number": 4, "at": at(5), "action": "PAUSED"},
                    {"number": 3, "at": at(-5), "action": "EDITED"},
                ]
            },
            9,
            {"now": 2},
            "The task's payload.",
        ),
        (
            {},
            {"entries": [{"number": 1, "at": at(5), "action": "EDITED", "fields": [{"field": "payload"}]}]},
            2,
            None,
            "edited since",
        ),
        (
            {},
            {"entries": [{"number": 1, "at": at(5), "action": "EDITED", "fields": [{"field": "title"}]}]},
            2,
            {"now": 2},
            "task's",
        ),
    ],
)
def test_what_a_run_got_is_known_or_said_not_to_be(
    record_has: dict[str, Any], history: dict[str, Any] | None, revision: int, payload: object, words: str
) -> None:
    """Its own payload, or its task's as long as no later edit may have changed that."""
    task = {"payload": {"now": 2}, "revision": revision}
    found, note = find_payload({"scheduledFor": at(0), **record_has}, task, history)
    assert found == payload
    assert words in note


def test_big_results_are_folded_and_can_be_fetched() -> None:
    """What is long is folded, what is very long is cut, and all of it is a download away."""
    small = show_content({"a": 1}, "x.json")
    big = show_content("x" * 100_000, "x.json")
    assert small is not None
    assert big is not None
    assert (small.is_folded, small.download) == (False, "")
    assert (big.is_folded, big.download, big.size) == (True, "x.json", "100.0 kB")
    assert FOLDED < len(big.text) < 30_000
