"""The sources of calendars' days: iCalendar files at URLs, and the package ``holidays``."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Final

import requests

from cloudsched.errors import InvalidInput, MissingExtra, Unavailable
from cloudsched.features.calendars.ics_days import MAX_TEXT, decode_ics

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date, datetime

    from cloudsched.features.calendars.documents import HolidaySource

FETCH_SECONDS: Final = 10.0
"""The longest time of a whole fetch: redirects, and a server that sends a byte now and then, included."""
_YEARS_AHEAD: Final = 10
_MAX_YEARS: Final = 60


class CalendarSources:
    """Fetches calendars for users, from public addresses only."""

    def __init__(self, make_session: Callable[..., requests.Session]) -> None:
        self._make_session = make_session

    def fetch(self, url: str, etag: str | None) -> tuple[str, str | None] | None:
        """Return the text at a URL and its ETag, None if it still has the ETag that is known."""
        headers = {"Accept": "text/calendar", **({} if etag is None else {"If-None-Match": etag})}
        try:
            with (
                self._make_session(
                    max_seconds=FETCH_SECONDS,
                    max_bytes=MAX_TEXT,
                    for_one_call=True,
                ) as session,
                session.get(url, headers=headers, timeout=FETCH_SECONDS, stream=True) as response,
            ):
                if response.status_code == requests.codes.not_modified and etag is not None:
                    return None
                if response.status_code != requests.codes.ok:
                    refusal = Unavailable("The calendar's server", f"it answered {response.status_code}")
                    refusal.has_answered = True
                    raise refusal
                return decode_ics(response.content), response.headers.get("ETag")
        except requests.exceptions.ContentDecodingError as error:
            problem = f"leads to more than {MAX_TEXT} bytes, or to what cannot be unpacked"
            raise InvalidInput("url", problem, "Give a smaller calendar.") from error
        except (requests.RequestException, OSError) as error:
            raise Unavailable("The calendar's server", f"{type(error).__name__}") from error

    @staticmethod
    def list_holidays(
        source: HolidaySource,
        now: datetime,
    ) -> tuple[list[tuple[date, date, str]], HolidaySource]:
        """Return a country's holidays, and their source with the package's version."""
        try:
            import holidays  # noqa: PLC0415 - an extra, and slow to import
        except ImportError as error:
            raise MissingExtra("A calendar of a country's holidays", "holidays", "holidays") from error

        first = source.first_year or now.year - 1
        last = source.last_year or now.year + _YEARS_AHEAD
        if not 0 <= last - first < _MAX_YEARS:
            raise InvalidInput(
                "holidays.lastYear",
                f"is {last}, and the first year {first}",
                f"At most {_MAX_YEARS}.",
            )

        try:
            years = range(first, last + 1)
            found = holidays.country_holidays(
                source.country, subdiv=source.subdivision, years=years, language=source.language
            )
        except (NotImplementedError, ValueError) as error:
            problem = f"knows no {source.country} {source.subdivision or ''}".rstrip()
            raise InvalidInput("holidays", problem, "Give ISO 3166 codes, such as DE and BY.") from error

        named = [(day, day, name) for day, name in sorted(found.items())]
        return named, source.model_copy(update={"version": version("holidays")})
