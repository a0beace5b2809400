"""Retries of a call: exponential, jittered, and never beyond the deadline of the whole."""

from __future__ import annotations

import itertools
from typing import Any

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
import pytest

from cloudsched.adapters.google import backoff, channel
from cloudsched.adapters.google.backoff import Backoff

DEADLINE = 10.0


class Failure(grpc.RpcError):  # type: ignore[misc]  # grpcio ships no types
    def code(self) -> Any:  # noqa: ANN401 - grpcio ships no types
        return grpc.StatusCode.ABORTED


class SteppedTime:
    """A clock that advances by what is slept, and keeps the pauses."""

    def __init__(self) -> None:
        self.at = 0.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.at += seconds


@pytest.fixture
def stepped_time(monkeypatch: pytest.MonkeyPatch) -> SteppedTime:
    stepped = SteppedTime()
    monkeypatch.setattr(backoff, "time", stepped)
    return stepped


def test_pauses_double_up_to_a_limit_within_the_deadline(stepped_time: SteppedTime) -> None:
    """A failing service gets a few retries, further and further apart; then the error is raised."""
    left: list[float] = []

    def fail(seconds: float) -> None:
        left.append(seconds)
        raise Failure

    with pytest.raises(Failure):
        channel.retry(fail, {grpc.StatusCode.ABORTED}, Backoff(DEADLINE))
    bases = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 4.0, 4.0, 4.0]
    assert 6 <= len(stepped_time.pauses) <= len(bases)
    for pause, base in zip(stepped_time.pauses, bases, strict=False):
        assert base / 2 <= pause <= base
    assert stepped_time.at < DEADLINE
    assert left == [DEADLINE - slept for slept in itertools.accumulate([0.0, *stepped_time.pauses])]


def test_callers_that_fail_together_retry_at_different_times(stepped_time: SteppedTime) -> None:
    """The pauses are random, so that a burst of callers does not stay a burst."""
    for _ in range(20):
        tries = iter((True, False))

        def fail_once(_: float, tries: Any = tries) -> None:  # noqa: ANN401 - an iterator
            if next(tries):
                raise Failure

        channel.retry(fail_once, {grpc.StatusCode.ABORTED}, Backoff(DEADLINE))
    assert len(set(stepped_time.pauses)) == 20
