"""The operations of the API on what owners keep by name, calendars and scripts, as flows that both clients run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from cloudsched.client.flow import ApiRequest, Flow, operation
from cloudsched.client.views import CalendarView, ScriptView, reader

if TYPE_CHECKING:
    from collections.abc import Iterable


class RecordOperations:
    """The methods of `Client` and `AsyncClient` for the calendars that schedules respect, and for stored scripts."""

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

    @operation
    def put_script(
        self,
        name: str,
        source: str,
        *,
        owner: str | None = None,
        description: str = "",
        tools: Iterable[str] | None = None,
    ) -> Flow[ScriptView]:
        """Create or replace a script; see docs/how-to/stored-scripts.md.

        Args:
            name: Its name, for ``script={"name": …}`` in a task and ``scripts.name(…)`` in a script.
            source: The body of an async function, in JavaScript.
            owner: Whose it is: only this owner's tasks can run it. The caller's if None, or ``system``.
            description: What it does, for people.
            tools: The handlers that it may call; None for all tools.
        """
        body: dict[str, Any] = {"source": source, "description": description}
        body |= {} if owner is None else {"owner": owner}
        body |= {} if tools is None else {"tools": list(tools)}
        answer = yield ApiRequest("PUT", _script_path(name), body)
        return answer.read("a script", reader(ScriptView))

    @operation
    def script(self, name: str, owner: str | None = None) -> Flow[ScriptView]:
        """Return a script, with its source."""
        answer = yield ApiRequest("GET", _script_path(name), query=_owner_query(owner))
        return answer.read("a script", reader(ScriptView))

    @operation
    def scripts(self, owner: str | None = None) -> Flow[list[ScriptView]]:
        """Return an owner's scripts, without their sources."""
        answer = yield ApiRequest("GET", "/v1/scripts", query=_owner_query(owner))
        return answer.read_list("scripts", reader(ScriptView))

    @operation
    def delete_script(self, name: str, owner: str | None = None) -> Flow[None]:
        """Delete a script; what runs already goes on."""
        yield ApiRequest("DELETE", _script_path(name), query=_owner_query(owner))


def _calendar_path(calendar_id: str) -> str:
    return f"/v1/calendars/{quote(calendar_id, safe='')}"


def _script_path(name: str) -> str:
    return f"/v1/scripts/{quote(name, safe='')}"


def _owner_query(owner: str | None) -> dict[str, str]:
    return {} if owner is None else {"owner": owner}
