"""Post JSON to a model's server, within a time limit and with one repetition, and read what its answer says."""

from __future__ import annotations

import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from cloudsched.domain.local_requests import is_loopback
from cloudsched.engine.ports.model import Usage
from cloudsched.errors import Misconfigured, ModelUnavailable, UnusableAnswer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import requests


_MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Prices:
    """What a million tokens cost, in dollars."""

    input: float = 0.0
    output: float = 0.0

    def count(self, read: object, written: object) -> Usage:
        """Return the usage of a call from the numbers that a server gives; what is no number counts as 0."""
        inputs, outputs = _to_count(read), _to_count(written)
        return Usage(inputs, outputs, (inputs * self.input + outputs * self.output) / _MILLION)


def parse_answer(text: object) -> Any:  # noqa: ANN401 - any JSON
    """Return the JSON of a model's text; fences around it are what models add, and no part of it.

    Raises:
        UnusableAnswer: It is not JSON.
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
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


MAX_ANSWER: Final = 1024 * 1024
"""The largest response that is read, in bytes."""
_MOST_CALLS: Final = 8
"""How many requests may wait at once: a server that hangs must not take all threads."""
_LONGEST_WAIT: Final = 2.0
"""A server that asks for a longer wait is not asked again by the same call."""
_OK, _TOO_MANY, _SERVER_ERROR = 200, 429, 500


class JsonTransport:
    """Posts JSON.

    Args:
        service: The server's name in errors.
        make_session: Makes the session, on the first call.
        timeout: How many seconds one request may take, from beginning to end.
        sleep: Waits between two tries.
    """

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
        """Return the server's JSON object; a request that gets 429 or 5xx is sent once more.

        Raises:
            ModelUnavailable: It did not answer in time, or with another status than 200.
            UnusableAnswer: It answered with something else than a JSON object.
        """
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
        """Return status, body and ``Retry-After`` of one request; one that takes too long is left to its thread."""
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
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 - imported when the first model is asked
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
    """Return an address without a slash at its end.

    Raises:
        Misconfigured: A key would be sent without TLS to another machine.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise Misconfigured(f"CLOUDSCHED_MODEL_URL is {url!r}; give an address such as https://host/v1.")
    if parts.scheme == "http" and has_key and not is_loopback(parts.hostname):
        raise Misconfigured("CLOUDSCHED_MODEL_URL must begin with https://, or be on this machine, if there is a key.")
    return url.rstrip("/")


def _parse_wait(text: str) -> float:
    """Return how long to wait: as the server says, in seconds, or a moment that differs from call to call."""
    return float(text) if text.isascii() and text.isdigit() else random.uniform(0.2, 0.6)  # noqa: S311 - no secret
