"""Natural-language schedules: "every weekday at 9 except Fridays" becomes a schedule, or a question if it is ambiguous.

A phrase is split into tokens, classified by a lexicon, parsed into clauses and built into a schedule. Every word must
belong to the schedule or to its title, all places of which compete. Otherwise the phrase is refused. The package may
import the schedules of the domain, the errors, and dateutil for calendar arithmetic, but nothing else of cloudsched.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloudsched.language.reader import read
    from cloudsched.language.result import Alternative, Problem, Reading
    from cloudsched.language.schedule_text import ScheduleText, read_schedule

__all__ = ["Alternative", "Problem", "Reading", "ScheduleText", "read", "read_schedule"]

_MODULES = {
    "Alternative": "result",
    "Problem": "result",
    "Reading": "result",
    "ScheduleText": "schedule_text",
    "read": "reader",
    "read_schedule": "schedule_text",
}


def __getattr__(name: str) -> object:
    """Import a name on first use, so that a schedule in a notation does not load the grammar."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
