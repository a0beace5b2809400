"""The assistant does what its task is for: it asks the model, calls the tools that the model asks for, and answers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.authorities import A_USER
from tests.drafts.assistant.harness import ScriptedModel, Tools, answer, call, create, run, simulate
from tests.instants import HOUR, MINUTE

from cloudsched.config.settings import AssistantSettings
from cloudsched.domain.documents.person import EmailContact, PersonSpec
from cloudsched.engine.authority import OWN_CODE
from cloudsched.errors import ModelUnavailable, UnusableAnswer
from cloudsched.features.budgets.budgets import Budgets
from cloudsched.people.wiring import PeopleWiring


@pytest.fixture
def tools() -> Tools:
    return Tools()


def test_it_answers_with_what_its_tools_found(tools: Tools) -> None:
    """The result is the record's content, with chat, stable message id, and what it cost; channels get the text."""
    model = ScriptedModel(call("search", text="bikes"), answer("Ada, 7 bikes were sold."))
    with simulate(tools, model) as sim:
        contact = EmailContact(address="ada@example.com", verified=True)
        PeopleWiring.of(sim.app.container).people.put("ada", PersonSpec(name="Ada L.", email=contact), by=OWN_CODE)
        execution = run(sim, "search", delivery_channels=["EMAIL"])
        [mail] = sim.sent("EMAIL")
    assert (execution.status, execution.content) == ("SUCCEEDED", "Ada, 7 bikes were sold.")
    assert (execution.chat_id, execution.message_id) == ("c1", f"{execution.task_id}-{execution.id}-1")
    assert (execution.queries, execution.tokens) == (2, 250)
    assert (execution.estimated_queries, (execution.estimated_tokens or 0) > 100) == (2, True)
    assert mail.body == "Ada, 7 bikes were sold."
    assert [note.text for note in execution.progress] == [
        "Asks the model, 1 of at most 10 times",
        *("Calls 'search'", "'search' has answered"),
        "Asks the model, 2 of at most 10 times",
    ]
    assert tools.made == [("search", "ada", "bikes")]


def test_it_can_say_nothing(tools: Tools) -> None:
    """A task such as "tell me only if it rains" has a dry day: the run has succeeded, and nobody gets a message."""
    model = ScriptedModel({"decision": "nothing", "content": ""})
    with simulate(tools, model) as sim:
        sim.add_person("ada")
        execution = run(sim, "search", delivery_channels=["EMAIL", "WEB"])
        assert (sim.sent("EMAIL"), sim.inbox("ada")) == ([], [])
    assert (execution.status, execution.content) == ("SUCCEEDED", None)
    assert "nothing" in model.schemas[0]["properties"]["decision"]["enum"]


def test_the_model_is_told_what_the_task_keeps(tools: Tools) -> None:
    """Who asks, what for, the conversation, the context, the local time, the tools, and what these answered."""
    model = ScriptedModel(call("search", text="bikes"), answer())
    with simulate(tools, model) as sim:
        PeopleWiring.of(sim.app.container).people.put("ada", PersonSpec(name="Ada L."), by=A_USER)
        run(sim, "search", source={"context": {"shop": 4}})
    first, second = model.asked
    assert (first["person"], first["task"]["purpose"], first["task"]["context"]) == (
        "Ada L.",
        "Say how the bikes sell",
        {"shop": 4},
    )
    assert first["conversation"] == [{"role": "user", "content": "Tell me each Monday how the bikes sell"}]
    assert (first["tools"], first["done"]) == ([{"name": "search", "does": "Searches"}], [])
    assert (first["weekday"], first["now"][:10]) == ("Friday", "2027-01-01")
    assert second["done"] == [{"tool": "search", "arguments": {"text": "bikes"}, "result": {"found": "bikes: 7 sold"}}]
    properties = model.schemas[0]["properties"]
    assert properties["tool"]["enum"] == ["search"]
    [named] = model.schemas[0]["$defs"].values()
    arguments = named["properties"]
    assert arguments.keys() == {"text", "most"}
    assert arguments["text"]["type"] == "string"


def test_a_failed_call_is_told_to_the_model(tools: Tools) -> None:
    """So is one with arguments that the tool does not take. The task goes on, and may succeed."""
    model = ScriptedModel(call("fails"), call("search", nothing=1), answer("It could not be found out."))
    with simulate(tools, model) as sim:
        execution = run(sim, "fails", "search")
    assert execution.status == "SUCCEEDED"
    failures = [each["failure"] for each in model.asked[2]["done"]]
    assert "the shop is closed" in failures[0]
    assert "text" in failures[1]
    assert [name for name, *_ in tools.made] == ["fails"]


def test_the_last_turn_has_to_be_an_answer(tools: Tools) -> None:
    """Its schema allows nothing else; a model that calls a tool all the same has used its turns up."""
    settings = AssistantSettings(is_on=True, turns=3)
    for last, status in ((answer("Done."), "SUCCEEDED"), (call("search", text="c"), "FAILED")):
        model = ScriptedModel(call("search", text="a"), call("search", text="b"), last)
        with simulate(tools, model, assistant=settings) as sim:
            execution = run(sim, "search")
        assert execution.status == status, execution.error
        assert [each["turnsLeft"] for each in model.asked] == [2, 1, 0]
        assert "call" not in model.schemas[2]["properties"]["decision"]["enum"]
        assert "call" in model.schemas[1]["properties"]["decision"]["enum"], "one call is left"
    assert execution.error is not None
    assert "asked the model 3 times" in execution.error.message
    assert execution.attempt_count == 1


def test_a_task_cannot_use_more_than_its_tokens(tools: Tools) -> None:
    """After them the model is not asked again; the record has what was used."""
    model = ScriptedModel(call("search", text="a"))
    with simulate(tools, model, assistant=AssistantSettings(is_on=True, tokens=300)) as sim:
        execution = run(sim, "search")
    assert (execution.status, len(model.asked), execution.tokens) == ("FAILED", 3, 375)
    assert execution.error is not None
    assert "375 tokens, of at most 300" in execution.error.message


def test_no_turn_of_the_model_goes_beyond_a_budget(tools: Tools) -> None:
    """Nor do those of one attempt: tools that are not there are not called, and the model is asked again at once.

    What was found stays, and goes on when there is a budget again.
    """
    for budget in range(1, 6):
        model = ScriptedModel(call("none"), call("none"), call("search", text="a"), call("none"), answer("Done."))
        with simulate(tools, model) as sim:
            budgets = Budgets.of(sim.app.container)
            budgets.put("ada", budget, by=OWN_CODE)
            task = create(sim, "search")
            sim.advance(HOUR)
            assert len(model.asked) == budget
            if budget < 5:
                assert sim.app.get(task.id).status == "PAUSED"
                assert "used up its budget" in sim.app.get(task.id).message
                budgets.put("ada", 100, by=OWN_CODE)
                sim.advance(HOUR)
            [execution] = sim.executions(task.id)
        assert (execution.status, execution.content, execution.queries) == ("SUCCEEDED", "Done.", 5)
        assert [each["turnsLeft"] for each in model.asked] == [9, 8, 7, 6, 5]


@pytest.mark.parametrize(("own", "asked"), [({"maxTurns": 2}, 2), ({"maxTokens": 130}, 2), ({"maxTurns": 50}, 4)])
def test_a_task_may_narrow_the_limits(tools: Tools, own: dict[str, Any], asked: int) -> None:
    """The settings of its conversation's model count where they are lower than the app's, and never where higher."""
    model = ScriptedModel(call("search", text="a"))
    with simulate(tools, model, assistant=AssistantSettings(is_on=True, turns=4)) as sim:
        run(sim, "search", source={"model": own})
    assert len(model.asked) == asked


def test_an_answer_of_no_use_is_given_back_once(tools: Tools) -> None:
    """The model is told what is wrong; a second one in a row fails the task, and so does a refusal at once."""
    bad = {"decision": "maybe"}
    for answers, status, asked in (
        ([bad, answer("Right.")], "SUCCEEDED", 2),
        ([bad, call("search", text="a"), bad, answer("Right.")], "SUCCEEDED", 4),
        ([bad, UnusableAnswer("not-json", "it is not JSON")], "FAILED", 2),
        ([UnusableAnswer("refused", "the model refuses")], "FAILED", 1),
    ):
        model = ScriptedModel(*answers)
        with simulate(tools, model) as sim:
            execution = run(sim, "search")
        assert (execution.status, len(model.asked), execution.tokens) == (status, asked, 125 * asked), execution.error
    model = ScriptedModel(bad, answer())
    with simulate(tools, model) as sim:
        run(sim)
    assert "decision" in model.asked[1]["problem"]


def test_replays_ask_and_call_nothing_again(tools: Tools) -> None:
    """A handler that is replayed at every durable point asks the model as often as one that runs through."""
    model = ScriptedModel(call("search", text="a"), call("fails"), call("unknown"), answer("Done."))
    with simulate(tools, model, replay=True) as sim:
        execution = run(sim, "search", "fails")
    assert (execution.content, len(model.asked), execution.tokens) == ("Done.", 4, 500)
    assert [name for name, *_ in tools.made] == ["search", "fails"]
    texts = [note.text for note in execution.progress]
    assert len(texts) == len(set(texts)), texts


def test_what_an_execution_may_use_is_settled_when_it_begins(tools: Tools) -> None:
    """Other settings, another name of the owner or a tool that is gone change nothing that has been recorded."""
    model = ScriptedModel(call("search", text="a"), ModelUnavailable("-", "-"), answer("Done."))
    with simulate(tools, model) as sim:
        task = create(sim, "search", retry={"maxRetries": 3, "firstDelay": "PT1H"})
        sim.advance(5 * MINUTE)
        PeopleWiring.of(sim.app.container).people.put("ada", PersonSpec(name="Grace"), by=A_USER)
        del tools.app.container.registry.registrations.handlers["search"]
        sim.run_until_idle()
        (execution,) = sim.executions(task.id)
    assert execution.content == "Done."
    assert (model.asked[-1]["person"], model.asked[-1]["tools"]) == ("", [])


def test_large_results_are_shown_in_part(tools: Tools) -> None:
    """What the model is told stays bounded: of one result its beginning, of many the latest."""
    tools.app.handler("large", tool=True, access="users", draft="Reads")(lambda: "é" * 20_000)
    model = ScriptedModel(*[call("large")] * 9, answer())
    with simulate(tools, model) as sim:
        execution = run(sim, "large")
    assert execution.status == "SUCCEEDED"
    shown = model.asked[-1]["done"]
    assert len(str(shown).encode()) < 60_000
    assert "too long ago" in str(shown[0])
    assert shown[-1]["result"].startswith('"éé')
