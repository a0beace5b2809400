"""Gemini over REST, with an API key or on Vertex AI with this program's Google credentials.

Source: ai.google.dev/api/generate-content. From it:

* ``generationConfig.responseJsonSchema`` asks for JSON that fits a schema; the text has to be checked all the same.
* ``promptFeedback.blockReason`` says that the request was blocked, ``finishReason`` why an answer ended: only ``STOP``
  is a whole one.
* Thinking is billed as output, and counted beside it (``thoughtsTokenCount``).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from cloudsched.adapters.language_model.transport import Prices, parse_answer
from cloudsched.engine.ports.model import record_usage
from cloudsched.errors import UnusableAnswer

if TYPE_CHECKING:
    import requests

    from cloudsched.adapters.language_model.transport import JsonTransport

API_URL: Final = "https://generativelanguage.googleapis.com/v1beta"
MAX_OUTPUT_TOKENS: Final = 8_192
_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"


def vertex_url(project: str, location: str) -> str:
    """Return where a project's models are on Vertex AI."""
    host = "aiplatform.googleapis.com" if location == "global" else f"{location}-aiplatform.googleapis.com"
    return (
        f"https://{host}/v1/projects/{quote(project, safe='')}/locations/{quote(location, safe='')}/publishers/google"
    )


def make_google_session() -> requests.Session:
    """Return a session with this program's Google credentials."""
    import google.auth  # noqa: PLC0415 - imported when the first model is asked
    from google.auth.transport.requests import AuthorizedSession  # noqa: PLC0415 - likewise

    credentials, _ = google.auth.default(scopes=[_SCOPE])
    return AuthorizedSession(credentials)  # type: ignore[no-untyped-call]  # no types


class GeminiModel:
    """A `Model` of Google's.

    Args:
        transport: Posts the requests.
        url: The API, up to ``/models``.
        name: The model's name.
        key: The API key; None where the transport has credentials.
        prices: What its tokens cost.
    """

    def __init__(
        self, transport: JsonTransport, url: str, name: str, key: str | None = None, prices: Prices | None = None
    ) -> None:
        self._transport = transport
        self._url = f"{url}/models/{quote(name, safe='')}:generateContent"
        self._headers = {} if key is None else {"x-goog-api-key": key}
        self._prices = prices or Prices()

    def complete(self, instructions: str, data: Any, schema: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON
        """Return the model's answer; see `Model`."""
        text = json.dumps(data, ensure_ascii=False)
        answer = self._transport.post(
            self._url,
            {
                "systemInstruction": {"parts": [{"text": instructions}]},
                "contents": [{"role": "user", "parts": [{"text": text}]}],
                "generationConfig": {
                    "responseMimeType": "application/json",
                    "responseJsonSchema": schema,
                    "temperature": 0,
                    "maxOutputTokens": MAX_OUTPUT_TOKENS,
                },
            },
            self._headers,
        )
        self._count(answer.get("usageMetadata"))
        blocked = _get(answer, "promptFeedback", "blockReason")
        if blocked is not None:
            raise UnusableAnswer("refused", f"it was blocked ({blocked})")
        candidate = _get(answer, "candidates", 0)
        reason = _get(candidate, "finishReason")
        if reason == "MAX_TOKENS":
            raise UnusableAnswer("truncated", "it was cut off")
        if reason != "STOP":
            raise UnusableAnswer("refused", f"it ended early ({reason})")
        parts = _get(candidate, "content", "parts")
        texts = (
            [part.get("text") for part in parts if isinstance(part, dict) and not part.get("thought")] if parts else []
        )
        return parse_answer("".join(each for each in texts if isinstance(each, str)))

    def _count(self, usage: object) -> None:
        written = sum(_whole(_get(usage, name)) for name in ("candidatesTokenCount", "thoughtsTokenCount"))
        record_usage(self._prices.count(_get(usage, "promptTokenCount"), written))


def _get(value: object, *path: str | int) -> Any:  # noqa: ANN401 - any JSON
    """Return a part of JSON; None if anything on the way is missing, or something else."""
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and len(value) > step:
            value = value[step]
        else:
            return None
    return value


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
