"""A language model's server on this machine, which speaks the documented wire formats and answers as a test says."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any, Self

import pytest
from werkzeug.wrappers import Request, Response

from cloudsched.drafts.language_models import CHAT, GEMINI, HttpModel, ModelPrices, make_session
from cloudsched.engine.ports.model import Model
from cloudsched.local.wsgi_server import WebServer

KEY = "test-key"
Reply = tuple[int, dict[str, str], bytes]


def gemini_reply(text: str, **more: Any) -> dict[str, Any]:
    """Return what Gemini answers (ai.google.dev/api/generate-content)."""
    candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP", "index": 0, **more}
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 20, "thoughtsTokenCount": 5, "totalTokenCount": 125}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-test"}


def chat_reply(text: str | None, finish_reason: str = "stop", **message: Any) -> dict[str, Any]:
    """Return what a chat completions API answers (platform.openai.com/docs/api-reference/chat)."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish_reason}
    usage = {"prompt_tokens": 100, "completion_tokens": 25, "total_tokens": 125}
    return {"id": "c1", "object": "chat.completion", "model": "test", "choices": [choice], "usage": usage}


class ModelServer:
    """Serves all formats; `replies` are given in order, the last one again and again."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.replies: deque[Reply] = deque()
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.waits: list[float] = []
        self.hold = threading.Event()
        """Set when a request that hangs may end."""
        self._server = WebServer(Request.application(self._serve))

    def answer(self, content: object, status: int = 200, **headers: str) -> None:
        """Answer with JSON, or with bytes as they are; None hangs."""
        body = content if isinstance(content, bytes) else b"" if content is None else json.dumps(content).encode()
        self.replies.append((0 if content is None else status, headers, body))

    def say(self, value: object) -> None:
        """Answer with a JSON text, as the format has it; a text is sent as it is."""
        text = value if isinstance(value, str) else json.dumps(value)
        self.answer(gemini_reply(text) if self.kind == "vertex" else chat_reply(text))

    def model(self, timeout: float = 30.0) -> Model:
        prices = ModelPrices(0.3, 2.5)
        shape, key = (GEMINI, None) if self.kind == "vertex" else (CHAT, KEY)
        return HttpModel(shape, self.url, "gemini-test", make_session, timeout, key, prices, self.waits.append)

    @property
    def url(self) -> str:
        return f"http://{self._server.address}"

    def _serve(self, request: Request) -> Response:
        path = request.full_path.removesuffix("?")
        self.requests.append({"path": path, **json.loads(request.get_data())})
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        status, headers, body = self.replies.popleft() if len(self.replies) > 1 else self.replies[0]
        if not status:
            self.hold.wait(60)
        return Response(body, status or 500, {name.replace("_", "-"): value for name, value in headers.items()})

    def __enter__(self) -> Self:
        self._server.__enter__().serve()
        return self

    def __exit__(self, *error: object) -> None:
        self.hold.set()
        self._server.__exit__(*error)


@pytest.fixture(params=["vertex", "openai"])
def server(request: pytest.FixtureRequest) -> Iterator[ModelServer]:
    with ModelServer(request.param) as made:
        yield made
