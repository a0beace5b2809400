"""Tasks of the assistant: which are taken, what they are expected to cost, and what turns the assistant on."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cases import try_each
from tests.drafts.assistant.harness import ON, ScriptedModel, Tools, answer, create, run, simulate

from cloudsched import App, Settings
from cloudsched.config.settings import AssistantSettings, ModelSettings
from cloudsched.drafts.wiring import DraftsWiring
from cloudsched.errors import InvalidInput, Misconfigured, UnknownHandler
from cloudsched.testing import Simulation

MODEL = ModelSettings(name="openai:small", url="http://127.0.0.1:9")


def test_a_task_that_names_it_where_it_is_off_is_refused() -> None:
    """The message says that it is off, and what turns it on."""
    off = simulate(Tools(), ScriptedModel(answer()), assistant=AssistantSettings())
    with off as sim, pytest.raises(UnknownHandler, match="CLOUDSCHED_ASSISTANT=on"):
        create(sim)


def test_an_app_with_a_handler_of_that_name_keeps_it() -> None:
    """While the built-in one is off, nothing changes for such an app."""
    app = App()

    app.handler("assistant")(lambda: "my own")
    with Simulation(app) as sim:
        task = app.create(handler="assistant", schedule=sim.now)
        sim.run_until_idle()
        assert sim.executions(task.id)[0].content == "my own"


def test_it_needs_a_model() -> None:
    """One that the settings name, or that the app is given."""
    with simulate(Tools(), None) as sim, pytest.raises(Misconfigured, match="CLOUDSCHED_MODEL"):
        create(sim)
    app = App(Settings(assistant=ON), language_model=ScriptedModel(answer()))
    with app.override(Settings(assistant=ON)):
        assert "assistant" in app.container.handlers


def test_an_app_may_not_have_another_handler_of_that_name() -> None:
    """While the built-in one is on; the message says what to do."""
    tools = Tools()
    tools.app.handler("assistant")(lambda: None)
    with simulate(tools, ScriptedModel(answer())) as sim, pytest.raises(Misconfigured, match="rename it"):
        create(sim)


@try_each(
    "wrong, field",
    [
        ({"purpose": " "}, "purpose"),
        ({"payload": {"tools": ["search"], "owner": "eve"}}, "payload.owner"),
        ({"payload": {"tools": ["search"] * 21}}, "payload.tools"),
        ({"payload": {"tools": 7}}, "payload.tools"),
        ({"pull": "gpu"}, "pull"),
        ({"source": {"model": {"name": "huge"}}}, "source.model.name"),
    ],
)
def test_a_task_says_what_to_do_with_what_is_open(wrong: dict[str, Any], field: str) -> None:
    """A purpose, tools and a model that are open to it, and nothing else."""
    with simulate(Tools(), ScriptedModel(answer())) as sim, pytest.raises(InvalidInput) as refused:
        create(sim, **wrong)
    assert refused.value.field == field


def test_it_is_no_child_and_no_tool() -> None:
    """Children have no conversation of their own, and a script does not hand its owner's rights to a model."""
    with simulate(Tools(), ScriptedModel(answer())) as sim:
        with pytest.raises(InvalidInput, match="built in"):
            sim.app.create(owner="ada", title="T", children=[{"handler": "assistant"}])
        with pytest.raises(InvalidInput, match="tool"):
            sim.app.create(owner="ada", title="T", script={"source": "1", "tools": ["assistant"]})


def test_a_task_may_ask_for_the_models_that_are_open() -> None:
    """That is the usual one, and those that the settings list; each is opened once, with the assistant's time limit."""
    settings = AssistantSettings(is_on=True, models=("big",))
    app = Tools().app
    with app.override(Settings(assistant=settings, model=MODEL)):
        find = DraftsWiring.of(app.container).language_models.find
        assert find(None) is find("small")
        assert find("big") is find("big") is not find(None)
        assert app.container.circuits.states == {"assistant": "closed", "assistant big": "closed"}
    with simulate(Tools(), ScriptedModel(answer()), assistant=settings) as sim:
        assert run(sim, source={"model": {"name": "big"}}).status == "SUCCEEDED"
        with pytest.raises(InvalidInput, match="choose one of big"):
            create(sim, source={"model": {"name": "huge"}})


def test_the_estimate_is_kept_at_creation() -> None:
    """A turn for each tool and one for the result; more said costs more; a caller's own estimate stands, even none."""
    with simulate(Tools(), ScriptedModel(answer())) as sim:
        plain, with_tools = create(sim), create(sim, "search", "fails")
        long = create(sim, source={"messages": [{"role": "user", "content": "bikes " * 1500}]})
        own = create(sim, tokens_per_execution=7)
        assert (plain.query_per_execution, with_tools.query_per_execution) == (1, 3)
        assert plain.tokens_per_execution < with_tools.tokens_per_execution
        assert plain.tokens_per_execution + 2_000 < long.tokens_per_execution
        assert (own.query_per_execution, own.tokens_per_execution) == (1, 7)
        free = sim.app.update(create(sim, query_per_execution=0, tokens_per_execution=0).id, title="New")
        assert (free.query_per_execution, free.tokens_per_execution) == (0, 0)
        edited = sim.app.update(plain.id, title="Other", purpose="x" * 5000)
        assert edited.tokens_per_execution == plain.tokens_per_execution
    with simulate(Tools(), ScriptedModel(answer()), assistant=AssistantSettings(is_on=True, tokens=50)) as sim:
        assert create(sim, "search").tokens_per_execution == 50
        assert run(sim).estimated_tokens == 50
