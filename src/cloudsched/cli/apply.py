"""``cloudsched apply`` and ``tasks import``: create tasks from the code's schedules or another scheduler's file."""

from __future__ import annotations

import re
import sys
from typing import IO, TYPE_CHECKING, Any

import click

from cloudsched.cli.options import handlers_option, json_option
from cloudsched.local.untrusted_text import to_json_line, to_printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cloudsched.cli.job_files import ReadFile
    from cloudsched.engine.tasks.declared_tasks import Change, DeclaredTasks


def _show(changes: Iterable[Change], titles: Mapping[str, str], *, as_json: bool) -> None:
    """Print one line for each change. `titles` has the titles of tasks whose ids mean nothing to a reader."""
    from cloudsched.domain.documents.document import complete_table  # noqa: PLC0415 - not needed for --help
    from cloudsched.engine.tasks.declared_tasks import DeclaredAction  # noqa: PLC0415 - likewise

    signs = complete_table(
        DeclaredAction,
        {
            DeclaredAction.CREATE: "+",
            DeclaredAction.UPDATE: "~",
            DeclaredAction.PAUSE: "-",
            DeclaredAction.RESUME: "+",
            DeclaredAction.DELETE: "-",
        },
    )
    for change in changes:
        if as_json:
            shown_fields = {"action": change.action, "taskId": change.task_id, "detail": change.detail}
            click.echo(to_json_line({**shown_fields, "fields": change.fields}))
            continue
        title = titles.get(change.task_id)
        shown = "" if title in {None, change.task_id} else f" ({title})"
        click.echo(to_printable(f"{signs[change.action]} {change.action} {change.task_id}: {change.detail}{shown}"))


@click.command()
@handlers_option("The app whose schedules are applied.")
@click.option("--prune", is_flag=True, help="Delete tasks that are gone from the code, instead of pausing them.")
@click.option("--dry-run", is_flag=True, help="Show the changes and make none.")
@click.option("--check", is_flag=True, help="Show the changes, make none, and exit with 1 if there are any.")
@click.option(
    "--owner",
    "owners",
    multiple=True,
    help="An owner whose tasks may be gone from the code. Repeatable. [default: system, and those that the code names]",
)
@click.option(
    "--name",
    default="default",
    show_default=True,
    help="The name of this code's schedules, if several services share a store.",
)
@json_option
def apply(
    *, handlers: str | None, prune: bool, dry_run: bool, check: bool, owners: tuple[str, ...], name: str, as_json: bool
) -> None:
    """Bring the stored tasks in line with the schedules that the code declares with @app.scheduled.

    The store and the queue are those of the settings in the environment. Tasks that people created are never changed.
    Exits with 1 if --check finds a difference. With --json, prints a line of JSON for each change.
    """
    from cloudsched.engine.tasks.declared_tasks import DeclaredAction  # noqa: PLC0415 - not needed for --help
    from cloudsched.local.app_loader import load_app  # noqa: PLC0415 - likewise

    app = load_app(handlers).app
    try:
        declared = app.declared_tasks(name)
        changes = declared.compare(
            list(app.container.registry.registrations.declarations.values()),
            ("system", *owners),
            gone=DeclaredAction.DELETE if prune else DeclaredAction.PAUSE,
        )
        _show(changes, {}, as_json=as_json)
        _make(declared, changes, is_wanted=not (dry_run or check), is_sure=True, as_json=as_json)
    finally:
        app.close()
    if check and changes:
        sys.exit(1)


_OPTIONS = (
    click.argument("file", type=click.File("rb")),
    handlers_option("The app whose handlers run the tasks."),
    click.option("--handler", help="The handler of every job that nothing else names one for. It gets the whole job."),
    click.option(
        "--map",
        "maps",
        multiple=True,
        metavar="PATTERN=HANDLER",
        help="The handler of the jobs that match, by name or command. It gets their body. * and ? stand for anything. "
        "Repeatable, the first match counts.",
    ),
    click.option("--owner", default="system", show_default=True, help="Whose tasks they are."),
    click.option("--name", help="The name of this set of jobs, if you import several. It begins the ids."),
    click.option("--prune", is_flag=True, help="Delete tasks of an earlier import that are gone from the file."),
    click.option("--skip-refused", is_flag=True, help="Import the jobs that can be, although others cannot."),
    click.option("--dry-run", is_flag=True, help="Show the changes and make none."),
    click.option("--check", is_flag=True, help="Show the changes, make none, and exit with 1 if there are any."),
    click.option("--yes", "-y", is_flag=True, help="Make the changes without asking."),
    json_option,
)


def _with_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@click.group(name="import")
def import_jobs() -> None:
    """Make tasks of the jobs of another scheduler.

    Shows what would change, asks, and then changes it. Importing a file again changes only what differs since. Tasks
    that people created are never changed. The store and the queue are those of the settings in the environment.
    """


@import_jobs.command()
@_with_options
@click.option("--timezone", help="The zone of times that follow no CRON_TZ. [default: UTC]")
@click.option("--system", is_flag=True, help="The file has a column with the user, as /etc/crontab has.")
def crontab(file: IO[bytes], *, timezone: str | None, system: bool, **options: Any) -> None:
    """Make a task of each line of a crontab.

    For your own: crontab -l | cloudsched tasks import crontab -

    A handler gets {"command": …}, and where the line has them "stdin", "user" and "environment".
    """
    from cloudsched.cli.job_files import read_crontab  # noqa: PLC0415 - not needed for --help

    prefix = _check_name(options["name"]) or "crontab"
    _import(
        file,
        lambda content: read_crontab(content, timezone=timezone, has_user=system, prefix=prefix),
        "crontab",
        **options,
    )


@import_jobs.command(name="cloud-scheduler")
@_with_options
def cloud_scheduler(file: IO[bytes], **options: Any) -> None:
    """Make a task of each job in FILE, from: gcloud scheduler jobs list --location=REGION --format=json.

    A handler of its own gets the job's body, --handler the whole target: {"url", "method", "headers", "body"}, or
    {"topic", "attributes", "body"}. Paused jobs become paused tasks.
    """
    from cloudsched.cli.job_files import read_cloud_scheduler  # noqa: PLC0415 - not needed for --help

    name = _check_name(options["name"])
    prefix = f"{name}-" if name else ""
    _import(file, lambda content: read_cloud_scheduler(content, prefix=prefix), "cloud-scheduler", **options)


def _import(  # noqa: PLR0913 - one for each option
    file: IO[bytes],
    read: Callable[[bytes], ReadFile],
    kind: str,
    *,
    handlers: str | None,
    handler: str | None,
    maps: tuple[str, ...],
    owner: str,
    name: str | None,
    prune: bool,
    skip_refused: bool,
    dry_run: bool,
    check: bool,
    yes: bool,
    as_json: bool,
) -> None:
    from cloudsched.cli.job_files import HandlerChoice, Refusal, require_only_time  # noqa: PLC0415 - not for --help
    from cloudsched.engine.tasks.declared_tasks import DeclaredAction  # noqa: PLC0415 - likewise
    from cloudsched.errors import InvalidInput  # noqa: PLC0415 - likewise
    from cloudsched.local.app_loader import load_app  # noqa: PLC0415 - likewise

    if prune and skip_refused:
        raise click.UsageError("--prune needs a file of which every job is understood; leave --skip-refused out.")
    app = load_app(handlers).app
    try:
        found = read(file.read())
    except Refusal as refusal:
        raise click.UsageError(to_printable(f"{file.name} cannot be imported: {refusal}.")) from None
    refusals = [*found.refusals]
    notes = [*found.notes]
    choice = HandlerChoice(app.container.registry, [_split_map(each) for each in maps], handler, owner)
    try:
        declared = app.declared_tasks(f"import:{kind}:{name or ''}", "the file")
        changes: list[Change] = []
        titles = {}
        for job in found.jobs:
            try:
                declaration, left_out = choice.declare(job)
                require_only_time(app, job)
                changes += declared.compare_one(declaration)
            except (InvalidInput, Refusal) as error:
                refusals.append(f"{job.place}: {error}")
                continue
            titles[job.id] = job.title
            notes += [f"{job.place}: {', '.join(left_out)} is left out."] if left_out else []
        if prune:
            changes += declared.find_gone({job.id for job in found.jobs}, [owner], DeclaredAction.DELETE)
        _show(changes, titles, as_json=as_json)
        for note in notes:
            click.echo(to_printable(note), err=True)
        _report(refusals, is_fatal=not skip_refused)
        _make(declared, changes, is_wanted=not (dry_run or check), is_sure=yes, as_json=as_json)
    finally:
        app.close()
    if check and changes:
        sys.exit(1)


def _make(declared: DeclaredTasks, changes: Sequence[Change], *, is_wanted: bool, is_sure: bool, as_json: bool) -> None:
    """Make the changes that were shown, unless this is a dry run. Ask first, unless ``--yes`` was given."""
    if not changes:
        click.echo("Nothing differs.", err=as_json)
    elif is_wanted:
        if not is_sure:
            click.confirm("Make these changes?", abort=True)
        declared.apply(changes)
        click.echo(f"{len(changes)} {'change' if len(changes) == 1 else 'changes'} made.", err=as_json)


def _report(refusals: list[str], *, is_fatal: bool) -> None:
    for refusal in refusals:
        click.echo(to_printable(f"refused: {refusal}"), err=True)
    if refusals and is_fatal:
        count = f"{len(refusals)} {'job' if len(refusals) == 1 else 'jobs'}"
        hint = "Correct the file, or give --skip-refused to import the others."
        raise click.UsageError(f"{count} cannot be imported, so nothing was changed. {hint}")


def _split_map(text: str) -> tuple[str, str]:
    pattern, equals, name = text.rpartition("=")
    if not (equals and pattern and name):
        raise click.UsageError(f"--map {text}: write PATTERN=HANDLER.")
    return pattern, name


def _check_name(name: str | None) -> str | None:
    if name is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}", name):
        raise click.UsageError(f"--name {name}: letters, digits, - and _, at most 40.")
    return name
