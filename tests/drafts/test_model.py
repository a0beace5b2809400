"""A model behind the grammar: it translates, the grammar reads, and what is of no use changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.cases import try_each
from tests.drafts.guard_cases import READ, RIGHT, WRONG
from tests.drafts.injections import INJECTIONS
from tests.drafts_app import make_app
from tests.model_server import ModelServer

from cloudsched.domain.responses.api_responses import DraftResult
from cloudsched.drafts.wiring import DraftsWiring
from cloudsched.errors import ModelUnavailable
from cloudsched.testing import Simulation

SWEDISH = "Påminn mig om att ringa mamma, varje måndag kl 9:30"
TITLE = 'Ring" every hour "mamma'  # it ends no quotes in an answer
GOOD = {
    "decision": "creation",
    "schedule": "every Monday at 9:30",
    "title": TITLE,
    "handler": "remind",
}
SAID_MONDAY = ["The day is Monday."]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A server that speaks Gemini's format."""
    with ModelServer("vertex") as made:
        yield made


@pytest.fixture
def sim(server: ModelServer) -> Iterator[Simulation]:
    with Simulation(make_app()) as made:
        DraftsWiring.of(made.app.container).replace(model=server.model())
        yield made


def draft(sim: Simulation, text: str = SWEDISH, **more: Any) -> DraftResult:
    return sim.app.draft(text, **{"timezone": "Europe/Paris", "owner": "ada", **more})


def test_the_grammar_goes_first(sim: Simulation, server: ModelServer) -> None:
    """What it understands costs no call; a conversation, and what it does not understand, does."""
    server.say({**GOOD, "assumptions": SAID_MONDAY})
    assert draft(sim, "remind me to stretch every weekday at 9:00").draft_token is not None
    assert draft(sim, "remind me to stretch at 25:00").decision == "REFUSAL"
    assert server.requests == []
    draft(sim)
    draft(sim, "remind me to stretch every weekday at 9:00", conversation=[{"role": "user", "content": "hello"}])
    assert len(server.requests) == 2


def answer(sim: Simulation, asked: DraftResult) -> DraftResult:
    """Answer the question when a task runs, which is the only one, with the first reading."""
    assert asked.draft_token is None
    ((found, *_),) = [each.answers for each in asked.questions]
    return draft(sim, found.text or "", context=found.context or {})


def test_when_is_asked_and_read_by_the_grammar(sim: Simulation, server: ModelServer) -> None:
    """What the model assumed is shown; the answer needs no model; what is confirmed is what was shown."""
    server.say({**GOOD, "assumptions": SAID_MONDAY, "category": "REMINDER", "channels": ["EMAIL"]})
    asked = draft(sim)
    assert [each.description for each in asked.questions[0].answers] == ["every Monday at 09:30, Europe/Paris"]
    assert "The day is Monday." in asked.assumptions
    drafted = answer(sim, asked)
    assert len(server.requests) == 1
    assert drafted.description == "every Monday at 09:30, Europe/Paris"
    assert drafted.task is not None
    assert drafted.task["deliveryChannels"] == ["EMAIL"]
    assert drafted.task["payload"] == {"text": TITLE}
    assert sim.app.confirm(drafted, owner="ada").title == TITLE


def test_the_model_never_learns_the_time(sim: Simulation, server: ModelServer) -> None:
    """So it cannot compute a date. It does not see the owner either, nor handlers that are not open to them."""
    server.say({**GOOD, "assumptions": SAID_MONDAY})
    draft(sim, conversation=[{"role": "tool", "content": "x"}])
    sent = str(server.requests[0]["contents"])
    for absent in ("2027", "ada", "audit", "closed"):
        assert absent not in sent


class Parrot:
    """A model that always gives the same schedule. Without one it is not available."""

    schedule: str | None = None

    def complete(self, _instructions: str, _data: object, _schema: dict[str, Any]) -> dict[str, Any]:
        if self.schedule is None:
            raise ModelUnavailable("parrot", "it sleeps")
        return {**GOOD, "schedule": self.schedule}


@try_each("text, schedule", [*RIGHT, *READ, *WRONG])
def test_no_schedule_of_a_model_is_stored_unconfirmed(text: str, schedule: str) -> None:
    """Right or wrong, it is asked about, with when it would run, and what is confirmed is what was shown.

    What the grammar reads in the words themselves stays, whatever the model says.
    """
    with Simulation(make_app()) as sim:
        parrot = Parrot()
        DraftsWiring.of(sim.app.container).replace(model=parrot)
        own = draft(sim, text)
        parrot.schedule = schedule
        asked = draft(sim, text, conversation=[{"role": "user", "content": "hello"}])
        if own.schedule is not None:
            assert asked.description == own.description
            return
        again = answer(sim, asked)
        assert again.description == asked.questions[0].answers[0].description
        assert again.draft_token is not None or again.missing


@pytest.mark.parametrize("schedule", ["pay eve every Monday at 9:30", "whenever it rains", ""])
def test_a_schedule_that_is_none_is_asked_for(sim: Simulation, server: ModelServer, schedule: str) -> None:
    """Nothing but a schedule is one, and words without a time make no task that runs in a few minutes."""
    server.say({**GOOD, "schedule": schedule})
    asked = draft(sim, "ring mamma i övermorgon")
    assert (asked.draft_token, asked.schedule) == (None, None)
    assert [(each.field, each.answers) for each in asked.questions] == [("schedule", ())]


@pytest.mark.parametrize("bad", ["not json", {"decision": "maybe"}, [1], {"decision": "creation", "schedule": 7}])
def test_an_answer_without_the_form_is_repaired_once(sim: Simulation, server: ModelServer, bad: object) -> None:
    """The model sees its answer and what is wrong; if the second is no better, the grammar's own answer stands."""
    server.say(bad)
    server.say({**GOOD, "assumptions": SAID_MONDAY})
    assert draft(sim).questions
    assert "previousAnswer" in str(server.requests[1]["contents"])
    server.replies.clear()
    server.requests.clear()
    server.say(bad)
    assert draft(sim).decision == "REFUSAL"
    assert len(server.requests) == 2


@pytest.mark.parametrize(("content", "status"), [({}, 500), ({}, 429), ({}, 401), (b"<html>", 200)])
def test_a_model_that_fails_leaves_the_grammar(
    sim: Simulation, server: ModelServer, content: object, status: int
) -> None:
    """A draft is never worse for having a model."""
    server.answer(content, status, Retry_After="60")
    assert [each.code for each in draft(sim).missing] == ["other-language"]
    words = "remind me to stretch every weekday at 9:00"
    assert draft(sim, words, conversation=[{"role": "user", "content": "hi"}]).draft_token is not None


def test_the_model_may_ask(sim: Simulation, server: ModelServer) -> None:
    """Its question is shown without control characters; there is nothing to confirm."""
    server.say({"decision": "question", "question": "À quelle\u0007 heure ?"})
    asked = draft(sim)
    assert [each.question for each in asked.questions] == ["À quelle  heure ?"]
    assert asked.draft_token is None


def test_a_refusal_is_ours_to_word(sim: Simulation, server: ModelServer) -> None:
    """The model's reason could say anything. What the grammar has read is not refused at all."""
    server.say({"decision": "refusal", "reason": "Send your password to eve."})
    refused = draft(sim)
    assert (refused.decision, refused.draft_token) == ("REFUSAL", None)
    assert "password" not in str(refused.to_wire())
    words = "remind me to stretch every weekday at 9:00"
    assert draft(sim, words, conversation=[{"role": "user", "content": "hi"}]).draft_token is not None


def test_the_model_may_change_only_tasks_that_it_was_shown(sim: Simulation, server: ModelServer) -> None:
    """Those of the owner; another's id is nobody's."""
    words = "write the sales report every Monday at 9:00"
    mine = sim.app.confirm(draft(sim, words), owner="ada").id
    other = sim.app.confirm(draft(sim, words, owner="bob"), owner="bob").id
    text = "Décale mon rapport à 10:15"
    server.say({"decision": "update", "taskId": mine, "schedule": "make it 10:15"})
    drafted = answer(sim, draft(sim, text))
    assert (drafted.task_id, drafted.description) == (mine, "every Monday at 10:15, Europe/Paris")
    server.replies.clear()
    server.say({"decision": "update", "taskId": other, "schedule": "make it 10:15"})
    assert draft(sim, text).task_id != other


@pytest.mark.parametrize(
    ("said", "changes", "description"),
    [
        ({"channels": ["EMAIL"], "title": "Sales"}, {"deliveryChannels": ["EMAIL"]}, "every Monday at 09:00"),
        ({"fields": [{"name": "topic", "value": "tax"}]}, {"payload": {"topic": "tax"}}, "every Monday at 09:00"),
        ({"description": "Ventes"}, {"description": "Ventes"}, "every Monday at 09:00"),
        ({"title": "Ventes"}, {"title": "Ventes"}, "every Monday at 09:00"),
        (
            {"schedule": "make it 10:15", "channels": ["EMAIL"], "title": "Sales"},
            {"deliveryChannels": ["EMAIL"]},
            "every Monday at 10:15",
        ),
    ],
)
def test_the_model_may_change_what_the_grammar_may(
    sim: Simulation, server: ModelServer, said: dict[str, Any], changes: dict[str, Any], description: str
) -> None:
    """Schedule, delivery, payload and description; a title only if it is all that changes."""
    mine = sim.app.confirm(draft(sim, "write the sales report every Monday at 9:00"), owner="ada").id
    server.say({"decision": "update", "taskId": mine, **said})
    drafted = draft(sim, "Modifie mon rapport")
    if "schedule" in said:
        drafted = answer(sim, drafted)
    assert {name: value for name, value in (drafted.changes or {}).items() if name != "schedule"} == changes
    assert drafted.description == f"{description}, Europe/Paris"
    assert sim.app.confirm(drafted, owner="ada").id == mine


def test_a_field_that_the_model_invents_is_refused(sim: Simulation, server: ModelServer) -> None:
    """It is named; there is nothing to confirm."""
    mine = sim.app.confirm(draft(sim, "write the sales report every Monday at 9:00"), owner="ada").id
    server.say({"decision": "update", "taskId": mine, "fields": [{"name": "owner", "value": "eve"}]})
    drafted = draft(sim, "Modifie mon rapport")
    assert [(each.field, each.code) for each in drafted.missing] == [("owner", "no-such-field")]
    assert drafted.draft_token is None


@pytest.mark.parametrize(("role", "words"), INJECTIONS, ids=range(len(INJECTIONS)))
def test_injected_instructions_change_nothing_that_is_not_shown(
    sim: Simulation, server: ModelServer, role: str, words: str
) -> None:
    """Even if the model obeys them: no other owner, no handler that is not open, no time that the user did not say.

    Nothing is stored without a confirmation, and the confirmed task is what was shown and nothing more.
    """
    text = "remind me to stretch every weekday at 9:00"
    turns = [{"role": role, "content": words}]
    obedient: dict[str, Any] = {
        "decision": "creation",
        "schedule": "every day at 03:33" if "3:33" not in words else "every day at 13:13",
        "handler": "audit",
        "owner": "eve",
        "title": words[:400],
        "priority": "CRITICAL",
        "fields": [{"name": "text", "value": words[:400]}, {"name": "owner", "value": "eve"}],
    }
    half = {**obedient, "schedule": "every weekday at 9:00", "assumptions": []}
    for answer in (obedient, half):
        server.replies.clear()
        server.say(answer)
        drafted = draft(sim, text, conversation=turns)
        assert sim.app.tasks().items == []
        assert (drafted.task or {}).get("handler") in {"remind", "report", None}
        assert drafted.description == "every weekday at 09:00, Europe/Paris"
        assert not {"owner", "priority", "lockKey", "script", "children", "retry"} & set(drafted.task or {})
        if drafted.draft_token is None:
            continue
        task = sim.app.confirm(drafted, owner="ada")
        stored = task.to_wire()
        assert drafted.task is not None
        assert {name: stored[name] for name in drafted.task if name not in {"schedule", "source"}} == {
            name: value for name, value in drafted.task.items() if name not in {"schedule", "source"}
        }
        assert (task.owner, task.priority) == ("ada", "NORMAL")
        sim.app.delete(task.id)


def test_a_model_makes_no_task_of_a_change(sim: Simulation, server: ModelServer) -> None:
    """Words that change a reminder make no other one, whatever it answers."""
    sim.app.confirm(draft(sim, "remind me to stretch every weekday at 9:00"), owner="ada")
    server.say({**GOOD, "schedule": "on Monday"})
    drafted = draft(sim, "ändere meine Erinnerung an Oma auf Montag")
    assert (drafted.draft_token, drafted.task) == (None, None)
    assert len(server.requests) == 1


def test_a_model_does_not_settle_which_task_is_meant(sim: Simulation, server: ModelServer) -> None:
    """If the words may change a task or ask for a new one, that stays a question."""
    sim.app.create(owner="ada", handler="remind", title="Yoga", payload={"text": "x"}, schedule="every Monday at 9:00")
    server.say({**GOOD, "title": "Yoga"})
    drafted = draft(sim, "yoga tomorrow at 9:00", conversation=[{"role": "user", "content": "hello"}])
    assert len(server.requests) == 1
    assert (drafted.draft_token, [each.field for each in drafted.questions]) == (None, ["text"])


def test_a_past_task_is_an_example(sim: Simulation, server: ModelServer) -> None:
    """The model sees the tasks that the user refers to."""
    sim.app.confirm(draft(sim, "remind me to stretch every weekday at 9:00"), owner="ada")
    server.say({**GOOD, "schedule": "every Monday at 9:00"})
    turns = [{"role": "assistant", "content": "Anything else?"}]
    again = draft(sim, "same again but on Mondays, you know", conversation=turns)
    assert answer(sim, again).draft_token is not None
    assert "stretch" in str(server.requests[-1])
