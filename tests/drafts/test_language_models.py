"""All models, against a server on this machine that speaks their wire formats: good answers, and bad ones."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.cases import try_each
from tests.model_server import KEY, ModelServer, chat_reply, gemini_reply, server

from cloudsched.drafts.language_models import require_safe_url
from cloudsched.engine.ports.model import meter_models
from cloudsched.errors import Misconfigured, ModelUnavailable, UnusableAnswer

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}

__all__ = ["server"]  # a fixture


def ask(server: ModelServer, **more: Any) -> Any:  # noqa: ANN401 - any JSON
    return server.model(**more).complete("Do it.", {"text": "grüß 🎉"}, SCHEMA)


def test_an_answer_is_returned_and_counted(server: ModelServer) -> None:
    """The request has the instructions, the data and the schema apart; the key is in a header; the tokens cost."""
    server.say({"a": 1})
    with meter_models() as meter:
        assert ask(server) == {"a": 1}
    assert (meter.total.input_tokens, meter.total.output_tokens, meter.calls) == (100, 25, 1)
    assert meter.total.cost == pytest.approx((100 * 0.3 + 25 * 2.5) / 1e6)
    (sent,) = server.requests
    if server.kind == "vertex":
        assert sent["path"] == "/models/gemini-test:generateContent"
        assert sent["systemInstruction"]["parts"] == [{"text": "Do it."}]
        assert json.loads(sent["contents"][0]["parts"][0]["text"]) == {"text": "grüß 🎉"}
        assert sent["generationConfig"]["responseJsonSchema"] == SCHEMA
    else:
        assert sent["path"] == "/chat/completions"
        assert [each["role"] for each in sent["messages"]] == ["system", "user"]
        assert json.loads(sent["messages"][1]["content"]) == {"text": "grüß 🎉"}
        assert sent["response_format"]["json_schema"]["schema"] == SCHEMA
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_fences_around_json_are_no_part_of_it(server: ModelServer) -> None:
    """Models add them, even where they are asked for JSON alone."""
    server.say('```json\n{"a": 1}\n```')
    assert ask(server) == {"a": 1}


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_once_more(server: ModelServer, status: int) -> None:
    """After a moment, or after what it says; the second answer counts."""
    server.answer({"error": {}}, status, Retry_After="1")
    server.say({"a": 2})
    assert ask(server) == {"a": 2}
    assert server.waits == [1.0]


@pytest.mark.parametrize("status", [429, 500])
def test_a_server_that_stays_busy_is_unavailable(server: ModelServer, status: int) -> None:
    """Two requests, and no third."""
    server.answer({"error": {}}, status)
    with pytest.raises(ModelUnavailable, match=str(status)):
        ask(server)
    assert len(server.requests) == 2
    assert 0 < server.waits[0] < 1


def test_a_long_wait_is_not_waited_for(server: ModelServer) -> None:
    """Somebody is waiting for the draft."""
    server.answer({"error": {}}, 429, Retry_After="60")
    with pytest.raises(ModelUnavailable):
        ask(server)
    assert (len(server.requests), server.waits) == (1, [])


@pytest.mark.parametrize("status", [400, 401, 403, 404, 302])
def test_other_statuses_are_not_repeated(server: ModelServer, status: int) -> None:
    """They would be answered in the same way; a redirect is not followed, for it could take the key elsewhere."""
    server.answer({"error": {"message": f"bad key {KEY}"}}, status, Location="http://127.0.0.1:9/")
    with pytest.raises(ModelUnavailable) as refused:
        ask(server)
    assert len(server.requests) == 1
    assert KEY not in str(refused.value)


def test_a_slow_server_is_given_up(server: ModelServer) -> None:
    """After the timeout, without another try."""
    server.answer(None)
    with pytest.raises(ModelUnavailable, match=r"within 0\.2 s"):
        ask(server, timeout=0.2)
    assert len(server.requests) <= 1


@pytest.mark.parametrize("content", [b"<html>", b"[1]", b"", b"\xff\xfe", b"[" * 100_000])
def test_garbage_is_of_no_use(server: ModelServer, content: bytes) -> None:
    """It is an error of its own: the server is there, but its answer is nothing."""
    server.answer(content)
    with pytest.raises(UnusableAnswer):
        ask(server)


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Nothing is collected where the text is deepest: finalizers of whatever is garbage then would have no stack."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("text", ["", "{", "Sure! Here it is", '{"a": NaN}', "[" * 100_000])
def test_text_that_is_not_json_is_given_back(server: ModelServer, text: str) -> None:
    """For one repair."""
    server.say(text)
    with pytest.raises(UnusableAnswer) as error:
        ask(server)
    assert (error.value.kind, error.value.text) == ("not-json", text)


@try_each(
    "model, kind, content",
    [
        ("vertex", "refused", {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3}}),
        ("vertex", "refused", gemini_reply("", finishReason="SAFETY")),
        ("vertex", "truncated", gemini_reply('{"a"', finishReason="MAX_TOKENS")),
        ("vertex", "refused", {}),
        ("vertex", "not-json", {"candidates": [{"finishReason": "STOP"}]}),
        ("chat", "refused", chat_reply(None, refusal="I cannot")),
        ("chat", "refused", chat_reply("", "content_filter")),
        ("chat", "truncated", chat_reply('{"a"', "length")),
        ("chat", "garbage", {}),
    ],
)
def test_what_a_model_says_besides_an_answer(model: str, kind: str, content: dict[str, Any]) -> None:
    """Blocked or refused, ended early, cut off, or without an answer."""
    with ModelServer(model) as server:
        server.answer(content)
        with pytest.raises(UnusableAnswer) as error:
            ask(server)
    assert error.value.kind == kind


def test_what_gemini_thinks_is_no_answer() -> None:
    """Parts that are thoughts are left out."""
    thought = gemini_reply("")
    thought["candidates"][0]["content"]["parts"] = [{"text": "hm {", "thought": True}, {"text": '{"a": 3}'}]
    with ModelServer("vertex") as server:
        server.answer(thought)
        assert ask(server) == {"a": 3}


@try_each("url", ["http://example.com/v1", "ftp://example.com", "example.com", "http://10.0.0.1/v1"])
def test_a_key_needs_tls(url: str) -> None:
    """To another machine; a server on this one needs none."""
    with pytest.raises(Misconfigured):
        require_safe_url(url, has_key=True)
    assert require_safe_url("http://127.0.0.1:1/v1/", has_key=True) == "http://127.0.0.1:1/v1"
    assert require_safe_url("https://example.com/v1", has_key=True) == "https://example.com/v1"
