"""The port for where calendars get their days from, besides their callers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date, datetime

    from cloudsched.domain.documents.calendar import HolidaySource


class CalendarSource(Protocol):
    """Fetches calendars.

    * A URL is a user's: what only this process can reach is not reached.
    """

    def fetch(self, url: str, etag: str | None) -> tuple[str, str | None] | None:
        """Return the text at a URL and its ETag; None if it still has the ETag that is known.

        Raises:
            InvalidInput: The URL leads where it may not, or to something too large.
            Unavailable: The server did not answer with a calendar.
        """
        ...

    def list_holidays(
        self, source: HolidaySource, now: datetime
    ) -> tuple[Sequence[tuple[date, date, str]], HolidaySource]:
        """Return a country's holidays, and their source with the version of what knows them.

        Raises:
            InvalidInput: There are none for that country.
            Misconfigured: The package that knows them is not installed.
        """
        ...
