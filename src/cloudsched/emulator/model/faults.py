"""Fault injection, so that users can prove that their handlers are idempotent.

Cloud Tasks delivers at least once, in any order and sometimes late. Faults make that happen. Each
decision is drawn from the seed, the task's id and the attempt, so that a run can be repeated regardless
of other tasks and of timing.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import timedelta
from random import Random
from typing import Any, Final, Self

from cloudsched.emulator.model.names import parse_duration

NONE: Final = ""
DUPLICATE: Final = "duplicate"
DROP_ANSWER: Final = "dropAnswer"
TIME_OUT: Final = "timeOut"


@dataclass(frozen=True, slots=True)
class Faults:
    """The probability of each fault, from 0 (never, the default) to 1 (always).

    Raises:
        ValueError: for a probability outside 0 to 1, or a negative duration.
    """

    duplicate: float = 0.0
    """The request is sent twice, at the same time."""
    out_of_order: float = 0.0
    """The attempt is delayed by up to `shuffle_within`, so that others overtake it."""
    late: float = 0.0
    """The attempt is delayed by `late_by`."""
    drop_answer: float = 0.0
    """The target runs, but its response is lost: the attempt fails."""
    time_out: float = 0.0
    """The target runs, but its response misses the dispatch deadline: the attempt fails as 504."""
    shuffle_within: timedelta = timedelta(seconds=1)
    late_by: timedelta = timedelta(minutes=5)
    seed: int = 0

    def __post_init__(self) -> None:
        for name in _PROBABILITIES:
            value = getattr(self, name)
            if not 0.0 <= value <= 1.0:
                raise ValueError(f"{name} must be a probability between 0 and 1, not {value!r}.")
        for name in _DURATIONS:
            if getattr(self, name) < timedelta(0):
                raise ValueError(f"{name} must not be negative.")

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Self:
        """Return the faults of an object, whose names are in camelCase.

        Raises:
            ValueError: A name is unknown, or a value invalid.
        """
        settings: dict[str, Any] = {}
        for name, value in content.items():
            if name not in _JSON_NAMES:
                raise ValueError(f"{name!r} is not a fault; choose from {', '.join(_JSON_NAMES)}.")
            field = _JSON_NAMES[name]
            if field in _DURATIONS:
                settings[field] = parse_duration(value)
            elif isinstance(value, int | float) and not isinstance(value, bool):
                settings[field] = value
            else:
                raise ValueError(f"{name} must be a number, not {value!r}.")
        return cls(**settings)

    @property
    def any(self) -> bool:
        """Return whether any fault has a probability above 0."""
        return any(getattr(self, name) for name in _PROBABILITIES)

    def delay(self, task_id: str, attempt: int) -> timedelta:
        """Draw how long that attempt is delayed."""
        if not (self.late or self.out_of_order):
            return timedelta(0)
        draw = self._draw("delay", task_id, attempt)
        late, shuffled, part = (draw.random() for _ in range(3))
        if late < self.late:
            return self.late_by
        if shuffled < self.out_of_order:
            return self.shuffle_within * part
        return timedelta(0)

    def fault(self, task_id: str, attempt: int) -> str:
        """Draw the fault of that attempt: one of the names above, or `NONE`."""
        draw = self._draw("fault", task_id, attempt)
        duplicate, drop, time_out = (draw.random() for _ in range(3))
        if duplicate < self.duplicate:
            return DUPLICATE
        if drop < self.drop_answer:
            return DROP_ANSWER
        if time_out < self.time_out:
            return TIME_OUT
        return NONE

    def _draw(self, purpose: str, task_id: str, attempt: int) -> Random:
        return Random(f"{self.seed}/{purpose}/{task_id}/{attempt}")  # noqa: S311 - reproducible on purpose


_PROBABILITIES: Final = tuple(field.name for field in fields(Faults) if field.type == "float")
_DURATIONS: Final = tuple(field.name for field in fields(Faults) if field.type == "timedelta")
_JSON_NAMES: Final = {field.name[0] + field.name.title().replace("_", "")[1:]: field.name for field in fields(Faults)}
