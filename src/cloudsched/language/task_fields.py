"""Replace schedule text in the fields of a task by the JSON of a `Schedule`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from cloudsched.domain.recurrence.notations import is_notation
from cloudsched.domain.schedules.assumptions import note
from cloudsched.domain.schedules.schedule import OWNER_ZONE, Schedule
from cloudsched.domain.schedules.words import find_words
from cloudsched.errors import AmbiguousSchedule, InvalidInput, InvalidSchedule
from cloudsched.language.messages import tell

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, time

    from cloudsched.language.schedule_text import ScheduleText

_FIELDS = tuple(field.alias or name for name, field in Schedule.model_fields.items())


def read_schedule_field(  # noqa: PLR0913 -- each is named
    fields: dict[str, Any],
    *,
    now: datetime,
    default_time: time,
    default_calendar: str | None = None,
    current: Schedule | None = None,
    find_owner_zone: Callable[[], str | None] = lambda: None,
    find_owner_locale: Callable[[], str | None] = lambda: None,
    allows_title: bool = False,
) -> ScheduleText:
    """Return the meaning of ``schedule``: text, with ``timezone`` and ``locale`` beside it, or ``{"cron": …}``.

    Without a locale, the language is detected from the words, and the owner's locale settles open details, such as 3/4.
    A change of a `current` schedule stays in its zone, unless ``timezone`` gives another, which moves its local times
    there, with or without a text. For a new task, which would run now, ``timezone`` alone is refused.

    Every word has to belong to the schedule, unless a title may stand in the words. A schedule that follows its owner
    is read in the zone that `find_owner_zone` returns, or in UTC if that is not known. So is a new one without a zone.
    """
    text, timezone = _find_text(fields)
    locale = require_locale(fields.get("locale"))
    from cloudsched.language.languages import is_known  # noqa: PLC0415 - only text pays for the parsers
    from cloudsched.language.schedule_text import ScheduleText, read_schedule  # noqa: PLC0415 - the same

    follows, zone = timezone == OWNER_ZONE, timezone
    if zone is None:
        zone = OWNER_ZONE if current is None else current.timezone
    if zone == OWNER_ZONE:
        zone = find_owner_zone() or "UTC"

    def read(zone: str, language: str | None = locale) -> ScheduleText:
        try:
            return read_schedule(
                text or "",
                now=now,
                timezone=zone,
                locale=language,
                current=current,
                default_time=default_time,
                default_calendar=default_calendar,
                has_title=not allows_title,
            )
        except InvalidSchedule:
            home = find_owner_locale() if language is None else None
            if home is None or not is_known(home):
                raise
        return read(zone, home)

    try:
        if timezone is not None and current is not None:
            current = current.change_zone(zone)
            current = current.follow_owner() if follows else current
        if text is None:
            if current is None or "schedule" in fields:
                hint = 'Say when, schedule="every day at 9", or leave it out: now is the same everywhere.'
                raise InvalidInput("timezone", "is given without a schedule", hint)
            return ScheduleText(current, language=locale or "en")
        found = read(zone)
        is_local = not found.schedule.is_instant  # "in 2 hours" is the same everywhere
        goes_on = current is not None and current.follows_owner and is_notation(text)
        if is_local and (follows or goes_on):
            return replace(found, schedule=found.schedule.follow_owner())
        if found.schedule.follows_owner and current is None and (own := find_owner_zone()) is not None:
            return read(own)  # "tomorrow" is the owner's
        is_there = timezone is None and zone != "UTC" and found.schedule.timezone == zone
        told: list[str] = []
        if current is not None:
            if is_there:
                told.append(tell(found.language, "The time zone stays {zone}.", zone=zone))
            if found.schedule.is_one_time and not current.is_one_time:
                told.append(tell(found.language, "It runs once, and no longer repeats."))
        elif is_there and is_local and read("UTC").schedule.timezone != zone:  # no text says so
            told.append(find_words(found.language).assumed["person"].format(zone))
        return replace(found, assumptions=(*found.assumptions, *told))
    except AmbiguousSchedule:
        raise
    except InvalidSchedule as error:  # name the field of the task, and not the part of a notation's parser
        beside = error.field == "timezone" and not isinstance(fields.get("schedule"), dict)
        own = "schedule" if error.field in {"text", "schedule"} else f"schedule.{error.field}"
        raise error.at("timezone" if beside else own) from error


def _find_text(fields: dict[str, Any]) -> tuple[str | None, str | None]:
    """Return the fields' text for a schedule, and the zone beside it. None for a missing one, but not for both."""
    schedule, beside = fields.get("schedule"), fields
    text = schedule
    if isinstance(schedule, dict) and "cron" in schedule:
        unknown = schedule.keys() - {"cron", "timezone"}
        if unknown:
            raise InvalidInput(f"schedule.{min(unknown)}", "stands beside cron", "Give cron and timezone alone.")
        text, beside = schedule["cron"], schedule if "timezone" in schedule else fields
        if not isinstance(text, str):
            raise InvalidInput("schedule.cron", "is no text", 'Give a cron expression, such as "0 9 * * 1-5".')
    has_zone = "timezone" in beside
    if not isinstance(text, str) and (text is not None or not has_zone):
        hint = "Leave it out: an instant, or a schedule that is an object, has its own."
        name = "timezone" if has_zone else "locale"
        raise InvalidInput(name, "has no meaning beside this schedule", hint)
    timezone = beside.get("timezone")
    if has_zone and not isinstance(timezone, str):
        raise InvalidInput("timezone", "is no text", "Give an IANA name, such as Europe/Paris.")
    return text, timezone


def require_locale(locale: object) -> str | None:
    """Return a locale in whose language schedules are read, or None for none."""
    if locale is None:
        return None
    from cloudsched.language.languages import LANGUAGES, is_known  # noqa: PLC0415 - only text pays for the parsers

    if isinstance(locale, str) and is_known(locale):
        return locale
    hint = f"Give one of {', '.join(LANGUAGES)}, with a region if you like: en-US. Leave it out, and the words tell."
    raise InvalidInput("locale", "is no language in which schedules are read", hint)


def with_schedule(
    fields: dict[str, Any], *, current: Schedule | None = None, current_text: str | None = None, **options: Any
) -> tuple[dict[str, Any], str | None]:
    """Return a new task's fields, or a merge patch of one, with the schedule as JSON.

    The `options` are those of `read_schedule_field`.

    A title in the words is used if the task has none. A `current` schedule is replaced as a whole, and its task keeps
    its title. The text is returned as well if it means a whole schedule, whatever the current one is. `current_text` is
    what an earlier reading has returned: the same text is no change of the current schedule.
    """
    text, locale = _find_text(fields)[0], require_locale(fields.get("locale"))
    said = None if text is None else " ".join(text.casefold().split())
    said_before, _, named = (current_text or "").partition("\n")
    if locale is None and said == said_before:
        locale = named or None  # in the language that was named then
    key = f"{said}\n{locale}" if said and locale else said
    known = current if key is not None and key == current_text else None
    if known is not None and known.is_single_time:
        known = None
    zone = {"timezone": OWNER_ZONE if known.follows_owner else known.timezone} if known else {}
    kept = {**zone, "locale": locale, **fields}
    read_with = partial(read_schedule_field, kept, allows_title=not fields.get("title"), **options)
    read = read_with(current=None if known else current)
    if current is not None and text is not None and not known and not _is_whole(text, read, read_with):
        key = None
    note(read.assumptions, read.language)
    schedule = read.schedule.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    cleared = {} if current is None else dict.fromkeys(_FIELDS)
    rest = {name: value for name, value in fields.items() if name not in {"timezone", "locale"}}
    title = {"title": read.title} if read.title and current is None and not fields.get("title") else {}
    return {**rest, **title, "schedule": {**cleared, **schedule}}, key


def _is_whole(text: str, found: ScheduleText, read_with: Callable[..., ScheduleText]) -> bool:
    """Return whether a text repeats, and means the same without a current schedule: "every hour", not "one later"."""
    if is_notation(text):
        return True
    try:
        alone = read_with(current=None).schedule
    except InvalidSchedule:
        return False
    return alone.rules == found.schedule.rules and not found.schedule.is_single_time and not alone.is_single_time
