"""Language models over HTTP: Gemini on Vertex AI, and the API of OpenAI that most other servers speak, too.

JSON is posted to a model's server, within a time limit and with one repetition.

Gemini is asked over REST with this program's Google credentials. Source: ai.google.dev/api/generate-content. From it:

* ``generationConfig.responseJsonSchema`` asks for JSON that fits a schema. The text still has to be checked.
* ``promptFeedback.blockReason`` says that the request was blocked, ``finishReason`` why an answer ended: only
  ``STOP`` is a whole one.
* Thinking is billed as output, and counted beside it (``thoughtsTokenCount``).

Other providers, and servers on one's own machine, are asked by the chat completions API of OpenAI. Source:
platform.openai.com/docs/api-reference/chat. ``response_format`` asks for JSON that fits a schema. Servers
that do not know it ignore it, so the schema stands in the instructions as well. ``refusal`` is set in place
of the content, and ``finish_reason`` is ``stop`` for a whole answer.
"""

from __future__ import annotations

import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from cloudsched.adapters.google.credentials import open_session
from cloudsched.domain.local_requests import is_loopback
from cloudsched.engine.ports.model import ModelUsage, record_usage
from cloudsched.errors import Misconfigured, ModelUnavailable, UnusableAnswer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import requests

_MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class ModelPrices:
    """The cost of a million tokens, in dollars."""

    input: float = 0.0
    output: float = 0.0

    def count(self, read: object, written: object) -> ModelUsage:
        """Return the usage of a call from the numbers that a server gives. Anything else counts as 0."""
        inputs = _to_count(read)
        outputs = _to_count(written)
        return ModelUsage(inputs, outputs, (inputs * self.input + outputs * self.output) / _MILLION)


def parse_answer(text: object) -> Any:  # noqa: ANN401 - any JSON
    """Return the JSON of a model's text, without the fences that models add around it.

    Raises UnusableAnswer if it is not JSON.
    """
    if not isinstance(text, str):
        raise UnusableAnswer("garbage", "it has no text")
    bare = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    try:
        return json.loads(bare, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        raise UnusableAnswer("not-json", f"it is not JSON: {error}", text) from error


def _reject_constant(name: str) -> Any:  # noqa: ANN401 - the signature of json's hook
    raise ValueError(f"{name} is not JSON")


def _to_count(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return max(value, 0)
    return 0


MAX_ANSWER: Final = 1024 * 1024
"""The largest response that is read, in bytes."""
_MOST_CALLS: Final = 8
"""The number of requests that may wait at once: a server that hangs must not take all threads."""
_LONGEST_WAIT: Final = 2.0
"""A server that asks for a longer wait is not asked again by the same call."""
_OK: Final = 200
_TOO_MANY: Final = 429
_SERVER_ERROR: Final = 500


class JsonTransport:
    """Posts JSON."""

    def __init__(
        self,
        service: str,
        make_session: Callable[[], requests.Session],
        timeout: float,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._service = service
        self._make_session = make_session
        self._timeout = timeout
        self._sleep = sleep

    def post(self, url: str, content: object, headers: Mapping[str, str]) -> dict[str, Any]:
        """Return the server's JSON object. A request that gets 429 or 5xx is sent once more."""
        status, body, retry_after = self._send(url, content, headers)
        if status == _TOO_MANY or status >= _SERVER_ERROR:
            wait = _parse_wait(retry_after)
            if wait <= _LONGEST_WAIT:
                self._sleep(wait)
                status, body, _ = self._send(url, content, headers)
        if status != _OK:
            raise ModelUnavailable(self._service, f"it answered with status {status}")

        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise UnusableAnswer("garbage", "its response is no JSON object")
        return answer

    def _send(self, url: str, content: object, headers: Mapping[str, str]) -> tuple[int, bytes, str]:
        """Return status, body and ``Retry-After``. A request that takes too long is left to its thread."""
        body = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
        pending = self._threads.submit(self._request, url, body, headers)
        try:
            return pending.result(self._timeout)
        except FutureTimeout:
            pending.cancel()
            raise self._too_slow() from None

    def _too_slow(self) -> ModelUnavailable:
        return ModelUnavailable(self._service, f"it did not answer within {self._timeout:g} s")

    def _request(self, url: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes, str]:
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 - only when the first model is asked
        from requests import RequestException, Timeout  # noqa: PLC0415 - likewise

        until = time.monotonic() + self._timeout
        sent = {"Content-Type": "application/json; charset=utf-8", **headers}

        try:
            with self._session.post(
                url, data=body, headers=sent, timeout=self._timeout, allow_redirects=False, stream=True
            ) as response:
                received = b""
                for part in response.iter_content(16_384):
                    received += part
                    if len(received) > MAX_ANSWER or time.monotonic() > until:
                        raise ModelUnavailable(self._service, "its answer is too long, or took too long")
                return response.status_code, received, response.headers.get("Retry-After", "")
        except GoogleAuthError as error:
            raise ModelUnavailable(self._service, f"this program has no valid credentials: {error}") from error
        except Timeout as error:
            raise self._too_slow() from error
        except (RequestException, OSError) as error:
            raise ModelUnavailable(self._service, f"it did not answer ({type(error).__name__})") from error

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(_MOST_CALLS, "cloudsched-model")

    @cached_property
    def _session(self) -> requests.Session:
        return self._make_session()


def make_session() -> requests.Session:
    """Return a session that reads no proxy and no password of this machine."""
    from requests import Session  # noqa: PLC0415 - imported when the first model is asked

    session = Session()
    session.trust_env = False
    return session


def require_safe_url(url: str, *, has_key: bool) -> str:
    """Return an address without a final slash. A key is not sent without TLS. Raises Misconfigured."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise Misconfigured(f"CLOUDSCHED_MODEL_URL is {url!r}; give an address such as https://host/v1.")
    if parts.scheme == "http" and has_key and not is_loopback(parts.hostname):
        raise Misconfigured("CLOUDSCHED_MODEL_URL must begin with https://, or be on this machine, if there is a key.")
    return url.rstrip("/")


def _parse_wait(text: str) -> float:
    """Return the seconds to wait: as many as the server says, or a random moment."""
    if text.isascii() and text.isdigit():
        return float(text)
    return random.uniform(0.2, 0.6)  # noqa: S311 - no secret


MAX_OUTPUT_TOKENS: Final = 8_192
_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"


def vertex_url(project: str, location: str) -> str:
    """Return where a project's models are on Vertex AI."""
    host = "aiplatform.googleapis.com" if location == "global" else f"{location}-aiplatform.googleapis.com"
    place = f"projects/{quote(project, safe='')}/locations/{quote(location, safe='')}"
    return f"https://{host}/v1/{place}/publishers/google"


def make_google_session() -> requests.Session:
    """Return a session with this program's Google credentials. Raises Misconfigured if there are none."""
    session: requests.Session = open_session("Vertex AI", _SCOPE)
    return session


@dataclass(frozen=True, slots=True)
class _HttpModel:
    transport: JsonTransport
    url: str
    name: str
    key: str | None = None
    prices: ModelPrices = ModelPrices()


class GeminiModel(_HttpModel):
    """A `Model` of Google's. The transport has credentials. The URL ends before ``/models``."""

    def complete(self, instructions: str, data: Any, schema: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON
        """Return the model's answer. See `Model`."""
        text = json.dumps(data, ensure_ascii=False)
        answer = self.transport.post(
            f"{self.url}/models/{quote(self.name, safe='')}:generateContent",
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
            {},
        )

        usage = answer.get("usageMetadata")
        written = sum(_to_count(_get(usage, name)) for name in ("candidatesTokenCount", "thoughtsTokenCount"))
        record_usage(self.prices.count(_get(usage, "promptTokenCount"), written))

        blocked = _get(answer, "promptFeedback", "blockReason")
        if blocked is not None:
            raise UnusableAnswer("refused", f"it was blocked ({blocked})")
        candidate = _get(answer, "candidates", 0)
        reason = _get(candidate, "finishReason")
        if reason == "MAX_TOKENS":
            raise UnusableAnswer("truncated", "it was cut off")
        if reason != "STOP":
            raise UnusableAnswer("refused", f"it ended early ({reason})")

        parts = _get(candidate, "content", "parts") or ()
        texts = [part.get("text") for part in parts if isinstance(part, dict) and not part.get("thought")]
        return parse_answer("".join(each for each in texts if isinstance(each, str)))


def _get(value: object, *path: str | int) -> Any:  # noqa: ANN401 - any JSON
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and len(value) > step:
            value = value[step]
        else:
            return None
    return value


OPENAI_URL: Final = "https://api.openai.com/v1"


class ChatCompletionsModel(_HttpModel):
    """A `Model` of any such server. The URL is the API's, up to ``/chat/completions``."""

    def complete(self, instructions: str, data: Any, schema: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON
        """Return the model's answer. See `Model`."""
        told = f"{instructions}\n\nAnswer with one JSON object that fits this schema:\n{json.dumps(schema)}"
        answer = self.transport.post(
            f"{self.url}/chat/completions",
            {
                "model": self.name,
                "messages": [
                    {"role": "system", "content": told},
                    {"role": "user", "content": json.dumps(data, ensure_ascii=False)},
                ],
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "answer", "schema": schema},
                },
                "max_completion_tokens": MAX_OUTPUT_TOKENS,
            },
            {} if self.key is None else {"Authorization": f"Bearer {self.key}"},
        )

        usage = answer.get("usage")
        record_usage(self.prices.count(_get(usage, "prompt_tokens"), _get(usage, "completion_tokens")))

        choice = _get(answer, "choices", 0)
        reason = _get(choice, "finish_reason")
        if _get(choice, "message", "refusal") or reason == "content_filter":
            raise UnusableAnswer("refused", "the model refuses")
        if reason == "length":
            raise UnusableAnswer("truncated", "it was cut off")
        return parse_answer(_get(choice, "message", "content"))
