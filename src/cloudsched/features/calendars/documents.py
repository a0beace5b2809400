"""Named calendars, which have the days that schedules respect.

A calendar for everybody (``calendars/{calendarId}``) belongs to ``system`` and has its plain id. A user's own
has an id that begins with a hash of the owner, so nobody can take or read another's, nor stand in the way of
one that is for everybody.
"""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Final

from pydantic import Field, StringConstraints

from cloudsched.domain.documents.authority import SYSTEM_OWNER, Requesters
from cloudsched.domain.documents.document import Instant, WireModel
from cloudsched.domain.documents.record import CountryCode, Record
from cloudsched.domain.documents.task import Text, owner_id_prefix

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_OWNED: Final = re.compile(r"^u[0-9a-f]{16}-")


class HolidaySource(WireModel):
    """A country's holidays, from the package ``holidays``."""

    country: CountryCode
    """The ISO 3166 code of the country, such as FR."""
    subdivision: Annotated[str, StringConstraints(max_length=20)] | None = None
    """The code of its part, such as BY for Bavaria."""
    first_year: Annotated[int, Field(ge=1900, le=2200)] | None = None
    """The first year, or the year before the current one if None."""
    last_year: Annotated[int, Field(ge=1900, le=2200)] | None = None
    """The last year, or ten years from now if None."""
    language: Annotated[str, StringConstraints(max_length=10)] | None = None
    """The language of the names, such as fr. By default it is the country's own, if the package knows it."""
    version: str | None = None
    """The version of the package that the days are from."""

    @property
    def place(self) -> str:
        """The code of the country, or of its part, such as DE-BY."""
        return "-".join(filter(None, (self.country, self.subdivision)))


class Calendar(Record):
    """One calendar."""

    collection: ClassVar[str] = "calendars"
    is_exported: ClassVar[bool] = True

    title: Text = ""
    defined_by: Requesters | None = None
    """USERS if a user stored it. None if a server did: then its owner may not replace or delete it."""
    content: str = ""
    """Its days, as `format_days` writes them."""
    revision: int = 1
    """Incremented whenever its days change."""
    url: str | None = None
    """The URL from which its days are fetched, as iCalendar."""
    etag: str | None = None
    """The server's entity tag (ETag) of the version that was fetched last."""
    fetched_at: Instant | None = None
    problem: str | None = None
    """Why its days could not be read when they were last asked for. They are still those that it had
    before."""
    holidays: HolidaySource | None = None


def calendar_key(owner: str, name: str) -> str:
    """Return the id under which an owner's calendar is stored."""
    if owner == SYSTEM_OWNER:
        return name
    prefix = owner_id_prefix(owner)
    return name if name.startswith(prefix) else prefix + name


def is_calendar_name(name: str) -> bool:
    """Return whether a calendar can have this name: letters, digits, hyphens and underscores."""
    return _NAME.fullmatch(name) is not None


def is_owned_key(name: str) -> bool:
    """Return whether a name looks like the id of a user's own calendar."""
    return _OWNED.match(name) is not None
