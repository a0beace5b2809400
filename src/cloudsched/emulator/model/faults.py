"""Faults on purpose, so that a user can prove that their handlers are idempotent.

Cloud Tasks delivers at least once, unordered and now and then late; here that can be made to happen. Each decision is
drawn from the seed, the task's id and the attempt, so that a run can be repeated whatever else happens around it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import timedelta
from random import Random
from typing import Final

NONE: Final = ""
DUPLICATE: Final = "duplicate"
DROP_ANSWER: Final = "dropAnswer"
TIME_OUT: Final = "timeOut"


@dataclass(frozen=True, slots=True)
class Faults:
    """How likely each fault is, from 0 (never, the default) to 1 (always).

    Raises:
        ValueError: for a probability that is none.
    """

    duplicate: float = 0.0
    """The request is sent twice, at the same time."""
    out_of_order: float = 0.0
    """The attempt is held back for up to `shuffle_within`, so that others overtake it."""
    late: float = 0.0
    """The attempt is held back for `late_by`."""
    drop_answer: float = 0.0
    """The target runs, but its answer is lost: the attempt fails."""
    time_out: float = 0.0
    """The target runs, but its answer does not arrive before the dispatch deadline: the attempt fails as 504."""
    shuffle_within: timedelta = timedelta(seconds=1)
    late_by: timedelta = timedelta(minutes=5)
    seed: int = 0

    def __post_init__(self) -> None:
        for name in _PROBABILITIES:
            value = getattr(self, name)
            if not 0.0 <= value <= 1.0:
                raise ValueError(f"{name} is a probability, between 0 and 1; it cannot be {value!r}.")
        for name in ("shuffle_within", "late_by"):
            if getattr(self, name) < timedelta(0):
                raise ValueError(f"{name} cannot be negative.")

    @property
    def any(self) -> bool:
        """Whether there is anything to inject."""
        return any(getattr(self, name) for name in _PROBABILITIES)

    def delay(self, task_id: str, attempt: int) -> timedelta:
        """For how long that attempt is held back."""
        if not (self.late or self.out_of_order):
            return timedelta(0)
        draw = self._draw("delay", task_id, attempt)
        late, shuffled, part = draw.random(), draw.random(), draw.random()
        if late < self.late:
            return self.late_by
        return self.shuffle_within * part if shuffled < self.out_of_order else timedelta(0)

    def fault(self, task_id: str, attempt: int) -> str:
        """What goes wrong with that attempt: one of the names above, or `NONE`."""
        draw = self._draw("fault", task_id, attempt)
        duplicate, drop, time_out = draw.random(), draw.random(), draw.random()
        if duplicate < self.duplicate:
            return DUPLICATE
        if drop < self.drop_answer:
            return DROP_ANSWER
        return TIME_OUT if time_out < self.time_out else NONE

    def _draw(self, purpose: str, task_id: str, attempt: int) -> Random:
        return Random(f"{self.seed}/{purpose}/{task_id}/{attempt}")  # noqa: S311 - repeatable on purpose


_PROBABILITIES: Final = tuple(field.name for field in fields(Faults) if field.type == "float")
