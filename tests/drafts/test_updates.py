"""A draft may change one of the owner's tasks: which one is asked if two fit, and only theirs are meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cloudsched.errors import InvalidInput, PreconditionFailed

if TYPE_CHECKING:
    from tests.drafts.conftest import MakeDraft

    from cloudsched.testing import Simulation

SALES, TAX = "write the sales report every Monday at 9:00", "write the tax report every Monday at 10:00"


def confirm(sim: Simulation, draft: MakeDraft, *texts: str) -> list[str]:
    return [sim.app.confirm(draft(text), owner="ada").id for text in texts]


@pytest.mark.parametrize(
    ("text", "description"),
    [
        ("move my report to Tuesday", "every Tuesday at 09:00, Europe/Paris"),
        ("please change the sales report to 10:30", "every Monday at 10:30, Europe/Paris"),
        ("make my report an hour later", "every Monday at 10:00, Europe/Paris"),
        ("postpone the report by 30 minutes", "every Monday at 09:30, Europe/Paris"),
        ("make it 11:00 instead", "every Monday at 11:00, Europe/Paris"),
    ],
)
def test_words_change_the_task_that_they_name(sim: Simulation, draft: MakeDraft, text: str, description: str) -> None:
    """What was shown is what the task becomes; the rest of it stays."""
    (task_id,) = confirm(sim, draft, SALES)
    drafted = draft(text)
    assert (drafted.decision, drafted.task_id, drafted.description) == ("update", task_id, description)
    assert sim.app.get(task_id).schedule.describe() == "every Monday at 09:00, Europe/Paris"
    changed = sim.app.confirm(drafted, owner="ada")
    assert changed.schedule.describe() == description
    assert changed.title == sim.app.get(task_id).title
    assert tuple(sim.app.upcoming(task_id, 5)) == tuple(each.utc for each in drafted.next)


def test_which_task_is_asked_if_two_fit(sim: Simulation, draft: MakeDraft) -> None:
    """Each answer leads to a draft of the change of that task."""
    ids = confirm(sim, draft, SALES, TAX)
    drafted = draft("move my report to Friday")
    assert (drafted.decision, drafted.draft_token) == ("update", None)
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


def test_a_title_may_change(sim: Simulation, draft: MakeDraft) -> None:
    """Only the title does."""
    (task_id,) = confirm(sim, draft, SALES)
    drafted = draft("rename my report to Numbers")
    assert (drafted.task_id, drafted.changes) == (task_id, {"title": "Numbers"})
    assert sim.app.confirm(drafted, owner="ada").title == "Numbers"


def test_what_no_draft_does_is_refused_with_what_does_it(sim: Simulation, draft: MakeDraft) -> None:
    """Cancelling is an operation of its own; the task stays as it is."""
    (task_id,) = confirm(sim, draft, SALES)
    drafted = draft("cancel my report")
    assert (drafted.decision, drafted.task_id) == ("refusal", task_id)
    assert f"POST /v1/tasks/{task_id}/cancel" in drafted.missing[0].reason
    assert sim.app.get(task_id).status == "ACTIVE"


def test_words_that_change_nothing_that_exists_are_a_creation(sim: Simulation, draft: MakeDraft) -> None:
    """To "change the filter" is work to do, if there is no such task, or nothing to read as its new time."""
    confirm(sim, draft, SALES)
    drafted = draft("change the filter every Monday at 9:00", context={"handler": "remind"})
    assert drafted.decision == "creation"
    assert drafted.task is not None
    assert drafted.task["title"] == "Change the filter"
