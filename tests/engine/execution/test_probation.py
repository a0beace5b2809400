"""The turns of runs that were lost with a process, of which one may have ended it."""

from __future__ import annotations

import random

import pytest

from cloudsched.engine.execution.probation import FIRST_TURN, MIN_WAIT, Probation

LONG = 10 * FIRST_TURN


def test_one_waits_while_another_runs() -> None:
    """It asks again in a moment, and less often the longer it waits."""
    runs = Probation()
    assert runs.await_turn("a", 1, LONG, 0.0) == 0
    assert runs.await_turn("b", 1, LONG, 0.0) == MIN_WAIT
    assert runs.await_turn("b", 1, LONG, 4.0) == 4.0
    assert runs.await_turn("b", 1, LONG, FIRST_TURN - 1) == 1.0
    runs.end("a")
    assert runs.await_turn("b", 1, LONG, 4.0) == 0


def test_whoever_has_its_turn_keeps_it() -> None:
    """However often it asks: its claim may be decided again."""
    runs = Probation()
    assert [runs.await_turn("a", 2, LONG, float(at)) for at in range(5)] == [0.0] * 5


@pytest.mark.parametrize(
    ("losses_of_a", "losses_of_b", "until"),
    [(1, 1, FIRST_TURN), (2, 1, LONG), (1, 2, LONG), (2, 2, LONG)],
)
def test_after_a_second_loss_a_run_is_alone(losses_of_a: int, losses_of_b: int, until: float) -> None:
    """After one loss, as by a power failure, long handlers do not wait for each other's ends. None waits for ever."""
    runs = Probation()
    runs.await_turn("a", losses_of_a, LONG, 0.0)
    assert runs.await_turn("b", losses_of_b, LONG, until - 0.1) > 0
    assert runs.await_turn("b", losses_of_b, LONG, until) == 0


@pytest.mark.parametrize("seed", range(50))
def test_one_that_ends_its_process_is_found_and_takes_no_other_with_it(seed: int) -> None:
    """In processes that are started again at once, the third loss in a row is always that of one that ends them."""
    chance = random.Random(seed)  # noqa: S311 - a history is to be repeatable
    names = range(8)
    takes = {name: chance.choice([0.1, 1.0, 15.0, 40.0, 150.0]) for name in names}
    ends_after = {name: takes[name] * chance.random() for name in chance.sample(names, chance.choice([1, 1, 2, 3]))}
    losses, open_runs, failed = dict.fromkeys(names, 0), set(names), set[int]()
    now = 0.0
    for _ in range(200):
        runs, begun = Probation(), dict[int, float]()
        begin_at = dict.fromkeys(open_runs, now)
        while begin_at or begun:
            ends = {name: at + ends_after.get(name, takes[name]) for name, at in begun.items()}
            now, name = min((at, name) for name, at in (begin_at | ends).items())
            if name in begin_at:
                wait = runs.await_turn(name, losses[name], LONG, now) if losses[name] else 0.0
                begin_at[name] = now + wait
                if not wait:
                    del begin_at[name]
                    begun[name] = now
            elif name in ends_after:
                break
            else:
                del begun[name]
                runs.end(name)
                open_runs.discard(name)
        for name in begun:
            losses[name] += 1
            if losses[name] == 3:
                failed.add(name)
                open_runs.discard(name)
        if not open_runs:
            break
    assert failed == set(ends_after)
