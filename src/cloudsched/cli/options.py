"""The common parts of commands: groups that use the API, and options for its address, closed sets and instants.

Errors of the API say what to do. Instants have an offset, or are by the clocks of a zone.
"""

from __future__ import annotations

import json
import shlex
import socket
import sys
from contextlib import closing, contextmanager, redirect_stdout
from datetime import date, datetime
from functools import cached_property, wraps
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

import click

from cloudsched.cli.main import NO_CREDENTIALS
from cloudsched.config.imports import pause_collection
from cloudsched.emulator.model.names import parse_time
from cloudsched.errors import InvalidSchedule, Unauthenticated, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

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


yes_option = click.option("--yes", "-y", "is_sure", is_flag=True, help="Do not ask.")
"""Skip the question before a change that cannot be undone."""


def _is_terminal() -> bool:
    return sys.stdin.isatty()


def confirm(question: str, *, is_sure: bool) -> None:
    """Ask before a change that cannot be undone. Without a terminal to ask on, require ``--yes``."""
    if is_sure:
        return
    if not _is_terminal():
        raise click.UsageError(f"{question} Nobody can be asked here: give --yes.")
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


def _make_client(options: dict[str, Any]) -> Client:
    """Return a client with the options of `connection_options`, and remove them from the given ones."""
    with pause_collection(keeps_all=True):
        from cloudsched.client.client import Client  # noqa: PLC0415 - not needed for --help

    return Client(**{name: options.pop(name) for name in ("url", "key", "token", "platform_token")})


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
