"""The words for filters: each with its name, and with its value as pages write instants, durations and statuses.

Chips, questions before a change of many, and the record of such a change have them from here.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter, ValidationError

from cloudsched.dashboard.status import show_status
from cloudsched.dashboard.times import write_duration
from cloudsched.dashboard.views.causes import CAUSES
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.run_counts import RunOutcome
from cloudsched.domain.documents.task import NeedCause
from cloudsched.domain.documents.verbs import Action

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.dashboard.visit import Visit

_NAMES: Final = {
    "errorType": "Error's type",
    "error": "Error contains",
    "minDuration": "Took at least",
    "minLateness": "Late by at least",
    "dueFrom": "Due from",
    "dueUntil": "Due before",
    "until": "Before",
    "trouble": "Needs attention",
}
"""The names of filters whose field in the API is no word, or says less."""
_DURATION: Final = TypeAdapter(timedelta)


def name_filter(name: str) -> str:
    """Return the name of a filter, such as ``Late by at least``."""
    return _NAMES.get(name) or name[:1].upper() + name[1:]


def write_value(name: str, text: str, visit: Visit) -> str:
    """Return the value of a filter in words. What nobody can read stays as it was typed."""
    writer = _WRITERS.get(name)
    if writer is None:
        return text
    try:
        return writer(text, visit)
    except (ValueError, OverflowError, ValidationError):
        return text


def write_filter(name: str, text: str, visit: Visit) -> str:
    """Return a filter in words, such as ``Late by at least: 10 s``."""
    return f"{name_filter(name)}: {write_value(name, text, visit)}"


def _write_instant(text: str, visit: Visit) -> str:
    return visit.moment(text).text


def _write_duration(text: str, _visit: Visit) -> str:
    return write_duration(_DURATION.validate_python(text))


def _write_status(text: str, _visit: Visit) -> str:
    return show_status(text.upper()).word


def _write_outcome(text: str, _visit: Visit) -> str:
    return show_status(ExecutionStatus.SUCCEEDED if text.upper() == RunOutcome.RAN else text.upper()).word


def _write_word(text: str, _visit: Visit) -> str:
    return text.replace("_", " ").capitalize()


def _write_action(text: str, visit: Visit) -> str:
    return _write_word(text, visit) if text.upper() in set(Action) else text


def _write_trouble(text: str, visit: Visit) -> str:
    upper = text.upper()
    return CAUSES[NeedCause(upper)].chip if upper in set(NeedCause) else _write_word(text, visit)


_WRITERS: Final[dict[str, Callable[[str, Visit], str]]] = {
    **dict.fromkeys(("from", "until", "dueFrom", "dueUntil"), _write_instant),
    **dict.fromkeys(("minDuration", "minLateness"), _write_duration),
    "status": _write_status,
    "outcome": _write_outcome,
    "category": _write_word,
    "action": _write_action,
    "trouble": _write_trouble,
}
