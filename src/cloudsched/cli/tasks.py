"""``cloudsched tasks``: shows and changes tasks through the API.

Tables are for people. ``--json`` prints the API's JSON for programs, one item of a list per line.
"""

from __future__ import annotations

import json
import time
from datetime import UTC
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click
from pydantic import AwareDatetime

from cloudsched.cli.apply import import_jobs
from cloudsched.cli.examples import format_examples
from cloudsched.cli.options import (
    EXECUTION_STATUS,
    TASK_ID,
    TASK_STATUS,
    ApiGroup,
    api_options,
    confirm,
    drop_none,
    json_option,
    json_option_of,
    key_option,
    parse_fields,
    parse_instant,
    parse_once,
    pass_client,
    pick,
    require_terminal,
    yes_option,
)
from cloudsched.domain.documents.authority import say_subject
from cloudsched.domain.documents.verbs import Command, Verb
from cloudsched.errors import InvalidSchedule, NotFound, QuotaExceeded, Unavailable
from cloudsched.features.table import FEATURES, find_place
from cloudsched.local.untrusted_text import print_error, to_json_line, to_printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cloudsched.cli.output import Printer
    from cloudsched.client.client import Client
    from cloudsched.client.views import TaskView
    from cloudsched.domain.documents.execution import Execution, ExecutionStatus
    from cloudsched.domain.documents.task import FieldChange, HistoryEntry

F = TypeVar("F", bound="Callable[..., object]")
POLL_SECONDS = 1.0
"""The polling interval of ``logs --follow``."""

_VIEWED = 5
"""The number of coming and of past runs of a `view`."""
_task_id_argument = click.argument("task_id", **TASK_ID)
_task_json_option = json_option_of("client.views:TaskView")
_TASK_PARTS = ("next", "explanation", "executions")
"""What the JSON of a `view` has besides the task."""


def _make_printer(*, as_json: bool | tuple[str, ...]) -> Printer:
    from cloudsched.cli.output import Printer  # noqa: PLC0415 - not needed for --help

    return Printer(as_json=as_json)


@click.group(cls=ApiGroup)
@api_options
def tasks() -> None:
    """Show, change, draft and import tasks. All but `import` ask the API."""


tasks.aliases = {"ls": "list", "update": "edit"}


for _row in (row for feature in FEATURES for row in feature.commands if row.section == "tasks"):
    tasks.add_command(find_place(_row.place))
tasks.add_command(import_jobs)


@tasks.command("list")
@click.option("--owner")
@click.option("--status", type=TASK_STATUS, help="List only these.")
@click.option("--handler")
@click.option("--label", metavar="KEY=VALUE", help="List only tasks with this label.")
@click.option("--search", metavar="WORDS", help="List only tasks that have all of these words, or their beginnings.")
@click.option("--soonest", is_flag=True, help="List those that run next first. By default the newest come first.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="The most tasks to list.")
@_task_json_option
@pass_client
def list_(client: Client, /, *, soonest: bool, limit: int, as_json: bool, **filters: Any) -> None:
    """List tasks. `ls` is another name of this command."""
    if soonest:
        filters["order_by"] = "nextExecutionTime"
    results = client.tasks(**filters, page_size=min(limit, 500))
    _make_printer(as_json=as_json).print_tasks(task for _, task in zip(range(limit), results, strict=False))


@tasks.command()
@_task_id_argument
@_task_json_option
@pass_client
def get(client: Client, task_id: str, *, as_json: bool) -> None:
    """Show all fields of a task."""
    _make_printer(as_json=as_json).print_task(client.get(task_id))


@tasks.command()
@_task_id_argument
@json_option_of("client.views:TaskView", *_TASK_PARTS)
@pass_client
def view(client: Client, task_id: str, *, as_json: bool) -> None:
    """Show a task on one screen: what it is, when it runs next, why it does or does not run, and its last runs."""
    task = client.get(task_id)
    coming = client.upcoming(task_id, _VIEWED)
    explanation = client.explain(task_id)
    executions = [*islice(client.executions(task_id), _VIEWED)]
    _make_printer(as_json=as_json).print_view(task, coming, explanation, executions)


_dry_run_option = click.option("--dry-run", is_flag=True, help="Only check it, and show the task as it would be.")


_FIELD_OPTIONS = (
    click.option("--handler", help="The registered function to run."),
    click.option("--script", type=click.File(encoding="utf-8"), help="A file with JavaScript to run instead."),
    click.option("--stored-script", metavar="NAME", help="A stored script of the owner to run instead."),
    click.option("--tool", "tools", multiple=True, metavar="HANDLER", help="A handler that the script may call."),
    click.option("--payload", help="The handler's payload, as JSON."),
    click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="A label to find it by. Repeatable."),
    click.option("--schedule", help="When it runs, in words ('every weekday at 9') or as cron ('0 9 * * 1-5')."),
    click.option("--rrule", help="When it runs: an RFC 5545 rule, such as FREQ=DAILY;BYHOUR=9."),
    click.option(
        "--at", help="When it runs once: 2027-01-01T09:00:00Z, or by the clocks of --timezone 2027-01-01T09:00."
    ),
    click.option(
        "--timezone",
        "--tz",
        metavar="ZONE",
        help="The zone of the schedule's times. [default: that of the task, or of its owner]",
    ),
    click.option("--locale", help="The language of --schedule, such as de. Its words tell it if omitted."),
    click.option("--set", "more", multiple=True, metavar="FIELD=JSON", help="Any other field, by its name in the API."),
)
"""The options that name the fields of a task."""


def _field_options(function: F) -> F:
    for option in reversed(_FIELD_OPTIONS):
        function = option(function)
    return function


@tasks.command()
@click.argument("title", required=False)
@click.option("--owner", help="The task's owner. For users always themselves, for servers 'system' by default.")
@click.option("--id", help="Your own stable id: another creation with it edits the task.")
@_field_options
@key_option
@_dry_run_option
@_task_json_option
@pass_client
def create(client: Client, /, *, key: str | None, dry_run: bool, as_json: bool, **options: Any) -> None:
    """Create a task. Without a TITLE it gets its handler's name.

    Without a schedule it runs once, now, and without a --timezone its times are in UTC.
    """
    fields = _build_fields(options)
    if dry_run:
        task = client.validate_task(**fields)
    else:
        task = client.create(idempotency_key=key, **fields)
    _make_printer(as_json=as_json).print_task(task)


@tasks.command()
@_task_id_argument
@click.option("--title")
@_field_options
@click.option("--editor", envvar=("VISUAL", "EDITOR"), help="The editor. [env: VISUAL, EDITOR]")
@key_option
@_dry_run_option
@_task_json_option
@pass_client
def edit(
    client: Client,
    /,
    task_id: str,
    *,
    editor: str | None,
    key: str | None,
    dry_run: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Change fields of a task, in your $EDITOR if you name none. `update` is another name of this command.

    It is refused if the task changes at the same time. --set FIELD=null restores a default. --schedule takes a change,
    too: 'make it 10 instead', 'not on Fridays'. Its times stay in the task's zone without a --timezone, which alone
    moves the task there.
    """
    fields = _build_fields(options)

    def change(changes: dict[str, Any], etag: str) -> None:
        if dry_run:
            task = client.validate_task(task_id, **changes)
        else:
            task = client.update(task_id, etag=etag, idempotency_key=key, **changes)
        _make_printer(as_json=as_json).print_task(task)

    if fields:
        change(fields, "" if dry_run else client.get(task_id).etag)
        return
    if editor is None:
        require_terminal("Name at least one field to change. There is no terminal for an editor, and no $EDITOR.")
    from cloudsched.cli.editing import edit_fields  # noqa: PLC0415 - not needed for --help

    task = client.get(task_id)
    edit_fields(task, editor, lambda changes: change(changes, task.etag))


def _add_verb(verb: Verb, about: Command) -> None:
    """Add the command of a verb. What is typed are the arguments of the verb's method of the client."""
    traits = verb.traits
    fields = {} if traits.body is None else traits.body.model_fields
    instants = [name for name, each in fields.items() if each.annotation is AwareDatetime]

    def run(client: Client, task_id: str, *, as_json: bool, key: str | None = None, **typed: Any) -> None:
        if traits.question:
            confirm(traits.question.format(id=to_printable(task_id)), is_sure=typed.pop("is_sure"))

        zone = typed.pop("timezone", None)
        typed |= {name: " ".join(each) or None for name, each in typed.items() if isinstance(each, tuple)}
        typed |= {name: parse_instant(typed[name], zone, name.upper()) for name in instants}
        typed = {name: each for name, each in typed.items() if each is not None}
        if fields:
            typed["idempotency_key"] = key

        changed = getattr(client, verb.method)(task_id, **typed)
        if changed is not None:
            _make_printer(as_json=as_json).print_task(changed)
        else:
            click.echo(to_json_line({"deleted": task_id}) if as_json else f"deleted {to_printable(task_id)}")

    command = (json_option if verb is Verb.DELETE else _task_json_option)(pass_client(run))
    params: list[click.Parameter] = [click.Argument(["task_id"], **TASK_ID)]
    for each in about.arguments:
        name = each.removesuffix("...")
        count = -1 if each.endswith("...") else 1
        params.append(click.Argument([name], nargs=count, required=fields[name].is_required()))
    for name, text in about.numbers.items():
        params.append(click.Option([f"--{name.replace('_', '-')}"], type=click.IntRange(1), help=text))
    if instants:
        text = f"The zone of {' and '.join(map(str.upper, instants))}, if they have no offset."
        params.append(click.Option(["--timezone", "--tz"], metavar="ZONE", help=text))

    if fields:
        command = key_option(command)
    if traits.question:
        command = yes_option(command)
    examples = format_examples(f"tasks {verb.word} {each}" for each in about.examples)
    tasks.command(verb.word, help=about.help, params=params, epilog=examples)(command)


for _verb in Verb:
    if _verb.traits.command is not None:
        _add_verb(_verb, _verb.traits.command)


@tasks.command()
@_task_id_argument
@click.option("--payload", help="What this run gets in place of the task's payload, as JSON.")
@_dry_run_option
@key_option
@_task_json_option
@pass_client
def trigger(
    client: Client, task_id: str, *, payload: str | None, dry_run: bool, key: str | None, as_json: bool
) -> None:
    """Run a task now, without changing its schedule. With --payload, this run alone has that one."""
    task = client.trigger(task_id, _parse_json("--payload", payload), idempotency_key=key, validate_only=dry_run)
    _make_printer(as_json=as_json).print_task(task)


@tasks.command()
@_task_id_argument
@click.option("--follow", "-f", is_flag=True, help="Keep printing until the task has ended, or Ctrl-C.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="How many to show at first.")
@click.option("--status", type=EXECUTION_STATUS, help="Show only these.")
@click.option("--from", "since", metavar="INSTANT", help="Show only those that are scheduled from this instant on.")
@click.option("--until", metavar="INSTANT", help="Show only those that are scheduled before this instant.")
@click.option("--timezone", "--tz", metavar="ZONE", help="The zone of --from and --until, if they have no offset.")
@json_option_of("domain.documents.execution:Execution")
@pass_client
def logs(  # noqa: PLR0913 - each is an option of its own
    client: Client,
    task_id: str,
    *,
    follow: bool,
    limit: int,
    status: str | None,
    since: str | None,
    until: str | None,
    timezone: str | None,
    as_json: bool,
) -> None:
    """Show a task's executions, earliest first, with progress, steps, what they logged, and an error's traceback."""
    from cloudsched.cli.output import print_log_of  # noqa: PLC0415 - not needed for --help

    chosen = {
        "status": status,
        "since": None if since is None else parse_instant(since, timezone, "--from"),
        "until": None if until is None else parse_instant(until, timezone, "--until"),
    }
    printer = _make_printer(as_json=as_json)
    shown = 0
    try:
        for each in follow_executions(client, task_id, limit, once=not follow, **chosen):
            if as_json:
                printer.print_execution(each)
            else:
                printer.print_execution(load_details(client, each))
                print_log_of(client, task_id, each.id)
            shown += 1
    except KeyboardInterrupt:
        if not follow:
            raise

    if not shown and not as_json:
        click.echo("No execution matches." if any(chosen.values()) else "No executions yet.")


@tasks.command()
@_task_id_argument
@click.option("--at", metavar="INSTANT", help="Why it ran, or did not run, on the day of this instant.")
@click.option("--timezone", "--tz", metavar="ZONE", help="The zone of --at, if that has no offset.")
@json_option_of("client.views:ExplanationView")
@pass_client
def why(client: Client, task_id: str, *, at: str | None, timezone: str | None, as_json: bool) -> None:
    """Say why a task runs when it does, or does not run. With --at, say why it did or did not on another day."""
    explanation = client.explain(task_id, None if at is None else parse_instant(at, timezone, "--at"))
    if as_json:
        click.echo(to_json_line(pick(explanation.model_dump(mode="json", by_alias=True, exclude_none=True), as_json)))
        return

    from cloudsched.cli.output import tell_findings  # noqa: PLC0415 - not needed for --help, nor for JSON

    for line in tell_findings(explanation):
        click.echo(line)


@tasks.command()
@_task_id_argument
@click.option("-n", "count", type=click.IntRange(1, 1000), default=10, show_default=True, help="How many to show.")
@click.option("--timezone", "--tz", metavar="ZONE", help="The zone to show them in. [default: the task's own]")
@json_option
@pass_client
def upcoming(client: Client, task_id: str, *, count: int, timezone: str | None, as_json: bool) -> None:
    """Show when a task runs next, in its time zone and in UTC."""
    occurrences = client.upcoming(task_id, count)
    if as_json:
        click.echo(json.dumps([at.astimezone(UTC).isoformat().replace("+00:00", "Z") for at in occurrences]))
        return
    if not occurrences:
        click.echo("It does not run again.")
        return

    from cloudsched.domain.recurrence.time_zones import load_tzinfo  # noqa: PLC0415 - not needed for JSON

    try:
        zone = load_tzinfo(timezone or client.get(task_id).timezone)
    except InvalidSchedule as error:
        raise click.UsageError(f"--timezone: {error.problem} ({error.hint}).") from None

    for at in occurrences:
        click.echo(f"{at.astimezone(zone):%a %Y-%m-%d %H:%M:%S %z}  {at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC")


@tasks.command()
@_task_id_argument
@click.option("--execution", metavar="ID", help="Show only this execution's calls and their descendants.")
@json_option
@pass_client
def tree(client: Client, task_id: str, *, execution: str | None, as_json: bool) -> None:
    """Draw a task with the calls below it, each with its progress and steps (`logs` shows those of all executions)."""
    view = client.tree(task_id, execution)
    if as_json:
        click.echo(to_json_line(view.model_dump(mode="json", by_alias=True)))
        return

    from cloudsched.cli.output import draw_tree, make_console  # noqa: PLC0415 - not needed for --help, nor for JSON

    make_console().print(draw_tree(client, view, execution))


@tasks.command()
@_task_id_argument
@click.argument("event")
@click.option("--payload", default="null", help="The event's payload, as JSON.")
@click.option("--execution", metavar="ID", help="The execution that it is for. Needed if several wait for it.")
@click.option("--early", is_flag=True, help="Keep it if no execution waits for it yet.")
@key_option
@_task_json_option
@pass_client
def send(  # noqa: PLR0913 - each is an option of its own
    client: Client,
    task_id: str,
    event: str,
    *,
    payload: str,
    execution: str | None,
    early: bool,
    key: str | None,
    as_json: bool,
) -> None:
    """Send EVENT to the execution of a task that waits for it."""
    content = _parse_json("--payload", payload)
    task = client.send_event(task_id, event, content, execution_id=execution, early=early, idempotency_key=key)
    if as_json and task is not None:
        _make_printer(as_json=as_json).print_task(task)
    else:
        click.echo(to_printable(f"sent {event}"), err=as_json)


@tasks.command()
@_task_id_argument
@json_option
@pass_client
def history(client: Client, task_id: str, *, as_json: bool) -> None:
    """Show what was done with a task by hand: who changed what and when, the latest first."""
    found = client.history(task_id)
    if as_json:
        click.echo(to_json_line(found.to_wire()))
        return

    for entry in found.entries:
        for line in describe_entry(entry):
            click.echo(line)

    if found.omitted_entries:
        click.echo(f"Entries that are not kept: {found.omitted_entries}.")
    elif not found.entries:
        click.echo("Nothing was done with it by hand.")


@tasks.command("pause-all")
@click.option("--owner", help="Only the tasks of this owner. For users always themselves.")
@click.option(
    "--until", metavar="INSTANT", help="Only until this instant. Tasks that are paused already stay as they are."
)
@click.option("--timezone", "--tz", metavar="ZONE", help="The zone of --until, if that has no offset.")
@yes_option
@key_option
@_task_json_option
@pass_client
def pause_all(
    client: Client,
    *,
    owner: str | None,
    until: str | None,
    timezone: str | None,
    is_sure: bool,
    key: str | None,
    as_json: bool,
) -> None:
    """Pause everything that would start by itself. `restore` takes it back.

    Tasks that are paused already, without an end, are left alone. Results that were made before are still delivered,
    and retried. To hold these as well, pause the dispatch queues: `cloudsched admin queues pause`.
    """
    from cloudsched.domain.documents.batch_change import DELIVERIES_GO_ON  # noqa: PLC0415 - not needed for --help

    end = None if until is None else parse_instant(until, timezone, "--until")
    confirm(f"Pause everything{f' of {owner}' if owner else ''}? {DELIVERIES_GO_ON}", is_sure=is_sure)
    action = client.pause_all(owner, until=end, idempotency_key=key)
    _tell_action(action, f"take it back with: cloudsched tasks restore {action.id}", as_json=as_json)


@tasks.command()
@click.argument("action_id", metavar="ACTION")
@yes_option
@key_option
@_task_json_option
@pass_client
def restore(client: Client, action_id: str, *, is_sure: bool, key: str | None, as_json: bool) -> None:
    """Resume what ACTION, a pause of many tasks, has paused, and nothing else.

    Tasks that somebody has resumed, paused anew or deleted since are left alone.
    """
    confirm(f"Restore what {action_id} has paused?", is_sure=is_sure)
    action = client.restore(action_id, idempotency_key=key)
    _tell_action(action, f"see how far it is with: cloudsched tasks view {action.id}", as_json=as_json)


def _tell_action(action: TaskView, then: str, *, as_json: bool) -> None:
    if as_json:
        _make_printer(as_json=as_json).print_task(action)
        return
    click.echo(to_printable(f"started: {then}"))


def follow_executions(client: Client, task_id: str, limit: int, *, once: bool, **chosen: Any) -> Iterator[Execution]:
    """Yield a task's executions, earliest first, and each again whenever it has changed, until the task has ended.

    Only those that are `chosen`, as `Client.executions` takes it.
    """
    from cloudsched.domain.documents.task import TaskStatus  # noqa: PLC0415 - not needed for --help

    known: dict[str, tuple[ExecutionStatus, int, int]] = {}
    has_connected = False
    while True:
        has_ended = False
        try:
            status = None if once else client.get(task_id).status  # before the executions, so that none is missed
            latest = [
                execution for _, execution in zip(range(limit), client.executions(task_id, **chosen), strict=False)
            ]
        except (Unavailable, QuotaExceeded) as error:
            if once or not has_connected:
                raise
            print_error(f"will retry: {error}")
            latest = []
        else:
            is_open = any(not execution.status.is_final for execution in latest)
            has_ended = status not in {None, TaskStatus.ACTIVE, TaskStatus.PAUSED} and not is_open

        has_connected = True
        for execution in reversed(latest):
            state = execution.status, execution.attempt_count, len(execution.progress)
            if known.get(execution.id) != state:
                known[execution.id] = state
                yield execution

        if once or has_ended:
            return
        time.sleep(POLL_SECONDS)


def load_details(client: Client, execution: Execution) -> Execution:
    """Return an execution with its steps, which a list does not have of those that are open or large."""
    if execution.status.is_final and execution.steps_reference is None:
        return execution
    try:
        return client.execution(execution.task_id, execution.id)
    except NotFound:  # removed meanwhile
        return execution


def _build_fields(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that the options name."""
    return {
        **drop_none(payload=_parse_json("--payload", options["payload"])),
        **_build_handler_fields(options),
        **drop_none(**{name: options.get(name) for name in ("title", "owner", "id")}, labels=options["labels"] or None),
        **_build_schedule_fields(options),
        **parse_fields(options["more"]),
    }


def _build_schedule_fields(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schedule as text with its zone and language beside it. A zone alone is that of the task's times."""
    given = [name for name in ("schedule", "rrule", "at") if options[name]]
    if len(given) > 1:
        raise click.UsageError("Give one of --schedule, --rrule and --at.")

    text = options[given[0]] if given else None
    if options["rrule"]:
        text = f"RRULE:{options['rrule'].removeprefix('RRULE:')}"
    if options["at"]:
        once = parse_once(options["at"], options["timezone"], "--at")
        text = once.get("at") or once["local"]
    return drop_none(schedule=text, timezone=options["timezone"], locale=options["locale"])


def _build_handler_fields(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that say what a task runs. A new one needs none with ``--set children=…``."""
    handler, file, name, tools = (options[each] for each in ("handler", "script", "stored_script", "tools"))
    if sum(each is not None for each in (handler, file, name)) > 1:
        raise click.UsageError("Give one of --handler, --script and --stored-script.")

    if file is None and name is None:
        if tools:
            raise click.UsageError("--tool names a handler that a --script may call; give a --script as well.")
        return drop_none(handler=handler)

    source = None if file is None else _read_script(file)
    return {"script": drop_none(name=name, source=source, tools=list(tools) or None)}


def _read_script(script: IO[str]) -> str:
    try:
        return script.read()
    except UnicodeDecodeError as error:
        raise click.UsageError(f"--script: {script.name} is not UTF-8: {error.reason} at byte {error.start}.") from None


def _parse_json(option: str, text: str | None) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value of an option. None if it is not given."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError as error:
        raise click.UsageError(f"{option} is not JSON: {error}") from error


def describe_entry(entry: HistoryEntry, *about: str | None) -> Iterator[str]:
    """Yield the line of an action, with what it is about, and a line for each field that it changed."""
    at = f"{entry.at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
    action = entry.action.lower().replace("_", " ")
    cells = [at, action, *about, f"by {name_actor(entry)}", entry.execution_id, entry.reason]
    yield "  ".join(to_printable(cell) for cell in cells if cell)
    for each in entry.fields:
        yield f"  - {to_printable(describe_change(each))}"


def name_actor(entry: HistoryEntry) -> str:
    """Return who did it."""
    if entry.by is None:
        return "the scheduler"
    subject = say_subject(entry.by.subject)
    return subject if entry.by.via is None else f"{subject}, through {entry.by.via}"


def describe_change(change: FieldChange) -> str:
    """Return a changed field, with its values as far as they are shown."""
    if change.before is None and change.after is None:
        return change.field
    return f"{change.field}: {change.before or '(none, or not shown)'} → {change.after or '(none, or not shown)'}"
