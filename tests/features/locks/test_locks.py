"""Runs of one lock key never overlap beyond the limit, and get the lock in the order in which they came due."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.engine.harness import DAY, HOUR, MINUTE, SECOND

from cloudsched.domain.documents.policy import Priority
from cloudsched.domain.transitions.wakeups import TURN_TIMEOUT
from cloudsched.features.locks.lock import Lock, Waiter, acquire, is_held_by, release
from cloudsched.testing import START


def waiter(number: int, limit: int = 1) -> Waiter:
    """Return a waiter that came due `number` seconds after the start."""
    return Waiter(
        task_id=f"t{number}",
        execution_id="e",
        revision=1,
        scheduled_for=START,
        attempt=1,
        due_at=START + number * SECOND,
        limit=limit,
        priority=Priority.NORMAL,
    )


@given(
    moves=st.lists(st.tuples(st.sampled_from(["come", "leave", "wait"]), st.integers(0, 7)), max_size=60),
    limit=st.integers(1, 3),
)
def test_grants_go_by_due_time_up_to_the_limit(moves: list[tuple[str, int]], limit: int) -> None:
    """However runs acquire, release and miss their grants, no more than the limit hold the lock, and in order."""
    lock, now = Lock(key="k"), START
    until = START + DAY
    for move, number in moves:
        ahead = [one for one in lock.waiters if one.order < waiter(number).order and not one.has_missed_grant(now)]
        held = {one.task_id for one in lock.holders}
        others = len(held - {f"t{number}"})
        if move == "come" and f"t{number}" in held:
            assert is_held_by(lock, f"t{number}", "e", now), "a holder does not ask again"
        elif move == "come":
            lock, has_it, woken = acquire(lock, waiter(number, limit), until, now)
            assert has_it == (others + len(ahead) < limit)
            assert has_it or sum(one.notified_at is not None for one in lock.waiters) >= min(limit - others, len(ahead))
        elif move == "leave":
            lock, woken = release(lock, f"t{number}", "e", now)
            assert all(one.notified_at == now for one in woken)
            assert list(lock.waiters[: len(lock.waiters)]) == sorted(lock.waiters, key=lambda one: one.order)
            free = limit - len(lock.holders)
            assert sum(one.notified_at is not None for one in lock.waiters) >= min(free, len(lock.waiters))
        else:
            now += TURN_TIMEOUT / 2
        assert len(lock.holders) <= limit
        assert not {one.task_id for one in lock.holders} & {one.task_id for one in lock.waiters}


@given(steps=st.lists(st.integers(-4, 4), max_size=20))
def test_each_grant_to_a_run_has_a_number_of_its_own(steps: list[int]) -> None:
    """Several in one second, or while the clock goes back, too: else the queue takes a dispatch for a duplicate."""
    one, now, grants = waiter(0), START, list[int]()
    for step in steps:
        now += step * SECOND / 2
        one = one.with_next_grant(now)
        grants.append(one.turn)
    assert grants == sorted(set(grants))


def test_a_run_that_the_lock_has_forgotten_gets_a_new_grant() -> None:
    """It missed its grant and asks again by the sweep's dispatch, which has none: its next one is no repetition."""
    grants, now, until = list[int](), START, START + DAY
    for _ in range(3):
        lock, _, _ = acquire(Lock(key="k"), waiter(1), now + SECOND, now)  # another run holds it
        lock, _, _ = acquire(lock, waiter(2), until, now)
        now += TURN_TIMEOUT
        _, granted = release(lock, "t1", "e", now)
        grants += [one.turn for one in granted]
    assert len(set(grants)) == 3


def test_a_run_that_asks_again_keeps_its_position() -> None:
    """A run that was taken over asks with a later due time, but does not fall behind those that came after it."""
    until = START + DAY
    lock = Lock(key="k")
    for number in (0, 1, 2):
        lock, _, _ = acquire(lock, waiter(number), until, START)
    lock, has_it, _ = acquire(lock, waiter(1).model_copy(update={"due_at": START + HOUR}), until, START)
    assert not has_it
    assert [one.task_id for one in lock.waiters] == ["t1", "t2"]


def test_no_waiter_starves_after_a_holder_died() -> None:
    """If the lock is free and nobody was notified, the next run that asks notifies those ahead of it."""
    lock, _, _ = acquire(Lock(key="k"), waiter(0), START + 5 * MINUTE, START)
    lock, _, _ = acquire(lock, waiter(1), START + 5 * MINUTE, START)
    later = START + 6 * MINUTE
    lock, has_it, woken = acquire(lock, waiter(2), later + 5 * MINUTE, later)
    assert not has_it
    assert [one.task_id for one in woken] == ["t1"]
    lock, has_it, _ = acquire(lock, waiter(2), later + 9 * MINUTE, later + TURN_TIMEOUT)
    assert has_it, "a waiter that misses its grant is skipped"
