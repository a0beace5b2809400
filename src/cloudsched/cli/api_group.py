"""What groups of commands that use the API have in common: its address, and credentials."""

from __future__ import annotations

from contextlib import closing, contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import click

from cloudsched.cli.connection_options import connection_options
from cloudsched.cli.groups import SuggestingGroup
from cloudsched.cli.main import NO_CREDENTIALS
from cloudsched.cli.reachability import explain_unreachable
from cloudsched.config.garbage_collection import pause_collection
from cloudsched.errors import Unauthenticated, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cloudsched.client.client import Client

RECORD_SYNONYMS: Final = {
    "get": "show",
    "ls": "list",
    "rm": "delete",
    "remove": "delete",
    **dict.fromkeys(("put", "create", "edit", "update"), "set"),
}
"""What people type for the commands of a group that sets, shows, lists and deletes records."""
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
"""Print JSON in place of what people read."""


@contextmanager
def explain_errors(options: Mapping[str, Any]) -> Iterator[None]:
    """Say in errors of the API what to do; the options are those of `connection_options`."""
    try:
        yield
    except Unavailable as error:
        hint = explain_unreachable(options["url"])
        if hint:
            error.args = (f"{error}. {hint}",)
        raise
    except Unauthenticated as error:
        if any(options[name] for name in ("key", "token", "platform_token")):
            raise
        raise Unauthenticated(NO_CREDENTIALS.format(place=f"The API at {options['url']}")) from error


class _ExplainsErrors(click.Command):
    """Says what to do when a credential is missing, or nothing answers."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's signature
        """Run the command that was named."""
        with explain_errors(ctx.params):
            return super().invoke(ctx)


class ApiGroup(_ExplainsErrors, SuggestingGroup):
    """A group whose commands use the API."""


class ApiCommand(_ExplainsErrors):
    """A command that uses the API."""


def api_options(group: Callable[[], None]) -> Callable[..., None]:
    """Give a group the options that say where the API is; its commands take the client by `pass_client`."""

    @connection_options
    @click.pass_context
    @wraps(group)
    def with_client(
        context: click.Context, url: str, key: str | None, token: str | None, platform_token: str | None
    ) -> None:
        def open_client() -> Client:
            with pause_collection(keeps_all=True):
                from cloudsched.client.client import Client  # noqa: PLC0415 - not needed for --help

            return context.with_resource(closing(Client(url, key=key, token=token, platform_token=platform_token)))

        context.obj = open_client
        group()

    return with_client


def pass_client(command: Callable[..., None]) -> Callable[..., None]:
    """Call a command with a `Client` of its group's API, which is opened when the command runs."""

    @click.pass_obj
    @wraps(command)
    def with_client(open_client: Callable[[], Client], /, *arguments: Any, **options: Any) -> None:
        command(open_client(), *arguments, **options)

    return with_client
