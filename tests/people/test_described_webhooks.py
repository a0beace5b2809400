"""What is posted to webhooks is what ``webhooks`` of the OpenAPI document says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator
from tests.people import test_on_completion as callbacks
from werkzeug.wrappers import Request, Response

from cloudsched import App, Context
from cloudsched.adapters.safe_http import make_session
from cloudsched.domain.documents.task import Source
from cloudsched.domain.responses.webhooks import WEBHOOKS
from cloudsched.engine.ports.sender import OutgoingMessage, Recipient
from cloudsched.local.wsgi_server import WebServer
from cloudsched.people.senders.webhook import WebhookSender
from cloudsched.people.webhook_verification import WebhookVerification
from cloudsched.testing import Simulation
from cloudsched.web.api.openapi import build_document

DAY = timedelta(days=1)
SECRETS = ("whsec_c2VjcmV0", "whsec_b3RoZXI=")


class Endpoint:
    """Another program's address, to which messages are really posted."""

    def __init__(self) -> None:
        self.posts: list[tuple[Any, dict[str, str]]] = []
        self.url = ""

    def answer(self, request: Request) -> Response:
        self.posts.append((json.loads(request.get_data()), dict(request.headers)))
        return Response(self.posts[-1][0]["data"].get("challenge", ""))

    def post(self, message: OutgoingMessage) -> None:
        sender = WebhookSender(partial(make_session, ["127.0.0.0/8"]), allows_http=True)
        sender.ask(message, Recipient(address=self.url, secrets=SECRETS))


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    with WebServer(Request.application(made.answer)) as server:
        server.serve()
        made.url = f"http://{server.address}/"
        yield made


def find_described(kind: str) -> dict[str, Any]:
    """Return the description of the webhook that has this type."""
    document = build_document()
    for name, model in WEBHOOKS.items():
        shown = document["components"]["schemas"][model.__name__]["properties"]["type"]
        if kind == shown.get("const") or kind in shown.get("enum", ()):
            described: dict[str, Any] = document["webhooks"][name]["post"]
            return described
    raise AssertionError(f"{kind} is not described")


def list_undescribed(schema: dict[str, Any], value: Any) -> set[str]:  # noqa: ANN401 - any JSON
    """Return the fields of a value that its schema allows only because it allows any."""
    schemas = build_document()["components"]["schemas"]
    while "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    if not isinstance(value, dict) or "properties" not in schema:
        return set()
    known = schema["properties"]
    inner = (list_undescribed(known[name], each) for name, each in value.items() if name in known)
    return {*value} - {*known} | set().union(*inner)


def require_described(body: dict[str, Any], headers: dict[str, str]) -> None:
    """Check a body and its headers against the description of its type."""
    described = find_described(body["type"])
    content = described["requestBody"]["content"]
    schema = content[headers["Content-Type"]]["schema"]
    whole = {"allOf": [schema], "components": build_document()["components"]}
    Draft202012Validator(whole, validate_formats=True).validate(body)
    assert list_undescribed(schema, body) == set()
    given = {name.lower(): text for name, text in headers.items()}
    for header in described["parameters"]:
        Draft202012Validator(header["schema"]).validate(given[header["name"]])


def test_every_webhook_is_as_it_is_described(endpoint: Endpoint) -> None:
    """Successes, failures, what was late, what came from a chat, a large result, callbacks, and the question."""
    with Simulation(callbacks.app) as sim:
        sim.add_person("ada")
        chat = Source(chat_id="chat")
        for handler in ("say", "broken", "stop"):
            callbacks.make(sim, handler, delivery_channels=["WEBHOOK"], tell_failures="EACH", source=chat)
        callbacks.make(sim, "wait", expiration=60)
        sim.channel("WEBHOOK").fails(3)
        sim.advance(DAY)
        for each in (*sim.sent("WEBHOOK"), *sim.sent("COMPLETION")):
            endpoint.post(each.message)
        kinds = {body["type"] for body, _ in endpoint.posts}
        assert kinds >= {"notification", "execution.succeeded", "execution.failed", "execution.cancelled"}
        ask_for_verification(sim, endpoint)
    for body, headers in endpoint.posts:
        require_described(body, headers)


def ask_for_verification(sim: Simulation, endpoint: Endpoint) -> None:
    """Let the product ask the endpoint whether it wants messages."""
    from cloudsched.domain.documents.person import PersonSpec  # noqa: PLC0415 - for this alone
    from cloudsched.engine.authority import OWN_CODE  # noqa: PLC0415 - the same
    from cloudsched.people.wiring import PeopleWiring  # noqa: PLC0415 - the same

    class Asks:
        def ask(self, message: OutgoingMessage, recipient: Recipient) -> str:
            endpoint.post(message)
            return str(message.data["challenge"]) if recipient.secrets else ""

    people = PeopleWiring.of(sim.app.container).people
    spec = PersonSpec.model_validate({"webhook": {"url": "https://ada.example.com/hook"}})
    people.put("grace", spec, by=OWN_CODE, may_remove=True)
    container = sim.app.container
    WebhookVerification(container.store.records, container.clock, people, Asks).verify("grace", by=OWN_CODE)
    assert endpoint.posts[-1][0]["type"] == "webhook.verification"


def test_a_question_is_as_it_is_described(endpoint: Endpoint) -> None:
    """To somebody whom a handler asks by name, with the link that answers it."""
    app = App()

    @app.handler("ask")
    def ask(ctx: Context) -> object:
        return ctx.wait_for("decision", timeout=DAY, by=("user:ada",), question="Shall I?", channels=["WEBHOOK"])

    with Simulation(app, public_url="https://api.example") as sim:
        sim.add_person("ada")
        sim.channel("WEBHOOK").fails(3)
        app.create(owner="grace", title="Ask", handler="ask")
        sim.advance(DAY / 2)
        endpoint.post(sim.sent("WEBHOOK")[0].message)
    ((body, headers),) = endpoint.posts
    require_described(body, headers)
    assert (body["type"], body["data"]["late"] > 0) == ("question", True)
    assert body["data"]["answerUrl"].startswith("https://api.example/v1/links/answer/")
