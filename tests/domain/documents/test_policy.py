"""The delays between the attempts of a failing occurrence."""
# ruff: noqa: S311 - chance is an argument, and repeatable

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import try_each
from tests.conftest import MakeTask

from cloudsched import RetryPolicy, Task
from cloudsched.errors import InvalidInput

POLICIES = st.builds(
    RetryPolicy,
    first_delay=st.timedeltas(timedelta(0), timedelta(days=400)),
    base=st.timedeltas(timedelta(0), timedelta(days=400)),
    factor=st.floats(1, 100),
    cap=st.timedeltas(timedelta(0), timedelta(days=30)),
    jitter=st.floats(0, 1),
)


def test_the_default_delays() -> None:
    """No delay, then 5 s, 25 s, 125 s and so on up to an hour; three retries."""
    policy = RetryPolicy(jitter=0)
    assert list_delays(policy) == [0, 5, 25, 125, 625, 3125, 3600, 3600]
    assert policy.max_retries == 3


@pytest.mark.parametrize("first", [{}, {"first_delay": 0}])
def test_a_base_alone_is_the_first_delay(make_task: MakeTask, first: dict[str, Any]) -> None:
    """What is written as 5 s and five times as long begins with the 5 s, also once it was stored and sent."""
    expected = [0, 2, 6, 18] if first else [2, 6, 18, 54]
    policy = RetryPolicy(base=timedelta(seconds=2), factor=3, jitter=0, **first)
    task = Task.from_stored("t", make_task(retry=policy).to_stored())
    for each in (policy, task.retry, RetryPolicy.model_validate(policy.to_wire())):
        assert list_delays(each)[:4] == expected


def list_delays(policy: RetryPolicy) -> list[float]:
    return [policy.delay(failures, Random(0)).total_seconds() for failures in range(1, 9)]


@given(policy=POLICIES, failures=st.integers(1, 10_000), seed=st.integers())
def test_a_delay_never_exceeds_its_cap_plus_jitter(policy: RetryPolicy, failures: int, seed: int) -> None:
    """However large the numbers are, nothing overflows."""
    delay = policy.delay(failures, Random(seed))
    assert timedelta(0) <= delay <= policy.cap * (1 + policy.jitter) + timedelta(microseconds=1)


@given(policy=POLICIES, failures=st.integers(2, 60))
def test_delays_grow_until_the_cap(policy: RetryPolicy, failures: int) -> None:
    """Without jitter, no delay after the first is shorter than the one before."""
    steady = policy.model_copy(update={"jitter": 0})
    assert steady.delay(failures, Random(0)) <= steady.delay(failures + 1, Random(0))


def test_jitter_spreads_retries() -> None:
    """Tasks that fail together are not all retried at the same moment."""
    policy = RetryPolicy(jitter=0.5)
    delays = {policy.delay(3, Random(seed)) for seed in range(50)}
    assert len(delays) == 50
    assert all(timedelta(seconds=25) <= delay <= timedelta(seconds=37.5) for delay in delays)


@try_each(
    "wrong",
    [
        {"max_retries": -1},
        {"max_retries": 101},
        {"factor": 0.5},
        {"factor": float("nan")},
        {"jitter": 2},
        {"base": timedelta(seconds=-1)},
        {"cap": timedelta(days=31)},
        {"unknown": 1},
    ],
)
def test_a_policy_outside_its_limits_is_refused(wrong: dict[str, Any]) -> None:
    """Every limit is checked."""
    with pytest.raises(InvalidInput):
        RetryPolicy(**wrong)
