"""``cloudsched people``, ``calendars`` and ``scripts``: show and change through the API what is kept of owners."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from cloudsched.cli.options import (
    RECORD_SYNONYMS,
    ApiGroup,
    api_options,
    confirm,
    json_option,
    parse_date,
    pass_client,
    quiet_option,
    yes_option,
)
from cloudsched.errors import NotFound
from cloudsched.local.untrusted_text import to_json_line, to_printable, to_printable_lines

if TYPE_CHECKING:
    from cloudsched.client.client import Client
    from cloudsched.client.views import CalendarView, PersonView, ScriptView


_SETTABLE = ("name", "email", "devices", "webhook", "timezone", "locale", "channels")
"""The fields of a person that a caller sets."""


@click.group(cls=ApiGroup, synonyms=RECORD_SYNONYMS)
@api_options
def people() -> None:
    """Show and change how people want to be reached."""


_person_argument = click.argument("owner")


@people.command("show")
@_person_argument
@json_option
@pass_client
def show_person(client: Client, owner: str, *, as_json: bool) -> None:
    """Show a person's contacts and preferences."""
    _print_person(client.person(owner), as_json=as_json)


@people.command("set")
@_person_argument
@click.option("--name", help="How to address the person.")
@click.option("--email", metavar="ADDRESS", help="Where mail goes, once it is verified.")
@click.option("--verified", is_flag=True, help="What --email and --webhook name is known to be theirs. For admins.")
@click.option("--device", "devices", multiple=True, metavar="TOKEN", help="A device's FCM token; repeatable.")
@click.option("--webhook", metavar="URL", help="Where messages are posted to; the secret is printed once.")
@click.option("--timezone", "--tz", metavar="ZONE", help="The zone of schedules that follow the person.")
@click.option("--locale", help="The person's language, such as de-AT.")
@click.option("--channels", multiple=True, metavar="CATEGORY=A,B", help="The channels of a category; repeatable.")
@click.option("--clear", multiple=True, metavar="FIELD", help="A field to reset, such as locale; repeatable.")
@json_option
@pass_client
def set_person(client: Client, /, owner: str, *, clear: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Change some of a person's contacts and preferences. The others stay."""
    changes = _parse_options(options)
    if not changes and not clear:
        raise click.UsageError("Name at least one field to change.")
    try:
        known = client.person(owner).model_dump(mode="json", exclude_none=True)
    except NotFound:
        known = {}
    fields = {name: known[name] for name in _SETTABLE if name in known} | changes
    for field in clear:
        if field.replace("-", "_") not in _SETTABLE:
            raise click.UsageError(f"--clear {field}: name one of {', '.join(_SETTABLE)}.")
        fields.pop(field.replace("-", "_"), None)
    person = client.put_person(owner, **fields)
    _print_person(person, as_json=as_json)
    if person.webhook_secret is not None:
        click.echo(f"The webhook's secret, which is shown only once: {person.webhook_secret}", err=True)


@people.command("verify-webhook")
@_person_argument
@json_option
@pass_client
def verify_webhook(client: Client, owner: str, *, as_json: bool) -> None:
    """Have a person's webhook asked whether it wants their messages. It answers with the challenge that it gets."""
    client.verify_webhook(owner)
    click.echo(to_json_line({"verified": True}) if as_json else "verified")


@people.command()
@_person_argument
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="The most messages to show.")
@json_option
@pass_client
def inbox(client: Client, owner: str, *, limit: int, as_json: bool) -> None:
    """Show a person's messages, the newest first, unread ones with a star."""
    for _, message in zip(range(limit), client.inbox(owner), strict=False):
        if as_json:
            click.echo(to_json_line(message.to_wire()))
            continue
        star = " " if message.is_read else "*"
        click.echo(f"{star} {message.created_at:%Y-%m-%d %H:%M:%S}  {to_printable(message.title)}  {message.id}")
    if not as_json:
        click.echo(f"{client.unread(owner)} unread")


@people.command()
@_person_argument
@click.argument("message_id", metavar="ID")
@json_option
@pass_client
def read(client: Client, owner: str, message_id: str, *, as_json: bool) -> None:
    """Mark a message as read."""
    message = client.mark_read(owner, message_id)
    click.echo(to_json_line(message.to_wire()) if as_json else f"read {to_printable(message_id)}")


@people.command()
@_person_argument
@click.option("--max-queries", type=click.IntRange(0), help="Set how many queries a month. For admins.")
@click.option("--clear", is_flag=True, help="Delete the budget, and resume what it has paused. For admins.")
@yes_option
@json_option
@pass_client
def budget(client: Client, owner: str, *, max_queries: int | None, clear: bool, is_sure: bool, as_json: bool) -> None:
    """Show or set how many queries an owner's tasks may use in a month."""
    if clear:
        confirm(f"Delete the budget of {to_printable(owner)}, and resume what it has paused?", is_sure=is_sure)
        client.delete_budget(owner)
        said = f"deleted the budget of {to_printable(owner)}"
        click.echo(to_json_line({"deleted": owner}) if as_json else said)
        return
    shown = client.budget(owner) if max_queries is None else client.put_budget(owner, max_queries)
    if as_json:
        click.echo(to_json_line(shown.model_dump(mode="json", by_alias=True, exclude_none=True)))
        return
    state = "; used up, and the tasks are paused" if shown.is_used_up else ""
    click.echo(f"{shown.queries:,} of {shown.max_queries_per_month:,} queries of {shown.month}{state}")


@people.command("delete")
@_person_argument
@click.option("--everything", is_flag=True, help="Delete their tasks, executions, inbox and feeds as well.")
@yes_option
@json_option
@pass_client
def delete_person(client: Client, owner: str, *, everything: bool, is_sure: bool, as_json: bool) -> None:
    """Delete a person's contacts and preferences. Their tasks stay, unless --everything is given."""
    what = "all that is stored of" if everything else "the contacts and preferences of"
    confirm(f"Delete {what} {to_printable(owner)}?", is_sure=is_sure)
    if everything:
        task_id = client.erase_person(owner).id
        click.echo(to_json_line({"taskId": task_id}) if as_json else f"being deleted by task {task_id}")
        return
    client.delete_person(owner)
    _say_deleted(owner, as_json=as_json)


@people.command()
@_person_argument
@quiet_option
@pass_client
def export(client: Client, owner: str) -> None:
    """Print all that is stored of a person, as lines of JSON."""
    click.echo(client.export_person(owner), nl=False)


def _parse_options(options: dict[str, Any]) -> dict[str, Any]:
    changes = {name: options[name] for name in ("name", "timezone", "locale") if options[name] is not None}
    verified = {"verified": True} if options["verified"] else {}
    if verified and options["email"] is None and options["webhook"] is None:
        raise click.UsageError("--verified is about an address or a webhook: give --email or --webhook as well.")
    if options["email"] is not None:
        changes["email"] = {"address": options["email"], **verified}
    if options["devices"]:
        changes["devices"] = [{"token": token} for token in options["devices"]]
    if options["webhook"] is not None:
        changes["webhook"] = {"url": options["webhook"], **verified}
    if options["channels"]:
        changes["channels"] = dict(_parse_channels(options["channels"]))
    return changes


def _parse_channels(texts: Iterable[str]) -> Iterable[tuple[str, list[str]]]:
    for text in texts:
        category, equals, listed = text.partition("=")
        if not equals:
            raise click.UsageError(f"--channels {text}: write CATEGORY=CHANNEL,CHANNEL, or CATEGORY= for none.")
        yield category.upper(), [each.upper() for each in listed.split(",") if each]


def _print_person(person: PersonView, *, as_json: bool) -> None:
    content = person.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"webhook_secret"})
    _print_fields(content, as_json=as_json)


def _print_fields(content: dict[str, Any], *, as_json: bool) -> None:
    """Print a record as JSON, or each of its fields that has a value on a line."""
    if as_json:
        click.echo(to_json_line(content))
        return
    for name, value in content.items():
        if value not in ((), [], {}, "", None):
            click.echo(f"{name:<12} {to_printable(value if isinstance(value, str) else to_json_line(value))}")


def _say_deleted(name: str, *, as_json: bool) -> None:
    click.echo(to_json_line({"deleted": name}) if as_json else f"deleted {to_printable(name)}")


_YEARS = "YEAR[-YEAR]"


@click.group(cls=ApiGroup, synonyms=RECORD_SYNONYMS)
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
@click.option("--day", "days", multiple=True, metavar="DATE[/DATE][=NAME]", help="A day, or several; repeatable.")
@click.option("--weekdays", metavar="A,B", help="Days of the week that are always on it, such as SA,SU.")
@click.option("--ics", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="An iCalendar file.")
@click.option("--from-url", metavar="URL", help="The address of one, which is fetched again every day.")
@click.option("--holidays", metavar="COUNTRY[-PART]", help="A country's holidays, such as FR or DE-BY.")
@click.option("--years", metavar=_YEARS, help="With --holidays: the years. Default: the last one and ten to come.")
@click.option("--language", metavar="CODE", help="With --holidays: the language of their names.")
@json_option
@pass_client
def set_calendar(client: Client, /, calendar_id: str, *, as_json: bool, **options: Any) -> None:
    """Create or replace a calendar. Tasks that name it are planned again within a minute or two."""
    calendar = client.put_calendar(
        calendar_id,
        owner=options["owner"],
        title=options["title"],
        weekdays=[each.upper() for each in (options["weekdays"] or "").split(",") if each],
        days=[_parse_day(text) for text in options["days"]],
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
            click.echo(f"{to_printable(calendar.id)}  {to_printable(calendar.title)}".rstrip())


@calendars.command("delete")
@_id_argument
@_calendar_owner_option
@yes_option
@json_option
@pass_client
def delete_calendar(client: Client, calendar_id: str, owner: str | None, *, is_sure: bool, as_json: bool) -> None:
    """Delete a calendar. Tasks that name it keep the days that it had."""
    confirm(f"Delete the calendar {to_printable(calendar_id)}?", is_sure=is_sure)
    client.delete_calendar(calendar_id, owner)
    _say_deleted(calendar_id, as_json=as_json)


def _read_file(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"--ics {path}: it cannot be read as text.") from error


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
        _print_fields(content, as_json=True)
        return
    _print_fields({name: value for name, value in content.items() if name not in {"days", "weekdays"}}, as_json=False)
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


@click.group(cls=ApiGroup, synonyms=RECORD_SYNONYMS)
@api_options
def scripts() -> None:
    """Show and change stored scripts, which tasks run by their names."""


_name_argument = click.argument("name", metavar="NAME")
_script_owner_option = click.option("--owner", help="Whose script it is. Default: your own; for servers, system.")


@scripts.command("set")
@_name_argument
@click.argument("file", type=click.File(encoding="utf-8"))
@_script_owner_option
@click.option("--description", default="", help="What it does, for people.")
@click.option(
    "--tool", "tools", multiple=True, metavar="HANDLER", help="A handler that it may call. Default: all tools."
)
@json_option
@pass_client
def set_script(
    client: Client,
    /,
    name: str,
    file: IO[str],
    *,
    owner: str | None,
    description: str,
    tools: tuple[str, ...],
    as_json: bool,
) -> None:
    """Create or replace the script NAME with the JavaScript in FILE. A run that has begun goes on with the old one."""
    try:
        source = file.read()
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{file.name} is not UTF-8: {error.reason} at byte {error.start}.") from None
    script = client.put_script(name, source, owner=owner, description=description, tools=tools or None)
    _print_script(script, as_json=as_json)


@scripts.command("show")
@_name_argument
@_script_owner_option
@json_option
@pass_client
def show_script(client: Client, name: str, owner: str | None, *, as_json: bool) -> None:
    """Show a script with its source."""
    script = client.script(name, owner)
    _print_script(script, as_json=as_json)
    if not as_json:
        click.echo(to_printable_lines((script.source or "").removesuffix("\n")))


@scripts.command("list")
@_script_owner_option
@json_option
@pass_client
def list_scripts(client: Client, owner: str | None, *, as_json: bool) -> None:
    """List an owner's scripts."""
    for script in client.scripts(owner):
        _print_script(script, as_json=as_json)


@scripts.command("delete")
@_name_argument
@_script_owner_option
@yes_option
@json_option
@pass_client
def delete_script(client: Client, name: str, owner: str | None, *, is_sure: bool, as_json: bool) -> None:
    """Delete a script. Runs that have begun go on, and later ones fail."""
    confirm(f"Delete the script {to_printable(name)}?", is_sure=is_sure)
    client.delete_script(name, owner)
    _say_deleted(name, as_json=as_json)


def _print_script(script: ScriptView, *, as_json: bool) -> None:
    if as_json:
        click.echo(to_json_line(script.model_dump(mode="json", by_alias=True, exclude_none=True)))
        return
    click.echo(f"{to_printable(script.name)}  version {script.version}  {to_printable(script.description)}".rstrip())
