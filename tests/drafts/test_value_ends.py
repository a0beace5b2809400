"""A payload's value is whole, or the draft asks where it ends: half of a dose or of an address is never taken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from tests.cases import try_each
from tests.drafts.conftest import MakeDraft
from tests.model_server import ModelServer

from cloudsched import App, Settings
from cloudsched.domain.responses.api_responses import Decision, DraftResult
from cloudsched.drafts.wiring import DraftsWiring
from cloudsched.testing import Simulation


class Medicine(BaseModel):
    drug: str = ""
    dose: str = ""
    milligrams: float = 0
    due: str = ""
    tags: list[str] = []


def make_app() -> App:
    app = App(Settings())

    @app.handler("give", access="users", draft="Gives medicine")
    def give(medicine: Medicine) -> str:
        return medicine.dose

    return app


@pytest.fixture
def app() -> App:
    return make_app()


@pytest.fixture(scope="module")
def shared() -> Iterator[Simulation]:
    """A simulation for all examples; drafts store nothing."""
    with Simulation(make_app()) as sim:
        create_pill(sim)
        yield sim


FIRST = ("Metformin", "500", "4", "2,5", "1,000", "12", "Dr.", "O'Brien's", "Müller", "5'", '12"', "May", "St.", "3/4")
MORE = (
    *("mg", "units", "XR", "%", "€", "µg/ml", "Street", "Straße", "Müller", "und", "and", "with", "of", "minutes", "&"),
    *("(blue)", "Jerry", "May", "2027", "Uhr", "am", "Tabletten", "x", "7", "Monday,", "London,", "is", "=", "half"),
)
VALUES = st.tuples(st.sampled_from(FIRST), st.lists(st.sampled_from(MORE), max_size=4)).map(
    lambda parts: " ".join((parts[0], *parts[1])).rstrip(" ,")
)
LABELS = st.sampled_from(("dose: ", "dose is ", "dose = ", "the dose is ", "DOSE: "))
CREATIONS = (
    *("{}, every weekday at 7:30", "every weekday at 7:30, {}", "{} every weekday at 7:30", "{}, tomorrow at 9:00"),
    *("{}, jeden Werktag um 7:30", "jeden Tag um 8 Uhr, {}", "{} morgen um 9 Uhr", "remind me to walk at 7:30, {}"),
    *(
        "drug: Aspirin, {}, every day at 9:00",
        "{} and drug: Aspirin, every day at 9:00",
        "{}",
        "{}, by e-mail, daily at 9",
    ),
)
CHANGES = ("move it to 10:00, {}", "{}", "make it 10:00 by push, {}", "move my pill to 10:00, {}, drug: Aspirin")
FRAMES = st.sampled_from([(each, False) for each in CREATIONS] + [(each, True) for each in CHANGES])


def create_pill(sim: Simulation) -> str:
    """Return the id of a task that a draft may change."""
    payload = {"dose": "1"}
    return sim.app.create(owner="ada", handler="give", title="Pill", payload=payload, schedule="every day at 9:00").id


def read_payload(drafted: DraftResult) -> dict[str, Any]:
    task = drafted.task if drafted.changes is None else drafted.changes
    payload: dict[str, Any] = (task or {}).get("payload", {})
    return payload


@given(LABELS, VALUES, FRAMES)
def test_no_part_of_a_value_can_be_confirmed(
    shared: Simulation, label: str, value: str, frame: tuple[str, bool]
) -> None:
    """A draft that can be confirmed has the whole value. One that asks gives the whole, and each answer is as it says.

    A text that is not understood at all is refused.
    """
    text, is_change = frame
    named = {"taskId": shared.app.tasks().items[0].id} if is_change else {}

    def draft(text: str, more: dict[str, Any] | None = None) -> DraftResult:
        return shared.app.draft(text, timezone="Europe/Berlin", owner="ada", context={**named, **(more or {})})

    drafted = draft(text.format(f"{label}{value}"))
    if drafted.draft_token is not None:
        assert read_payload(drafted)["dose"] == value
    elif asked := [each for each in drafted.questions if each.field == "payload.dose"]:
        offered = list[str]()
        for answer in asked[0].answers:
            again = draft(text.format(f"{label}{value}"), answer.context)
            assert not [each for each in again.questions if each.field == "payload.dose"]
            offered.append(read_payload(again)["dose"])
            assert offered[-1] in answer.label
        assert value in offered
    else:
        assert drafted.decision is Decision.REFUSAL


@try_each(
    "text, payload",
    [
        ("dose: 12 High Street, London, every day at 8:00", {"dose": "12 High Street, London"}),
        ("tags: heart, sugar, every day at 8:00", {"tags": ["heart", "sugar"]}),
        ("dose: 500 mg, remind me to walk every day at 8:00", {"dose": "500 mg, remind me to walk"}),
        ("drug: Metformin every day, at 8:00", {"drug": "Metformin every day"}),
        ("every day at 8:00, drug: Aspirin on Friday", {"drug": "Aspirin on Friday"}),
        ("every day at 8:00, dose: 500 mg\nwith water", {"dose": "500 mg\nwith water"}),
    ],
)
def test_a_value_that_may_end_twice_is_asked_about(draft: MakeDraft, text: str, payload: dict[str, Any]) -> None:
    """The draft shows the longer value, which is the first answer; there is nothing to confirm before it is given."""
    drafted = draft(text)
    assert drafted.draft_token is None
    assert drafted.questions
    assert read_payload(drafted) == payload
    again = draft(text, context=drafted.questions[0].answers[0].context)
    assert again.draft_token is not None
    assert (read_payload(again), again.description) == (payload, drafted.description)


@try_each(
    "text, payload, description",
    [
        (
            "drug: Metformin XR, dose: 500 mg, every weekday at 7:30",
            {"drug": "Metformin XR", "dose": "500 mg"},
            "every weekday at 07:30",
        ),
        ("every day at 8:00, dose is 4 units", {"dose": "4 units"}, "every day at 08:00"),
        ("drug: Metformin XR every day at 8:00", {"drug": "Metformin XR"}, "every day at 08:00"),
        ("drug: Ben & Jerry's, tomorrow at 9:00", {"drug": "Ben & Jerry's"}, "once"),
        ("due: 5 May 2027, every weekday at 9:00", {"due": "5 May 2027"}, "every weekday at 09:00"),
        ("dose: 500 mg, jeden Werktag um 7:30 Uhr", {"dose": "500 mg"}, "jeden Werktag um 07:30"),
        ("jeden Tag um 8 Uhr, drug: Bad Homburger Salz", {"drug": "Bad Homburger Salz"}, "jeden Tag um 08:00"),
        ("every day at 8:00, dose: 500 mg; drug: Aspirin", {"dose": "500 mg", "drug": "Aspirin"}, "every day at 08:00"),
        (
            'drug: "Metformin XR", dose: “500 mg”, every day at 8:00',
            {"drug": "Metformin XR", "dose": "500 mg"},
            "every",
        ),
        ("drug: Metformin every day at 8:00, please", {"drug": "Metformin"}, "every day at 08:00"),
        ("drug: Metformin by e-mail, every day at 8:00", {"drug": "Metformin"}, "every day at 08:00"),
        (
            "Remind me to walk every day at 8:00 with dose: 2,5 and drug: Aspirin",
            {"dose": "2,5", "drug": "Aspirin"},
            "",
        ),
        ('drug: "send the dose: 3 by push now", every day at 8:00', {"drug": "send the dose: 3 by push now"}, "every"),
        ('dose: 12", every day at 8:00', {"dose": '12"'}, "every day at 08:00"),
        ("milligrams: 2.5, every day at 8:00", {"milligrams": 2.5}, "every day at 08:00"),
        ("every day at 8:00, drug: ask what to do", {"drug": "ask what to do"}, "every day at 08:00"),
        ("every day at 8:00, drug: the one of ma", {"drug": "the one of ma"}, "every day at 08:00"),
        ("elke dag om 8 uur, drug: zout van oma", {"drug": "zout van oma"}, "every day at 08:00"),
        ("dose: 12 High Street, London\nevery day at 8:00", {"dose": "12 High Street, London"}, "every day at 08:00"),
        ("every day at 8:00\n dose: 500 mg \r\n\n drug: Aspirin\n", {"dose": "500 mg", "drug": "Aspirin"}, "every"),
        ("jeden Tag um 8 Uhr, mit dose: 2,5 und drug: Aspirin", {"dose": "2,5", "drug": "Aspirin"}, "jeden Tag"),
        ("täglich um 8 Uhr, die dose ist 4 Tabletten", {"dose": "4 Tabletten"}, "jeden Tag um 08:00"),
    ],
)
def test_a_value_is_whole(draft: MakeDraft, text: str, payload: dict[str, Any], description: str) -> None:
    """It goes to the next field, to a schedule, or to the end, and nothing of it gets into the title."""
    drafted = draft(text)
    assert (drafted.questions, read_payload(drafted)) == ((), payload)
    assert drafted.description.startswith(description)
    assert drafted.draft_token is not None
    assert drafted.task is not None
    assert drafted.task["title"] in {"Walk", "Gives medicine"}


def test_a_number_with_a_unit_is_no_number(draft: MakeDraft) -> None:
    """It is neither cut nor put into a field of numbers."""
    drafted = draft("milligrams: 500 mg, every day at 8:00")
    assert [each.field for each in drafted.missing] == ["payload.milligrams"]
    assert drafted.draft_token is None


def test_an_answer_to_another_question_keeps_the_whole_value(draft: MakeDraft) -> None:
    """Also one with a quotation mark in it."""
    text = 'remind me to walk at 5, dose: 12"'
    (question,) = draft(text).questions
    for answer in question.answers:
        assert read_payload(draft(text, context=answer.context))["dose"] == '12"'


def test_a_change_keeps_its_way_of_delivery_in_the_answers(sim: Simulation, draft: MakeDraft) -> None:
    """With the answer, the whole sentence counts."""
    create_pill(sim)
    text = "move my pill to 10:00 by push, dose: half, with food"
    changes = draft(text, context=draft(text).questions[0].answers[0].context).changes or {}
    assert (changes["payload"]["dose"], changes["deliveryChannels"]) == ("half, with food", ["MOBILE"])


@try_each("given", ["500", "500 mg"])
def test_a_model_takes_no_part_of_a_value(given: str) -> None:
    """If it does, its answer is dropped, and the words themselves count."""
    said = {"decision": "creation", "schedule": "every day at 8:00", "title": "Pill", "handler": "give"}
    with ModelServer("vertex") as server, Simulation(make_app()) as sim:
        DraftsWiring.of(sim.app.container).replace(model=server.model())
        server.say({**said, "fields": [{"name": "dose", "value": given}]})
        turns = [{"role": "user", "content": "I take pills"}]
        drafted = sim.app.draft("dose: 500 mg, every day at 8:00", timezone="UTC", owner="ada", conversation=turns)
        assert server.requests
    assert read_payload(drafted)["dose"] == "500 mg"
    assert drafted.task is not None
    assert (drafted.task["title"] == "Pill") == (given != "500")
