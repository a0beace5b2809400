"""Home: what it says where the API says little, and the health of each part of the service."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.dashboard.conftest import visit

from cloudsched.dashboard.views import home as home_view
from cloudsched.dashboard.views.home import build_health

SWEEP = {"lag": 20, "isLate": False, "dispatched": 0, "unsent": 0, "failed": 0}
LATE: dict[str, Any] = {"needs": [{"cause": "OVERDUE"}]}
PAUSED: dict[str, Any] = {"needs": [{"cause": "QUEUE_PAUSED"}, *LATE["needs"]]}


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        (None, "Whether anything needs you is not known"),
        ({"needs": []}, "Nothing needs you."),
    ],
)
def test_without_counts_there_is_no_all_clear(counts: dict[str, Any] | None, said: str) -> None:
    answer: dict[str, Any] = {"counts": counts, "next": [], "restorable": [], "health": {}}
    assert home_view.build(answer, visit())["sentence"].startswith(said)


@pytest.mark.parametrize(
    ("health", "counts", "words"),
    [
        ({"circuits": {}}, {"sweep": SWEEP}, ["answers", "on time", "runs"]),
        ({"circuits": {"queue": "open"}}, {"sweep": SWEEP}, ["answers", "has failed", "runs"]),
        ({"circuits": {"queue": "closed"}}, {}, ["answers", "on time", "has not run"]),
        ({"circuits": {}}, {**LATE, "sweep": SWEEP}, ["answers", "late", "runs"]),
        ({"circuits": {}}, {**PAUSED, "sweep": SWEEP}, ["answers", "paused", "runs"]),
        ({"circuits": {}}, {"sweep": {**SWEEP, "isLate": True}}, ["answers", "on time", "is late"]),
        ({"circuits": {}}, {"sweep": {**SWEEP, "unsent": 4}}, ["answers", "on time", "has problems"]),
        ({}, {"sweep": SWEEP}, ["does not answer", "on time", "runs"]),
        ({"problem": "The disk is full."}, {"sweep": SWEEP}, ["does not answer", "on time", "runs"]),
    ],
)
def test_store_queue_and_sweep_are_each_said_to_be_well_or_not(
    health: dict[str, Any], counts: dict[str, Any], words: list[str]
) -> None:
    """Whatever is not well has the shape and colour of failures."""
    rows = [*build_health(health, counts, replace(visit(), is_local=False))]
    assert [part for part, _, _ in rows] == ["Store", "Queue", "Sweep"]
    for (_, status, _), word in zip(rows, words, strict=True):
        assert status.word.startswith(word)
        assert (status.shape == "fail") == (word not in {"answers", "on time", "runs", "has not run"})


def test_threads_that_cannot_work_and_handlers_that_hang_are_named() -> None:
    """A process that is not ready says nothing of its store, and users are told of no sweep, which they cannot see."""
    told = {"circuits": {}, "faults": {"cloudsched-sweep": "has failed once: MemoryError"}, "problem": "It goes on."}
    rows = [*build_health(told, {"sweep": SWEEP}, visit())]
    assert [part for part, _, _ in rows] == ["Queue", "Process"], "the sweep follows a clock that can be moved"
    assert "cloudsched-sweep has failed once: MemoryError" in rows[-1][2]
    hanging = "16 handlers hang: 'fetch' (16), since 2026-07-01 09:00:00 UTC"
    rows = [*build_health({"circuits": {}, "hanging": hanging}, {"sweep": SWEEP}, visit())]
    assert rows[-1][0] == "Handlers"
    assert hanging in rows[-1][2]
    assert [part for part, _, _ in build_health({"circuits": {}}, {}, visit(owner="ada"))] == ["Store", "Queue"]
