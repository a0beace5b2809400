"""``cloudsched admin calendars``: shows and changes calendars through the API."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloudsched.cli.options import (
    ApiGroup,
    api_options,
    confirm,
    json_option,
    parse_date,
    pass_client,
    yes_option,
)
from cloudsched.features.calendars.ics_days import decode_ics
from cloudsched.local.untrusted_text import to_json_line, to_printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cloudsched.client.client import Client
    from cloudsched.client.views import CalendarView


@click.group(cls=ApiGroup)
@api_options
def calendars() -> None:
    """Show and change calendars: holidays and other days that schedules respect."""


_id_argument = click.argument("calendar_id", metavar="ID")
_calendar_owner_option = click.option(
    "--owner", help="Whose calendar it is. Default: for admins everybody's, else your own."
)


@calendars.command("set")
@_id_argument
@_calendar_owner_option
@click.option("--title", default="", help="What it is, for people.")
@click.option(
    "--day",
    "days",
    multiple=True,
    metavar="DATE[/DATE][=NAME]",
    help="A day, or several. Repeatable.",
)
@click.option("--weekdays", metavar="A,B", help="Days of the week that are always on it, such as SA,SU.")
@click.option(
    "--ics",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="An iCalendar file.",
)
@click.option("--from-url", metavar="URL", help="The address of one, which is fetched again every day.")
@click.option("--holidays", metavar="COUNTRY[-PART]", help="A country's holidays, such as FR or DE-BY.")
@click.option(
    "--years",
    metavar="YEAR[-YEAR]",
    help="With --holidays: the years. Default: the last one and ten to come.",
)
@click.option("--language", metavar="CODE", help="With --holidays: the language of their names.")
@json_option
@pass_client
def set_calendar(client: Client, /, calendar_id: str, *, as_json: bool, **options: Any) -> None:
    """Create or replace a calendar. Tasks that name it are planned again within a minute or two."""
    week = options["weekdays"]
    calendar = client.put_calendar(
        calendar_id,
        owner=options["owner"],
        title=options["title"],
        weekdays=None if week is None else [each.upper() for each in week.split(",") if each],
        days=[_parse_day(text) for text in options["days"]] or None,
        ics=None if options["ics"] is None else _read_file(options["ics"]),
        url=options["from_url"],
        holidays=_parse_holidays(options["holidays"], options["years"], options["language"]),
    )
    _print_calendar(calendar, as_json=as_json)


@calendars.command("show")
@_id_argument
@_calendar_owner_option
@json_option
@pass_client
def show_calendar(client: Client, calendar_id: str, owner: str | None, *, as_json: bool) -> None:
    """Show a calendar with its days."""
    _print_calendar(client.calendar(calendar_id, owner), as_json=as_json)


@calendars.command("list")
@_calendar_owner_option
@json_option
@pass_client
def list_calendars(client: Client, owner: str | None, *, as_json: bool) -> None:
    """List the calendars for everybody, and the owner's own."""
    for calendar in client.calendars(owner):
        if as_json:
            click.echo(to_json_line(_to_json(calendar, with_days=False)))
        else:
            problem = ""
            if calendar.problem:
                problem = f"  not refreshed: {calendar.problem}"
            click.echo(to_printable(f"{calendar.id}  {calendar.title}{problem}").rstrip())


@calendars.command("delete")
@_id_argument
@_calendar_owner_option
@yes_option
@json_option
@pass_client
def delete_calendar(
    client: Client,
    calendar_id: str,
    owner: str | None,
    *,
    is_sure: bool,
    as_json: bool,
) -> None:
    """Delete a calendar. Tasks that name it keep the days that it had."""
    confirm(f"Delete the calendar {to_printable(calendar_id)}?", is_sure=is_sure)
    client.delete_calendar(calendar_id, owner)
    click.echo(to_json_line({"deleted": calendar_id}) if as_json else f"deleted {to_printable(calendar_id)}")


def _read_file(path: Path) -> str:
    try:
        return decode_ics(path.read_bytes())
    except OSError as error:
        raise click.UsageError(f"--ics {path}: it cannot be read.") from error


def _parse_day(text: str) -> dict[str, str]:
    days, _, name = text.partition("=")
    first, _, last = days.partition("/")
    parsed = {"date": parse_date(first, "--day").isoformat()}
    if last:
        parsed["until"] = parse_date(last, "--day").isoformat()
    return {**parsed, "name": name}


def _parse_holidays(place: str | None, years: str | None, language: str | None) -> dict[str, Any] | None:
    if place is None:
        if years is not None or language is not None:
            raise click.UsageError("--years and --language are about holidays: give --holidays as well.")
        return None
    country, _, part = place.partition("-")
    fields: dict[str, Any] = {"country": country.upper()}
    if part:
        fields["subdivision"] = part.upper()
    if language is not None:
        fields["language"] = language
    if years is not None:
        first, _, last = years.partition("-")
        if not all(each.isascii() and each.isdigit() for each in (first, last or first)):
            raise click.UsageError(f"--years {years}: write 2027, or 2027-2030.")
        fields |= {"firstYear": int(first), "lastYear": int(last or first)}
    return fields


def _print_calendar(calendar: CalendarView, *, as_json: bool) -> None:
    content = _to_json(calendar, with_days=True)
    if as_json:
        click.echo(to_json_line(content))
        return
    for name, value in content.items():
        if name not in {"days", "weekdays"} and value not in ({}, ""):
            click.echo(f"{name:<12} {to_printable(value if isinstance(value, str) else to_json_line(value))}")
    for line in _describe_days(content):
        click.echo(to_printable(line))


def _describe_days(content: dict[str, Any]) -> Iterable[str]:
    if content["weekdays"]:
        yield f"{'every':<12} {', '.join(content['weekdays'])}"
    for day in content["days"]:
        days = day["date"] + (f"/{day['until']}" if "until" in day else "")
        yield f"{days:<21}  {day.get('name', '')}".rstrip()


def _to_json(calendar: CalendarView, *, with_days: bool) -> dict[str, Any]:
    left_out = set() if with_days else {"days"}
    return calendar.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=left_out)
