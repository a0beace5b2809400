"""The assistant over HTTP: from a conversation to a task, its run, and its record; who may have what."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.drafts.assistant.harness import ON, ScriptedModel, Tools, answer
from tests.drafts.assistant.harness import call as call_tool
from tests.web.callers import DAY, MINUTE, RoleHarness, open_roles

TASK = {"handler": "assistant", "title": "Bikes", "purpose": "Say how the bikes sell"}
SAID = [{"role": "user", "content": "The bikes sell well these days."}]
TEXT = {"text": "Tell me how they sell every Monday at 9:00", "timezone": "Europe/Paris", "conversation": SAID}
DRAFTED = {"decision": "creation", "schedule": "every Monday at 9:00", "title": "Bikes", "handler": "assistant"}


@pytest.fixture
def model() -> ScriptedModel:
    """Drafts a task, calls its tool, and answers."""
    drafted = {**DRAFTED, "purpose": "Say how they sell", "fields": [{"name": "tools", "value": "search"}]}
    return ScriptedModel(drafted, call_tool("search", text="bikes"), answer("7 were sold."))


@pytest.fixture
def roles(model: ScriptedModel) -> Iterator[RoleHarness]:
    """The users ada and bob, and a server, among others."""
    with open_roles(Tools().app, language_model=model, assistant=ON) as opened:
        yield opened


def test_a_user_drafts_confirms_and_gets_the_result(roles: RoleHarness) -> None:
    """The record has the result, its chat, what was expected and what was used; nobody else sees any of it."""
    context = {"chatId": "c1", "messageId": "m1"}
    drafted = roles.ask("ada", "POST", "/v1/tasks/draft", {**TEXT, "context": context}).json
    assert drafted["task"]["payload"] == {"tools": ["search"]}, drafted
    confirmed = roles.create_task("ada", {**drafted["task"], "draftToken": drafted["draftToken"]})
    path = f"/v1/tasks/{confirmed.json['id']}"
    roles.sim.advance(7 * DAY)
    [record] = roles.fetch("ada", f"{path}/executions")["executions"]
    assert (record["status"], record["content"], record["chatId"]) == ("SUCCEEDED", "7 were sold.", "c1")
    [message] = roles.fetch("ada", "/v1/inboxes/ada/messages")["messages"]
    assert (message["body"], message["id"]) == ("7 were sold.", record["messageId"])
    assert (record["queries"], record["tokens"], record["estimatedQueries"]) == (2, 250, 2)
    assert record["estimatedTokens"] == confirmed.json["tokensPerExecution"]
    assert roles.ask("bob", "GET", path).status_code == 404


def test_an_owner_may_start_a_task_that_a_server_wrote(roles: RoleHarness, model: ScriptedModel) -> None:
    """It does nothing with more than its owner's rights."""
    del model.answers[0]
    body = {**TASK, "owner": "ada", "payload": {"tools": ["search"]}, "schedule": {"rrule": "FREQ=YEARLY"}}
    made = roles.create_task("admin", body)
    path = f"/v1/tasks/{made.json['id']}"
    started = roles.ask("ada", "POST", f"{path}/trigger")
    assert started.status_code < 300, started.text
    roles.sim.advance(MINUTE)
    assert roles.fetch("ada", f"{path}/executions")["executions"][0]["content"] == "7 were sold."
