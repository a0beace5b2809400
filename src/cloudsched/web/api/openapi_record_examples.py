"""The examples in ``/openapi.json`` of calendars, scripts and usage."""

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
_AMOUNTS: Final[Json] = {
    "executions": 720,
    "queries": 2160,
    "estimatedQueries": 2160,
    "tokens": 0,
    "estimatedTokens": 0,
    "reads": 720,
    "writes": 2161,
    "deletes": 0,
    "queueOperations": 1440,
    "requests": 720,
    "dollars": 0.0030249,
}
_PRICES: Final[Json] = {
    "read": 0.3,
    "write": 0.9,
    "delete": 0.1,
    "queueOperation": 0.4,
    "request": 0.4,
    "query": 0,
    "token": 0,
}
_BUDGET: Final[Json] = {
    "owner": "ada",
    "maxQueriesPerMonth": 10000,
    "month": "2027-01",
    "queries": 2160,
    "isUsedUp": False,
    "summedUntil": "2027-01-31T08:00:00Z",
}
RECORD_RESPONSES: Final[dict[str, Json]] = {
    "BudgetDetails": _BUDGET,
    "BudgetPage": {"budgets": [_BUDGET]},
    "UsagePage": {
        "month": "2027-01",
        "usage": [{"owner": "ada", "handler": "report", "month": "2027-01", **_AMOUNTS}],
        "total": _AMOUNTS,
        "summedUntil": "2027-01-31T08:00:00Z",
        "isComplete": True,
        "prices": _PRICES,
    },
    "CalendarDetails": {**_CALENDAR, "days": [{"date": "2027-07-14", "name": "Bastille Day"}]},
    "CalendarList": {"calendars": [_CALENDAR]},
    "ScriptDetails": {**_SCRIPT, "source": "return `Hello ${input.name}`"},
    "ScriptList": {"scripts": [_SCRIPT]},
}
