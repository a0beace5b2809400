"""The entry point of the ``cloudsched`` command, the table of its subcommands, and its exit codes.

Each subcommand is a module of its own, imported when it is used.
"""

from __future__ import annotations

import sys
from enum import IntEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import click

from cloudsched.cli.examples import add_examples
from cloudsched.config.imports import pause_collection, require_extra
from cloudsched.errors import (
    CloudschedError,
    Forbidden,
    InvalidInput,
    Misconfigured,
    NotFound,
    Unauthenticated,
    Unavailable,
    WorkflowError,
)
from cloudsched.features.table import FEATURES
from cloudsched.local.untrusted_text import print_error, safe_output, to_json_line

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from click.shell_completion import CompletionItem

_Sections = dict[str, dict[str, tuple[str, str]]]
_COMMANDS: Final[_Sections] = {
    "Local": {
        "init": ("cloudsched.cli.init:init", "Write a new project, with tests, ready to deploy."),
        "demo": ("cloudsched.cli.demo:demo", "Watch a year of tasks run in seconds."),
        "dev": ("cloudsched.cli.dev:dev", "Run the local stack: API, executor, sweep, Cloud Tasks and a store."),
        "run": ("cloudsched.cli.run:run", "Call a handler once, here and now."),
        "next": ("cloudsched.cli.next:next_command", "Show when a schedule fires."),
        "completion": ("cloudsched.cli.completion:completion", "Complete commands, options and ids in your shell."),
    },
    "Tasks": {
        "tasks": ("cloudsched.cli.tasks:tasks", "Show, change, draft and import tasks."),
        "search": ("cloudsched.cli.search:search", "Find tasks, people, handlers and labels by their names."),
        "audit": ("cloudsched.cli.audit:audit", "Show who did what to tasks, budgets and queues."),
        "apply": ("cloudsched.cli.apply:apply", "Create, edit and pause the tasks that the code declares."),
    },
    "Deployment": {
        "serve": ("cloudsched.cli.serve:serve", "Run everything in one process over one file, for one small server."),
        "check": ("cloudsched.cli.check:check", "Say what would fail with new code, before it is deployed."),
        "doctor": ("cloudsched.cli.doctor.command:doctor", "Say what is right and wrong with a deployment."),
        "dashboard": (
            "cloudsched.cli.dashboard:dashboard",
            "Show the dashboard of a deployment, on this machine only.",
        ),
    },
    "Data": {
        "schema": ("cloudsched.cli.schema:schema", "Print the schemas of handlers' payloads, also as TypeScript."),
    },
    "Admin": {
        "admin": ("cloudsched.cli.main:admin", "Manage keys, usage, queues, calendars, shards and backups."),
    },
}
"""The location and summary of each command, by the headings of ``--help``, which needs no more."""
_ADMIN: Final[_Sections] = {
    "Commands": {
        "keys": ("cloudsched.cli.operators:keys", "Make an API key for a server."),
        "usage": ("cloudsched.cli.operators:usage", "Show what was used in a month, and what it cost."),
        "queues": ("cloudsched.cli.operators:queues", "Show, pause, resume and purge a deployment's queues."),
        "shards": ("cloudsched.cli.operators:shards", "Spread tasks over more ranges of Firestore's indexes."),
        "backup": ("cloudsched.cli.backup:backup", "Copy a data folder while a process is using it."),
        "restore": ("cloudsched.cli.backup:restore", "Put a backup in the place of a data folder."),
    }
}
_ROWS: Final = [row for feature in FEATURES for row in feature.commands if row.section in {*_COMMANDS, "admin"}]
for _row in _ROWS:
    _section = _ADMIN["Commands"] if _row.section == "admin" else _COMMANDS[_row.section]
    _section[_row.name] = _row.place, _row.summary
_EXTRAS: Final = {
    "demo": "dev",
    "dev": "dev",
    **dict.fromkeys(("apply", "keys"), "worker"),
    **{row.name: row.extra for row in _ROWS},
}
"""The extra that a command needs. All others need ``server``, which includes ``worker``."""

NO_CREDENTIALS = "{place} requires authentication: give --key (or CLOUDSCHED_KEY), or --token (or CLOUDSCHED_TOKEN)."
"""The error when the API answers 401 and no credential was given."""


class _Commands(click.Group):
    """A group that imports a command when it is used, and whose help has headings."""

    def __init__(self, *, sections: _Sections, path: tuple[str, ...] = (), **options: Any) -> None:
        super().__init__(**options)
        self.sections = sections
        self._path = path
        self._table = {name: entry for section in sections.values() for name, entry in section.items()}

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return [*self._table]

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._table:
            return None
        module, _, name = self._table[cmd_name][0].partition(":")
        with self._require_extra(cmd_name), pause_collection(keeps_all=True):
            command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)  # noqa: S101 - as the tables above say
        add_examples(command, *self._path, cmd_name)
        return command

    def _require_extra(self, name: str) -> AbstractContextManager[None]:
        return require_extra(" ".join(("cloudsched", *self._path, name)), _EXTRAS.get(name, "server"))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:  # which knows no command that is not imported
            raise click.NoSuchCommand(error.command_name, possibilities=self._table, ctx=ctx) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the completions from the table, without importing any command."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only for a shell that completes

        found = [CompletionItem(name, help=about) for name, (_, about) in sorted(self._table.items())]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [item for item in found if item.value.startswith(incomplete)] + options

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's signature
        """Run the command. Raises MissingExtra if it imports what is not installed."""
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError:
            with self._require_extra(str(ctx.invoked_subcommand)):
                raise

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self._table))
        for heading, section in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), about) for name, (_, about) in section.items()])


@click.group(cls=_Commands, sections=_COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="cloudsched", prog_name="cloudsched")
def cloudsched() -> None:
    """Durable scheduled tasks for Google Cloud. Here is everything that runs on your own machine."""


@click.group(cls=_Commands, sections=_ADMIN, path=("admin",))
def admin() -> None:
    """Manage a deployment's keys, usage, queues, calendars, shards and backups."""


def main() -> None:
    """Run a command. Print an error on one line, or with ``--json`` as JSON, and exit with the code of its kind."""
    words = sys.argv[1 : sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
    as_json = any(word.partition("=")[0] == "--json" for word in words)
    with safe_output():
        try:
            code = cloudsched(prog_name="cloudsched", standalone_mode=not as_json)
        except (CloudschedError, click.ClickException) as error:
            sys.exit(report_error(error, as_json=as_json))
        except click.Abort:
            sys.exit(1)
        sys.exit(code if isinstance(code, int) else 0)


class ExitCode(IntEnum):
    """The exit codes of ``cloudsched``."""

    DONE = 0
    NO = 1
    """A check found something wrong, a run failed, or you said no."""
    USAGE = 2
    """You mistyped the command, or a setting or a package is missing."""
    REFUSED = 3
    """Your input is invalid, the status does not allow it, or a limit is reached."""
    NOT_FOUND = 4
    UNAUTHORISED = 5
    """Your credential is missing or wrong, or may not do this."""
    UNREACHABLE = 6
    """The API did not answer, is overloaded, or something else answers there. Its message says what to mend."""


_CODES: Final[tuple[tuple[type[BaseException], ExitCode], ...]] = (
    (NotFound, ExitCode.NOT_FOUND),
    (Unauthenticated, ExitCode.UNAUTHORISED),
    (Forbidden, ExitCode.UNAUTHORISED),
    (Unavailable, ExitCode.UNREACHABLE),
    (Misconfigured, ExitCode.USAGE),
    (click.UsageError, ExitCode.USAGE),
    (WorkflowError, ExitCode.NO),
    (click.ClickException, ExitCode.NO),
    (CloudschedError, ExitCode.REFUSED),
)


def find_exit_code(error: BaseException) -> ExitCode:
    """Return the exit code of a command that failed with this error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.NO)


def report_error(error: Exception, *, as_json: bool) -> ExitCode:
    """Print an error on standard error, and return the exit code."""
    code = find_exit_code(error)
    if as_json:
        click.echo(to_json_line({"error": _to_json(error, code)}), err=True)
    elif isinstance(error, click.ClickException):
        error.show()
    else:
        print_error(error)
    return code


def _to_json(error: Exception, code: ExitCode) -> dict[str, Any]:
    message = error.format_message() if isinstance(error, click.ClickException) else f"{error}"
    shown: dict[str, Any] = {"kind": code.name.lower(), "exitCode": int(code), "message": message}
    if isinstance(error, InvalidInput):
        faults = [{"field": each.field, "problem": each.problem, "hint": each.hint} for each in error.faults]
        shown["faults"] = faults
    return shown
