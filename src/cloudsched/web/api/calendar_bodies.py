"""The requests about named calendars."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StringConstraints

from cloudsched.domain.calendars.days import MAX_DAY_NAME, MAX_INTERVALS
from cloudsched.domain.documents.calendar import HolidaySource
from cloudsched.domain.documents.document import WireModel
from cloudsched.domain.documents.task import Owner, Text
from cloudsched.domain.schedules.ics_days import MAX_TEXT


def _parse_day(value: object) -> object:
    """Read a day as RFC 3339 writes it; pydantic alone would take a number for seconds since 1970."""
    try:
        if not isinstance(value, str) or len(value) != len("2027-01-01"):
            raise ValueError  # noqa: TRY301 - the same message as for what is no date
        return dt.date.fromisoformat(value)
    except ValueError:
        raise ValueError("is not a day such as 2027-01-01") from None


Day = Annotated[dt.date, BeforeValidator(_parse_day)]
DayName = Annotated[str, StringConstraints(max_length=MAX_DAY_NAME)]


class CalendarDay(WireModel):
    """A day of a calendar, or several in a row."""

    date: Day
    """The day, or the first one."""
    until: Day | None = None
    """The last day, if there are several."""
    name: DayName = ""
    """What it is, such as a holiday's name: it is in the records of what it has moved."""


class PutCalendar(WireModel):
    """A calendar to create or replace. At most one of ``days``, ``ics``, ``url`` and ``holidays`` is given."""

    owner: Owner | None = None
    """Whose calendar it is. If an admin omits it, it is for everybody; a user's are the user's own."""
    title: Text = ""
    weekdays: Annotated[tuple[Literal["MO", "TU", "WE", "TH", "FR", "SA", "SU"], ...], Field(max_length=7)] = ()
    """Days of the week that are always on it."""
    days: Annotated[tuple[CalendarDay, ...], Field(max_length=MAX_INTERVALS)] = ()
    """Its days, by hand."""
    ics: Annotated[str, StringConstraints(max_length=MAX_TEXT)] | None = None
    """An iCalendar file, whose events are its days."""
    url: Annotated[str, StringConstraints(max_length=2000)] | None = None
    """The address of an iCalendar file; it is fetched now, and again every day."""
    holidays: HolidaySource | None = None
    """A country whose holidays it has, as the installed version of the package ``holidays`` knows them."""
