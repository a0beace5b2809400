"""A draft may change one of the owner's tasks: which one is asked if two fit, and only theirs are meant."""

from __future__ import annotations

import pytest
from tests.cases import try_each
from tests.drafts.conftest import MakeDraft

from cloudsched.errors import InvalidInput, PreconditionFailed
from cloudsched.testing import Simulation

SALES, TAX = "write the sales report every Monday at 9:00", "write the tax report every Monday at 10:00"


def confirm(sim: Simulation, draft: MakeDraft, *texts: str) -> list[str]:
    return [sim.app.confirm(draft(text), owner="ada").id for text in texts]


@pytest.mark.parametrize(
    ("text", "description"),
    [
        ("move my report to Tuesday", "every Tuesday at 09:00, Europe/Paris"),
        ("make my report an hour later", "every Monday at 10:00, Europe/Paris"),
        ("postpone the report by 30 minutes", "every Monday at 09:30, Europe/Paris"),
        ("make it 11:00 instead", "every Monday at 11:00, Europe/Paris"),
    ],
)
def test_words_change_the_task_that_they_name(sim: Simulation, draft: MakeDraft, text: str, description: str) -> None:
    """What was shown is what the task becomes; the rest of it stays."""
    (task_id,) = confirm(sim, draft, SALES)
    drafted = draft(text)
    assert (drafted.decision, drafted.task_id, drafted.description) == ("UPDATE", task_id, description)
    assert sim.app.get(task_id).schedule.describe() == "every Monday at 09:00, Europe/Paris"
    changed = sim.app.confirm(drafted, owner="ada")
    assert changed.schedule.describe() == description
    assert changed.title == sim.app.get(task_id).title
    assert tuple(sim.app.upcoming(task_id, 5)) == tuple(each.utc for each in drafted.next)


def test_which_task_is_asked_if_two_fit(sim: Simulation, draft: MakeDraft) -> None:
    """Each answer leads to a draft of the change of that task."""
    ids = confirm(sim, draft, SALES, TAX)
    drafted = draft("move my report to Friday")
    assert (drafted.decision, drafted.draft_token) == ("UPDATE", None)
    (question,) = drafted.questions
    assert question.field == "taskId"
    answers = [answer.context or {} for answer in question.answers]
    assert {each["taskId"] for each in answers} == set(ids)
    for context in answers:
        assert draft("move my report to Friday", context=context).task_id == context["taskId"]
    assert draft("move my tax report to Friday").task_id == ids[1]


def test_another_owners_task_is_never_meant(sim: Simulation, draft: MakeDraft) -> None:
    """Neither by its words nor by its id."""
    (task_id,) = confirm(sim, draft, SALES)
    other = draft("move my report to Friday", owner="grace")
    assert other.task_id is None
    with pytest.raises(InvalidInput, match=r"context\.taskId"):
        draft("move it to Friday", owner="grace", context={"taskId": task_id})


def test_a_change_is_refused_once_the_task_is_another(sim: Simulation, draft: MakeDraft) -> None:
    """Somebody has edited it since: what would result was not shown. A repeated confirmation is no such edit."""
    (task_id,) = confirm(sim, draft, SALES)
    drafted = draft("move my report to Friday")
    sim.app.update(task_id, title="Other")
    with pytest.raises(PreconditionFailed):
        sim.app.confirm(drafted, owner="ada")
    fresh = draft("move the other to Friday")
    first = sim.app.confirm(fresh, owner="ada")
    assert sim.app.confirm(fresh, owner="ada").revision == first.revision


STRETCH = "remind me to stretch every weekday at 9:00"
ORDERS = (
    "Cancel my reminder tomorrow evening",
    "stop reminding me to stretch on Tuesdays",
    "pause my stretch reminder until Monday",
    "skip the next few stretches",
    "move stretch on Monday",
    "move the next three stretches to 10:00",
    "move this week's stretch to 10:00",
    "Lösche meine Erinnerung morgen Abend",
    "Lösche Stretch am Montag",
    "verschiebe Stretch auf Montag",
    "erinnere mich nicht mehr an Stretch am Dienstag",
    "Annule mon rappel lundi",
    "cambia mi recordatorio al lunes",
)
"""What asks for something of a task that there is, and for no change that a draft makes."""


@try_each("text", ORDERS)
def test_a_change_or_a_cancellation_is_never_a_new_task(draft: MakeDraft, sim: Simulation, text: str) -> None:
    """In whichever language: it is refused or asked about, and there is nothing to confirm. The rest is as it was."""
    for task in sim.app.tasks().items:
        sim.app.delete(task.id)
    (task_id,) = confirm(sim, draft, STRETCH)
    drafted = draft(text, context={"handler": "remind"})
    assert drafted.draft_token is None, drafted
    assert drafted.task is None
    assert sim.app.get(task_id).status == "ACTIVE"


@try_each("text", [each for each in ORDERS if "reminder" in each or "Erinnerung" in each or "recordatorio" in each])
def test_without_a_task_there_is_nothing_to_change(draft: MakeDraft, text: str) -> None:
    """What calls a task a task makes none, also if there is none."""
    assert draft(text).draft_token is None


@try_each(
    "text, is_asked",
    [
        ("cancel my gym membership tomorrow at 9:00", False),
        ("cancel the stretch limo tomorrow at 9:00", True),
        ("don't stretch on Monday", True),
        ("update my CV on Saturday at 10:00", False),
        ("change the filter every Monday at 9:00", False),
        ("remind me to cancel the stretch class on Tuesday at 9:00", False),
        ("Lösche alte Logs täglich um 3 Uhr", False),
    ],
)
def test_work_that_may_be_a_change_is_asked_about(
    sim: Simulation, draft: MakeDraft, text: str, *, is_asked: bool
) -> None:
    """If it says a word of a task's title; the answer makes the new task of it."""
    if not sim.app.tasks().items:
        confirm(sim, draft, STRETCH)
    drafted = draft(text, context={"handler": "remind"})
    assert drafted.decision == "CREATION"
    assert (drafted.draft_token is None) is is_asked
    for question in drafted.questions:
        again = draft(text, context={"handler": "remind", **(question.answers[0].context or {})})
        assert again.draft_token is not None
        assert again.task is not None
        assert drafted.task is not None
        assert again.task["title"] == drafted.task["title"]


@try_each(
    "text, count",
    [
        ("skip my next report", 1),
        ("skip the next three reports", 3),
        ("skip my next 2 sales reports", 2),
    ],
)
def test_as_many_runs_are_skipped_as_are_said(sim: Simulation, draft: MakeDraft, text: str, count: int) -> None:
    """No fewer."""
    (task_id,) = confirm(sim, draft, SALES)
    before = sim.app.upcoming(task_id, 6)
    assert [each.utc for each in draft(text).next[:2]] == before[count : count + 2]
    sim.app.delete(task_id)
