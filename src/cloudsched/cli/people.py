"""``cloudsched people``: shows and changes through the API how people want to be reached."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cloudsched.cli.options import ApiGroup, api_options, confirm, json_option, pass_client, quiet_option, yes_option
from cloudsched.errors import NotFound
from cloudsched.local.untrusted_text import to_json_line, to_printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cloudsched.client.client import Client
    from cloudsched.client.views import PersonView

_SYNONYMS = {"get": "show", "put": "set", "edit": "set", "update": "set", "rm": "delete", "remove": "delete"}
_SETTABLE = (*("name", "email", "devices", "webhook", "timezone", "locale", "channels"),)
"""The fields of a person that a caller sets."""


@click.group(cls=ApiGroup, synonyms=_SYNONYMS)
@api_options
def people() -> None:
    """Show and change how people want to be reached."""


_owner_argument = click.argument("owner")


@people.command()
@_owner_argument
@json_option
@pass_client
def show(client: Client, owner: str, *, as_json: bool) -> None:
    """Show a person's contacts and preferences."""
    _print_person(client.person(owner), as_json=as_json)


@people.command("set")
@_owner_argument
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
def set_(client: Client, /, owner: str, *, clear: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Change some of a person's contacts and preferences; the others stay."""
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
@_owner_argument
@json_option
@pass_client
def verify_webhook(client: Client, owner: str, *, as_json: bool) -> None:
    """Have a person's webhook asked whether it wants their messages; it answers with the challenge that it gets."""
    client.verify_webhook(owner)
    click.echo(to_json_line({"verified": True}) if as_json else "verified")


@people.command()
@_owner_argument
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="The most messages to show.")
@json_option
@pass_client
def inbox(client: Client, owner: str, *, limit: int, as_json: bool) -> None:
    """Show a person's messages, the newest first; unread ones with a star."""
    for _, message in zip(range(limit), client.inbox(owner), strict=False):
        if as_json:
            click.echo(to_json_line(message.to_wire()))
            continue
        star = " " if message.is_read else "*"
        click.echo(f"{star} {message.created_at:%Y-%m-%d %H:%M:%S}  {to_printable(message.title)}  {message.id}")
    if not as_json:
        click.echo(f"{client.unread(owner)} unread")


@people.command()
@_owner_argument
@click.argument("message_id", metavar="ID")
@json_option
@pass_client
def read(client: Client, owner: str, message_id: str, *, as_json: bool) -> None:
    """Mark a message as read."""
    message = client.mark_read(owner, message_id)
    click.echo(to_json_line(message.to_wire()) if as_json else f"read {to_printable(message_id)}")


@people.command()
@_owner_argument
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


@people.command()
@_owner_argument
@click.option("--everything", is_flag=True, help="Delete their tasks, executions, inbox and feeds as well.")
@yes_option
@json_option
@pass_client
def delete(client: Client, owner: str, *, everything: bool, is_sure: bool, as_json: bool) -> None:
    """Delete a person's contacts and preferences; their tasks stay, unless --everything is given."""
    what = "all that is stored of" if everything else "the contacts and preferences of"
    confirm(f"Delete {what} {to_printable(owner)}?", is_sure=is_sure)
    if everything:
        task_id = client.erase_person(owner).id
        click.echo(to_json_line({"taskId": task_id}) if as_json else f"being deleted by task {task_id}")
        return
    client.delete_person(owner)
    click.echo(to_json_line({"deleted": owner}) if as_json else f"deleted {to_printable(owner)}")


@people.command()
@_owner_argument
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
    if as_json:
        click.echo(to_json_line(content))
        return
    for name, value in content.items():
        if value not in ((), [], {}, ""):
            click.echo(f"{name:<12} {to_printable(value if isinstance(value, str) else to_json_line(value))}")
