"""The days of stored calendars, read through the API when a command needs them."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

from cloudsched.domain.calendars.days import format_days

if TYPE_CHECKING:
    from collections.abc import Mapping


class StoredCalendars:
    """Reads stored calendars; nothing is imported or asked before one is read.

    Args:
        options: Where the API is, and the credentials: what `connection_options` gives a command.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options

    def read(self, calendar_id: str) -> str:
        """Return the text of a calendar's days.

        Raises:
            NotFound: There is no such calendar for the caller.
            Unavailable: The API does not answer.
        """
        from cloudsched.cli.api_group import explain_errors  # noqa: PLC0415 - most uses ask nobody
        from cloudsched.client.client import Client  # noqa: PLC0415 - likewise

        credentials = {name: self._options[name] for name in ("key", "token", "platform_token")}
        with explain_errors(self._options), Client(self._options["url"], **credentials) as client:
            calendar = client.calendar(calendar_id)
        days = [
            (date.fromisoformat(day["date"]), date.fromisoformat(day.get("until") or day["date"]), day.get("name", ""))
            for day in calendar.days
        ]
        return format_days(calendar.weekdays, days)
