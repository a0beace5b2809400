"""The doors that take no person's credential: links, what is public, the store itself, the clock of a local stack.

None of them has the API's outcome for a person, for each knows no person. The tables say who may use each instead, and
the tests that nobody's credential opens more of it, and that it does nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import click
import pytest
from click.testing import CliRunner
from tests.doors.acts import PUBLIC
from tests.doors.test_completeness import NOT_ASKED_BY_COMMANDS
from tests.doors.world import ACTORS, URL, WORLDS, World, headers_of, key_of
from werkzeug.wrappers import Response

from cloudsched.cli.main import cloudsched as command_line
from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.document import WireModel
from cloudsched.domain.documents.person import Person
from cloudsched.engine.authority import OWN_CODE
from cloudsched.errors import Forbidden, Misconfigured, NotFound
from cloudsched.people.wiring import PeopleWiring
from cloudsched.web.api.operation import ApiCall, Operation
from cloudsched.web.api.operations import OPERATIONS
from cloudsched.web.api.router import ApiServer

BY_ADDRESS: Final = "whoever knows its address, which is a secret"
BY_SERVICE: Final = "the chat's service, by its secret or signature"
NOBODY: Final = "nothing of anybody's, so whoever asks may see it"
WHO_MAY: Final = {
    "show_unsubscribe_link": NOBODY,
    "follow_unsubscribe_link": BY_ADDRESS,
    "show_question_link": BY_ADDRESS,
    "follow_question_link": BY_ADDRESS,
    "show_contact_link": BY_ADDRESS,
    "follow_contact_link": BY_ADDRESS,
    "take_telegram_update": BY_SERVICE,
    "take_slack_action": BY_SERVICE,
    "get_feed": BY_ADDRESS,
    "health": NOBODY,
    "ready": NOBODY,
    "openapi": NOBODY,
}
"""What it takes to use each operation that takes no person's credential."""
GUESSES: Final = ("ada", "system", "task", "owner", "key", "feed", "lease", "0" * 64, "ada.x", "..", "YWRh.YWRh")
"""What somebody might try as the secret of a link or feed; names stand for what a user may read or has."""
AT_THE_STORE: Final = [name for name, why in NOT_ASKED_BY_COMMANDS.items() if "at the store" in why]
"""The doors beside the API's port, each with the tests that try every role at it."""


@pytest.fixture
def world() -> Iterator[World]:
    """A world in which ada has contacts, and somebody else has, too; nobody uses it again."""
    with WORLDS.enter("records") as (world, target):
        world.has_records = True
        PeopleWiring.of(world.app.container).feeds.create("ada", by=OWN_CODE)
        assert target.owner == "ada"
        yield world


def test_everything_public_says_what_it_takes() -> None:
    """A new operation without a right is none of a person's."""
    assert WHO_MAY.keys() == PUBLIC


def test_what_is_public_is_asked_by_nobody(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such an operation had an admin's authority: it may see no task and change nothing but what its secret allows."""
    calls = list[ApiCall]()
    run = ApiServer._run_operation  # noqa: SLF001 - what each operation is called with

    def note(operation: Operation, call: ApiCall, query: WireModel) -> Response:
        calls.append(call)
        return run(operation, call, query)

    monkeypatch.setattr(ApiServer, "_run_operation", staticmethod(note))
    task = world.app.create(owner="ada", title="T", handler="open", schedule="every day at 9")
    for each in OPERATIONS:
        if each.name in PUBLIC:
            world.ask(each.method, re.sub(r"\{\w+\}", "x", each.path), b"" if each.method == "POST" else None)
    assert len(calls) == len(PUBLIC)
    for call in calls:
        assert (call.authority.is_user, call.authority.sender) == (True, None)
        for act in (call.app.get, call.app.pause, call.app.delete):
            with pytest.raises(NotFound):
                act(task.id)
        with pytest.raises(Forbidden):
            call.authority.require_owner("ada")


def list_guesses(world: World) -> list[str]:
    """Return what a user may read, and what they have, beside plain guesses."""
    feeds = [each.id for each in PeopleWiring.of(world.app.container).feeds.list("ada")]
    tasks = [each.id for each in world.app.tasks().items]
    return [*GUESSES, *feeds, *tasks, key_of("ada"), key_of("admin")]


@pytest.mark.parametrize("who", [None, *ACTORS])
def test_no_credential_replaces_the_secret_of_a_link(world: World, who: str | None) -> None:
    """Whoever asks, with whatever is no secret of a link, changes nothing and sees nothing."""
    headers = {} if who is None else headers_of(who)
    before = world.read()
    for each in OPERATIONS:
        if WHO_MAY.get(each.name) != BY_ADDRESS:
            continue
        for guess in list_guesses(world):
            path = re.sub(r"\{\w+\}", guess, each.path)
            answer = world.ask(each.method, path, b"" if each.method == "POST" else None, headers)
            assert answer.status_code in {HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST}, (each.name, guess)
            assert "title of" not in answer.get_data(as_text=True)
    assert world.read() == before


@pytest.mark.parametrize("who", [None, "bob", "viewer", "admin"])
def test_a_link_does_what_it_says_for_its_person_and_nothing_else(world: World, who: str | None) -> None:
    """Whoever opens it: one kind of mail of one person ends. An admin who opens it does no more than anybody."""
    container, headers = world.app.container, {} if who is None else headers_of(who)
    url = PeopleWiring.of(container).unsubscribe_links.make(URL, "ada", Category.REMINDER)
    tasks = world.app.tasks().items
    shown = world.ask("GET", url.removeprefix(URL), None, headers)
    assert shown.status_code == HTTPStatus.OK
    before = PeopleWiring.of(container).people.get("ada")
    assert PeopleWiring.of(container).people.get("ada") == before, "to look changes nothing"
    assert world.ask("POST", url.removeprefix(URL), b"", headers).status_code == HTTPStatus.OK
    after = PeopleWiring.of(container).people.get("ada")
    changed = {name for name in Person.model_fields if getattr(before, name) != getattr(after, name)}
    assert changed <= {"channels", "updated_at"}
    assert "channels" in changed
    assert world.app.tasks().items == tasks


def test_public_answers_are_the_same_for_everybody(world: World) -> None:
    """A credential beside the request shows nothing more."""
    for each in OPERATIONS:
        if WHO_MAY.get(each.name) != NOBODY or "{" in each.path:
            continue
        texts = {
            world.ask(each.method, each.path, None, headers).get_data(as_text=True)
            for headers in ({}, headers_of("ada"), headers_of("admin"))
        }
        assert len(texts) == 1, each.name


# ── At the store ─────────────────────────────────────────────────────────────────────────────────────────────────────


def find_command(name: str) -> click.Command:
    found: Any = command_line
    for word in name.split():
        found = found.get_command(click.Context(found), word)
    assert isinstance(found, click.Command)
    return found


JOBS: Final = ("jobs", "--yes")
ARGUMENTS: Final[dict[str, tuple[str, ...]]] = {
    "apply": (),
    "tasks import cloud-scheduler": JOBS,
    "tasks import crontab": JOBS,
    "admin shards grow": ("4",),
    "admin shards show": (),
}
"""What is typed for each command at the store. They are the operator's, who may do everything there anyway."""


@pytest.mark.usefixtures("own_process")
@pytest.mark.parametrize("name", AT_THE_STORE)
def test_a_persons_credential_opens_no_store(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They take no key and no address of an API; with a user's in the environment, and no store, they do nothing."""
    command = find_command(name)
    assert not {"key", "token", "url", "platform_token"} & {each.name for each in command.params}
    (tmp_path / "handlers.py").write_text(
        "from cloudsched import App\napp = App()\n@app.scheduled('every day at 9', owner='system')\ndef job(): ...\n"
    )
    jobs = tmp_path / "jobs"
    jobs.write_text("0 9 * * * echo\n" if "crontab" in name else json.dumps([]))
    monkeypatch.chdir(tmp_path)
    for variable in ("CLOUDSCHED_STORE", "CLOUDSCHED_DATA", "GOOGLE_CLOUD_PROJECT"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("CLOUDSCHED_URL", URL)
    monkeypatch.setenv("CLOUDSCHED_KEY", key_of("ada"))
    with WORLDS.enter("active") as (world, _):
        before = world.read()
        result = CliRunner().invoke(command_line, [*name.split(), *ARGUMENTS[name]])
        assert isinstance(result.exception, Misconfigured), result.output
        assert world.read() == before


# ── Other ports ──────────────────────────────────────────────────────────────────────────────────────────────────────
