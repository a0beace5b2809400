"""A run that has nothing to say sends nothing, by no channel and however its result is made."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from cloudsched import App, Context, Done, Settings, Task
from cloudsched.domain.documents.delivery_channels import SENT_CHANNELS, DeliveryChannel
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.testing import Simulation

app = App(Settings())
HOUR = timedelta(hours=1)
NOTHING: tuple[Any, ...] = (None, "", " \n\t", [], {}, [None, ""], {"found": []})
SAYS: tuple[Any, ...] = (0, False, "x", [0], {"found": [""], "left": 0}, "null")


@app.handler("say", access="users")
def say(payload: dict[str, Any]) -> Any:  # noqa: ANN401 - any result
    """Return what the task says."""
    return payload.get("says")


@app.handler("done")
def done(payload: dict[str, Any]) -> Done:
    """Return what the task says as an outcome, silently if it says so."""
    return Done(payload.get("says"), silent=payload.get("silent", False))


@app.handler("durable")
def durable(ctx: Context, payload: dict[str, Any]) -> Any:  # noqa: ANN401 - any result
    """Return what the task says after a step."""
    ctx.sleep(timedelta(minutes=1))
    return payload.get("says")


@app.handler("list")
def list_found(payload: dict[str, Any]) -> Iterator[object]:
    """Return what there is, one after the other."""
    return iter(payload.get("each", []))


@app.handler("notify")
def notify(ctx: Context, payload: dict[str, Any]) -> Done:
    """Notify, and return a result that nobody is to get."""
    ctx.notify(payload["title"], payload["body"])
    return Done("the result", silent=True)


def make(sim: Simulation, payload: dict[str, Any] | None = None, **more: Any) -> Task:
    """Create a task that uses every channel, and run it to its end."""
    fields: dict[str, Any] = {"owner": "ada", "title": "Plants", "schedule": sim.now, **more}
    fields |= {} if payload is None else {"payload": payload}
    task = app.create(delivery_channels=[*DeliveryChannel], **fields)
    sim.advance(HOUR)
    return task


def count_messages(sim: Simulation) -> dict[str, int]:
    """Return how many messages each channel has, and the inbox."""
    return {**{each: len(sim.sent(each)) for each in SENT_CHANNELS}, "WEB": len(sim.inbox("ada"))}


def assert_silent(sim: Simulation, task: Task) -> None:
    (execution,) = sim.executions(task.id)
    assert (execution.status, execution.message, execution.is_delivered) == ("SUCCEEDED", None, False)
    assert not any(count_messages(sim).values())
    assert not app.container.store.list_tasks(TaskQuery(owner="ada", is_delivery=True), limit=10).items


@pytest.mark.parametrize("says", NOTHING, ids=repr)
@pytest.mark.parametrize("handler", ["say", "done", "durable"])
def test_a_result_without_a_value_is_not_delivered(sim: Simulation, handler: str, says: object) -> None:
    """The record has it, and nothing is sent."""
    task = make(sim, {"says": says}, handler=handler)
    assert_silent(sim, task)
    assert sim.executions(task.id)[0].content == says


@pytest.mark.parametrize("says", SAYS, ids=repr)
@pytest.mark.parametrize("handler", ["say", "done", "durable"])
def test_a_result_with_a_value_is_delivered_by_every_channel(sim: Simulation, handler: str, says: object) -> None:
    """0 and False are values, and all channels have the same text."""
    make(sim, {"says": says}, handler=handler)
    assert set(count_messages(sim).values()) == {1}
    texts = {*(sim.sent(each)[0].body for each in SENT_CHANNELS), sim.inbox("ada")[0].body}
    assert len(texts) == 1


def test_a_silent_result_is_recorded_and_not_delivered(sim: Simulation) -> None:
    """`silent=True` is for a result that a reader of the record wants, and nobody else.

    Nor is an iterator without anything delivered, nor a notice that has neither a title nor a body.
    """
    task = make(sim, {"says": "all is well", "silent": True}, handler="done")
    assert_silent(sim, task)
    assert sim.executions(task.id)[0].content == "all is well"
    assert_silent(sim, make(sim, handler="list"))
    assert_silent(sim, make(sim, {"title": " ", "body": ""}, handler="notify"))


def test_children_that_say_nothing_make_a_task_that_says_nothing(sim: Simulation) -> None:
    """Their results are gathered in a list, which is not news by itself."""
    children: list[dict[str, Any]] = [{"handler": "say"}, {"handler": "say"}]
    assert_silent(sim, make(sim, children=children))
    make(sim, children=[*children, {"handler": "say", "payload": {"says": "dry"}}])
    assert set(count_messages(sim).values()) == {1}


def test_a_notice_is_delivered_beside_a_silent_result(sim: Simulation) -> None:
    """The notice was asked for; programs do not get the result with it."""
    make(sim, {"title": "Water them", "body": ""}, handler="notify")
    assert set(count_messages(sim).values()) == {1}
    (hook,) = sim.sent("WEBHOOK")
    assert (hook.title, hook.message.data["content"]) == ("Water them", None)


def test_the_callback_of_a_silent_run_is_sent(sim: Simulation) -> None:
    """It tells a program how each run ends, with its result, and is no message to a person."""
    sim.app.put_person("system", webhook={"url": "https://example.com/done", "verified": True})
    make(sim, {"says": 7, "silent": True}, handler="done", on_completion={"webhook": "https://example.com/done"})
    (call,) = sim.sent("COMPLETION")
    assert (call.message.kind, call.message.data["content"]) == ("execution.succeeded", 7)
    assert not any(count_messages(sim).values())
