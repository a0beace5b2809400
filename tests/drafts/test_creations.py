"""What somebody says becomes a task that they can confirm; what is open is asked, and what cannot be is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.cases import try_each
from tests.drafts.conftest import MakeDraft
from tests.drafts_app import make_app
from tests.instants import MINUTE, SECOND, about

from cloudsched.config.access import Access
from cloudsched.domain.documents.authority import Requesters
from cloudsched.domain.documents.person import PersonSpec
from cloudsched.domain.documents.task import SourceModel
from cloudsched.engine.authority import OWN_CODE
from cloudsched.errors import InvalidInput
from cloudsched.people.wiring import PeopleWiring
from cloudsched.testing import Simulation


def test_a_sentence_becomes_a_task(sim: Simulation, draft: MakeDraft) -> None:
    """All of it is proposed: title, schedule, ways of delivery, kind, handler and payload; and nothing is stored."""
    drafted = draft("Remind me to call mum tomorrow at 5pm by e-mail, city: Paris, times: 3")
    assert drafted.decision == "CREATION"
    assert drafted.task is not None
    assert drafted.task["title"] == "Call mum"
    assert drafted.task["purpose"] == "call mum"
    assert (drafted.task["handler"], drafted.task["category"]) == ("remind", "REMINDER")
    assert drafted.task["deliveryChannels"] == ["EMAIL"]
    assert drafted.task["payload"] == {"text": "call mum", "city": "Paris", "times": 3}
    assert [each.local.isoformat() for each in drafted.next] == ["2027-01-02T17:00:00+01:00"]
    assert drafted.description == "once, on 2027-01-02 at 17:00, Europe/Paris"
    assert [each.text for each in drafted.steps] == ["Understanding your task", "Building the schedule", "Checking it"]
    assert sim.app.tasks().items == []


def test_what_was_shown_is_what_is_stored(sim: Simulation, draft: MakeDraft) -> None:
    """Each field of the stored task is the draft's, and its next occurrences are those that were shown."""
    drafted = draft("write the sales report every Monday at 9:00")
    task = sim.app.confirm(drafted, owner="ada")
    stored = task.to_wire()
    assert drafted.task is not None
    assert {name: stored[name] for name in drafted.task if name != "schedule"} == {
        name: value for name, value in drafted.task.items() if name != "schedule"
    }
    assert tuple(sim.app.upcoming(task.id, 5)) == tuple(each.utc for each in drafted.next)
    assert task.owner == "ada"


def test_a_schedule_without_a_beginning_does_not_depend_on_when_it_is_confirmed(
    sim: Simulation, draft: MakeDraft
) -> None:
    """A rule such as "every 3 hours" runs at the instants that were shown, whenever it is confirmed."""
    drafted = draft("remind me to stretch every 3 hours")
    sim.advance(10 * MINUTE)
    task = sim.app.confirm(drafted, owner="ada")
    assert tuple(sim.app.upcoming(task.id, 5)) == tuple(each.utc for each in drafted.next)


def test_two_meanings_are_asked(sim: Simulation, draft: MakeDraft) -> None:
    """With each answer, the text is understood without another question, and keeps title, channel and payload."""
    text = "Remind me to call mum at 5 by e-mail, city: Paris"
    drafted = draft(text)
    assert drafted.draft_token is None
    (question,) = drafted.questions
    assert question.field == "schedule"
    for answer in question.answers:
        again = draft(text, context=answer.context)
        assert again.draft_token is not None, answer
        assert again.description == answer.description
        assert again.task is not None
        assert again.task["title"] == "Call mum"
        assert again.task["deliveryChannels"] == ["EMAIL"]
        assert again.task["payload"]["city"] == "Paris"
    with pytest.raises(InvalidInput, match="schedule"):
        sim.app.confirm(drafted, owner="ada")


def test_a_reminder_without_a_time_comes_in_five_minutes(sim: Simulation, draft: MakeDraft) -> None:
    """The draft says so, and can be confirmed."""
    drafted = draft("remind me to pay the rent")
    assert (drafted.decision, drafted.questions, drafted.missing) == ("CREATION", (), ())
    assert "No time was given, so it runs in 5 minutes." in drafted.assumptions
    in_five_minutes = about(sim.now + 5 * MINUTE)
    assert [each.utc for each in drafted.next] == [in_five_minutes]
    task = sim.app.confirm(drafted, owner="ada")
    assert (task.title, task.next_execution_time) == ("Pay the rent", in_five_minutes)


UNKNOWABLE = (
    "before the meeting",
    "when I get home",
    "at sunset",
    "in a bit",
    "soon",
    "twice a week",
)


@try_each("when", UNKNOWABLE)
def test_a_reminder_whose_time_is_not_understood_is_asked_when(draft: MakeDraft, when: str) -> None:
    """Five minutes would be a guess against what was said, wherever it stands. What it is about is kept."""
    for text, title in (
        (f"remind me {when} to call Anna", "Call Anna"),
        (f"remind me to call Anna {when}", f"Call Anna {when}"),
    ):
        drafted = draft(text)
        assert (drafted.decision, drafted.draft_token) == ("CREATION", None)
        assert [each.field for each in drafted.questions] == ["schedule"]
        assert drafted.task is not None
        assert title.startswith(drafted.task["title"])
        assert drafted.task["title"].startswith("Call Anna")
    assert draft(f"remind me {when}").draft_token is None


@try_each(
    "text, title",
    [
        ("remind me to look after the kids", "Look after the kids"),
        ("remind me to check if the oven is off", "Check if the oven is off"),
        ("remind me about the rent", "The rent"),
    ],
)
def test_words_that_name_no_time_need_none(draft: MakeDraft, text: str, title: str) -> None:
    """They come in five minutes, as they do without such words."""
    drafted = draft(text)
    assert drafted.task is not None
    assert (drafted.task["title"], drafted.questions) == (title, ())
    assert "No time was given, so it runs in 5 minutes." in drafted.assumptions


def test_a_draft_that_says_now_runs_when_it_is_confirmed(sim: Simulation, draft: MakeDraft) -> None:
    """However long it was read."""
    drafted = draft("remind me to pay the rent now")
    assert (drafted.description, [each.utc for each in drafted.next]) == ("now", [about(sim.now)])
    sim.advance(2 * MINUTE)
    task = sim.app.confirm(drafted, owner="ada")
    assert task.next_execution_time == about(sim.now)


@try_each("seconds", [60, 5])
def test_how_soon_words_without_a_time_run_may_be_set(seconds: int) -> None:
    """Never sooner than a draft of a single run may be."""
    lead = timedelta(seconds=seconds)
    with Simulation(make_app(), default_lead=lead, draft_least_lead=30 * SECOND) as sim:
        drafted = sim.app.draft("remind me to drink", timezone="UTC", owner="ada")
        assert drafted.draft_token is not None
        assert [each.utc for each in drafted.next] == [about(sim.now + max(lead, 30 * SECOND))]
        at_once = sim.app.create(owner="ada", handler="remind", payload={"text": "x"})
        assert at_once.next_execution_time == about(sim.now)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("remind me to blink in 5 seconds", "too-soon"),
        ("remind me to run at 9:00 yesterday", "past"),
        ("remind me to run on February 30 at 9:00", "no-such-date"),
        ("blargh", "not-understood"),
        ("x" * 600, "too-long"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(draft: MakeDraft, text: str, code: str) -> None:
    """The reason has a code for programs and a sentence for people, and there is nothing to confirm."""
    drafted = draft(text)
    assert (drafted.decision, drafted.task, drafted.draft_token) == ("REFUSAL", None, None)
    assert [each.code for each in drafted.missing] == [code]
    assert drafted.missing[0].reason


@try_each(
    "text, settings, code",
    [
        ("every 2 hours", {"access": Access(open=True, least_interval=120 * MINUTE)}, None),
        ("every 2 hours", {"access": Access(open=True, least_interval=121 * MINUTE)}, "too-often"),
        ("in 10 minutes", {"draft_least_lead": 10 * MINUTE}, None),
        ("in 10 minutes", {"draft_least_lead": 11 * MINUTE}, "too-soon"),
    ],
)
def test_how_often_and_how_soon_may_be_set(text: str, settings: dict[str, Any], code: str | None) -> None:
    """Just as much as is allowed passes, more is refused."""
    with Simulation(make_app(), **settings) as sim:
        drafted = sim.app.draft(f"remind me to drink {text}", timezone="UTC", owner="ada")
    assert [each.code for each in drafted.missing] == ([code] if code else [])


def test_only_handlers_that_are_open_to_the_caller_are_proposed(draft: MakeDraft) -> None:
    """One for servers is never a user's, neither by the words nor by name; one without `draft` is nobody's."""
    words = "audit the accounts every Monday at 9:00"
    drafted = draft(words)
    assert [each.label for each in drafted.questions[0].answers] == ["remind", "report"]
    trusted = draft(words, requesters=Requesters.SERVERS)
    assert trusted.task is not None
    assert trusted.task["handler"] == "audit"
    for name in ("audit", "closed", "cloudsched.script", "nobody's"):
        refused = draft(words, context={"handler": name})
        assert [each.field for each in refused.missing] == ["handler"]
        assert refused.draft_token is None


def test_the_payload_is_checked_by_its_model(draft: MakeDraft) -> None:
    """A value that the model refuses is named, and there is nothing to confirm."""
    drafted = draft("remind me to walk every weekday at 9:00, times: many")
    assert [each.field for each in drafted.missing] == ["payload.times"]
    assert drafted.draft_token is None


def test_the_context_fills_the_payload_and_becomes_the_source(sim: Simulation, draft: MakeDraft) -> None:
    """Fields are filled by their names; the rest is kept with the task, as where the request came from."""
    context: dict[str, Any] = {"chatId": "c1", "messageId": "m1", "city": "Oslo", "page": 7}
    task = sim.app.confirm(draft("remind me to walk every weekday at 9:00", context=context), owner="ada")
    assert task.payload["city"] == "Oslo"
    assert task.source is not None
    assert (task.source.chat_id, task.source.message_id) == ("c1", "m1")
    assert task.source.context == {"city": "Oslo", "page": 7}


def test_without_an_open_handler_the_draft_says_what_to_do() -> None:
    """It is understood all the same."""
    from tests import greeting_app  # noqa: PLC0415 - its handlers are not open for drafts

    with Simulation(greeting_app.app) as sim:
        drafted = sim.app.draft("remind me to walk every weekday at 9:00", timezone="UTC", owner="ada")
    assert [(each.field, each.code) for each in drafted.missing] == [("handler", "none-open")]
    assert drafted.description == "every weekday at 09:00, UTC"


def test_channels_that_nobody_named_are_the_owners_own() -> None:
    """What the owner prefers for that kind of task is shown, and stored; the inbox where there is no preference."""
    words = "remind me to stretch every weekday at 9:00"
    with Simulation(make_app(), preferred_channels=True) as sim:
        person = {"email": {"address": "ada@example.com", "verified": True}, "channels": {"REMINDER": ["EMAIL", "WEB"]}}
        PeopleWiring.of(sim.app.container).people.put("ada", PersonSpec.model_validate(person), by=OWN_CODE)
        for owner, channels in (("ada", ["EMAIL", "WEB"]), ("bob", ["WEB"])):
            drafted = sim.app.draft(words, timezone="UTC", owner=owner)
            assert drafted.task is not None
            assert drafted.task["deliveryChannels"] == channels
            assert list(sim.app.confirm(drafted, owner=owner).delivery_channels) == channels


def test_the_conversation_is_kept_with_the_task(sim: Simulation, draft: MakeDraft) -> None:
    """What was said before, and the text itself, are in the draft and in the task; 64 KiB at most."""
    turns = [{"role": "user", "content": "I sit too much"}, {"role": "tool", "content": "steps: 12"}]
    given = {"chatId": "c1", "modelSettings": {"maxTurns": 3}}
    drafted = draft("remind me to stretch every weekday at 9:00", conversation=turns, context=given)
    task = sim.app.confirm(drafted, owner="ada")
    assert task.source is not None
    assert task.source.messages is not None
    assert (task.source.chat_id, task.source.context, task.source.model) == ("c1", None, SourceModel(max_turns=3))
    assert [(each.role, each.content) for each in task.source.messages] == [
        *(("user", "I sit too much"), ("tool", "steps: 12")),
        ("user", "remind me to stretch every weekday at 9:00"),
    ]
    large = {"messages": [{"role": "user", "content": "x" * 9_999}] * 7}
    with pytest.raises(InvalidInput, match="source"):
        sim.app.create(handler="remind", payload={"text": "x"}, source=large)
