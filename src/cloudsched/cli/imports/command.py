"""``cloudsched import``: makes tasks of the jobs of another scheduler."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import IO, TYPE_CHECKING, Any

import click

from cloudsched.cli.api_group import json_option
from cloudsched.cli.apply import show_changes
from cloudsched.cli.imports.job import Refusal
from cloudsched.cli.main import SuggestingGroup
from cloudsched.local.untrusted_text import to_printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cloudsched.app import App
    from cloudsched.cli.imports.job import Job, ReadFile
    from cloudsched.engine.handlers.registry import Declaration, Registry
    from cloudsched.engine.tasks.declared_tasks import Change


_OPTIONS = (
    click.argument("file", type=click.File("rb")),
    click.option(
        "--handlers",
        metavar="FILE|MODULE[:APP]",
        help="The app whose handlers run the tasks. [default: functions/handlers.py or handlers.py]",
    ),
    click.option("--handler", help="The handler of every job that nothing else names one for; it gets the whole job."),
    click.option(
        "--map",
        "maps",
        multiple=True,
        metavar="PATTERN=HANDLER",
        help="The handler of the jobs that match, by name or command; it gets their body. * and ? stand for anything. "
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


@click.group(name="import", cls=SuggestingGroup)
def import_jobs() -> None:
    """Make tasks of the jobs of another scheduler.

    Shows what would change, asks, and then changes it. Importing a file again changes only what differs since; tasks
    that people created are never changed. The store and the queue are those of the settings in the environment.
    """


@import_jobs.command()
@_with_options
@click.option("--timezone", help="The zone of times that follow no CRON_TZ. [default: UTC]")
@click.option("--system", is_flag=True, help="The file has a column with the user, as /etc/crontab has.")
def crontab(file: IO[bytes], *, timezone: str | None, system: bool, **options: Any) -> None:
    """Make a task of each line of a crontab ("-" for standard input, as in: crontab -l | cloudsched import crontab -).

    A handler gets {"command": …}, and where the line has them "stdin", "user" and "environment".
    """
    from cloudsched.cli.imports.crontab import read_crontab  # noqa: PLC0415 - not needed for --help

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
    from cloudsched.cli.imports.cloud_scheduler import read_cloud_scheduler  # noqa: PLC0415 - not needed for --help

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
    from cloudsched.cli.imports.job import Refusal  # noqa: PLC0415 - likewise
    from cloudsched.engine.tasks.declared_tasks import Action  # noqa: PLC0415 - likewise
    from cloudsched.errors import InvalidInput  # noqa: PLC0415 - likewise
    from cloudsched.local.app_loader import load_app  # noqa: PLC0415 - likewise

    if prune and skip_refused:
        raise click.UsageError("--prune needs a file of which every job is understood; leave --skip-refused out.")
    app = load_app(handlers, or_examples=False).app
    found = _read(file, read)
    refusals, notes = [*found.refusals], [*found.notes]
    choice = HandlerChoice(app.container.registry, [_split_map(each) for each in maps], handler, owner)
    try:
        declared = app.declared_tasks(f"import:{kind}:{name or ''}", "the file")
        changes: list[Change] = []
        titles = {}
        for job in found.jobs:
            try:
                declaration, left_out = choice.declare(job)
                _require_only_time(app, job)
                changes += declared.compare_one(declaration)
            except (InvalidInput, Refusal) as error:
                refusals.append(f"{job.place}: {error}")
                continue
            titles[job.id] = job.title
            notes += [f"{job.place}: {', '.join(left_out)} is left out."] if left_out else []
        if prune:
            changes += declared.find_gone({job.id for job in found.jobs}, [owner], Action.DELETE)
        show_changes(changes, titles, as_json=as_json)
        for note in notes:
            click.echo(to_printable(note), err=True)
        _report(refusals, is_fatal=not skip_refused)
        if not changes:
            click.echo("Nothing differs.", err=as_json)
        elif not (dry_run or check):
            if not yes:
                click.confirm("Make these changes?", abort=True)
            declared.apply(changes)
            click.echo(f"{len(changes)} {'change' if len(changes) == 1 else 'changes'} made.", err=as_json)
    finally:
        app.close()
    if check and changes:
        sys.exit(1)


def _require_only_time(app: App, job: Job) -> None:
    """Check that words say a time and nothing else: plain words may name a task, too, which here is a misreading."""
    from cloudsched.cli.imports.job import Refusal  # noqa: PLC0415 - not needed for --help
    from cloudsched.language.schedule_text import read_schedule  # noqa: PLC0415 - likewise

    if isinstance(job.schedule, str):
        now, zone = app.container.clock.now(), job.timezone or "UTC"
        at, calendar = app.container.settings.default_time, app.container.settings.default_calendar
        read = read_schedule(job.schedule, now=now, timezone=zone, default_time=at, default_calendar=calendar)
        if read.title:
            raise Refusal(f"its schedule {job.schedule[:60]!r} has words that are no time: {read.title[:60]!r}")


def _read(file: IO[bytes], read: Callable[[bytes], ReadFile]) -> ReadFile:
    from cloudsched.cli.imports.job import MAX_FILE_BYTES, Refusal  # noqa: PLC0415 - not needed for --help

    content = file.read(MAX_FILE_BYTES + 1)
    try:
        if len(content) > MAX_FILE_BYTES:
            raise Refusal(f"it is larger than {MAX_FILE_BYTES:,} bytes")  # noqa: TRY301 - shown as the others
        return read(content)
    except Refusal as refusal:
        raise click.UsageError(to_printable(f"{file.name} cannot be imported: {refusal}.")) from None


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


@dataclass(frozen=True, slots=True)
class HandlerChoice:
    """What the options say, beside the app's handlers.

    The first rule that fits: a pattern of ``--map``; a handler with the job's own name; ``--handler``. A handler that
    is found by one of the first two is for this job, and gets its body. The last is for any job, and gets all of it.
    """

    registry: Registry
    patterns: Sequence[tuple[str, str]]
    default: str | None
    owner: str

    def declare(self, job: Job) -> tuple[Declaration, list[str]]:
        """Return the task that a job becomes, and what of the job it does not have.

        Raises:
            Refusal: No handler is named for it, or its body is no payload.
        """
        from cloudsched.engine.handlers.registry import Declaration  # noqa: PLC0415 - not needed for --help

        own = next((name for pattern, name in self.patterns if fnmatchcase(job.name, pattern)), None)
        own = own or (job.name if job.name in self.registry else None)
        handler = own or self.default
        if handler is None:
            known = ", ".join(sorted(each.name for each in self.registry)) or "none"
            target = next((f" ({job.payload[key]})" for key in ("url", "topic", "path") if key in job.payload), "")
            raise Refusal(
                f"no handler is named for {job.name[:60]!r}{target}: give --map 'PATTERN=HANDLER' "
                f"or --handler HANDLER. There are: {known}"
            )
        payload, left_out = self._payload_for(job, handler, is_own=own is not None)
        declaration = Declaration(
            id=job.id,
            handler=handler,
            schedule=job.schedule,
            timezone=job.timezone,
            owner=self.owner,
            payload=payload,
            more={"title": job.title, **job.more},
            is_paused=job.is_paused,
        )
        return declaration, left_out

    def _payload_for(self, job: Job, name: str, *, is_own: bool) -> tuple[dict[str, Any], list[str]]:
        payload = job.body if is_own else job.payload
        handler = self.registry.find(name)
        left_out = [*job.left_out]
        if handler is not None and handler.payload is None:
            return {}, left_out if not payload else [*left_out, f"its payload, as {name} takes none"]
        if payload is None:
            raise Refusal(
                f"its body is no JSON object, so it cannot be the payload of {name!r}; --handler gets it as text"
            )
        if is_own and "attributes" in job.payload and "topic" in job.payload:
            left_out.append("its attributes")
        if handler is not None and "environment" in payload and not handler.accepts_field("environment"):
            left_out.append(f"its environment, as the payload of {name} has no such field")
            payload = {key: value for key, value in payload.items() if key != "environment"}
        return payload, left_out
