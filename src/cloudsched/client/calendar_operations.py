"""The operations of the API on calendars, as flows that both clients run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from cloudsched.client.flow import ApiRequest, Flow, operation
from cloudsched.client.views import CalendarView, reader

if TYPE_CHECKING:
    from collections.abc import Iterable


class CalendarOperations:
    """The methods of `Client` and `AsyncClient` for the calendars that schedules respect."""

    @operation
    def put_calendar(  # noqa: PLR0913 - each is an option of its own
        self,
        calendar_id: str,
        *,
        owner: str | None = None,
        title: str = "",
        weekdays: Iterable[str] = (),
        days: Iterable[dict[str, str] | str] = (),
        ics: str | None = None,
        url: str | None = None,
        holidays: dict[str, Any] | None = None,
    ) -> Flow[CalendarView]:
        """Create or replace a calendar; see docs/how-to/holidays.md.

        Args:
            calendar_id: Its name.
            owner: Whose it is; if None, a server's is for everybody and a user's the user's own.
            title: What it is, for people.
            weekdays: Days of the week that are always on it, such as SA and SU.
            days: Its days: dates such as ``2027-07-14``, or objects with `date`, `until` and `name`.
            ics: An iCalendar file, in place of days.
            url: The address of one, fetched every day.
            holidays: A country, such as ``{"country": "DE", "subdivision": "BY"}``.
        """
        listed = [{"date": each} if isinstance(each, str) else each for each in days]
        optional: dict[str, Any] = {"owner": owner, "ics": ics, "url": url, "holidays": holidays}
        body: dict[str, Any] = {"title": title, "weekdays": list(weekdays), "days": listed}
        body |= {name: value for name, value in optional.items() if value is not None}
        answer = yield ApiRequest("PUT", _calendar_path(calendar_id), body)
        return answer.read("a calendar", reader(CalendarView))

    @operation
    def calendar(self, calendar_id: str, owner: str | None = None) -> Flow[CalendarView]:
        """Return a calendar: the one for everybody, or else the owner's own."""
        answer = yield ApiRequest("GET", _calendar_path(calendar_id), query=_owner_query(owner))
        return answer.read("a calendar", reader(CalendarView))

    @operation
    def calendars(self, owner: str | None = None) -> Flow[list[CalendarView]]:
        """Return the calendars for everybody and the owner's own, without their days."""
        answer = yield ApiRequest("GET", "/v1/calendars", query=_owner_query(owner))
        return answer.read_list("calendars", reader(CalendarView))

    @operation
    def delete_calendar(self, calendar_id: str, owner: str | None = None) -> Flow[None]:
        """Delete a calendar; tasks that name it keep the days that it had."""
        yield ApiRequest("DELETE", _calendar_path(calendar_id), query=_owner_query(owner))


def _calendar_path(calendar_id: str) -> str:
    return f"/v1/calendars/{quote(calendar_id, safe='')}"


def _owner_query(owner: str | None) -> dict[str, str]:
    return {} if owner is None else {"owner": owner}
