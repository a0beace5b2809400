"""The client's connection to the API: authentication, timeouts and retries."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import requests
from urllib3.exceptions import HTTPError
from urllib3.util import Retry

from cloudsched.client.deadline import DeadlineAdapter
from cloudsched.client.responses import ApiResponse, read_response
from cloudsched.errors import InvalidInput, Misconfigured, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from urllib3.response import BaseHTTPResponse

RETRIES = 3
"""How often a request is retried: after about 0, 1 and 2 seconds, or as ``Retry-After`` says."""
_IDEMPOTENT_METHODS = frozenset({"GET", "DELETE"})
_RETRY_STATUSES = (502, 503, 504)
"""The service is unreachable or overloaded. An exceeded quota (429) is left to the caller."""
_MAX_RETRY_AFTER = 10.0
"""The longest wait before a retry, in seconds, whatever ``Retry-After`` says."""


class Connection:
    """Sends requests to one API.

    Args:
        url: The API's address, without a path.
        bearers: The headers that carry a token, with the token or a function that returns it.
        key: An API key.
        timeout: How many seconds to wait for a connection, and then for the complete response.

    Raises:
        Misconfigured: The URL is not an address, or the key has characters that a header cannot have.
    """

    def __init__(
        self, url: str, bearers: Mapping[str, str | Callable[[], str] | None], key: str | None, timeout: float
    ) -> None:
        require_address(url)
        self._url = url.rstrip("/")
        self._server = f"The API at {self._url}"
        self._bearers = bearers
        self._timeout = timeout
        _require_sendable("key", key)
        self._single_session = _make_session(0, key)
        self._retrying_session = _make_session(RETRIES, key)

    def close(self) -> None:
        """Close the connections."""
        self._single_session.close()
        self._retrying_session.close()

    def send(
        self,
        method: str,
        path: str,
        content: dict[str, Any] | None = None,
        *,
        query: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        is_idempotent: bool = False,
        time_limit: float | None = None,
    ) -> ApiResponse:
        """Send a request, with retries if that is safe, and return the response.

        Args:
            method: The HTTP method.
            path: The path, encoded.
            content: The body, as JSON.
            query: The query parameters.
            headers: Further headers.
            is_idempotent: Whether it may be retried although its method is not idempotent.
            time_limit: How many seconds it may take at most; then it is sent once.

        Raises:
            InvalidInput: The content has a value that JSON cannot represent.
            Misconfigured: The token has characters that a header cannot have.
            Unavailable: There was no response, it was not the API's, or the service is overloaded.
            CloudschedError: The API refused it.
        """
        session = (
            self._retrying_session
            if time_limit is None and (is_idempotent or method in _IDEMPOTENT_METHODS)
            else self._single_session
        )
        all_headers = {**(headers or {}), **self._auth_headers()}
        if content is not None:
            all_headers["Content-Type"] = "application/json"
        try:
            response = session.request(
                method,
                self._url + path,
                data=None if content is None else _encode_json(content),
                params=query,
                headers=all_headers,
                timeout=self._timeout if time_limit is None else min(self._timeout, time_limit),
                allow_redirects=False,  # a token is for this API alone
                stream=True,
            )
            return read_response(response, self._server)
        except (requests.RequestException, HTTPError, OSError, UnicodeError) as error:
            raise Unavailable(self._server, type(error).__name__) from error

    def _auth_headers(self) -> dict[str, str]:
        tokens = {name: token() if callable(token) else token for name, token in self._bearers.items()}
        for token in tokens.values():
            _require_sendable("token", token)
        return {name: f"Bearer {token}" for name, token in tokens.items() if token}


def require_address(url: str) -> None:
    """Check that a text is an HTTP or HTTPS URL. Raises Misconfigured."""
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0 and url.isprintable()
    except ValueError:  # such as a port that is not a number
        is_one = False
    if not is_one:
        raise Misconfigured(f"{url!r} is not an address; write the API's address, such as https://api.example.")


def _require_sendable(what: str, credential: str | None) -> None:
    if credential is not None and not (credential.isascii() and credential.isprintable()):
        raise Misconfigured(f"The {what} has characters that a header cannot have. Does it end with a line break?")
    if credential is not None and credential != credential.strip():
        raise Misconfigured(f"The {what} begins or ends with a space. Copy it without.")


def _encode_json(content: dict[str, Any]) -> bytes:
    """Return compact JSON, since the API limits its bytes; lone surrogates are escaped."""
    try:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidInput("(body)", f"is not JSON: {error}", "Use only values that JSON can represent.") from error
    return text.encode("utf-8", "backslashreplace")


class _RetryPolicy(Retry):
    """Honours ``Retry-After`` only where the service is overloaded (503)."""

    RETRY_AFTER_STATUS_CODES = frozenset({503})

    def get_retry_after(self, response: BaseHTTPResponse) -> float | None:
        """Return the wait in seconds, at most `_MAX_RETRY_AFTER`."""
        seconds = super().get_retry_after(response)
        return None if seconds is None else min(seconds, _MAX_RETRY_AFTER)


def _make_session(retries: int, key: str | None) -> requests.Session:
    """Return a session with this many retries of requests that got no response or found the service overloaded."""
    repeat = _RetryPolicy(
        retries,
        redirect=False,
        backoff_factor=0.5,
        status_forcelist=_RETRY_STATUSES if retries else (),
        allowed_methods=None,
        raise_on_status=False,
    )
    made = requests.Session()
    if key is not None:
        made.headers["X-Api-Key"] = key
    made.mount("http://", DeadlineAdapter(max_retries=repeat))
    made.mount("https://", DeadlineAdapter(max_retries=repeat))
    return made
