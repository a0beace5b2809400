"""``cloudsched scripts`` on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import CommandResult

from cloudsched.cli.main import ExitCode

Scripts = Callable[..., CommandResult]

SOURCE = "const who = input.name;\nreturn `Hello ${who}`;\n"


@pytest.fixture
def scripts(run_command: Callable[..., CommandResult], url: str) -> Scripts:
    """Type a `cloudsched scripts` command."""
    return lambda *words: run_command("scripts", "--url", url, *words)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "hello.js"
    path.write_text(SOURCE)
    return str(path)


def test_a_script_is_set_shown_listed_and_deleted(scripts: Scripts, file: str) -> None:
    """What was set is shown with its lines; after its deletion it is not found. A second set is a second version."""
    made = scripts("set", "hello", file, "--owner", "ada", "--description", "Greets.")
    assert (made.code, made.out) == (0, "hello  version 1  Greets.\n"), made.err
    assert scripts("show", "hello", "--owner", "ada").out.splitlines() == [
        "hello  version 1  Greets.",
        *SOURCE.splitlines(),
    ]
    assert scripts("list", "--owner", "ada").out == "hello  version 1  Greets.\n"
    assert scripts("list", "--owner", "bob").out == ""
    assert scripts("delete", "hello", "--owner", "ada", "--yes").out == "deleted hello\n"
    assert scripts("show", "hello", "--owner", "ada").code == ExitCode.NOT_FOUND
    assert scripts("delete", "hello", "--owner", "ada", "--yes").code == ExitCode.NOT_FOUND


def test_json_has_all_of_it(scripts: Scripts, file: str) -> None:
    """One line a script, without the source in a list."""
    made = json.loads(scripts("set", "hello", file, "--json").out)
    assert (made["name"], made["version"], made["source"]) == ("hello", 1, SOURCE)
    assert json.loads(scripts("show", "hello", "--json").out) == made
    listed = json.loads(scripts("list", "--json").out)
    assert listed == {name: value for name, value in made.items() if name != "source"}


@pytest.mark.parametrize(
    ("source", "words", "problem"),
    [
        (b"return (", (), "source"),
        (b"\xff\xfe", (), "UTF-8"),
        (b"return 1", ("--tool", "no-such-tool"), "no-such-tool"),
        (b"return 1", ("--owner", ""), "owner"),
    ],
)
def test_a_wrong_script_is_refused(
    scripts: Scripts, tmp_path: Path, source: bytes, words: tuple[str, ...], problem: str
) -> None:
    """With what is wrong; nothing is stored."""
    path = tmp_path / "wrong.js"
    path.write_bytes(source)
    refused = scripts("set", "wrong", str(path), *words)
    assert refused.code != 0
    assert problem in refused.err
    assert scripts("list").out == ""


def test_what_a_script_says_does_nothing_to_the_terminal(scripts: Scripts, tmp_path: Path) -> None:
    """Control characters in descriptions and sources are shown, not obeyed."""
    path = tmp_path / "hello.js"
    path.write_text("return 1 // \x1b[2J")
    scripts("set", "hello", str(path), "--description", "\x1b[31mred")
    shown = scripts("show", "hello").out
    assert "\x1b" not in shown
    assert "red" in shown
