"""The model that the settings name: it is asked as they say, what it costs is logged, and its circuit is seen."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.drafts.test_model import GOOD, SAID_MONDAY, SWEDISH
from tests.drafts_app import make_app
from tests.harness import LocalClient
from tests.model_server import KEY, ModelServer
from werkzeug.wrappers import Request

from cloudsched.adapters.circuit_breaker import FAILURE_THRESHOLD
from cloudsched.config.settings import ModelSettings
from cloudsched.domain.responses.api_responses import DraftResult
from cloudsched.testing import Simulation
from cloudsched.web.functions import serve_api

WORDS = "remind me to stretch every weekday at 9:00"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer("openai") as made:
        yield made


@pytest.fixture
def settings(server: ModelServer) -> ModelSettings:
    return ModelSettings(name=f"{server.kind}:test", key=KEY, url=server.url, prices="0.3/2.5")


@pytest.fixture
def sim(settings: ModelSettings) -> Iterator[Simulation]:
    with Simulation(make_app(), model=settings) as made:
        yield made


def draft(sim: Simulation, text: str = SWEDISH, **more: Any) -> DraftResult:
    return sim.app.draft(text, timezone="Europe/Paris", owner="ada", **more)


@pytest.fixture
def health(sim: Simulation) -> Callable[[], dict[str, Any]]:
    """Read what the API says of its circuits."""
    client = LocalClient(Request.application(lambda request: serve_api(sim.app, request)))
    return lambda: dict(client.get("/health").get_json())


def test_the_model_of_the_settings_is_asked(
    sim: Simulation, server: ModelServer, health: Callable[[], dict[str, Any]]
) -> None:
    """Nobody has to hand it over; its circuit stands in the health."""
    server.say({**GOOD, "assumptions": SAID_MONDAY})
    assert draft(sim).description == "every Monday at 09:30, Europe/Paris"
    assert len(server.requests) == 1
    assert health()["circuits"]["model"] == "closed"


def test_tokens_and_cost_are_counted(sim: Simulation, server: ModelServer, caplog: pytest.LogCaptureFixture) -> None:
    """In one line a draft, those of a repaired answer too, and of one that is of no use; none without a call."""
    caplog.set_level(logging.INFO)
    server.say("not json")
    server.say({**GOOD, "assumptions": SAID_MONDAY})
    assert draft(sim).questions
    server.say({**GOOD, "schedule": "", "decision": "refusal"})
    server.replies.popleft()
    assert draft(sim).draft_token is None
    assert draft(sim, WORDS).draft_token is not None
    one = (100 * 0.3 + 25 * 2.5) / 1e6
    lines = [each.__dict__ for each in caplog.records if each.getMessage() == "asked the model"]
    assert [(each["tokens"], each["useful"]) for each in lines] == [(250, True), (125, False)]
    assert [each["cost"] for each in lines] == pytest.approx([2 * one, one])


def test_a_model_that_is_down_is_left_alone(
    sim: Simulation, server: ModelServer, health: Callable[[], dict[str, Any]]
) -> None:
    """After some failures its circuit is open: drafts are the grammar's own, at once and without a request."""
    server.answer({}, 400)
    for _ in range(FAILURE_THRESHOLD + 3):
        assert draft(sim, WORDS, conversation=[{"role": "user", "content": "hi"}]).draft_token is not None
    assert len(server.requests) == FAILURE_THRESHOLD
    assert health()["circuits"]["model"] == "open"


def test_what_the_model_is_told_is_bounded(sim: Simulation, server: ModelServer) -> None:
    """The last twenty messages of a conversation, and of each the last two thousand characters."""
    server.say({**GOOD, "assumptions": SAID_MONDAY})
    draft(sim, conversation=[{"role": "user", "content": f"<{number}>" + "x" * 2_100} for number in range(25)])
    sent = str(server.requests[0])
    assert "<24>" not in sent  # its beginning is cut off
    assert sent.count("x" * 2_000) == 20
    assert "x" * 2_001 not in sent
