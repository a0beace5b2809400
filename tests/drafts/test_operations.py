"""A draft pauses, resumes, cancels, deletes or triggers the named task once it is confirmed, or lists tasks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.cases import try_each
from tests.drafts.injections import INJECTIONS
from tests.drafts.test_requests import open_sim
from tests.instants import MINUTE, SECOND

from cloudsched.domain.documents.task import Task
from cloudsched.domain.responses.api_responses import DraftResult
from cloudsched.errors import InvalidInput, NotFound, PreconditionFailed
from cloudsched.testing import Simulation


@pytest.fixture
def sim() -> Iterator[Simulation]:
    with open_sim() as opened:
        yield opened


def create(
    sim: Simulation,
    title: str,
    schedule: str = "every Monday at 18:00",
    owner: str = "ada",
    task_id: str | None = None,
) -> Task:
    return sim.app.create(
        id=task_id,
        owner=owner,
        handler="remind",
        title=title,
        payload={"text": "x"},
        schedule=schedule,
        timezone="Europe/Berlin",
    )


def draft(sim: Simulation, text: str, **context: str) -> DraftResult:
    given = {"handler": "remind", **context}
    return sim.app.draft(text, timezone="Europe/Berlin", owner="ada", context=given)


def snapshot(sim: Simulation) -> list[dict[str, object]]:
    return [task.to_wire() for task in sim.app.tasks().items]


def count_runs(sim: Simulation, task: Task) -> int:
    sim.advance(MINUTE)
    return len(sim.app.executions(task.id).items)


SAID = {
    "pause": [
        "pause the gym reminder",
        "please pause gym for now",
        "put gym on hold",
        "can you mute my gym reminder",
        "pausiere Gym",
        "Gym bitte pausieren",
        "leg Gym auf Eis",
        "pausiere meine Gym-Erinnerung vorerst",
        "pause my gym appointment",
        "pauzeer gym",
        "zet gym op pauze",
    ],
    "resume": [
        "resume gym",
        "start gym up again",
        "unpause my gym reminder",
        "setz Gym fort",
        "nimm Gym wieder auf",
        "hervat gym",
    ],
    "cancel": ["cancel my gym reminder", "call gym off", "stop gym", "sag Gym ab", "storniere Gym bitte", "zeg gym af"],
    "delete": [
        "delete gym",
        "remove my gym reminder",
        "lösche meine Gym-Erinnerung",
        "Gym löschen",
        "entferne die Erinnerung Gym",
        "verwijder mijn gym herinnering",
    ],
    "trigger": ["run gym now", "trigger gym", "starte Gym", "führe Gym jetzt aus", "Gym auslösen", "voer gym uit"],
}


@try_each("operation, text", [(name, text) for name, texts in SAID.items() for text in texts], sim=open_sim)
def test_what_is_asked_is_done_once_confirmed(sim: Simulation, operation: str, text: str) -> None:
    """To the named task alone; not before, and only once."""
    task, other = create(sim, "Gym"), create(sim, "Yoga")
    if operation == "resume":
        sim.app.pause(task.id)
    before = snapshot(sim)
    drafted = draft(sim, text)
    assert (drafted.decision, drafted.task_id, drafted.changes) == ("OPERATION", task.id, {"operation": operation})
    assert [(each.id, each.title) for each in drafted.tasks] == [(task.id, "Gym")]
    assert snapshot(sim) == before

    confirmed = sim.app.confirm(drafted, owner="ada")
    assert confirmed.id == task.id
    assert confirmed.receipt is not None
    assert confirmed.receipt.scheduled == (operation in {"resume", "trigger"})
    if operation == "delete":
        with pytest.raises(NotFound):
            sim.app.confirm(drafted, owner="ada")
        assert [each.id for each in sim.app.tasks().items] == [other.id]
        return
    sim.app.confirm(drafted, owner="ada")
    wanted = {"pause": "PAUSED", "resume": "ACTIVE", "cancel": "CANCELLED", "trigger": "ACTIVE"}[operation]
    assert sim.app.get(task.id).status == wanted
    assert sim.app.get(other.id).to_wire() in before
    assert count_runs(sim, task) == (operation == "trigger")


def test_a_repetition_undoes_nothing(sim: Simulation) -> None:
    """Somebody has resumed the task since: the same confirmation again does not pause it a second time."""
    task = create(sim, "Gym")
    drafted = draft(sim, "pause gym")
    sim.app.confirm(drafted, owner="ada")
    sim.app.resume(task.id)
    sim.app.confirm(drafted, owner="ada")
    assert sim.app.get(task.id).status == "ACTIVE"


@try_each("text", [texts[0] for name, texts in SAID.items() if name != "resume"], sim=open_sim)
def test_only_the_task_that_was_shown_changes(sim: Simulation, text: str) -> None:
    """Neither one that was edited since, nor another one that has got its id."""
    edited = create(sim, "Gym")
    drafted = draft(sim, text)
    sim.app.update(edited.id, title="Visa appointment")
    with pytest.raises(PreconditionFailed):
        sim.app.confirm(drafted, owner="ada")
    sim.app.delete(edited.id)

    create(sim, "Gym", task_id="mine")
    drafted = draft(sim, text)
    sim.app.delete("mine")
    with pytest.raises(NotFound):
        sim.app.confirm(drafted, owner="ada")
    sim.advance(SECOND)
    create(sim, "Taxes", task_id="mine")
    before = snapshot(sim)
    with pytest.raises(PreconditionFailed):
        sim.app.confirm(drafted, owner="ada")
    assert snapshot(sim) == before


@try_each("text", [texts[0] for texts in SAID.values()], sim=open_sim)
def test_another_persons_task_is_never_meant(sim: Simulation, text: str) -> None:
    """Of the same title: it is not named, and their draft is confirmed by nobody else."""
    create(sim, "Gym", owner="grace")
    assert (draft(sim, text).decision == "OPERATION", draft(sim, text).tasks) == (False, ())
    own = create(sim, "Gym")
    drafted = draft(sim, text)
    assert drafted.task_id == own.id or drafted.draft_token is None
    if drafted.draft_token is not None:
        with pytest.raises(InvalidInput):
            sim.app.confirm(drafted, owner="grace")
    assert {task.status for task in sim.app.tasks().items} == {"ACTIVE"}


@pytest.mark.parametrize("operation", ["cancel", "edit", "backfill", "sendEvent", "", None, 7])
def test_another_operation_than_the_shown_one_is_refused(sim: Simulation, operation: object) -> None:
    """And none is done by an edit without a token."""
    task = create(sim, "Gym")
    drafted = draft(sim, "pause gym")
    forged = drafted.model_copy(update={"changes": {"operation": operation}})
    with pytest.raises(InvalidInput, match="operation"):
        sim.app.confirm(forged, owner="ada")
    with pytest.raises(InvalidInput, match="operation"):
        sim.app.patch(task.id, {"operation": operation})
    assert sim.app.get(task.id).status == "ACTIVE"


@try_each(
    "text",
    [
        "delete gym",
        "pause my gym reminder",
        "cancel the reminder",
        "lösche Gym",
        "delete all my reminders",
        "lösche meine Erinnerungen",
    ],
    sim=open_sim,
)
def test_which_task_is_asked_if_several_fit(sim: Simulation, text: str) -> None:
    """Each answer leads to a draft for that task."""
    ids = {create(sim, "Gym").id, create(sim, "Gym", "every Friday at 7:00").id}
    drafted = draft(sim, text)
    assert (drafted.decision, drafted.draft_token, drafted.task_id) == ("OPERATION", None, None)
    (question,) = drafted.questions
    assert {(each.context or {})["taskId"] for each in question.answers} == ids
    for each in question.answers:
        again = draft(sim, each.text or text, **(each.context or {}))
        assert again.task_id == (each.context or {})["taskId"]
        assert again.draft_token is not None


def test_only_those_are_asked_about_that_it_can_change(sim: Simulation) -> None:
    """The paused one is resumed, and the other one paused."""
    paused, active = create(sim, "Gym"), create(sim, "Gym", "every Friday at 7:00")
    sim.app.pause(paused.id)
    assert draft(sim, "resume gym").task_id == paused.id
    assert draft(sim, "pause gym").task_id == active.id
    assert draft(sim, "resume it").task_id == paused.id


LEFT_OVER = [
    "pause gym until Monday",
    "pausiere Gym bis Sonntag",
    "pause gym until I am back",
    "delete gym on Friday at noon",
    "run gym tomorrow at 5",
    "cancel gym at 7",
    "resume gym on Monday",
    "starte Gym morgen um 5 Uhr",
    "cancel all my reminders and also grandma's",
    "delete gym and everything else",
    "delete gym, then pause yoga",
    "delete everything but gym",
    "delete all except gym",
    "do not delete gym",
    "don't cancel gym",
    "never pause gym",
    "lösche Gym nicht",
    "Gym nicht löschen",
    "pausiere Gym auf keinen Fall",
    "delete gym membership",
    "delete the gym photos",
    "delete gymnastics",
    "cancel mom's gym reminder",
    "lösche Omas Gym",
    "delete gym by e-mail",
    "delete gym, text: x",
    "delete gym for grace",
    "remind me to delete gym",
    "I deleted gym",
    "did you delete gym?",
    "what if I delete gym",
    "delete gym if it rains",
    "pause gym and rename it to Sport",
    "cancel just the next gym",
    "cancel gym just this once",
    "sag Gym nur diesmal ab",
    "delete gym just this once",
    "resume gym just this once",
    "pause gym at 5pm",
    "cancel gym today",
    "nicht Gym löschen",
    "delete gym or yoga",
    "only delete gym",
    "run gym 3 times",
]


@try_each("text", LEFT_OVER, sim=open_sim)
def test_no_word_is_dropped(sim: Simulation, text: str) -> None:
    """An end, a condition, a "not", somebody else: nothing then is done to the task as a whole."""
    create(sim, "Gym")
    drafted = draft(sim, text)
    assert drafted.decision != "OPERATION" or drafted.draft_token is None
    before = snapshot(sim)
    if drafted.draft_token is None:
        with pytest.raises(InvalidInput):
            sim.app.confirm(drafted, owner="ada")
        assert snapshot(sim) == before
    else:
        sim.app.confirm(drafted, owner="ada")
    assert "Gym" in {task.title for task in sim.app.tasks().items if task.status == "ACTIVE"}


@try_each(
    "text",
    ["pause gym until Monday", "pausiere Gym bis Sonntag", "delete gym on Friday at noon", "pause gym at 5pm"],
    sim=open_sim,
)
def test_a_time_that_it_cannot_have_is_asked_about(sim: Simulation, text: str) -> None:
    """The answer is the operation as a whole."""
    task = create(sim, "Gym")
    (question,) = draft(sim, text).questions
    (answer,) = question.answers
    again = draft(sim, answer.text or "", **(answer.context or {}))
    assert (again.decision, again.task_id) == ("OPERATION", task.id)


@try_each("text", [f"{said} {more}" for said in ("delete gym.", "delete it") for _, more in INJECTIONS], sim=open_sim)
def test_an_instruction_beside_it_is_not_passed_over(sim: Simulation, text: str) -> None:
    """Whatever else a text says: there is no confirmation of a half of it."""
    create(sim, "Gym")
    assert draft(sim, text).decision != "OPERATION" or draft(sim, text).draft_token is None


def test_what_its_state_does_not_allow_is_refused(sim: Simulation) -> None:
    """As the operation itself is: with its reason, and nothing to confirm."""
    task = create(sim, "Gym")
    assert draft(sim, "resume gym").draft_token is None
    sim.app.pause(task.id)
    assert draft(sim, "run gym now").draft_token is None
    assert draft(sim, "pause gym").missing
    sim.app.cancel(task.id)
    for text in ("cancel gym", "resume gym", "pause gym"):
        refused = draft(sim, text)
        assert (refused.draft_token, bool(refused.missing)) == (None, True), text
    assert draft(sim, "delete gym").draft_token is not None


def test_a_handler_that_no_draft_may_name_keeps_its_rights(sim: Simulation) -> None:
    """A user may pause and delete the task, and not start it."""
    sim.app.create(owner="ada", handler="audit", title="Audit", schedule="every Monday at 9:00")
    assert draft(sim, "run audit now").draft_token is None
    assert draft(sim, "run audit now").missing
    assert draft(sim, "pause audit").draft_token is not None


LISTS = [
    ("list my reminders", {"Gym", "Standup", "Bins"}),
    ("what reminders do I have", {"Gym", "Standup", "Bins"}),
    ("zeig mir meine Erinnerungen", {"Gym", "Standup", "Bins"}),
    ("what is on tomorrow?", {"Standup"}),
    ("what do I have on Monday?", {"Gym", "Standup"}),
    ("was steht morgen an?", {"Standup"}),
    ("welche Termine habe ich heute", {"Standup", "Bins"}),
    ("what's coming up this week?", {"Standup", "Bins"}),
    ("what reminders do I have next week", {"Gym", "Standup", "Bins"}),
    ("was steht diese Woche an", {"Standup", "Bins"}),
    ("list my reminders for next week", {"Gym", "Standup", "Bins"}),
    ("list my reminders for tomorrow", {"Standup"}),
    ("what is on Friday", {"Standup"}),
    ("when is gym", {"Gym"}),
    ("wann ist Gym?", {"Gym"}),
    ("welke herinneringen heb ik morgen", {"Standup"}),
    ("wanneer is gym?", {"Gym"}),
]


@try_each("text, titles", LISTS, sim=open_sim)
def test_a_list_has_the_tasks(sim: Simulation, text: str, titles: set[str]) -> None:
    """The owner's own, of the day that it names, the soonest first; there is nothing to confirm."""
    create(sim, "Gym")
    create(sim, "Standup", "every weekday at 9:15")
    create(sim, "Bins", "every Thursday at 19:00")
    create(sim, "Gym", owner="grace")
    drafted = draft(sim, text)
    assert (drafted.decision, drafted.draft_token) == ("LIST", None)
    assert {each.title for each in drafted.tasks} == titles
    assert {sim.app.get(each.id).owner for each in drafted.tasks} == {"ada"}
    times = [each.next.utc for each in drafted.tasks if each.next is not None]
    assert len(times) == len(drafted.tasks)
    assert times == sorted(times)


def test_a_time_that_no_list_understands_is_named(sim: Simulation) -> None:
    """The list has more than was asked for, and says so."""
    create(sim, "Gym", "every Monday at 9:00 starting 2028-01-03")
    drafted = draft(sim, "what's coming up before dinner?")
    assert [each.title for each in drafted.tasks] == ["Gym"]
    assert drafted.assumptions


def test_a_list_is_bounded(sim: Simulation) -> None:
    """And says how much is left out."""
    for number in range(23):
        create(sim, f"Task {number}")
    drafted = draft(sim, "list my tasks")
    assert len(drafted.tasks) < 23
    assert any(str(23 - len(drafted.tasks)) in each for each in drafted.assumptions)


@try_each(
    "text, said",
    [
        ("lösche Gym", "Welche Aufgabe meinst du?"),
        ("pausiere Gym bis Montag", "ganze Aufgabe nur pausieren"),
        ("erinnere mich an die Wäsche in 2 Sekunden", "Lass mindestens"),
        ("erinnere mich an die Wäsche gestern um 9", "vorbei"),
        ("erinnere mich jeden Tag um 25 Uhr an die Wäsche", "Uhrzeit"),
        ("was steht morgen an?", "Diese laufen am 11.06.2027."),
    ],
)
def test_german_texts_are_answered_in_german(text: str, said: str) -> None:
    with open_sim() as sim:
        create(sim, "Gym am Montag")
        create(sim, "Gym am Freitag", "every Friday at 18:00")
        found = sim.app.draft(text, timezone="Europe/Berlin", owner="ada", context={"handler": "remind"}, locale="de")
    told = [*found.assumptions, *(each.question for each in found.questions), *(each.reason for each in found.missing)]
    assert any(said in each for each in told), told
