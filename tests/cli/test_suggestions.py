"""Mistyped commands, misplaced options and an unreachable API: each error suggests what was probably meant."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest
from tests.cli.conftest import CommandResult

from cloudsched.cli.main import ExitCode
from cloudsched.cli.options import explain_unreachable

Tasks = Callable[..., CommandResult]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("nextt", "x"), "next"),
        (("tasks", "lst"), "list"),
        (("tasks", "list", "--onwer", "ada"), "--owner"),
    ],
)
def test_a_mistyped_word_is_answered_with_what_was_meant(
    words: tuple[str, ...], meant: str, run_command: Tasks
) -> None:
    """Exit code 2, the word as it was typed, and the closest command or option."""
    said = run_command(*words)
    assert said.code == 2
    _, suggests, suggestion = said.err.partition("Did you mean ")
    assert suggests
    assert meant in suggestion


def test_a_command_without_an_answer_names_the_key_to_repeat_it(run_command: Tasks) -> None:
    """As its own option, if it has one."""
    made = run_command("tasks", "--url", "http://127.0.0.1:1", "create", "T", "--handler", "h", "--key", "Wäsche 1")
    assert "--key 'Wäsche 1'" in made.err
    assert "Nothing listens" in made.err
    paused = run_command("tasks", "--url", "http://127.0.0.1:1", "pause", "t")
    assert "idempotency_key" not in paused.err


def test_a_misplaced_group_option_is_explained(run_command: Tasks) -> None:
    """`--url` belongs to `tasks`, so it stands before the command."""
    said = run_command("tasks", "list", "--url", "http://127.0.0.1:1")
    assert said.code == 2
    assert "--url goes before the command: cloudsched tasks --url … list" in said.err


def test_a_refused_local_connection_suggests_starting_the_stack(run_command: Tasks) -> None:
    """On this machine, a port on which nothing listens says that `cloudsched dev` seems not to run."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # without listening
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        said = run_command("tasks", "--url", url, "trigger", "t")  # which is sent once
        assert said.code == ExitCode.UNREACHABLE
        assert "cannot be reached" in said.err
        assert "cloudsched dev seems not to run" in said.err
        taken.listen()
        assert "but not the API" in explain_unreachable(url)
    assert explain_unreachable("https://api.example") == "", "nothing is known about another machine"
