"""Words that the grammar understands are understood at every door that takes words."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from tests.cases import try_each
from tests.doors.acts import Act
from tests.doors.doors import DONE, Agents, CommandLine, Door, FrontDoor, ManyNew, Pages
from tests.doors.world import WORLDS, Target, headers_of

from cloudsched import App, Schedule
from cloudsched.domain.documents.person import Person
from cloudsched.errors import CloudschedError, InvalidInput, InvalidSchedule

DOORS: tuple[Door, ...] = (FrontDoor(), ManyNew(), Agents(), CommandLine(), Pages())

TELLING = tuple(each for each in DOORS if not isinstance(each, Pages))
"""The doors whose answer tells the schedule. The pages are in English, and show the task that is stored."""

UNKNOWN = {
    "every Monday banana at 9am": "is not understood at 'banana'",
    "jeden Montag Banane um 9 Uhr": "ist bei 'Banane' nicht verständlich",
}
"""What is refused, and the answer in its language, with the words for which it is."""


@pytest.mark.parametrize("door", DOORS, ids=lambda each: each.name)
@try_each("words", UNKNOWN)
def test_every_door_shows_the_words_that_are_not_understood(door: Door, words: str) -> None:
    """Of a new task, and of the change of one."""
    body = {"title": "Words", "handler": "open", "schedule": words, "timezone": "UTC"}
    shown = UNKNOWN[words]
    with WORLDS.enter() as (world, target):
        answer = door.attempt(world, "ada", Act("create words", "create_task", body, state="none"), target)
        assert answer.status != DONE
        assert shown in _decode(answer.text)
    if isinstance(door, ManyNew):
        return
    with WORLDS.enter("active") as (world, target):
        changed = Target("own", "ada", target.task_id)
        answer = door.attempt(world, "ada", Act("change", "update_task", {"schedule": words}), changed)
        assert answer.status != DONE
        assert _VERDICT.search(_decode(answer.text))


_VERDICT = re.compile("is not understood|ist .*nicht verständlich")


def _decode(text: str) -> str:
    """Return a text without the escapes of HTML and JSON."""
    return unescape(text).replace("\\u00e4", "ä")


def test_programs_get_the_words_that_are_not_understood() -> None:
    """Over HTTP, and in the Python client."""
    body: dict[str, Any] = {"title": "Words", "handler": "open", "schedule": "every Monday banana at 9am"}
    with WORLDS.enter() as (world, _):
        problem = world.ask("POST", "/v1/tasks", body, headers_of("ada")).get_json()
        assert problem["words"] == "banana"
        with world.client("ada") as client, pytest.raises(InvalidSchedule) as caught:
            client.create(**body)
        assert caught.value.words == "banana"
        said = {"text": "remind me to walk every Monday banana at 9am", "timezone": "UTC"}
        drafted = world.ask("POST", "/v1/tasks/draft", said, headers_of("ada")).get_json()
        assert "banana" in {each.get("words") for each in drafted["missing"]}


@pytest.mark.parametrize("door", TELLING, ids=lambda each: each.name)
def test_every_door_that_tells_a_schedule_tells_it_in_the_language_of_the_words(door: Door) -> None:
    """Of a new task and of the change of one, and with no locale given."""
    body = {"title": "Words", "handler": "open", "schedule": "alle 2 Wochen dienstags um 9:30 Uhr", "timezone": "UTC"}
    with WORLDS.enter() as (world, target):
        answer = door.attempt(world, "ada", Act("create words", "create_task", body, state="none"), target)
        assert "alle 2 Wochen am Dienstag um 09:30" in _unfold(answer.text)
    if isinstance(door, ManyNew):
        return
    with WORLDS.enter("active") as (world, target):
        changed = Target("own", "ada", target.task_id)
        change = {"schedule": "am letzten Werktag jedes Monats um 18 Uhr"}
        answer = door.attempt(world, "ada", Act("change", "update_task", change), changed)
        assert "jeden Monat am letzten Werktag um 18:00" in _unfold(answer.text)


def _unfold(text: str) -> str:
    return " ".join(text.split())


def test_a_preview_is_in_the_language_of_the_words_or_in_the_one_that_is_asked_for() -> None:
    """A notation has no language of its own."""
    with WORLDS.enter() as (world, _):

        def preview(**fields: str) -> str:
            told: str = world.ask("POST", "/v1/schedules/preview", fields, headers_of("ada")).get_json()["description"]
            return told

        assert preview(schedule="jeden 1. Mai um 9 Uhr", timezone="UTC").startswith("jedes Jahr am 1. Mai um 09:00")
        assert preview(schedule="0 9 * * 1").startswith("every Monday at 09:00, first on")
        assert preview(schedule="0 9 * * 1", locale="de-AT").startswith("jeden Montag um 09:00, erstmals am")
        assert preview(schedule="every Monday at 9", timezone="UTC") == "every Monday at 09:00, UTC"


UNKNOWABLE = (
    *("before the meeting", "when I get home", "at sunset", "in a bit", "call Bob after lunch tomorrow"),
    *("vor dem Meeting", "wenn ich heimkomme", "bei Sonnenuntergang", "in Kürze", "Bob anrufen vor dem Essen morgen"),
    *("avant la réunion", "quand je rentre", "au coucher du soleil", "sous peu", "voir Bob après le déjeuner demain"),
    *("antes de la reunión", "cuando llegue", "al atardecer", "en un rato", "ver a Bob después de comer mañana"),
)
ORDERS = (
    *("cancel my reminder on Monday", "stop reminding me to stretch on Tuesdays", "lösche meine Erinnerung am Montag"),
    *("annule mon rappel lundi", "cambia mi recordatorio al lunes", "verschiebe Stretch auf Montag"),
)


@pytest.mark.parametrize("door", DOORS, ids=lambda each: each.name)
@try_each("words", (*UNKNOWABLE, *ORDERS))
def test_no_door_takes_what_cannot_be_known_or_makes_no_task(door: Door, words: str) -> None:
    """Nothing is stored, with a title or without one, and the schedule of a task stays."""
    with WORLDS.enter("active") as (world, target):
        before = {each.id: each.to_wire() for each in world.app.tasks().items}
        for title in ({"title": "Words"}, {}):
            if not title and isinstance(door, Agents | CommandLine):
                continue  # they ask for one
            body = {**title, "handler": "open", "schedule": words, "timezone": "UTC"}
            made = Act("create words", "create_task", body, state="none")
            assert door.attempt(world, "ada", made, target).status != DONE, body
        if not isinstance(door, ManyNew):
            changed = Target("own", "ada", target.task_id)
            answer = door.attempt(world, "ada", Act("change", "update_task", {"schedule": words}), changed)
            assert answer.status != DONE
        assert {each.id: each.to_wire() for each in world.app.tasks().items} == before


MEANT = {
    "GMT+1": ("Etc/GMT-1", "1 hour ahead of UTC"),
    "gmt-5": ("Etc/GMT+5", "5 hours behind UTC"),
    "+02:00": ("Etc/GMT-2",),
    "UTC+5:30": ("Asia/Kolkata",),
    "GMT+25": ("Europe/Paris",),
    "EST": ("America/New_York", "Australia/Sydney"),
    "IST": ("Asia/Kolkata", "Europe/Dublin", "Asia/Jerusalem"),
    "AEST": ("Australia/Brisbane", "Australia/Sydney"),
}
"""What people write, and what the answer names."""


@pytest.mark.parametrize("door", DOORS, ids=lambda each: each.name)
@try_each("name", MEANT)
def test_a_zone_that_is_none_is_refused_with_the_zone_that_is_meant(door: Door, name: str) -> None:
    """In the field beside the words."""
    body: dict[str, Any] = {"title": "There", "handler": "open", "schedule": "every day at 9:00", "timezone": name}
    with WORLDS.enter() as (world, target):
        answer = door.attempt(world, "ada", Act("create there", "create_task", body, state="none"), target)
    assert answer.status != DONE
    for part in MEANT[name]:
        assert part in answer.text.replace("&#39;", "'"), answer.text


IN_PYTHON: dict[str, Callable[[App, str], object]] = {
    "a schedule": lambda _, name: Schedule.parse("0 9 * * *", timezone=name),
    "an instant's zone": lambda _, name: Schedule(at="2027-01-01T00:00:00Z", timezone=name),
    "app.create": lambda app, name: app.create(owner="ada", handler="open", schedule="every day at 9", timezone=name),
    "app.update": lambda app, name: app.update("it", schedule="every day at 9", timezone=name),
    "a draft": lambda app, name: app.draft("stretch every day at 9:00", timezone=name, owner="ada"),
    "a person": lambda _, name: Person.model_validate({"id": "ada", "timezone": name}),
}


@pytest.mark.parametrize("how", IN_PYTHON)
@try_each("name", MEANT)
def test_a_zone_that_is_none_is_refused_in_python(how: str, name: str) -> None:
    """By everything that takes the name of a zone."""
    with WORLDS.enter() as (world, _):
        world.app.create(id="it", owner="ada", handler="open", schedule="every day at 9")
        with pytest.raises((CloudschedError, ValueError)) as refused:
            IN_PYTHON[how](world.app, name)
    assert all(part in str(refused.value) for part in MEANT[name]), refused.value


def test_the_zone_of_a_stored_task_is_no_reason_to_refuse_its_edits() -> None:
    """A task that was stored before stays as it is, and can be edited; a new schedule needs another zone."""
    with WORLDS.enter() as (world, _):
        app = world.app
        task = app.create(owner="ada", handler="open", schedule="every day at 9", timezone="America/Panama")
        stored = app.container.store.load(task.id)
        assert stored is not None
        old = task.schedule.copy_unchecked(timezone="EST")
        app.container.engine.committer.try_to_change(stored, world.sim.now, schedule=old, timezone="EST")
        assert app.update(task.id, title="Still").schedule == old
        assert app.pause(task.id).title == "Still"
        with pytest.raises(InvalidInput, match="America/New_York or Australia/Sydney"):
            app.update(task.id, schedule={"rrule": "FREQ=DAILY", "timezone": "EST"})
