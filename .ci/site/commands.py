"""The commands of docs/reference/commands.md, grouped as ``cloudsched --help`` groups them, and the exit codes.

``python .ci/site/commands.py`` writes them into the page from the commands' own help.
"""

from __future__ import annotations

import ast
import inspect
import re
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import click
from marks import put_parts, write

from cloudsched.cli import main
from cloudsched.cli.options import connection_options

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"
_NUMBERS = dict.fromkeys(("INTEGER", "INTEGER RANGE", "FLOAT", "FLOAT RANGE"), "N")
SHARED = {"--json", "--quiet"}
"""Options that the page explains once."""


def put(text: str) -> str:
    """Return the page with the exit codes and all commands as the code has them."""
    return put_parts(text, {"exit-codes": lambda _: _render_codes(), "commands": lambda _: _render_commands()})


def _render_codes() -> str:
    meanings = {each.name: f"{each.name.capitalize().replace('_', ' ')}." for each in main.ExitCode}
    members = ast.parse(inspect.cleandoc(inspect.getsource(main.ExitCode).partition(":")[2])).body
    for member, text in pairwise(members):
        if isinstance(member, ast.Assign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            meanings[ast.unparse(member.targets[0])] = str(text.value.value)
    rows = [f"| {each.value} | `{each.name.lower()}` | {meanings[each.name]} |" for each in main.ExitCode]
    return "\n".join(["| exit code | `kind` in JSON | meaning |", "|---|---|---|", *rows])


def _render_commands() -> str:
    top = main.cloudsched
    parts = []
    for heading, section in top.sections.items():  # type: ignore[attr-defined]
        parts.append(f"## {heading}")
        for name in section:
            if command := top.get_command(click.Context(top), name):
                parts += _render(command, ("cloudsched", name), section[name][1])
    return "\n\n".join(parts)


def _render(command: click.Command, path: tuple[str, ...], summary: str = "") -> Iterator[str]:
    """Yield the paragraphs about a command and those below it."""
    context = click.Context(command, info_name=" ".join(path))
    yield f"{'#' * (len(path) + 1)} {' '.join(path)}"
    yield from _split(command.help or summary)
    arguments = [each.make_metavar(context) for each in command.params if isinstance(each, click.Argument)]
    if not isinstance(command, click.Group):
        yield f"Usage: `{' '.join([*path, '[OPTIONS]', *arguments])}`"
    options = [each for each in command.params if isinstance(each, click.Option)]
    asks = any(each.opts[0] == "--url" and isinstance(each.default, str) for each in options)
    own = [each for each in options if each.opts[0] not in (SHARED | _CONNECTION if asks else SHARED)]
    if own:
        yield "\n".join(f"- {_describe(each, context)}" for each in own)
    shared = [f"`{each.opts[0]}`" for each in options if each.opts[0] in SHARED]
    if asks:
        shared.append("[the API's address and your credential](#the-apis-address-and-your-credential)")
    if shared:
        yield f"Also: {', '.join(shared)}."
    examples = re.findall(r"^  (cloudsched .*)$", command.epilog or "", re.MULTILINE)
    if len(examples) == 1:
        yield f"For example: `{examples[0]}`"
    elif examples:
        yield "\n".join(["For example:", "", *(f"- `{each}`" for each in examples)])
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            if below := command.get_command(context, name):
                yield from _render(below, (*path, name))


def _split(text: str) -> list[str]:
    """Return the paragraphs of a help text, each in a line."""
    plain = re.sub(r"(?<!`)``(?!`)", "`", inspect.cleandoc(text).replace("\b\n", ""))
    return [" ".join(each.split()) for each in plain.split("\n\n")]


def _describe(option: click.Option, context: click.Context) -> str:
    value = "" if option.is_flag else f" {_NUMBERS.get(option.make_metavar(context), option.make_metavar(context))}"
    names = ", ".join(f"`{each}{value}`" for each in option.opts)
    text = re.sub(r"\s*\[(default: .*?|env: .*?)\]", "", option.help or "")
    hints = re.findall(r"\[default: (.*?)\]", option.help or "")
    if option.show_default and not hints and option.default is not None and not option.is_flag:
        hints = [f"`{option.default}`"]
    parts = [text, f"Default: {hints[0]}." if hints else "", "Required." if option.required else ""]
    words = " ".join(each for each in parts if each)
    return f"{names}: {words}" if words else names


def _list_connection() -> set[str]:
    @connection_options
    def command() -> None: ...

    return {each.opts[0] for each in command.__click_params__}  # type: ignore[attr-defined]


_CONNECTION = _list_connection()

if __name__ == "__main__":
    write(PAGE, put)
