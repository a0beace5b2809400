"""The part of calendars in a container, made on first use."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cloudsched.errors import Unavailable
from cloudsched.runtime.container import Wiring
from cloudsched.runtime.lazy_property import lazy_property

if TYPE_CHECKING:
    from cloudsched.features.calendars.calendars import Calendars


class CalendarsWiring(Wiring):
    """Makes what keeps calendars."""

    @lazy_property
    def calendars(self) -> Calendars:
        """Keeps the calendars that schedules respect."""
        from cloudsched.adapters.safe_http import make_session  # noqa: PLC0415 - imported only when used
        from cloudsched.features.calendars.calendars import Calendars  # noqa: PLC0415 - the same
        from cloudsched.features.calendars.sources import CalendarSources  # noqa: PLC0415 - the same

        own = self.container
        sources = CalendarSources(partial(make_session, own.settings.access.reachable))
        guarded = own.circuits.guard("calendar", sources, Unavailable, "The calendar's server", ("fetch",), _find_host)
        return Calendars(own.store, own.clock, lambda: own.scheduler, guarded, own.followers)


def _find_host(url: str, _etag: str | None) -> str:
    return urlsplit(url).hostname or ""
