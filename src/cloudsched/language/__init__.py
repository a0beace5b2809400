"""Plain words to schedules: "every weekday at 9 except Fridays" becomes the schedule that was meant, or a question.

A phrase goes through tokens, a lexicon of word classes and a grammar into clauses, and from these into a schedule;
every word belongs to the schedule or to its title, or the phrase is refused. The package may import the schedules of
the domain, the errors, and dateutil for calendar arithmetic; nothing else of cloudsched.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloudsched.language.read import read
    from cloudsched.language.result import Alternative, Problem, Reading
    from cloudsched.language.schedule_text import ScheduleText, read_schedule

__all__ = ["Alternative", "Problem", "Reading", "ScheduleText", "read", "read_schedule"]

_MODULES = {
    "Alternative": "result",
    "Problem": "result",
    "Reading": "result",
    "ScheduleText": "schedule_text",
    "read": "read",
    "read_schedule": "schedule_text",
}


def __getattr__(name: str) -> object:
    """Import a name when it is first used: a schedule in a notation needs no grammar."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
