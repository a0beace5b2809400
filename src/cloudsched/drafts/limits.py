"""What a draft may not ask for: too soon, too often, or in the past."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.draft_responses import MissingField

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.domain.schedules.schedule import Schedule

SHOWN: Final = 5
"""How many occurrences a draft shows."""
_CHECKED: Final = 50
"""How many occurrences are looked at: those of a rule repeat themselves."""


@dataclass(frozen=True, slots=True)
class DraftLimits:
    """How soon and how often what is drafted may run."""

    least_lead: timedelta = timedelta(0)
    least_interval: timedelta = timedelta(minutes=1)


def check_times(schedule: Schedule, now: datetime, limits: DraftLimits) -> tuple[list[datetime], MissingField | None]:
    """Return the next occurrences of a schedule, and why it cannot be had; None if it can.

    A recurring schedule that begins too soon only loses nothing: it begins with the first occurrence that is late
    enough to be confirmed. A single instant is refused.
    """
    times = schedule.upcoming(now, _CHECKED)
    if not times:
        text = "It is in the past. Choose a time that is still to come."
        return [], MissingField(field="schedule", code="past", reason=text)
    if schedule.is_one_time and times[0] < now + limits.least_lead:
        text = f"It would run in {_words(times[0] - now)}. Leave at least {_words(limits.least_lead)}."
        return times[:SHOWN], MissingField(field="schedule", code="too-soon", reason=text)
    shortest = min((later - earlier for earlier, later in pairwise(times)), default=None)
    if shortest is not None and shortest < limits.least_interval:
        text = (
            f"It would run every {_words(shortest)}. Leave at least {_words(limits.least_interval)} between two runs."
        )
        return times[:SHOWN], MissingField(field="schedule", code="too-often", reason=text)
    return times[:SHOWN], None


def _words(span: timedelta) -> str:
    seconds = round(span.total_seconds())
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length and seconds % length == 0:
            return f"{seconds // length} {unit}{'s' if seconds > length else ''}"
    return f"{seconds} second{'s' if seconds != 1 else ''}"
