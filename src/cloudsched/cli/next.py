"""``cloudsched next``: shows when a schedule fires."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from cloudsched.adapters.clocks import SystemClock
from cloudsched.cli.options import connection_options, explain_errors, json_option, parse_instant
from cloudsched.config.settings import Settings
from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.schedules.assumptions import list_surprises
from cloudsched.domain.schedules.calendar_days import WEEKENDS, format_days
from cloudsched.domain.schedules.calendar_recurrence import describe_ends, describe_stale
from cloudsched.domain.schedules.calendar_rule import CALENDAR_ID, CalendarRule, On
from cloudsched.domain.schedules.preview import ClockChange, Preview, preview
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import InvalidInput, InvalidSchedule
from cloudsched.features.calendars.ics_days import decode_ics, read_ics_days
from cloudsched.language.schedule_text import ScheduleText, read_schedule
from cloudsched.local.untrusted_text import to_printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class StoredCalendars:
    """Reads stored calendars. Connects to the API only if one is read."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options

    def read(self, calendar_id: str) -> str:
        """Return the text of a calendar's days."""
        from cloudsched.client.client import Client  # noqa: PLC0415 - most uses ask nobody

        credentials = {name: self._options[name] for name in ("key", "token", "platform_token")}
        with explain_errors(self._options), Client(self._options["url"], **credentials) as client:
            calendar = client.calendar(calendar_id)
        if calendar.problem:
            click.echo(to_printable(describe_stale(calendar_id, calendar.problem)), err=True)
        days = [
            (date.fromisoformat(day["date"]), date.fromisoformat(day.get("until") or day["date"]), day.get("name", ""))
            for day in calendar.days
        ]
        return format_days(calendar.weekdays, days)


def add_calendars(schedule: Schedule, rules: Sequence[CalendarRule], stored: StoredCalendars) -> Schedule:
    """Return a schedule with the days of its calendars, and with the calendars that it does not name yet.

    Calendars that it names and that are not among these are stored ones. A single instant raises InvalidSchedule.
    """
    if rules and schedule.is_single_time:
        raise InvalidSchedule("calendar", "has no meaning for a single instant", "omit it")
    contents = {rule.id: rule.content for rule in rules}
    named = []
    for rule in schedule.calendars:
        content = contents.get(rule.id, rule.content)
        named.append(rule.with_content(stored.read(rule.id) if content is None else content))
    named += [rule for rule in rules if rule.id not in {each.id for each in named}]
    return schedule.copy_unchecked(calendars=tuple(named))


def _read_rule(option: str, now: datetime, stored: StoredCalendars) -> CalendarRule:
    """Return the calendar of an option: ``weekends``, a stored one or a file, with ``=before`` or the like."""
    place, _, on = option.rpartition("=")
    if on.upper() not in get_args(On) or not place:
        place = option
        on = "SKIP"
    if re.fullmatch(CALENDAR_ID, place):
        rule = CalendarRule.model_validate({"id": place, "on": on})
        return rule.with_content(rule.content or stored.read(place))
    try:
        text = decode_ics(Path(place).read_bytes())
    except OSError as error:
        raise InvalidInput("calendar", f"{place!r} cannot be read", "Give an .ics file, or a calendar's id.") from error
    name = "".join(each if each.isascii() and (each.isalnum() or each in "_-") else "-" for each in Path(place).stem)
    rule = CalendarRule.model_validate({"id": name[:64] or "calendar", "on": on})
    return rule.with_content(format_days((), read_ics_days(text, now.date())))


_MARKS = {
    ClockChange.SHIFTED: "↷ moved out of a gap",
    ClockChange.REPEATED: "↺ shown twice",
    ClockChange.CHANGED: "◷ clocks changed",
}


@click.command("next")
@click.argument("schedule")
@click.option(
    "--dtstart", metavar="LOCAL", help="The rule's local start time, such as 2027-01-31T09:00:00. Default: now."
)
@click.option(
    "--timezone", "--tz", default="UTC", show_default=True, metavar="ZONE", help="An IANA name: Europe/Paris."
)
@click.option("--locale", help="The language of the words, such as de or en-US. They tell it if omitted.")
@click.option("-n", "count", default=10, show_default=True, type=click.IntRange(1, 1000), help="How many to show.")
@click.option("--after", metavar="INSTANT", help="Show only later occurrences. In the past: as of then. Default: now.")
@click.option(
    "--calendar",
    "calendars",
    multiple=True,
    metavar="CALENDAR[=ON]",
    help="Leave out its days: a stored one's id, weekends, or an .ics file. =before and =after move to a free day.",
)
@connection_options
@json_option
def next_command(  # noqa: PLR0913 - one argument for each option
    *,
    schedule: str,
    dtstart: str | None,
    timezone: str,
    locale: str | None,
    count: int,
    after: str | None,
    calendars: tuple[str, ...],
    as_json: bool,
    **connection: str | None,
) -> None:
    """Show when SCHEDULE fires next, in local time and in UTC.

    SCHEDULE is plain words ("every weekday at 9"), an RRULE ("FREQ=MONTHLY;BYDAY=-1FR"), cron ("0 9 * * 1-5"), an
    iCalendar block, an instant (2027-01-31T09:00:00Z) or a duration from now (PT5M).

    The API is asked only for the days of stored calendars.
    """
    now = SystemClock().now()
    stored = StoredCalendars(connection)
    start = parse_instant(after, timezone, "--after") if after else now
    now = min(now, start)  # as of then
    rules = tuple(_read_rule(option, now, stored) for option in calendars)
    meant = next((rule.id for rule in rules if rule.id != WEEKENDS), None)  # by words such as "except holidays"
    read = _read(schedule, dtstart, timezone, now, meant, locale=locale)
    parsed = add_calendars(read.schedule, rules, stored)
    previews = preview(parsed, start, count)
    language = read.language
    ends = describe_ends(parsed.calendars, previews[-1].local.date()) if previews else []
    assumptions = [*dict.fromkeys((*read.assumptions, *list_surprises(parsed, language))), *ends]
    if as_json:
        more = {"assumptions": assumptions} if assumptions else {}
        click.echo(json.dumps({**_to_json(parsed, previews, language), **more}, indent=2))
    else:
        for assumption in assumptions:
            click.echo(assumption)
        _print(parsed, previews, language)


def _read(
    text: str, dtstart: str | None, timezone: str, now: datetime, calendar: str | None, *, locale: str | None
) -> ScheduleText:
    if dtstart and "=" in text:  # a rule with its own start must not be anchored to now
        read = ScheduleText(Schedule.parse(text, timezone=timezone), language=locale or "en")
    else:
        settings = Settings.from_environment()
        default = calendar or settings.default_calendar
        at = settings.default_time
        read = read_schedule(
            text, now=now, timezone=timezone, default_time=at, default_calendar=default, has_title=True, locale=locale
        )
    if not dtstart:
        return read
    if read.schedule.is_single_time:
        raise InvalidSchedule("dtstart", "has no meaning for a single instant", "omit it")
    fields = read.schedule.model_dump(exclude_none=True) | {"dtstart": dtstart}
    return replace(read, schedule=Schedule.model_validate(fields))


def _to_json(schedule: Schedule, previews: list[Preview], language: str) -> dict[str, object]:
    return {
        "schedule": schedule.model_dump(mode="json", by_alias=True, exclude_defaults=True),
        "description": _describe(schedule, previews, language),
        "tzdata": time_zones.in_use.release,
        "occurrences": [each.to_wire() for each in previews],
    }


def _describe(schedule: Schedule, previews: list[Preview], language: str) -> str:
    now = SystemClock().now()
    return schedule.describe_next(next((each.at for each in previews if each.at >= now), None), language).text


def _print(schedule: Schedule, previews: list[Preview], language: str) -> None:
    from rich.console import Console  # noqa: PLC0415 - not needed for JSON
    from rich.table import Table  # noqa: PLC0415 - likewise

    table = Table(title=_describe(schedule, previews, language), title_justify="left", caption_justify="left")
    table.caption = f"tzdata {time_zones.in_use.release}" if previews else "It does not fire again."
    table.add_column("local", no_wrap=True)
    table.add_column("UTC", no_wrap=True)
    table.add_column("clock change", style="yellow")
    for each in previews:
        mark = _MARKS[each.clock_change] if each.clock_change else ""
        table.add_row(f"{each.local:%a %Y-%m-%d %H:%M:%S %z}", f"{each.at:%Y-%m-%d %H:%M:%S}", mark)
    Console(highlight=False).print(table)
