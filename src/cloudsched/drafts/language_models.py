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
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

from cloudsched.adapters.google.credentials import open_session
from cloudsched.adapters.safe_http import limit_session
from cloudsched.domain.documents.json_limits import escape_surrogates
from cloudsched.domain.local_requests import is_loopback
from cloudsched.engine.ports.model import ModelUsage, record_usage
from cloudsched.errors import Misconfigured, ModelUnavailable, UnusableAnswer

if TYPE_CHECKING:
    from collections.abc import Callable

    import requests

_MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class ModelPrices:
    """The cost of a million tokens, in dollars."""

    input: float = 0.0
    output: float = 0.0

    def count(self, read: object, *written: object) -> ModelUsage:
        """Return the usage of a call from the numbers that a server gives. Anything else counts as 0."""
        inputs = _to_count(read)
        outputs = sum(map(_to_count, written))
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
MAX_OUTPUT_TOKENS: Final = 8_192
_LONGEST_WAIT: Final = 2.0
"""A server that asks for a longer wait is not asked again by the same call."""
_OK: Final = 200
_TOO_MANY: Final = 429
_SERVER_ERROR: Final = 500
_SERVICE: Final = "The model"


def make_session() -> requests.Session:
    """Return a session that reads no proxy and no password of this machine."""
    from requests import Session  # noqa: PLC0415 - imported when the first model is asked

    session = Session()
    session.trust_env = False
    return session


@dataclass(frozen=True)
class HttpModel:
    """A `Model` on a server.

    Attributes:
        shape: The form of requests and answers.
        url: Where the server's API begins.
        name: The model's name.
        make_session: Returns a session, with credentials if the server needs others than a key.
        timeout: The longest time of a request, in seconds.
        key: The key that each request carries.
        sleep: Waits before a request is sent again.
    """

    shape: Shape
    url: str
    name: str
    make_session: Callable[[], requests.Session]
    timeout: float
    key: str | None = field(default=None, repr=False)
    prices: ModelPrices = ModelPrices()
    sleep: Callable[[float], None] = time.sleep

    def complete(self, instructions: str, data: Any, schema: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON
        """Return the model's answer. See `Model`."""
        text = escape_surrogates(json.dumps(data, ensure_ascii=False))
        said = self.shape.read(self._post(self.shape.write(self.name, instructions, text, schema)))
        record_usage(self.prices.count(*said.tokens))
        if said.problem:
            raise UnusableAnswer(said.problem, f"it ended early ({said.reason})")
        return parse_answer(said.text)

    def _post(self, content: object) -> Any:  # noqa: ANN401 - any JSON
        """Return the server's JSON. A request that gets 429 or 5xx is sent once more."""
        response = self._send(content)
        if response.status_code == _TOO_MANY or response.status_code >= _SERVER_ERROR:
            wait = _parse_wait(response.headers.get("Retry-After", ""))
            if wait <= _LONGEST_WAIT:
                self.sleep(wait)
                response = self._send(content)
        if response.status_code != _OK:
            raise ModelUnavailable(_SERVICE, f"it answered with status {response.status_code}")
        try:
            return response.json()
        except (ValueError, RecursionError) as error:
            raise UnusableAnswer("garbage", "its response is no JSON") from error

    def _send(self, content: object) -> requests.Response:
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 - only when the first model is asked

        url = self.url + self.shape.path.format(quote(self.name, safe=""))
        headers = {} if self.key is None else {"Authorization": f"Bearer {self.key}"}
        try:
            return self._session.post(url, json=content, headers=headers, timeout=self.timeout, allow_redirects=False)
        except GoogleAuthError as error:
            raise ModelUnavailable(_SERVICE, f"this program has no valid credentials: {error}") from error
        except OSError as error:  # those of requests, and a timeout
            reason = f"it did not answer within {self.timeout:g} s ({type(error).__name__})"
            raise ModelUnavailable(_SERVICE, reason) from error

    @cached_property
    def _session(self) -> requests.Session:
        return limit_session(self.make_session(), max_seconds=self.timeout, max_bytes=MAX_ANSWER)


def _parse_wait(text: str) -> float:
    """Return the seconds to wait: as many as the server says, or a random moment."""
    if text.isascii() and text.isdigit():
        return float(text)
    return random.uniform(0.2, 0.6)  # noqa: S311 - no secret


class Said(NamedTuple):
    """A model's answer.

    Attributes:
        tokens: The numbers of tokens that were read, and those that were written, by kinds.
        reason: Why it ended.
        problem: The kind of `UnusableAnswer`, if it is not whole.
    """

    text: object
    tokens: tuple[object, ...]
    reason: object
    problem: str | None


class Shape(NamedTuple):
    """The form of requests to a server and of its answers.

    Attributes:
        path: The end of the URL, with a place for the model's name.
        write: Returns a request from the model's name, instructions, data and the schema of the answer.
        read: Returns what an answer has.
    """

    path: str
    write: Callable[[str, str, str, dict[str, Any]], dict[str, Any]]
    read: Callable[[Any], Said]


def _get(value: Any, *path: str | int) -> Any:  # noqa: ANN401 - any JSON
    """Return what is at a place in JSON. None if there is nothing."""
    try:
        for step in path:
            value = value[step]
    except (LookupError, TypeError):
        return None
    return value


def _write_gemini(_name: str, instructions: str, text: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "systemInstruction": {"parts": [{"text": instructions}]},
        "contents": [{"role": "user", "parts": [{"text": text}]}],
        "generationConfig": {
            "responseMimeType": "application/json",
            "responseJsonSchema": schema,
            "temperature": 0,
            "maxOutputTokens": MAX_OUTPUT_TOKENS,
        },
    }


def _read_gemini(answer: object) -> Said:
    names = ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount")
    tokens = tuple(_get(answer, "usageMetadata", name) for name in names)
    candidate = _get(answer, "candidates", 0)
    reason = _get(answer, "promptFeedback", "blockReason") or _get(candidate, "finishReason")
    problem = {"STOP": None, "MAX_TOKENS": "truncated"}.get(str(reason), "refused")
    parts = _get(candidate, "content", "parts") or ()
    text = "".join(str(_get(part, "text") or "") for part in parts if not _get(part, "thought"))
    return Said(text, tokens, reason, problem)


GEMINI: Final = Shape("/models/{}:generateContent", _write_gemini, _read_gemini)
"""That of Google's API, whose URL ends before ``/models``. The session has credentials."""
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


def _write_chat(name: str, instructions: str, text: str, schema: dict[str, Any]) -> dict[str, Any]:
    told = f"{instructions}\n\nAnswer with one JSON object that fits this schema:\n{json.dumps(schema)}"
    return {
        "model": name,
        "messages": [{"role": "system", "content": told}, {"role": "user", "content": text}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}},
        "max_completion_tokens": MAX_OUTPUT_TOKENS,
    }


def _read_chat(answer: object) -> Said:
    tokens = tuple(_get(answer, "usage", name) for name in ("prompt_tokens", "completion_tokens"))
    choice = _get(answer, "choices", 0)
    reason = "refusal" if _get(choice, "message", "refusal") else _get(choice, "finish_reason")
    problem = {"refusal": "refused", "content_filter": "refused", "length": "truncated"}.get(str(reason))
    return Said(_get(choice, "message", "content"), tokens, reason, problem)


CHAT: Final = Shape("/chat/completions", _write_chat, _read_chat)
"""That of the chat completions API, whose URL ends before ``/chat``."""
OPENAI_URL: Final = "https://api.openai.com/v1"


def require_safe_url(url: str, *, has_key: bool) -> str:
    """Return an address without a final slash. A key is not sent without TLS. Raises Misconfigured."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise Misconfigured(f"CLOUDSCHED_MODEL_URL is {url!r}; give an address such as https://host/v1.")
    if parts.scheme == "http" and has_key and not is_loopback(parts.hostname):
        raise Misconfigured("CLOUDSCHED_MODEL_URL must begin with https://, or be on this machine, if there is a key.")
    return url.rstrip("/")
