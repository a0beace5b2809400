"""What may happen to occurrences once the rules of a schedule have produced them: they are moved or skipped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, Self

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from datetime import date, datetime

    from cloudsched.domain.recurrence.recurrence_set import Recurrence


class Occurrences(Protocol):
    """Instants in seconds since 1970 UTC, in their order."""

    @property
    def first(self) -> int | None:
        """The first of all, or None if there is none."""

    def first_from(self, instant: int) -> int | None:
        """Return the first that is not before ``instant``, or None if there is none."""


NO_EFFECTS: Final[Sequence[tuple[str, Sequence[str | int]]]] = ()


class Adjustable(BaseModel):
    """The base of `Schedule` that a feature overrides to adjust its occurrences.

    Here nothing adjusts them.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(defer_build=True)

    no_adjustments: ClassVar[Mapping[str, Any]] = {}
    """The fields that adjust them, with the values with which they do not."""
    adjusted_by: ClassVar[str] = "Its schedule"
    """What adjusts them, as the first words of a sentence."""
    patterns: ClassVar[Mapping[str, str]] = {}
    """The patterns of these fields, in words."""

    @property
    def is_adjusted(self) -> bool:
        """Return whether some of its occurrences may be moved or skipped."""
        return False

    @property
    def effects(self) -> Sequence[tuple[str, Sequence[str | int]]]:
        """The effects, each as its kind and what it names.

        `domain.schedules.words` has a text for each kind.
        """
        return NO_EFFECTS

    def check_adjustments(self) -> None:
        """Check the fields that adjust occurrences. Raises InvalidSchedule."""

    def adjust(self, base: Recurrence) -> Occurrences:
        """Return the occurrences as they are adjusted."""
        return base

    def find_skipped(self, instant: datetime, until: datetime) -> datetime | None:  # noqa: ARG002 - none is
        """Return the first occurrence later than ``instant``, up to ``until``, that is skipped, in UTC."""
        return None

    def adjustment_note(self, occurrence: datetime) -> str | None:  # noqa: ARG002 - there is none
        """Return why an occurrence was skipped, or from where it was moved, or None if it was neither."""
        return None

    def find_moved_day(self, occurrence: datetime) -> date | None:  # noqa: ARG002 - none is
        """Return the day from which an occurrence was moved, or None if it was not."""
        return None

    def equals_unresolved(self, other: Self) -> bool:
        """Return whether two schedules are the same, whatever they have read from records."""
        return self == other

    def resolved_like(self, present: Self) -> Self | None:  # noqa: ARG002 - nothing is to be resolved
        """Return it with what a later version of it has read from records, or None if that is not known."""
        return self
