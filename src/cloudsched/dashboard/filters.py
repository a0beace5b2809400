"""The filters of all lists. Their forms, what they ask of the API, and the words above a list come from this table."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Literal

from pydantic import TypeAdapter, ValidationError

from cloudsched.dashboard.status import show_status
from cloudsched.dashboard.times import read_instant, write_duration
from cloudsched.dashboard.words import SKIPPED, split_words
from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.delivery_channels import SENDER_NAMES
from cloudsched.domain.documents.document import Duration
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.run_counts import RunOutcome
from cloudsched.domain.documents.task import TaskStatus, Trouble
from cloudsched.domain.documents.verbs import Action
from cloudsched.domain.explanation.need_words import NEED_WORDS
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cloudsched.dashboard.api import Json
    from cloudsched.dashboard.visit import Visit

_DURATION: Final = TypeAdapter[timedelta](Duration)


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of a list: a parameter of its address, and a field of its form."""

    name: str
    """Its name in the API."""
    label: str
    kind: Literal["text", "choice", "length", "instant"] = "text"
    choices: Mapping[str, str] = field(default_factory=dict)
    """The words for its values. A length may have others."""
    hint: str = ""
    has_field: bool = True
    """False if only links choose it."""

    def read(self, visit: Visit) -> str:
        """Return its value in an address as the API takes it, or an empty string. Raises InvalidInput."""
        text = visit.query.get(self.name, "").strip()
        if self.kind == "instant":
            return read_instant(text, visit.zone, self.label).iso
        known = next((each for each in self.choices if each.casefold() == text.casefold()), None)
        if text and known is None and self.kind == "choice":
            hint = f"Choose one of {', '.join(filter(None, self.choices))}."
            raise InvalidInput(self.label, f"is unknown: “{text[:40]}”", hint)
        return known or text

    def write(self, text: str, visit: Visit) -> str:
        """Return a value in words. What nobody can read stays as it was typed."""
        try:
            if self.kind == "instant":
                return visit.moment(text).text
            if self.kind == "length":
                return write_duration(_DURATION.validate_python(text))
        except (ValueError, OverflowError, ValidationError):
            return text
        return self.choices.get(text.upper()) or self.choices.get(text, text)


def _offer(words: Mapping[str, str]) -> Mapping[str, str]:
    return {"": "Any", **words}


CATEGORIES: Final = {each.value: each.capitalize() for each in Category}
LENGTHS: Final = {"PT10S": "10 s", "PT1M": "1 min", "PT3M": "3 min", "PT10M": "10 min", "PT1H": "1 h"}
WINDOWS: Final = {
    "PT15M": ("15 minutes", timedelta(minutes=15)),
    "PT1H": ("hour", timedelta(hours=1)),
    "PT12H": ("12 hours", timedelta(hours=12)),
    "P1D": ("day", timedelta(days=1)),
    "P7D": ("7 days", timedelta(days=7)),
}
"""The windows of time to choose from, which end now or begin now."""
_SPANS: Final = _offer({name: words for name, (words, _) in WINDOWS.items()})
OUTCOMES: Final[Mapping[str, str]] = {
    RunOutcome.FAILED: "Failed",
    RunOutcome.RAN: "Succeeded",
    RunOutcome.SKIPPED: SKIPPED.capitalize(),
}

_TROUBLES: Final = {each.value: NEED_WORDS[each].chip for each in Trouble if each in NEED_WORDS}

OWNER: Final = Filter("owner", "Owner")
HANDLER: Final = Filter("handler", "Handler")
LABEL: Final = Filter("label", "Label", hint="team=shop")
CATEGORY: Final = Filter("category", "Category", "choice", _offer(CATEGORIES))
SINCE: Final = Filter("from", "From", "instant")
UNTIL: Final = Filter("until", "Before", "instant")
CALLS: Final = Filter("calls", "Calls", "choice", {"": "Hidden", "true": "Shown"})

TASKS: Final = (
    Filter("trouble", "Needs attention", "choice", _offer(_TROUBLES)),
    Filter("status", "Status", "choice", _offer({each: show_status(each).word for each in TaskStatus})),
    HANDLER,
    OWNER,
    LABEL,
    CATEGORY,
    Filter("search", "Words", has_field=False),
    Filter("orderBy", "Order", "choice", {"": "Newest", "nextExecutionTime": "Due soonest"}),
    CALLS,
    Filter("troubleUntil", "Until", "instant", has_field=False),
    Filter("dueFrom", "Due from", "instant", has_field=False),
    Filter("dueUntil", "Due before", "instant", has_field=False),
)
RUNS: Final = (
    Filter("within", "Due in the last", "choice", _SPANS),
    Filter("status", "Status", "choice", _offer({each: show_status(each).word for each in ExecutionStatus})),
    Filter("error", "Error contains"),
    Filter("errorType", "Error's type"),
    Filter("outcome", "Outcome", "choice", _offer(OUTCOMES)),
    HANDLER,
    OWNER,
    LABEL,
    CATEGORY,
    SINCE,
    UNTIL,
    Filter("minDuration", "Ended, took at least", "length", _offer(LENGTHS)),
    Filter("minLateness", "Start delay of at least", "length", _offer(LENGTHS)),
    CALLS,
)
DUE: Final = (
    Filter("within", "Due in the next", "choice", {**_SPANS, "": "12 hours"}),
    HANDLER,
    OWNER,
    LABEL,
    CATEGORY,
    SINCE,
    UNTIL,
)
CHANGES: Final = (
    Filter("by", "Who contains"),
    Filter("action", "Action", "choice", _offer({each: each.replace("_", " ").capitalize() for each in Action})),
    OWNER,
    SINCE,
    UNTIL,
)
TASK_FILTERS: Final = ("status", "handler", "owner", "label", "dueFrom", "dueUntil")
"""The filters that choose the tasks of a change of many."""
DELIVERIES: Final = (
    OWNER,
    Filter("channel", "Channel", "choice", _offer({each: each.capitalize() for each in ("WEB", *SENDER_NAMES)})),
    Filter("unreached", "Unsent", "choice", _offer({"TRUE": "No usable address"})),
    SINCE,
    UNTIL,
)
_STATUSES: Final = {each: show_status(each).word for each in (*TaskStatus, *ExecutionStatus)}
_BY_NAME: Final = {
    **{each.name: each for each in (*CHANGES, *DUE, *TASKS, *RUNS)},
    "status": Filter("status", "Status", "choice", _STATUSES),
    "pausedUntil": Filter("pausedUntil", "Paused until", "instant"),
}
"""The filters of actions on many, which are those of both lists."""


def name_parameters(filters: Iterable[Filter]) -> tuple[str, ...]:
    """Return the parameters of a list's address."""
    return (*(each.name for each in filters), "page")


def read_filters(visit: Visit, filters: Iterable[Filter]) -> dict[str, str]:
    """Return the filters of an address as the API takes them. Raises InvalidInput for a value that is not offered."""
    found = {each.name: each.read(visit) for each in filters}
    return {name: text for name, text in found.items() if text}


def find_window(found: Mapping[str, str]) -> timedelta | None:
    """Return how long the window of time is that was chosen. A bound stands before it."""
    if found.keys() & {"from", "until"} or "within" not in found:
        return None
    return WINDOWS[found["within"]][1]


def show_filters(visit: Visit, filters: Iterable[Filter]) -> Json:
    """Return what the form of a list shows: its fields with their values, and the filters that apply in words."""
    asked = read_filters(visit, filters)
    times = [each.name for each in filters if each.kind == "instant"]
    entered = {name: read_instant(visit.query.get(name, ""), visit.zone, name) for name in times}
    return {
        "fields": [
            (each, entered[each.name].value if each.name in entered else asked.get(each.name, ""))
            for each in filters
            if each.has_field
        ],
        "applied": [
            (f"{each.label}: {each.write(asked[each.name], visit)}", visit.with_query(**_drop(each.name), page=None))
            for each in filters
            if each.name in asked and each.name != "troubleUntil"
        ],
        "note": " ".join(each.note for each in entered.values() if each.note),
    }


def _drop(name: str) -> dict[str, None]:
    """Return the change that takes a filter off an address. A trouble's bound goes with it."""
    return dict.fromkeys((name, "troubleUntil") if name == "trouble" else (name,))


def name_filter(name: str) -> str:
    """Return the name of a filter, such as ``Start delay of at least``."""
    return _BY_NAME[name].label if name in _BY_NAME else split_words(name).strip().capitalize()


def write_value(name: str, text: str, visit: Visit) -> str:
    """Return the value of a filter in words."""
    return _BY_NAME[name].write(text, visit) if name in _BY_NAME else text
