"""When a failed task is retried, and when it is dropped."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.instants import DAY, SECOND

from cloudsched.emulator.model.queue import backoff, is_exhausted, next_attempt_at
from cloudsched.emulator.model.task import HttpResult, RetryConfig

NOW = datetime(2027, 1, 1, tzinfo=UTC)
ZERO = timedelta(0)
lengths = st.timedeltas(min_value=timedelta(microseconds=1), max_value=30 * DAY)
configs = st.builds(
    RetryConfig,
    max_attempts=st.sampled_from([-1, 1, 2, 5, 100]),
    max_retry_duration=st.one_of(st.just(ZERO), lengths),
    min_backoff=lengths,
    max_backoff=lengths,
    max_doublings=st.integers(0, 100),
)


@pytest.mark.parametrize(
    ("first", "longest", "doublings", "waits"),
    [
        (10, 300, 3, [10, 20, 40, 80, 160, 240, 300, 300, 300]),  # the example of the v2 reference
        (2, 9, 0, [2, 4, 6, 8, 9, 9]),
        (0, 300, 3, [0, 0, 0]),
    ],
)
def test_backoff_doubles_and_then_grows_linearly(first: int, longest: int, doublings: int, waits: list[int]) -> None:
    config = RetryConfig(
        min_backoff=timedelta(seconds=first), max_backoff=timedelta(seconds=longest), max_doublings=doublings
    )
    assert [backoff(config, retry).total_seconds() for retry in range(1, len(waits) + 1)] == waits


@given(configs, st.integers(1, 10_000))
def test_backoff_never_shrinks_and_never_exceeds_the_maximum(config: RetryConfig, retry: int) -> None:
    wait = backoff(config, retry)
    assert ZERO <= wait <= config.max_backoff
    assert wait <= backoff(config, retry + 1)


@given(configs, st.integers(1, 200), st.timedeltas(min_value=ZERO, max_value=40 * DAY))
def test_a_task_is_dropped_only_when_both_limits_are_reached(
    config: RetryConfig, attempts: int, age: timedelta
) -> None:
    over = is_exhausted(config, attempts, NOW - age, NOW)
    attempts_limited, duration_limited = config.max_attempts >= 0, config.max_retry_duration > ZERO
    if over:
        assert attempts_limited or duration_limited
        assert not attempts_limited or attempts >= config.max_attempts
        assert not duration_limited or age >= config.max_retry_duration
    else:
        assert (
            not (attempts_limited or duration_limited)
            or (attempts_limited and attempts < config.max_attempts)
            or (duration_limited and age < config.max_retry_duration)
        )


@given(st.timedeltas(min_value=ZERO, max_value=DAY))
def test_retry_after_can_only_lengthen_the_backoff(asked: timedelta) -> None:
    config = RetryConfig(min_backoff=5 * SECOND)
    at = next_attempt_at(config, 1, NOW, HttpResult(status=503, retry_after=asked), NOW)
    assert at == NOW + max(asked, 5 * SECOND)
