"""The common parts of commands: groups that use the API, and options for its address, closed sets and instants.

Errors of the API say what to do. Instants have an offset, or are by the clocks of a zone.
"""

from __future__ import annotations

import json
import shlex
import socket
import sys
from contextlib import closing, contextmanager, redirect_stdout, suppress
from datetime import date, datetime
from functools import cached_property, wraps
from importlib import import_module
from io import StringIO
from itertools import islice
from pathlib import Path
from pkgutil import resolve_name
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

import click

from cloudsched.cli.main import NO_CREDENTIALS
from cloudsched.config.imports import pause_collection
from cloudsched.emulator.model.names import parse_time
from cloudsched.errors import CloudschedError, InvalidSchedule, Unauthenticated, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from click.shell_completion import CompletionItem

    from cloudsched.client.client import Client

_TIMEOUT_SECONDS = 1.0


def explain_unreachable(url: str) -> str:
    """Return a hint for an API that cannot be reached: on this machine, `cloudsched dev` may not be running."""
    if hint := find_missing_stack(url):
        return hint
    host, port = _host_and_port(url)
    if not _is_loopback(host):
        return ""
    return f"Something listens on {host}:{port}, but not the API: is it the port of cloudsched dev?"


def find_missing_stack(url: str) -> str:
    """Return a hint if the address is on this machine and nothing listens there, else nothing."""
    host, port = _host_and_port(url)
    if not _is_loopback(host) or _accepts_connections(host, port):
        return ""
    place = f"{host}:{port}"
    return (
        f"Nothing listens on {place}, so cloudsched dev seems not to run. Start it in another terminal, or name "
        "another API with --url or CLOUDSCHED_URL."
    )


def is_this_machine(url: str) -> bool:
    """Return whether an address is on this machine."""
    return _is_loopback(_host_and_port(url)[0])


def _is_loopback(host: str) -> bool:
    from cloudsched.domain.local_requests import is_loopback  # noqa: PLC0415 - not needed for --help

    return is_loopback(host)


def _host_and_port(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def _accepts_connections(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=_TIMEOUT_SECONDS):
            return True
    except OSError:
        return False


F = TypeVar("F", bound="Callable[..., object]")

_OPTIONS = (
    click.option(
        "--url",
        envvar="CLOUDSCHED_URL",
        default="http://127.0.0.1:8080",
        show_default=True,
        help="The API's address. [env: CLOUDSCHED_URL]",
    ),
    click.option("--key", envvar="CLOUDSCHED_KEY", help="An API key. [env: CLOUDSCHED_KEY]"),
    click.option("--token", envvar="CLOUDSCHED_TOKEN", help="A Firebase or Google token. [env: CLOUDSCHED_TOKEN]"),
    click.option("--platform-token", envvar="CLOUDSCHED_PLATFORM_TOKEN", help="A token for Cloud Run's own IAM check."),
)


def connection_options(function: F) -> F:
    """Give a command `url`, `key`, `token` and `platform_token`, in this order."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def handlers_option(what: str) -> Callable[[F], F]:
    """Return the option that names the app with the handlers."""
    return click.option(
        "--handlers", metavar="FILE|MODULE[:APP]", help=f"{what} [default: functions/handlers.py or handlers.py]"
    )


def data_option(what: str, *, required: bool = True) -> Callable[[F], F]:
    """Return the option that names a data folder."""
    return click.option("--data", type=click.Path(path_type=Path, file_okay=False), required=required, help=what)


def silence(context: click.Context, _param: click.Parameter, is_quiet: bool) -> None:  # noqa: FBT001 - click's signature
    """Discard what a command prints on standard output."""
    if is_quiet:
        context.with_resource(redirect_stdout(StringIO()))


quiet_option = click.option(
    *("--quiet", "-q"),
    is_flag=True,
    expose_value=False,
    callback=silence,
    help="Print nothing but errors: the exit code tells.",
)
"""Print nothing on standard output."""


def json_option(function: F) -> F:
    """Add ``--json``, which prints JSON instead of text for people, and ``--quiet`` to a command."""
    shown = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs. Errors, too.")
    return shown(quiet_option(function))


ALL_FIELDS: Final = "*"


class JsonFields(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.4
    """The value of ``--json``: True, or the names of the fields to print, in the order in which they were given.

    The place is that of a model, such as ``domain.documents.task:Task``, which is imported once a field is named.
    """

    name = "fields"

    def __init__(self, place: str, more: Sequence[str] = ()) -> None:
        self._place = place
        self._more = more

    @cached_property
    def known(self) -> tuple[str, ...]:
        """The names that there are."""
        with pause_collection():
            model = resolve_name(f"cloudsched.{self._place}")
        shown = (each.alias or name for name, each in model.model_fields.items() if not each.exclude)
        return (*shown, *self._more)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - click's signature
        """Return what is to be printed. Names that the model does not have are refused."""
        if value == ALL_FIELDS:
            return True
        names = tuple(str(value).split(","))
        if unknown := [name for name in names if name not in self.known]:
            self.fail(f"there is no field {unknown[0]!r}. There are: {', '.join(sorted(self.known))}.", param, ctx)
        return names


def json_option_of(place: str, *more: str) -> Callable[[F], F]:
    """Return ``--json``, which also takes the names of fields, and ``--quiet``. See `JsonFields`."""
    shown = click.option(
        "--json",
        "as_json",
        is_flag=False,
        flag_value=ALL_FIELDS,
        metavar="[FIELD,…]",
        type=JsonFields(place, more),
        help="Print JSON, for programs, or just these fields of it. Errors, too.",
    )
    return lambda function: shown(quiet_option(function))


def pick(content: dict[str, Any], fields: bool | tuple[str, ...] | None) -> dict[str, Any]:  # noqa: FBT001 - of `JsonFields`
    """Return the fields that ``--json`` names: null for one that is not set, so that each line has the same."""
    if not isinstance(fields, tuple):
        return content
    return {name: content.get(name) for name in fields}


class ApiCommand(click.Command):
    """A command whose ``--json`` may be followed by names of fields, and otherwise by what it would take alone."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words. The one after ``--json`` is its value if it names fields, or nothing else takes it."""
        options = (each.type for each in self.params if isinstance(each.type, JsonFields))
        kind = next(options, None)
        place = args.index("--json") if "--json" in args[: args.index("--") if "--" in args else None] else None
        if kind is None or place is None:
            return super().parse_args(ctx, args)

        head = [*args[:place], f"--json={ALL_FIELDS}"]
        following = args[place + 1 : place + 2]
        if following and not following[0].startswith("-"):
            _, left, _ = self.make_parser(ctx).parse_args([*head, *args[place + 1 :]])
            if left or {*following[0].split(",")} <= {*kind.known}:
                return super().parse_args(ctx, [*args[:place], f"--json={following[0]}", *args[place + 2 :]])
        return super().parse_args(ctx, [*head, *args[place + 1 :]])


yes_option = click.option("--yes", "-y", "is_sure", is_flag=True, help="Do not ask.")
"""Skip the question before a change that cannot be undone."""


def _is_terminal() -> bool:
    return sys.stdin.isatty()


def require_terminal(what: str) -> None:
    """Refuse to wait for somebody where nobody types."""
    if not _is_terminal():
        raise click.UsageError(what)


def confirm(question: str, *, is_sure: bool) -> None:
    """Ask before a change that cannot be undone. Without a terminal to ask on, require ``--yes``."""
    if is_sure:
        return
    require_terminal(f"{question} Nobody can be asked here: give --yes.")
    click.confirm(question, abort=True, err=True)


key_option = click.option("--key", help="An idempotency key: commands with the same one do this once.")
"""The key that identifies a request, so that you can repeat its command safely."""


@contextmanager
def explain_errors(options: Mapping[str, Any], *, takes_key: bool = False) -> Iterator[None]:
    """Add hints to the API's errors, for the options of `connection_options`, and the key if the command takes one."""
    try:
        yield
    except Unavailable as error:
        said = [f"{error.service} cannot be reached: {error.reason}", explain_unreachable(options["url"])]
        if takes_key and error.idempotency_key is not None and error.is_retryable:
            said.insert(1, f"Repeat it with --key {shlex.quote(error.idempotency_key)}, then it is done once")
        error.args = (". ".join(filter(None, said)),)
        raise
    except Unauthenticated as error:
        if any(options[name] for name in ("key", "token", "platform_token")):
            raise
        raise Unauthenticated(NO_CREDENTIALS.format(place=f"The API at {options['url']}")) from error


class ApiGroup(click.Group):
    """A group whose commands use the API."""

    command_class = ApiCommand
    aliases: Mapping[str, str] = MappingProxyType({})
    """Further names of its commands."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by one of its names."""
        return super().get_command(ctx, self.aliases.get(cmd_name, cmd_name))

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's signature
        """Run the command. If an option of this group follows the command, say where it belongs."""
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            options = {name for param in self.params if isinstance(param, click.Option) for name in param.opts}
            if error.option_name not in options or error.ctx is None or error.ctx is ctx:
                raise
            place = f"{ctx.command_path} {error.option_name} … {error.ctx.info_name}"
            raise click.UsageError(f"{error.option_name} goes before the command: {place}", error.ctx) from error


def _make_client(options: dict[str, Any], **more: Any) -> Client:
    """Return a client with the options of `connection_options`, and remove them from the given ones."""
    with pause_collection(keeps_all=True):
        from cloudsched.client.client import Client  # noqa: PLC0415 - not needed for --help

    return Client(**{name: options.pop(name) for name in ("url", "key", "token", "platform_token")}, **more)


COMPLETED: Final = 50
"""The number of tasks among which an id is completed."""
COMPLETION_SECONDS: Final = 2.0


def _complete_task_id(context: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the newest tasks whose ids begin so. Nothing if the API does not say: a shell shows no errors."""
    from click.shell_completion import CompletionItem  # noqa: PLC0415 - only for a shell that completes

    assert context.parent is not None  # noqa: S101 - it is in a group
    options = dict(context.parent.params)
    if find_missing_stack(options["url"]):
        return []
    with suppress(CloudschedError), _make_client(options, timeout=COMPLETION_SECONDS) as client:
        newest = islice(client.tasks(page_size=COMPLETED), COMPLETED)
        return [CompletionItem(each.id, help=each.title) for each in newest if each.id.startswith(incomplete)]
    return []


TASK_ID: Final[Mapping[str, Any]] = {"metavar": "ID", "shell_complete": _complete_task_id}
"""How the argument of a task's id is shown and completed."""


def client_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the connection options to a single command, and call it with a `Client`."""

    @connection_options
    @wraps(command)
    def with_client(**options: Any) -> None:
        with explain_errors(dict(options)), _make_client(options) as client:
            command(client, **options)

    return with_client


def api_options(group: Callable[[], None]) -> Callable[..., None]:
    """Add the connection options to a group. Its commands get the client by `pass_client`."""

    @connection_options
    @click.pass_context
    @wraps(group)
    def with_client(context: click.Context, /, **options: Any) -> None:
        context.obj = lambda: context.with_resource(closing(_make_client(dict(options))))
        group()

    return with_client


def pass_client(command: Callable[..., None]) -> Callable[..., None]:
    """Call a command with its group's `Client`, opened when the command runs."""

    @click.pass_context
    @wraps(command)
    def with_client(context: click.Context, /, *arguments: Any, **options: Any) -> None:
        assert context.parent is not None  # noqa: S101 - it is in a group
        with explain_errors(context.parent.params, takes_key="key" in options):
            command(context.obj(), *arguments, **options)

    return with_client


class MemberChoice(click.Choice):  # type: ignore[type-arg]  # not generic before click 8.4
    """A choice among the members of a closed set, which is imported once the values are shown, completed or compared.

    The place is one such as ``domain.documents.task:TaskStatus``.
    """

    def __init__(self, place: str, *, case_sensitive: bool = False) -> None:
        self._place = place
        self.case_sensitive = case_sensitive

    @cached_property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]  # click has them from the start
        """The values."""
        module, _, name = self._place.partition(":")
        with pause_collection():
            members = getattr(import_module(f"cloudsched.{module}"), name)
        return tuple(each.value for each in members)


TASK_STATUS: Final = MemberChoice("domain.documents.task:TaskStatus")
EXECUTION_STATUS: Final = MemberChoice("domain.documents.execution:ExecutionStatus")
ROLE: Final = MemberChoice("web.auth.roles:Role", case_sensitive=True)


def parse_instant(text: str, timezone: str | None, option: str) -> datetime:
    """Return an instant in UTC. A local time is in the given zone. Errors name `option`."""
    try:
        at = parse_time(text)
    except ValueError as error:
        raise click.UsageError(f"{option}: {error}") from None
    if at.tzinfo is not None:
        return at
    if timezone is None:
        raise click.UsageError(f"{option}: {text!r} has no time zone; end it with Z for UTC, or give --timezone.")
    from cloudsched.domain.schedules.schedule import Schedule  # noqa: PLC0415 - only needed for a local time

    try:
        local = Schedule.parse(at.isoformat(timespec="seconds"), timezone).at
    except InvalidSchedule as error:
        where = "--timezone" if error.field == "timezone" else option
        raise click.UsageError(f"{where}: {error.problem} ({error.hint}).") from None
    assert local is not None  # noqa: S101 - what is parsed is one local time
    return local


def parse_once(text: str, timezone: str | None, option: str) -> dict[str, str]:
    """Return the schedule that runs once at a time, as the API takes it. Errors name `option`.

    If a zone's rules change, a local time keeps its time on the clock, and an instant stays the same instant.
    """
    instant = parse_instant(text, timezone, option)
    written = parse_time(text)
    once = {"at": instant.isoformat()} if written.tzinfo else {"local": written.isoformat(timespec="seconds")}
    return {**once, "timezone": timezone or "UTC"}


def parse_date(text: str, option: str) -> date:
    """Return a date, such as 2027-08-02. Errors name `option`."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise click.UsageError(f"{option}: {text[:40]!r} is not a date; write it like 2027-08-02.") from None


def drop_none(**fields: object) -> dict[str, Any]:
    """Return the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def parse_fields(more: Iterable[str]) -> dict[str, Any]:
    """Parse ``field=JSON``. A value that is not JSON is text."""
    fields: dict[str, Any] = {}
    for each in more:
        name, equals, text = each.partition("=")
        if not equals:
            raise click.UsageError(f"--set {each}: write FIELD=VALUE.")
        try:
            fields[name] = json.loads(text)
        except ValueError:
            fields[name] = text
    return fields
