"""``cloudsched people`` on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.cli.conftest import CommandResult

from cloudsched.cli.main import ExitCode
from cloudsched.domain.documents.execution import Message
from cloudsched.engine.ports.store import Commit
from cloudsched.testing import Simulation

People = Callable[..., CommandResult]


def test_a_change_keeps_the_rest(people: People) -> None:
    """What is not named stays, what is cleared is reset, and the webhook's secret is printed once, apart."""
    made = people("set", "ada", "--email", "ada@example.com", "--verified", "--channels", "reminder=email,web")
    assert made.code == 0, made.err
    said = people("set", "ada", "--webhook", "https://example.com/", "--locale", "de-AT", "--json")
    shown = json.loads(said.out)
    assert shown["email"] == {"address": "ada@example.com", "verified": True}
    assert shown["channels"] == {"REMINDER": ["EMAIL", "WEB"]}
    assert shown["locale"] == "de-AT"
    assert "whsec_" in said.err
    assert "whsec_" not in said.out
    people("set", "ada", "--tz", "Europe/Paris", "--clear", "locale", "--clear", "email")
    printed = people("show", "ada")
    assert "Europe/Paris" in printed.out
    assert "de-AT" not in printed.out + printed.err
    assert "ada@example.com" not in printed.out
    assert people("delete", "ada", "--yes").out == "deleted ada\n"
    assert people("show", "ada").code == ExitCode.NOT_FOUND


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ((), "Name at least one field"),
        (("--verified",), "--verified is about an address"),
        (("--channels", "REMINDER"), "write CATEGORY="),
        (("--clear", "owner"), "name one of"),
        (("--email", "ada"), "is not an e-mail address"),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused(people: People, options: tuple[str, ...], problem: str) -> None:
    """With what to write instead; nothing is stored."""
    said = people("set", "ada", *options)
    assert said.code in {ExitCode.USAGE, ExitCode.REFUSED}
    assert problem in said.err
    assert people("show", "ada").code == ExitCode.NOT_FOUND


def test_an_inbox_is_read(people: People, sim: Simulation) -> None:
    """Unread messages have a star until they are marked; what is not there cannot be."""
    task = sim.app.create(owner="ada", title="T", handler="greet", payload={"name": "A"})
    stored = sim.app.container.store.load(task.id)
    assert stored is not None
    message = Message(id="m1", owner="ada", task_id=task.id, execution_id="e", title="Hi", body="", created_at=sim.now)
    sim.app.container.store.commit(Commit(stored.task, stored, (), [message]))
    assert people("inbox", "ada").out.splitlines()[0].startswith("* ")
    assert people("read", "ada", "m1").out == "read m1\n"
    assert people("inbox", "ada").out.splitlines()[-1] == "0 unread"
    assert json.loads(people("inbox", "ada", "--json").out)["isRead"] is True
    assert people("read", "ada", "m9").code == ExitCode.NOT_FOUND
