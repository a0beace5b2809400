"""Named calendars: write, read and delete them, and refresh those that are fetched from a URL.

Users' fetches are limited, so that nobody uses this service to send requests to others.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeGuard
from urllib.parse import urlsplit

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.record import secret_hash
from cloudsched.domain.documents.task import owner_id_prefix
from cloudsched.domain.schedules.calendar_days import WEEKENDS, WEEKENDS_CONTENT, format_days
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.domain.transitions.task_draft import TaskDraft
from cloudsched.engine.authority import OWN_CODE, Authority
from cloudsched.engine.state.record_changes import change_record, count_recent
from cloudsched.engine.tasks.follow_changes import Followers, count_replan
from cloudsched.errors import InvalidInput, Misconfigured, NotFound, Unavailable
from cloudsched.features.calendars.documents import (
    Calendar,
    HolidaySource,
    calendar_key,
    is_calendar_name,
    is_owned_key,
)
from cloudsched.features.calendars.ics_days import read_ics_days
from cloudsched.features.calendars.schedule_days import find_calendar, list_calendars

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.tasks.scheduler import Scheduler


class CalendarSource(Protocol):
    """Fetches calendars.

    * URLs come from users, so a fetch reaches nothing that only this process can reach.
    """

    def fetch(self, url: str, etag: str | None) -> tuple[str, str | None] | None:
        """Return the text at a URL and its ETag, None if it still has the ETag that is known.

        Raises:
            InvalidInput: The URL leads where it may not, or to something too large.
            Unavailable: The server did not answer with a calendar.
        """
        ...

    def list_holidays(
        self, source: HolidaySource, now: datetime
    ) -> tuple[Sequence[tuple[date, date, str]], HolidaySource]:
        """Return a country's holidays, and their source with the version of the package that knows them.

        Raises:
            InvalidInput: There are none for that country.
            Misconfigured: The package that knows them is not installed.
        """
        ...


MAX_FOR_OWNER: Final = 30
"""The most calendars that a user may have fetched in a day by writing them. Refreshed ones do not count."""
MAX_FROM_HOST: Final = 20
"""The most calendars that are fetched from one host in a minute, for all users together."""


def count_fetch(records: RecordStore, clock: Clock, owner: str, host: str) -> None:
    """Count one more fetch for an owner from a host, before it is made. Raises QuotaExceeded."""
    hint = "You may give the days as text."
    if owner != SYSTEM_OWNER:
        key = secret_hash("calendar owner", owner)
        quota = "calendars fetched in a day"
        count_recent(records, clock, key, limit=MAX_FOR_OWNER, span=timedelta(days=1), quota=quota, hint=hint)
    key = secret_hash("calendar host", host.casefold())
    quota = "calendars fetched from one host in a minute"
    count_recent(records, clock, key, limit=MAX_FROM_HOST, span=timedelta(minutes=1), quota=quota, hint=hint)


REFRESH_HANDLER: Final = "cloudsched.calendar.refresh"
"""The name of the handler of the tasks that fetch calendars from their URLs."""
_REFRESH_EVERY: Final = timedelta(days=1)
_REFRESH_JITTER: Final = timedelta(hours=1)
_MAX_URL: Final = 2000
_MAX_PROBLEM: Final = 500


class Calendars:
    """Writes, reads and deletes calendars."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        scheduler: Callable[[], Scheduler],
        source: CalendarSource,
        followers: Followers,
    ) -> None:
        self._store = store
        self._clock = clock
        self._scheduler = scheduler
        self._source = source
        self._followers = followers

    def put(  # noqa: PLR0913 - each is an option of its own
        self,
        name: str,
        owner: str,
        *,
        by: Authority,
        title: str = "",
        weekdays: Sequence[str] | None = None,
        days: Sequence[tuple[date, date, str]] | None = None,
        ics: str | None = None,
        url: str | None = None,
        holidays: HolidaySource | None = None,
    ) -> Calendar:
        """Create or replace a calendar. The next sweeps plan its tasks again.

        One of `days`, `ics`, `url` and `holidays` gives its days, besides its days of the week. A calendar
        that has days keeps them only if they are given again, so a call without any of these is refused.
        Raises Forbidden, InvalidInput, QuotaExceeded or Unavailable. Nothing is stored then.
        """
        by.require_owner(owner)
        now = self._clock.now()
        key = _to_key(name, owner)
        given = [
            label for label, value in (("days", days), ("ics", ics), ("url", url), ("holidays", holidays)) if value
        ]
        if len(given) > 1:
            raise InvalidInput(given[1], f"is given beside {given[0]}", "Give one source of days.")
        is_title_alone = not given and days is None and weekdays is None
        fields: dict[str, Any] = {"title": title}
        if ics is not None:
            days = read_ics_days(ics, now.date())
        elif url is not None:
            host = _find_host(url)
            known = self._store.records.load(Calendar, key)
            if known is None:
                self._require_room(owner)
            else:
                by.require_author("calendar", known.record.defined_by)
            count_fetch(self._store.records, self._clock, owner, host)
            text, etag = self._source.fetch(url, None) or ("", None)
            days = read_ics_days(text, now.date())
            fields |= {"url": url, "etag": etag, "fetched_at": now}
        elif holidays is not None:
            days, snapshot = self._source.list_holidays(holidays, now)
            fields |= {"holidays": snapshot, "fetched_at": now}
        content = format_days(weekdays or (), days or ())

        def change(calendar: Calendar | None) -> Calendar:
            if calendar is None:
                self._require_room(owner)
                own = {"owner": owner, "defined_by": by.author, "created_at": now, "updated_at": now}
                return Calendar(id=key, content=content, **own, **fields)
            by.require_author("calendar", calendar.defined_by)
            if is_title_alone and calendar.content:
                hint = "Give the calendar as a whole: its days again, or days=[] to remove them."
                raise InvalidInput("days", "is stored, and would be removed", hint)
            if by.is_user:
                count_replan(self._store.records, self._clock, owner)
            unset = {"etag": None, "url": None, "holidays": None, "fetched_at": None, "problem": None}
            written = {"defined_by": by.author, "content": content, "updated_at": now}
            return calendar.model_copy(update={**unset, **fields, **written})

        calendar = self._write(key, change)
        self._keep_refresh_task(calendar)
        return calendar

    def get(self, name: str, owner: str) -> Calendar:
        """Return the calendar of a name: the one for everybody, or else the owner's own. Raises NotFound."""
        if name == WEEKENDS:
            now = self._clock.now()
            return Calendar(
                id=WEEKENDS,
                owner=SYSTEM_OWNER,
                content=WEEKENDS_CONTENT,
                created_at=now,
                updated_at=now,
            )
        calendar = find_calendar(self._store.records, name, owner)
        if calendar is None:
            raise NotFound("calendar", name)
        return calendar

    def list(self, owner: str) -> Sequence[Calendar]:
        """Return the calendars for everybody, and the owner's own."""
        return list_calendars(self._store.records, owner)

    def delete(self, name: str, owner: str, *, by: Authority) -> None:
        """Delete a calendar.

        The tasks that name it keep the days that it had. Raises Forbidden or NotFound.
        """
        by.require_owner(owner)
        key = _to_key(name, owner)
        stored = self._store.records.load(Calendar, key)
        if stored is None or stored.record.owner != owner:
            raise NotFound("calendar", name)
        by.require_author("calendar", stored.record.defined_by)
        self._store.records.delete(Calendar, key, stored.version)
        with suppress(NotFound):
            self._scheduler().delete(_refresh_task_id(key), OWN_CODE)

    def refresh(self, key: str) -> str:
        """Ask for a calendar's days again, and store them if they have changed. Return the finding.

        Holidays are those that the package knows that is installed now, and of years that have come closer.
        The days that were there before stay if this raises InvalidInput or Unavailable, and the calendar says
        why.
        """
        stored = self._store.records.load(Calendar, key)
        if stored is None or not _is_fetched(stored.record):
            return "It is no longer fetched."
        try:
            return self._refresh(stored.record)
        except (InvalidInput, Misconfigured, Unavailable) as error:
            self._note_problem(stored.record, str(error)[:_MAX_PROBLEM])
            raise

    def _refresh(self, before: Calendar) -> str:
        key = before.id
        now = self._clock.now()
        if before.holidays is not None:
            days, snapshot = self._source.list_holidays(before.holidays, now)
            fields: dict[str, Any] = {"holidays": snapshot}
        else:
            found = self._source.fetch(before.url or "", before.etag)
            if found is None:
                self._note_problem(before, None)
                return "It has not changed."
            days = read_ics_days(found[0], now.date())
            fields = {"etag": found[1]}

        def change(calendar: Calendar | None) -> Calendar:
            if not _has_same_source(calendar, before):
                raise NotFound("calendar", key)
            weekdays = calendar.content.partition("\n")[0]
            if weekdays.startswith("weekdays "):
                chosen = weekdays.removeprefix("weekdays ").split(",")
            else:
                chosen = []
            changes = {
                "content": format_days(chosen, days),
                "fetched_at": now,
                "updated_at": now,
                "problem": None,
            }
            return calendar.model_copy(update={**fields, **changes})

        is_same = self._write(key, change).revision == before.revision
        if is_same:
            return "Its days are the same."
        return "Its days have changed."

    def _note_problem(self, before: Calendar, problem: str | None) -> None:
        def change(calendar: Calendar | None) -> Calendar | None:
            if not _has_same_source(calendar, before):
                return None
            return calendar.model_copy(update={"problem": problem})

        change_record(self._store.records, Calendar, before.id, change)

    def _write(self, key: str, change: Callable[[Calendar | None], Calendar]) -> Calendar:
        """Write a calendar. If it was there, first create the task that plans its tasks again."""

        def decide(before: Calendar | None) -> Calendar:
            calendar = change(before)
            if before is not None and before.content != calendar.content:
                calendar = calendar.model_copy(update={"revision": before.revision + 1})
            if before is not None:
                what = f"name the calendar {calendar.id}"
                self._followers.begin(calendar.id, calendar.revision, what, None)  # guard: calendar follower
            return calendar

        return change_record(self._store.records, Calendar, key, decide)

    def _require_room(self, owner: str) -> None:
        if len(self._store.records.list(Calendar, owner, limit=Calendar.max_per_owner)) >= Calendar.max_per_owner:
            problem = f"has {Calendar.max_per_owner} calendars, as many as one may have"
            raise InvalidInput("owner", problem, "Delete one that is no longer used.")

    def _keep_refresh_task(self, calendar: Calendar) -> None:
        task_id = _refresh_task_id(calendar.id)
        if not _is_fetched(calendar):
            with suppress(NotFound):
                self._scheduler().delete(task_id, OWN_CODE)
            return
        draft = TaskDraft(
            id=task_id,
            owner=SYSTEM_OWNER,
            title=f"Refresh the calendar {calendar.id}",
            handler=REFRESH_HANDLER,
            payload={"calendar": calendar.id},
            schedule=Schedule.every(_REFRESH_EVERY, start=self._clock.now() + _REFRESH_EVERY),
            jitter=_REFRESH_JITTER,
        )
        self._scheduler().create(draft, by=OWN_CODE)


def _to_key(name: str, owner: str) -> str:
    if not is_calendar_name(name.removeprefix(owner_id_prefix(owner))):
        raise InvalidInput(
            "id",
            f"is {name[:80]!r}",
            "Give 1 to 64 letters, digits, hyphens and underscores.",
        )
    if name == WEEKENDS or (owner == SYSTEM_OWNER and is_owned_key(name)):
        raise InvalidInput("id", f"is {name!r}, which is taken", "Give another one.")
    return calendar_key(owner, name)


def _is_fetched(calendar: Calendar) -> bool:
    return calendar.url is not None or calendar.holidays is not None


def _has_same_source(calendar: Calendar | None, before: Calendar) -> TypeGuard[Calendar]:
    return calendar is not None and (calendar.url, calendar.holidays) == (before.url, before.holidays)


def _refresh_task_id(key: str) -> str:
    return f"calendar-{key}"


def _find_host(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if len(url) > _MAX_URL or parts.scheme not in {"https", "http"} or not parts.hostname or parts.username:
        raise InvalidInput(
            "url",
            "is not the address of a calendar",
            "Give an https URL without a password in it.",
        )
    return parts.hostname
