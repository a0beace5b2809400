"""``cloudsched tasks draft``: makes a task of a sentence through the API, and creates it if you say so."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from cloudsched.cli.options import pass_client
from cloudsched.local.untrusted_text import to_json_line, to_printable

if TYPE_CHECKING:
    from cloudsched.client.client import Client
    from cloudsched.domain.responses.api_responses import DraftAnswer, DraftResult

_REFUSED = 1


@click.command()
@click.argument("text")
@click.option("--timezone", "--tz", default="UTC", show_default=True, metavar="ZONE", help="An IANA name.")
@click.option("--locale", help="The language of the words, such as de. They tell it if omitted.")
@click.option("--owner", help="Whose task it is. Yours if omitted.")
@click.option("--handler", help="The handler, if the words fit several.")
@click.option("--task", "task_id", metavar="ID", help="The task to change, if the words fit several.")
@click.option(
    "--answer", "answers", type=(str, str), multiple=True, metavar="FIELD TEXT", help="The answer to a question."
)
@click.option("--yes", is_flag=True, help="Do what the draft shows without asking.")
@click.option("--dry-run", is_flag=True, help="Only show the draft.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the draft as JSON, for programs, and store nothing.",
)
@pass_client
def draft(  # noqa: PLR0913 - one argument for each option
    client: Client,
    *,
    text: str,
    timezone: str,
    locale: str | None,
    owner: str | None,
    handler: str | None,
    task_id: str | None,
    answers: tuple[tuple[str, str], ...],
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Draft a task, a change or a list, from TEXT: "Remind me to stretch every weekday at 9", "pause my reminder"."""
    from cloudsched.domain.responses.api_responses import Decision  # noqa: PLC0415 - not needed for --help

    named = {"handler": handler, "taskId": task_id, **{f"answer.{field}": said for field, said in answers}}
    context = {name: value for name, value in named.items() if value}
    drafted = client.draft(text, timezone=timezone, owner=owner, context=context, locale=locale)

    if as_json:
        click.echo(to_json_line(drafted.to_wire()))
    else:
        _print(drafted)
    if drafted.decision is Decision.LIST:
        return
    if drafted.draft_token is None:
        raise click.exceptions.Exit(_REFUSED)
    if as_json or dry_run:
        return

    if yes or click.confirm("Do what the draft shows?"):
        click.echo(client.confirm(drafted).id)


def _print(drafted: DraftResult) -> None:
    """Print a draft."""
    from cloudsched.domain.responses.api_responses import Decision  # noqa: PLC0415 - not needed for --help

    shown = {**(drafted.task or {}), **(drafted.changes or {})}
    shown.pop("schedule", None)
    if drafted.decision is Decision.CREATION:
        shown.pop("description", None)  # what was typed

    lines = [drafted.decision.lower()]
    lines += [f"  {each.title} ({each.id}): {each.description}" for each in drafted.tasks]
    for name, value in shown.items():
        text = value if isinstance(value, str) else to_json_line(value)
        lines.append(f"  {name}: {text}")

    if drafted.description:
        lines.append(f"  schedule: {drafted.description}")
    lines += [f"    {each.local:%a %Y-%m-%d %H:%M %z}" for each in drafted.next]
    lines += [f"  assumed: {each}" for each in drafted.assumptions]
    for question in drafted.questions:
        lines.append(f"  question: {question.question}")
        lines += [f"    {_answer(each)}" for each in question.answers]

    lines += [f"  problem: {each.field}: {each.reason}" for each in drafted.missing]
    for line in lines:
        click.echo(to_printable(line))


def _answer(answer: DraftAnswer) -> str:
    """Return an answer, and what to type for it."""
    options = {"handler": "--handler", "taskId": "--task"}
    given = [
        f"{options.get(name) or name.replace('answer.', '--answer ')} {shlex.quote(value)}"
        for name, value in (answer.context or {}).items()
    ]
    verb = "add"
    if answer.text:
        verb = "say"
        given.insert(0, shlex.quote(answer.text))
    about = answer.label or answer.description
    if answer.label and answer.description:
        about += f" ({answer.description})"
    return f"- {about}: {verb} {' '.join(given)}"
