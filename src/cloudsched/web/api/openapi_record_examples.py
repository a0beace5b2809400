"""The examples in ``/openapi.json`` of calendars and scripts."""

from __future__ import annotations

from typing import Any, Final

Json = dict[str, Any]

_CALENDAR: Final[Json] = {
    "id": "fr-holidays",
    "owner": "system",
    "title": "Holidays in France",
    "revision": 1,
    "weekdays": [],
    "createdAt": "2027-01-04T08:00:00Z",
    "updatedAt": "2027-01-04T08:00:00Z",
}
_SCRIPT: Final[Json] = {
    "name": "nested-task",
    "owner": "ada",
    "description": "Greets a customer.",
    "version": 1,
    "createdAt": "2027-01-04T08:00:00Z",
    "updatedAt": "2027-01-04T08:00:00Z",
}
RECORD_RESPONSES: Final[dict[str, Json]] = {
    "CalendarDetails": {**_CALENDAR, "days": [{"date": "2027-07-14", "name": "Bastille Day"}]},
    "CalendarList": {"calendars": [_CALENDAR]},
    "ScriptDetails": {**_SCRIPT, "source": "return `Hello ${input.name}`"},
    "ScriptList": {"scripts": [_SCRIPT]},
}
