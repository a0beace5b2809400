"""Compare and set: decide again after each conflict, on what is stored then, and give up after a bounded number."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cloudsched.engine.state.commits import MAX_CONFLICTS, compare_and_set
from cloudsched.errors import Contended, PreconditionFailed, StoreUnavailable, VersionConflict


class Cell:
    """One versioned number, which others change right before the first `rivals` commits."""

    def __init__(self, rivals: int) -> None:
        self.value = 0
        self.reads = 0
        self._rivals = self._compete(rivals)

    def _compete(self, rivals: int) -> Iterator[None]:
        for _ in range(rivals):
            self.value += 10
            yield

    def load(self) -> int:
        self.reads += 1
        return self.value

    def add_one(self, read: int) -> int:
        next(self._rivals, None)
        if self.value != read:
            raise VersionConflict("cell")
        self.value += 1
        return self.value


@pytest.mark.parametrize("rivals", [0, 1, 7, MAX_CONFLICTS - 1])
def test_no_change_is_lost(rivals: int) -> None:
    """The change is made on top of all others' changes, with one read for each try."""
    cell = Cell(rivals)
    assert compare_and_set("cell", cell.load, cell.add_one) == 10 * rivals + 1
    assert cell.reads == rivals + 1


def test_what_was_read_before_is_not_read_again() -> None:
    """A caller that has just read the document saves that read; only a conflict costs another."""
    cell = Cell(0)
    assert compare_and_set("cell", cell.load, cell.add_one, first=0) == 1
    assert cell.reads == 0
    assert compare_and_set("cell", cell.load, cell.add_one, first=0) == 2
    assert cell.reads == 1


def test_it_gives_up_after_the_bound() -> None:
    """The error is one of the store, so that a queue delivers again, and says what happened rather than an outage."""
    cell = Cell(MAX_CONFLICTS)
    with pytest.raises(StoreUnavailable, match=f"^Cell changed {MAX_CONFLICTS} times.*Try again") as caught:
        compare_and_set("cell", cell.load, cell.add_one)
    assert isinstance(caught.value, Contended)
    assert cell.reads == MAX_CONFLICTS
    assert cell.value == 10 * MAX_CONFLICTS


def test_a_callers_own_condition_is_not_tried_again() -> None:
    """If-Match names one version: when it has passed, no later one can fit."""
    calls = []

    def change(_: None) -> None:
        calls.append(1)
        raise PreconditionFailed("task t")

    with pytest.raises(PreconditionFailed):
        compare_and_set("task t", lambda: None, change)
    assert len(calls) == 1
