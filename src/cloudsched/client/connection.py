"""The clients' connection to the API: authentication, timeouts and retries."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import time
import weakref
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    retry_if_result,
    stop_after_attempt,
)

from cloudsched.client.flow import ApiRequest, BodyCollector, HttpResponse, JsonResponse, given, parse_response
from cloudsched.domain.local_requests import is_local_name
from cloudsched.errors import InvalidInput, Misconfigured, NotFound, Unavailable

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping

CORE_ERRORS = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
)
"""The errors that `DeadlineTransport` raises if there is no complete response."""


class DeadlineTransport(httpx.BaseTransport):
    """A transport whose read timeout covers the complete response."""

    def __init__(self, ssl_context: ssl.SSLContext, proxy: httpx.Proxy | None = None) -> None:
        way: httpcore.Proxy | None = None
        if proxy is not None:
            way = httpcore.Proxy(str(proxy.url), proxy.raw_auth, ssl_context=proxy.ssl_context)
        backend = _DeadlineBackend()
        self._pool = httpcore.ConnectionPool(ssl_context=ssl_context, proxy=way, network_backend=backend)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, and return the response once its headers have arrived."""
        assert isinstance(request.stream, httpx.SyncByteStream)  # noqa: S101 - the client is not asynchronous
        url = request.url
        response = self._pool.handle_request(
            httpcore.Request(
                method=request.method,
                url=httpcore.URL(
                    scheme=url.raw_scheme,
                    host=url.raw_host,
                    port=url.port,
                    target=url.raw_path,
                ),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(
            response.status, headers=response.headers, stream=_Body(response), extensions=response.extensions
        )

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        return self._response.iter_stream()

    def close(self) -> None:
        self._response.close()


class _DeadlineStream(httpcore.NetworkStream):
    """A connection on which all reads after a write share one timeout."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream
        self._until: float | None = None

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if timeout is None:
            return self._stream.read(max_bytes)
        now = time.monotonic()
        if self._until is None:
            self._until = now + timeout
        if now >= self._until:
            raise httpcore.ReadTimeout("the response does not end")
        return self._stream.read(max_bytes, self._until - now)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._until = None
        self._stream.write(buffer, timeout)

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _DeadlineStream(self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - httpcore's signature
        return self._stream.get_extra_info(info)


class _DeadlineBackend(httpcore.SyncBackend):
    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        return _DeadlineStream(super().connect_tcp(host, port, timeout, local_address, socket_options))


if TYPE_CHECKING:
    Token = str | Callable[[], str] | None
    AsyncToken = str | Callable[[], str] | Callable[[], Awaitable[str]] | None

RETRY_PAUSES: tuple[float, ...] = (0.0, 1.0, 2.0)
"""The seconds to wait before each retry of a request, unless ``Retry-After`` says otherwise."""
RETRIES = len(RETRY_PAUSES)
"""The number of times that a request is retried."""
_IDEMPOTENT_METHODS = frozenset({"GET", "DELETE"})
_OVERLOADED = 503
_RETRY_STATUSES = frozenset({502, _OVERLOADED, 504})
"""The statuses of an unreachable or overloaded service. An exceeded quota (429) is left to the caller."""
_MAX_RETRY_AFTER = 10.0
"""The longest wait before a retry, in seconds, whatever ``Retry-After`` says."""
_NETWORK_ERRORS: Final = (
    httpx.HTTPError,
    httpx.InvalidURL,
    httpx.StreamError,
    *CORE_ERRORS,
    OSError,
    UnicodeError,
)
_NOTHING_SENT: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpcore.ConnectError,
    httpcore.ConnectTimeout,
)
_TOKEN_HEADER = "Authorization"  # noqa: S105 - a header's name
_PLATFORM_TOKEN_HEADER = "X-Serverless-Authorization"  # noqa: S105 - the same


class Endpoint:
    """What both connections share: the API's address, and the format of requests. Raises Misconfigured."""

    def __init__(self, url: str, key: str | None, timeout: float) -> None:
        require_address(url)
        _require_sendable("key", key)
        self.url: str = url.rstrip("/")
        self.proxy: Any | None = find_proxy(url)
        self.server: str = f"The API at {self.url}"
        self._key = {} if key is None else {"X-Api-Key": key}
        self._timeout = timeout

    def write(self, request: ApiRequest, tokens: Mapping[str, str | None]) -> dict[str, Any]:
        """Return the arguments with which httpx sends a request. Raises InvalidInput or Misconfigured."""
        for token in tokens.values():
            _require_sendable("token", token)
        bearers = {name: f"Bearer {token}" for name, token in tokens.items() if token}
        kind: dict[str, str] = {}
        content: bytes | None = None
        if request.content is not None:
            kind["Content-Type"] = "application/json"
            content = _encode_json(request.content)
        return {
            "method": request.method,
            "url": self.url + request.path,
            "params": given(**(request.query or {})),
            "headers": {**kind, **self._key, **request.headers, **bearers},
            "content": content,
            "timeout": request.wait + min(self._timeout, request.time_limit or self._timeout),
        }

    def unavailable(self, error: Exception) -> Unavailable:
        """Return the error for a request that got no response."""
        return Unavailable(self.server, type(error).__name__)


class Connection:
    """Sends requests to one API, and blocks."""

    def __init__(self, endpoint: Endpoint, token: Token, platform_token: Token) -> None:
        self._endpoint = endpoint
        self._tokens = {_TOKEN_HEADER: token, _PLATFORM_TOKEN_HEADER: platform_token}
        self._open()

    def _open(self) -> None:
        self._process = os.getpid()
        transport = DeadlineTransport(_ssl_context(), self._endpoint.proxy)
        self._http = httpx.Client(transport=transport, verify=_ssl_context())
        # It also runs for a client that is never closed.
        self._close = weakref.finalize(self, _close_own, self._http, self._process)

    def close(self) -> None:
        """Close the connections."""
        self._close()

    def send(self, request: ApiRequest) -> JsonResponse:
        """Send a request, with retries if that is safe, and return the response.

        Raises InvalidInput for a value that JSON cannot represent, Misconfigured for a token that no
        header can have, Unavailable without a response of the API, and the API's own CloudschedError.
        """
        tokens = {name: token() if callable(token) else token for name, token in self._tokens.items()}
        written = self._endpoint.write(request, tokens)
        sendings = _Sendings(request)
        try:
            response = Retrying(**sendings.policy())(self._exchange, **written)
        except _NETWORK_ERRORS as error:
            raise self._endpoint.unavailable(error) from error
        return sendings.parse(response, self._endpoint.server)

    def _exchange(self, timeout: float, **written: Any) -> HttpResponse:
        if self._process != os.getpid() and self._close.alive:  # in a fork, answers would reach either process
            self._close.detach()
            self._open()
        body = BodyCollector(self._endpoint.server)
        with self._http.stream(**written, timeout=timeout) as response:
            for piece in response.iter_bytes():
                body.add(piece)
        return HttpResponse(response.status_code, response.reason_phrase, response.headers, body.to_bytes())


def _close_own(client: httpx.Client, process: int) -> None:
    """Close a client, unless this is a fork: the client belongs to the parent, and its lock may be held for ever."""
    if process == os.getpid():
        client.close()


class AsyncConnection:
    """Sends requests to one API on an event loop. See `Connection`. A token may also be an asynchronous function.

    Connections belong to the event loop and the process that opened them: others open their own.
    """

    def __init__(self, endpoint: Endpoint, token: AsyncToken, platform_token: AsyncToken) -> None:
        self._endpoint = endpoint
        self._tokens = {_TOKEN_HEADER: token, _PLATFORM_TOKEN_HEADER: platform_token}
        self._clients: weakref.WeakKeyDictionary[
            asyncio.AbstractEventLoop,
            tuple[int, httpx.AsyncClient, Any],
        ]
        self._clients = weakref.WeakKeyDictionary()
        self._is_closed = False

    async def _find_client(self) -> httpx.AsyncClient:
        """Return the client of this event loop and process."""
        loop = asyncio.get_running_loop()
        process = os.getpid()
        found = self._clients.get(loop)
        if found is not None and found[0] == process:
            return found[1]
        if self._is_closed:
            raise RuntimeError("This client was closed. Make another one.")
        client = httpx.AsyncClient(verify=_ssl_context(), proxy=self._endpoint.proxy, trust_env=False)
        closes = _close_with_loop(client)
        self._clients[loop] = process, client, closes
        await anext(closes)
        return client

    async def close(self) -> None:
        """Close the connections of this event loop. Those of others are closed as their loops end."""
        self._is_closed = True
        _, client, _ = self._clients.get(asyncio.get_running_loop(), (None, None, None))
        if client is not None:
            await client.aclose()

    async def send(self, request: ApiRequest) -> JsonResponse:
        """Send a request like `Connection.send`."""
        tokens = {name: await _resolve(token) for name, token in self._tokens.items()}
        written = self._endpoint.write(request, tokens)
        sendings = _Sendings(request)
        try:
            response: HttpResponse = await AsyncRetrying(**sendings.policy())(self._exchange, **written)
        except _NETWORK_ERRORS as error:
            raise self._endpoint.unavailable(error) from error
        return sendings.parse(response, self._endpoint.server)

    async def _exchange(self, timeout: float, **written: Any) -> HttpResponse:  # noqa: ASYNC109 - httpx needs it, too
        body = BodyCollector(self._endpoint.server)
        client = await self._find_client()
        async with asyncio.timeout(2 * timeout), client.stream(**written, timeout=timeout) as response:
            async for piece in response.aiter_bytes():
                body.add(piece)
        return HttpResponse(response.status_code, response.reason_phrase, response.headers, body.to_bytes())


async def _close_with_loop(client: httpx.AsyncClient) -> AsyncIterator[None]:
    """Close a client when its event loop ends: ``asyncio.run`` closes the loop's generators then."""
    try:
        yield
    finally:
        await client.aclose()


@cache
def _ssl_context() -> ssl.SSLContext:
    """Return the SSL context of all connections. Reading the certificates takes longer than a request."""
    return httpx.create_ssl_context()


async def _resolve(token: AsyncToken) -> str | None:
    value = token() if callable(token) else token
    return await value if inspect.isawaitable(value) else value


class _Sendings:
    """The attempts to send one request, which is repeated if that is safe."""

    def __init__(self, request: ApiRequest) -> None:
        self._request = request
        self._may_be_done = False

    def policy(self) -> dict[str, Any]:
        """Return tenacity's arguments, to repeat a request that may be repeated after no response or an overload."""
        request = self._request
        attempts = 1
        if request.time_limit is None and (request.is_idempotent or request.method in _IDEMPOTENT_METHODS):
            attempts += RETRIES
        return {
            "stop": stop_after_attempt(attempts),
            "retry": retry_if_exception_type(_NETWORK_ERRORS)
            | retry_if_result(lambda response: response.status in _RETRY_STATUSES),
            "wait": _choose_wait,
            "after": self._note,
            "retry_error_callback": _return_outcome,
        }

    def parse(self, response: HttpResponse, server: str) -> JsonResponse:
        """Return the API's last response. See `parse_response`.

        A deletion that finds nothing counts as done if an earlier attempt may have deleted it.
        """
        try:
            return parse_response(response, server)
        except NotFound:
            if self._request.method != "DELETE" or not self._may_be_done:
                raise
            return JsonResponse(server, {}, "")

    def _note(self, state: RetryCallState) -> None:
        """Note that an attempt got no answer, unless nothing was sent."""
        outcome = state.outcome
        self._may_be_done |= outcome is None or not isinstance(outcome.exception(), _NOTHING_SENT)


def _choose_wait(state: RetryCallState) -> float:
    """Return the seconds to wait: the usual delay, or the ``Retry-After`` of an overloaded service."""
    usual = RETRY_PAUSES[min(state.attempt_number, RETRIES) - 1]  # tenacity asks after the last attempt as well
    outcome = state.outcome
    if outcome is None or outcome.failed or outcome.result().status != _OVERLOADED:
        return usual
    wanted = outcome.result().headers.get("Retry-After", "")
    if wanted.isascii() and wanted.isdigit():
        return min(float(wanted), _MAX_RETRY_AFTER)
    return usual


def _return_outcome(state: RetryCallState) -> Any:  # noqa: ANN401 - what the last attempt returned or raised
    assert state.outcome is not None  # noqa: S101 - it is called after an attempt
    return state.outcome.result()


def require_address(url: str) -> None:
    """Check that a text is an HTTP or HTTPS URL. Raises Misconfigured."""
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0 and url.isprintable()
    except ValueError:  # such as a port that is not a number
        is_one = False
    if not is_one:
        raise Misconfigured(f"{url!r} is not an address; write the API's address, such as https://api.example.")


def find_proxy(url: str) -> httpx.Proxy | None:
    """Return the proxy that the environment names for an address, and none for this machine's own addresses.

    The usual variables count: ``HTTPS_PROXY``, ``HTTP_PROXY``, ``ALL_PROXY`` and ``NO_PROXY``. Raises
    Misconfigured.
    """
    parts = urlsplit(url)
    named = getproxies()
    proxy = named.get(parts.scheme) or named.get("all")
    if not proxy or is_local_name(parts.hostname or "") or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    try:
        found = httpx.Proxy(proxy)
    except (ValueError, httpx.InvalidURL) as error:
        raise Misconfigured(f"The proxy that the environment names for {url} is no address: {error}.") from None
    if found.url.scheme.startswith("socks") and find_spec("socksio") is None:
        raise Misconfigured(f"{url} is behind a SOCKS proxy, as the environment says: `pip install socksio`.")
    return found


def _require_sendable(what: str, credential: str | None) -> None:
    if credential is not None and not (credential.isascii() and credential.isprintable()):
        raise Misconfigured(f"The {what} has characters that a header cannot have. Does it end with a line break?")
    if credential is not None and credential != credential.strip():
        raise Misconfigured(f"The {what} begins or ends with a space. Copy it without.")


def _encode_json(content: dict[str, Any]) -> bytes:
    """Return compact JSON, since the API limits its bytes. Lone surrogates are escaped."""
    try:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        hint = "Use only values that JSON can represent."
        raise InvalidInput("(body)", f"is not JSON: {error}", hint) from error
    return text.encode("utf-8", "backslashreplace")
