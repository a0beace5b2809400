"""Every operation, tool, command, form and batch action is in the tables: what is new fails here until it is tried."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import pytest
from tests.cases import try_each
from tests.doors.acts import ACTS, PUBLIC, Act
from tests.doors.doors import BATCH_ACTIONS, COMMANDS, DOORS, FORMS, FRONT, MCP_TOOLS, PAGES, Door, Pages
from tests.doors.outcomes import compare, enter, enter_front
from tests.doors.world import Target

from cloudsched.agents.tools import TOOLS
from cloudsched.cli.main import cloudsched as command_line
from cloudsched.dashboard.routes import MAP, VIEWS
from cloudsched.domain.documents.batch_change import BatchAction
from cloudsched.domain.documents.verbs import Verb
from cloudsched.web.api.operations import OPERATIONS

NOT_ASKED_BY_COMMANDS = {
    "admin backup": "the operator's, at the files of a store",
    "admin restore": "the operator's, at the files of a store",
    "admin keys new": "makes a key, which an operator has to deploy",
    "admin shards grow": "the operator's, at the store",
    "admin shards show": "the operator's, at the store",
    "apply": "the operator's, at the store",
    "check": "looks at a deployment, and changes nothing",
    "completion": "prints a part of a shell's configuration",
    "dashboard": "serves the dashboard, which is a door of its own",
    "demo": "runs a stack of its own",
    "dev": "runs a stack of its own",
    "doctor": "looks at a deployment, and changes nothing",
    "emulator": "runs a local Cloud Tasks",
    "init": "writes files",
    "mcp": "serves the tools, which are a door of their own",
    "next": "computes; it asks for the days of calendars as `admin calendars show` does",
    **{
        f"outbox {verb}": "the operator's, at the app's own database; what it hands over, the app's code has written"
        for verb in ("discard", "failed", "relay", "retry")
    },
    "run": "calls a handler of this machine's code, without a store",
    "serve": "runs a service of its own",
    "tasks import cloud-scheduler": "the operator's, at the store",
    "tasks import crontab": "the operator's, at the store",
    "tasks restore": "asks what `pause-all` asks, for what that has paused",
    "worker": "claims, which is a door of its own",
    "tasks view": "asks what `get`, `upcoming`, `why` and `logs` ask",
}
"""The commands that act for nobody at the API, or are tried as another door, each with the reason."""


def test_every_operation_is_an_act() -> None:
    """Those that need no credential act for nobody."""
    assert {each.operation for each in ACTS} | PUBLIC == {each.name for each in OPERATIONS}
    assert len({each.name for each in ACTS}) == len(ACTS)


def test_every_tool_of_an_agent_stands_for_an_operation() -> None:
    """The MCP server has no other tools."""
    assert TOOLS.keys() == MCP_TOOLS.keys()


def list_commands(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[str]:
    if not isinstance(command, click.Group):
        yield " ".join(words)
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from list_commands(found, (*words, name))


def test_every_command_is_typed_for_some_act() -> None:
    """Unless it asks no API, or is a door of its own."""
    typed = set()
    for act in ACTS:
        if act.operation in COMMANDS:
            words = COMMANDS[act.operation](act, Target("own", "ada"))
            typed |= {" ".join(words[:length]) for length in (1, 2, 3)}
    known = set(list_commands(command_line))
    assert known - typed - NOT_ASKED_BY_COMMANDS.keys() == set()
    assert NOT_ASKED_BY_COMMANDS.keys() <= known


def test_every_form_is_sent_for_some_act() -> None:
    """All views that take a form, and all verbs that a task's page may offer."""
    pages = next(each for each in DOORS if isinstance(each, Pages))
    filled = [act for act in ACTS if act.operation in FORMS and pages.why_not(act) is None]
    sent = {FORMS[act.operation](act, Target("own", "ada"))[0] for act in filled}
    views = {MAP.bind("x").match(path, method="POST")[0] for path in sent}
    others = {"answer", "action", "decisions", "back"}  # they send what "send", "cancel" and "edit" do
    forms = {name for name, view in VIEWS.items() if view.send is not None} - others
    assert views == forms | {"verb"}
    verbs = {path.rpartition("/")[2] for path in sent if "/verbs/" in path}
    assert verbs == {each.word for each in Verb if each.traits.done} - {Verb.EDIT}
    shown = {MAP.bind("x").match(path.partition("?")[0])[0] for path in PAGES.values()}
    assert shown >= {*VIEWS} - {
        "new",
        "edit",
        "bulk",
        "retry",
        "run",
        "answer",
        "actions",
        "action",
        "compare",
        "back",
        "decisions",
    }


def test_every_batch_action_is_tried() -> None:
    """A new one is a verb for many tasks."""
    assert set(BATCH_ACTIONS.values()) == set(BatchAction)


@pytest.mark.parametrize("door", DOORS, ids=lambda each: each.name)
def test_every_door_says_what_it_cannot(door: Any) -> None:  # noqa: ANN401 - a door
    """It is tried with something, and gives a reason for everything else."""
    reasons = [door.why_not(act) for act in ACTS]
    assert None in reasons
    assert all(reason is None or reason for reason in reasons)
    assert FRONT not in DOORS


@pytest.mark.parametrize("door", DOORS, ids=lambda each: each.name)
@try_each("act", ACTS)
def test_the_outcome_is_that_of_the_api(door: Door, act: Act) -> None:
    """For everybody, and whoever owns and wrote what it is about."""
    if door.why_not(act) is not None:
        return
    for who in [each for each in door.actors if each in act.actors]:
        for origin in act.origins:
            expected, found = enter_front(who, act.name, origin), enter(door, who, act, origin)
            if difference := compare(door, act, who, origin, expected, found):
                pytest.fail(f"{who}, {origin}: {difference}")
