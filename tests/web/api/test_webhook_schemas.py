"""What is posted to webhooks is what the OpenAPI document says of them."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator
from tests.web.api.test_webhook_verification import Network, network, verify
from tests.web.callers import RoleHarness
from werkzeug.wrappers import Response

from cloudsched import App
from cloudsched.adapters.delivery.webhook import write_body
from cloudsched.engine.ports.sender import Message
from cloudsched.testing import Simulation
from cloudsched.web.api.openapi import build_document

__all__ = ["network"]
DOCUMENT = build_document(None)
URL = "https://ada.example.com/done"


def check(webhook: str, body: dict[str, Any]) -> None:
    """Check a body against the document."""
    (content,) = DOCUMENT["webhooks"][webhook]["post"]["requestBody"]["content"].values()
    schema = {**content["schema"], "components": DOCUMENT["components"]}
    Draft202012Validator(schema, validate_formats=True).validate(body)


def read(message: Message) -> dict[str, Any]:
    """Return the body of a message as its receiver reads it."""
    body: dict[str, Any] = json.loads(write_body(message))
    return body


@pytest.mark.parametrize("queue", [None, "nobody"], ids=["succeeds", "expires"])
def test_results_and_completions_are_as_described(sim: Simulation, app: App, queue: str | None) -> None:
    """A result, also one of a chat, and the end of an execution, whether it succeeded or not."""
    sim.add_person("ada")
    app.create(
        owner="ada",
        title="T",
        handler="anything",
        payload={"name": "Ada"},
        delivery_channels=["WEBHOOK"],
        on_completion={"webhook": URL},
        source={"chatId": "c1", "messageId": "m1"},
        pull=queue,
        expiration=timedelta(minutes=5),
    )
    sim.advance(timedelta(hours=1))
    bodies = {"result": sim.sent("WEBHOOK"), "completion": sim.sent("COMPLETION")}
    assert [len(each) for each in bodies.values()] == [0 if queue else 1, 1]
    for webhook, sent in bodies.items():
        for each in sent:
            check(webhook, read(each.message))


def test_a_question_to_an_endpoint_is_as_described(roles: RoleHarness, network: Network) -> None:
    """The question whether it wants a person's messages."""
    network.answer = lambda challenge, _: Response(challenge)
    assert roles.ask("ada", "PUT", "/v1/people/ada", {"webhook": {"url": URL}}).status_code == 201
    assert verify(roles).status_code == 200
    ((data, headers),) = network.requests
    check("verification", json.loads(data))
    named = {each["name"] for each in DOCUMENT["webhooks"]["verification"]["post"]["parameters"]}
    assert named <= {name.lower() for name in headers}
