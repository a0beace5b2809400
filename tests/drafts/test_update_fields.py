"""What a draft may change of a task besides its schedule: title, description, purpose, category, delivery, payload."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cases import try_each
from tests.drafts.conftest import MakeDraft

from cloudsched.testing import Simulation

SALES = "write the sales report every Monday at 9:00, topic: sales"
CALL = "remind me to call mum every Sunday at 18:00 by e-mail, city: Paris"


@pytest.fixture
def tasks(sim: Simulation, draft: MakeDraft) -> dict[str, str]:
    """The ids of a report in the inbox and a reminder by mail."""
    return {name: sim.app.confirm(draft(text), owner="ada").id for name, text in (("sales", SALES), ("call", CALL))}


@pytest.mark.parametrize(
    ("text", "task", "changes"),
    [
        ("rename my report to Numbers", "sales", {"title": "Numbers"}),
        ('please change my report\'s name to "Numbers"', "sales", {"title": "Numbers"}),
        ("set the description of my report to What was sold.", "sales", {"description": "What was sold"}),
        ("set the category of my report to analysis", "sales", {"category": "ANALYSIS"}),
        ("send my report by e-mail", "sales", {"deliveryChannels": ["EMAIL"]}),
        ("also send my report by e-mail", "sales", {"deliveryChannels": ["WEB", "EMAIL"]}),
        ("change the delivery of my report to inbox and push", "sales", {"deliveryChannels": ["WEB", "MOBILE"]}),
        ("stop e-mailing me my reminder", "call", {"deliveryChannels": []}),
        ('set the city of my reminder to "New York"', "call", {"payload": {"text": "call mum", "city": "New York"}}),
        ("change the city to Oslo", "call", {"payload": {"text": "call mum", "city": "Oslo"}}),
        ("benenne meinen Report in Zahlen der Woche um", "sales", {"title": "Zahlen der Woche"}),
        ("benenn Report um in Um fünf", "sales", {"title": "Um fünf"}),
        ("Report in Zahlen umbenennen", "sales", {"title": "Zahlen"}),
        ("hernoem report naar Zahlen", "sales", {"title": "Zahlen"}),
        ("ändere den Titel von Report auf Zahlen", "sales", {"title": "Zahlen"}),
        ('ändere den Namen meines Report in "Zahlen"', "sales", {"title": "Zahlen"}),
        ("setze die Beschreibung von Report auf Was verkauft wurde.", "sales", {"description": "Was verkauft wurde"}),
        ("ändere die Kategorie von Report auf Analysis", "sales", {"category": "ANALYSIS"}),
        ("setze topic auf Umsatz in Berlin, je Woche", "sales", {"payload": {"topic": "Umsatz in Berlin, je Woche"}}),
        ("stell die city auf Bad Homburg", "call", {"payload": {"text": "call mum", "city": "Bad Homburg"}}),
        ("schick mir Report per E-Mail", "sales", {"deliveryChannels": ["EMAIL"]}),
        ("schicke den Report auch als Push", "sales", {"deliveryChannels": ["WEB", "MOBILE"]}),
        ("Report bitte aufs Handy schicken", "sales", {"deliveryChannels": ["MOBILE"]}),
        ("schick mir mum nicht mehr per Mail", "call", {"deliveryChannels": []}),
        ("ändere den Versand von Report auf Postfach und Push", "sales", {"deliveryChannels": ["WEB", "MOBILE"]}),
    ],
)
def test_a_field_may_change(
    sim: Simulation, draft: MakeDraft, tasks: dict[str, str], text: str, task: str, changes: dict[str, Any]
) -> None:
    """What was shown changes, and nothing else does: the schedule and the rest of the payload stay."""
    before = sim.app.get(tasks[task]).to_wire()
    drafted = draft(text)
    assert (drafted.decision, drafted.task_id, drafted.changes) == ("UPDATE", tasks[task], changes)
    after = sim.app.confirm(drafted, owner="ada").to_wire()
    marks = {"revision", "updatedAt", "history", "message", "usage", "recentRequests"}
    kept = before.keys() - marks - changes.keys()
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert {name: after[name] for name in changes} == changes


@pytest.mark.parametrize(
    ("text", "changes", "description"),
    [
        ("move my report to Tuesday at 10:00 by e-mail", {"deliveryChannels": ["EMAIL"]}, "every Tuesday at 10:00"),
        ("move my report to Tuesday and rename it to Numbers", {"title": "Numbers"}, "every Tuesday at 09:00"),
        ("move my report to Tuesday and move it to 10:30", {}, "every Tuesday at 10:30"),
        ("change the schedule of my report to every Friday at 8:00", {}, "every Friday at 08:00"),
        ("setze den Zeitplan von Report auf jeden Freitag um 8 Uhr", {}, "every Friday at 08:00"),
        ("move my report to Tuesday\nrename it to Numbers", {"title": "Numbers"}, "every Tuesday at 09:00"),
        ("verschiebe Report auf Dienstag und benenne ihn in Zahlen um", {"title": "Zahlen"}, "every Tuesday at 09:00"),
        (
            "set the topic of my report to food, drinks\nmove it to 10:30",
            {"payload": {"topic": "food, drinks"}},
            "every Monday at 10:30",
        ),
    ],
)
def test_several_things_change_at_once(
    sim: Simulation,
    draft: MakeDraft,
    tasks: dict[str, str],
    text: str,
    changes: dict[str, Any],
    description: str,
) -> None:
    """Every part of the sentence is in the draft; none is dropped in silence."""
    drafted = draft(text)
    assert drafted.task_id == tasks["sales"]
    assert {name: value for name, value in (drafted.changes or {}).items() if name != "schedule"} == changes
    assert sim.app.confirm(drafted, owner="ada").schedule.describe() == f"{description}, Europe/Paris"


def test_the_answers_to_a_question_keep_the_rest_of_the_sentence(draft: MakeDraft, tasks: dict[str, str]) -> None:
    """The delivery and the fields of the payload."""
    text = "make my report at 5 by push, topic: tax"
    answer = draft(text).questions[0].answers[1]
    again = draft(text, context=answer.context)
    assert again.task_id == tasks["sales"]
    assert again.draft_token is not None
    assert again.description == "every Monday at 17:00, Europe/Paris"
    changed = {name: value for name, value in (again.changes or {}).items() if name != "schedule"}
    assert changed == {"deliveryChannels": ["MOBILE"], "payload": {"topic": "tax"}}


@pytest.mark.usefixtures("tasks")
@try_each(
    "text, field, code",
    [
        ("set the priority of my report to HIGH", "priority", "no-such-field"),
        ("set the colour of my report to red", "colour", "no-such-field"),
        ("set the times of my reminder to many", "payload.times", "invalid"),
        ("change the delivery of my report to pigeon", "deliveryChannels", "invalid"),
        ("set the category of my report to banana", "category", "invalid"),
        ("pause my report and move it to Tuesday", "text", "several"),
        ("rename my report to Numbers and make it at 5", "text", "several"),
        ("rename my report to Write the sales report", "changes", "nothing"),
        ("send my report to Bob by e-mail", "schedule", "not-understood"),
        ("schick Report an Bob per E-Mail", "schedule", "not-understood"),
        ("ändere die Priorität von Report auf hoch", "Priorität", "no-such-field"),
        ("move my report to Tuesday and dance to 10:00", "schedule", "not-understood"),
    ],
)
def test_what_no_draft_changes_is_refused(sim: Simulation, draft: MakeDraft, text: str, field: str, code: str) -> None:
    """With the field and the reason; there is nothing to confirm, and nothing has changed."""
    before = [task.to_wire() for task in sim.app.tasks().items]
    drafted = draft(text)
    assert [(each.field, each.code) for each in drafted.missing] == [(field, code)]
    assert drafted.missing[0].reason
    assert drafted.draft_token is None
    assert [task.to_wire() for task in sim.app.tasks().items] == before


@pytest.mark.parametrize(
    "text",
    [
        "e-mail me the sales report every Tuesday at 8:00",
        "send the tax report by push at 18:00",
        "erinnere mich jeden Dienstag um 8 Uhr per Push an den Report",
    ],
)
def test_a_sentence_with_a_schedule_of_its_own_is_a_new_task(
    draft: MakeDraft, tasks: dict[str, str], text: str
) -> None:
    """Even if it names a way of delivery and the words of a task."""
    assert tasks
    assert draft(text).decision == "CREATION"


def test_a_payload_that_drafts_may_not_name_stays(sim: Simulation, draft: MakeDraft) -> None:
    """Its handler is not open for drafts: the field is unknown here, and the task keeps its payload."""
    task = sim.app.create(owner="ada", title="Closed", handler="closed", schedule="every Monday at 9:00")
    refused = draft("set the city of my closed task to Oslo")
    assert (refused.task_id, refused.missing[0].code) == (task.id, "no-such-field")


def test_an_answer_keeps_any_way_of_delivery(draft: MakeDraft, tasks: dict[str, str]) -> None:
    """Whatever it is called."""
    for way, channel in (("e-mail", "EMAIL"), ("inbox", "WEB"), ("push", "MOBILE"), ("webhook", "WEBHOOK")):
        text, named = f"move my reminder to Monday at 5 as {way}", {"taskId": tasks["call"]}
        drafted = draft(text, context=named)
        (question,) = drafted.questions
        for answer in question.answers:
            again = draft(text, context={**named, **(answer.context or {})})
            assert (again.changes or {}).get("deliveryChannels", ["EMAIL"]) == [channel], answer


def test_which_task_is_asked_only_between_those_that_can_change_so(draft: MakeDraft, tasks: dict[str, str]) -> None:
    """Only the reminder has a city, but either may be sent as a push."""
    assert draft("set its city to Oslo").task_id == tasks["call"]
    (question,) = draft("send it by push").questions
    assert {(answer.context or {})["taskId"] for answer in question.answers} == set(tasks.values())
