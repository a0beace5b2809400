"""The clients' connection to the API: authentication, one deadline, and repetitions of what is safe to repeat."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import socket
import ssl
import time
import weakref
from collections import deque
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from importlib.metadata import version
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
    retry_if_exception,
    stop_after_attempt,
    stop_before_delay,
    wait_random_exponential,
)

from cloudsched.client.flow import (
    KEY_HEADER,
    ApiRequest,
    BodyCollector,
    HttpResponse,
    JsonResponse,
    encode_header,
    given,
    parse_response,
)
from cloudsched.domain.local_requests import is_local_name
from cloudsched.errors import (
    CloudschedError,
    InvalidArgument,
    InvalidInput,
    Misconfigured,
    NotFound,
    Unavailable,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping

    Token = str | Callable[[], str] | None
    AsyncToken = str | Callable[[], str] | Callable[[], Awaitable[str]] | None

RETRIES = 3
"""The number of times that a request is sent again, unless the client was made with another one."""
FIRST_PAUSE = 0.5
"""The most seconds before the first repetition. Each further one may wait twice as long, and how long is random."""
LONGEST_PAUSE = 10.0
"""The most seconds between two sendings, beside what ``Retry-After`` asks for."""
KEEPALIVE: Final = 5.0
"""The seconds for which a connection is kept that nobody uses."""
_LONGEST_TIMEOUT = 86_400.0
_MOST_RETRIES = 1000
_IDEMPOTENT_METHODS = frozenset({"GET", "DELETE"})
_NETWORK_ERRORS: Final = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, UnicodeError)
_NOTHING_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_OWN_FAULTS: Final = (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError, UnicodeError)
"""The errors of requests that no network can carry."""
_NO_SUCH_HOST: Final = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})
_BROKEN_TLS: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
"""The errors of a TLS connection that was cut. All others are of its certificate, or of what the two sides speak."""
_TOKEN_HEADER = "Authorization"  # noqa: S105 - a header's name
_PLATFORM_TOKEN_HEADER = "X-Serverless-Authorization"  # noqa: S105 - the same


class Endpoint:
    """What both connections share: the API's address, and the format of requests. Raises Misconfigured."""

    def __init__(self, url: str, key: str | None, timeout: float, max_retries: int) -> None:
        require_address(url)
        _require_sendable("key", key)
        if not _is_number(timeout) or not 0 < timeout <= _LONGEST_TIMEOUT:
            raise InvalidArgument("timeout", f"is {timeout!r}", "Give seconds, such as 30, up to a day.")
        if not _is_number(max_retries) or max_retries not in range(_MOST_RETRIES + 1):
            raise InvalidArgument(
                "max_retries", f"is {max_retries!r}", "Give a whole number, such as 3, or 0 for none."
            )
        self.url: str = url.rstrip("/")
        self.proxy: Any | None = find_proxy(url)
        self.server: str = f"The API at {self.url}"
        self.max_retries: int = max_retries
        self.timeout: float = timeout
        self._key = {} if key is None else {"X-Api-Key": key}

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
        own = {name: encode_header(name, value) for name, value in request.headers.items()}
        return {
            "method": request.method,
            "url": self.url + request.path,
            "params": given(**(request.query or {})),
            "headers": {**kind, **self._key, **own, **bearers},
            "content": content,
        }

    def explain(self, error: Exception) -> CloudschedError:
        """Return the error of a request that got no response: it names what has to be mended, if it will not pass."""
        if isinstance(error, _OWN_FAULTS):
            return InvalidInput("(request)", f"cannot be sent: {error}", "Correct the text that it names.")
        lasting = next(filter(None, map(self._find_lasting, _walk_causes(error))), None)
        unavailable = Unavailable(self.server, lasting or type(error).__name__)
        unavailable.is_retryable = lasting is None
        return unavailable

    def _find_lasting(self, error: BaseException) -> str | None:
        """Return why no repetition helps until somebody mends something. None if one may."""
        if isinstance(error, socket.gaierror) and error.errno in _NO_SUCH_HOST:
            return f"there is no host {urlsplit(self.url).hostname!r}; check the address, and your network"
        if isinstance(error, ssl.SSLCertVerificationError):
            return f"its certificate is not accepted: {error.verify_message}"
        if isinstance(error, ssl.SSLError) and not isinstance(error, _BROKEN_TLS):
            return f"it does not speak HTTPS as this machine does ({error.reason}); check the address"
        if isinstance(error, httpx.ProxyError) and str(error).startswith("4"):
            return f"the proxy that the environment names answers {error}"
        return None


class Connection:
    """Sends requests to one API, and blocks. Each of several threads gets a connection of its own."""

    def __init__(
        self,
        endpoint: Endpoint,
        token: Token,
        platform_token: Token,
        transport: httpx.BaseTransport | None = None,
        http_client: httpx.Client | None = None,
    ) -> None:
        _require_one(transport, httpx.BaseTransport, http_client, httpx.Client)
        self._endpoint = endpoint
        self._tokens = {_TOKEN_HEADER: token, _PLATFORM_TOKEN_HEADER: platform_token}
        own = None if transport is None else httpx.Client(transport=transport, headers=_own_headers())
        self._shared = http_client or own
        self._open(own)

    def _open(self, own: httpx.Client | None = None) -> None:
        self._process = os.getpid()
        self._idle = _Idle()
        # It also runs for a client that is never closed.
        self._close = weakref.finalize(self, _close_own, self._process, self._idle, own)

    def close(self) -> None:
        """Close the connections."""
        self._close()

    def send(self, request: ApiRequest) -> JsonResponse:
        """Send a request, with repetitions if they are safe, and return the response.

        Raises InvalidInput for a value that cannot be sent, Misconfigured for a token that no header can
        have, Unavailable without a response of the API, and the API's own CloudschedError.
        """
        tokens = {name: token() if callable(token) else token for name, token in self._tokens.items()}
        sending = _Sending(self._endpoint, request, tokens)
        return Retrying(**sending.policy())(self._exchange, sending)

    def _exchange(self, sending: _Sending) -> JsonResponse:
        if self._process != os.getpid():  # in a fork, answers would reach either process
            if self._shared is not None:
                raise _not_of_this_process()
            if self._close.alive:
                self._close.detach()
                self._open()

        with sending.attempt() as body, self._borrow() as client:
            known = _DEADLINE.set(sending.until)
            try:
                with client.stream(**sending.written, timeout=sending.left(), follow_redirects=False) as response:
                    for piece in response.iter_bytes():
                        sending.left()
                        body.add(piece)
            finally:
                _DEADLINE.reset(known)
            return sending.parse(response, body)

    @contextmanager
    def _borrow(self) -> Iterator[httpx.Client]:
        if self._shared is not None:
            yield self._shared
            return
        client = self._idle.take() or httpx.Client(
            transport=DeadlineTransport(self._endpoint.proxy), headers=_own_headers()
        )
        try:
            yield client
        finally:
            self._idle.put(client)


def _close_own(process: int, idle: _Idle, own: httpx.Client | None) -> None:
    """Close the connections, unless this is a fork: they are the parent's, and their locks may be held for ever."""
    if process == os.getpid():
        idle.close()
        if own is not None:
            own.close()


class AsyncConnection:
    """Sends requests to one API on an event loop. See `Connection`. A token may also be an asynchronous function.

    Connections belong to the event loop and the process that opened them: others open their own.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        token: AsyncToken,
        platform_token: AsyncToken,
        transport: httpx.AsyncBaseTransport | None = None,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        _require_one(transport, httpx.AsyncBaseTransport, http_client, httpx.AsyncClient)
        self._endpoint = endpoint
        self._tokens = {_TOKEN_HEADER: token, _PLATFORM_TOKEN_HEADER: platform_token}
        self._own = None if transport is None else httpx.AsyncClient(transport=transport, headers=_own_headers())
        self._shared = http_client or self._own
        self._process = os.getpid()
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
            raise _closed()
        if self._shared is not None:
            if process != self._process:
                raise _not_of_this_process()
            return self._shared
        client = httpx.AsyncClient(
            verify=_ssl_context(), proxy=self._endpoint.proxy, trust_env=False, headers=_own_headers()
        )
        closes = _close_with_loop(client)
        self._clients[loop] = process, client, closes
        await anext(closes)
        return client

    async def close(self) -> None:
        """Close the connections of this event loop. Those of others are closed as their loops end."""
        self._is_closed = True
        _, client, _ = self._clients.get(asyncio.get_running_loop(), (None, self._own, None))
        if client is not None:
            await client.aclose()

    async def send(self, request: ApiRequest) -> JsonResponse:
        """Send a request like `Connection.send`."""
        tokens = {name: await _resolve(token) for name, token in self._tokens.items()}
        sending = _Sending(self._endpoint, request, tokens)
        response: JsonResponse = await AsyncRetrying(**sending.policy())(self._exchange, sending)
        return response

    async def _exchange(self, sending: _Sending) -> JsonResponse:
        client = await self._find_client()
        with sending.attempt() as body:
            left = sending.left()
            first = 0.99 * left  # httpx closes what it gives up itself, but not all that is cancelled
            async with (
                asyncio.timeout(left),
                client.stream(**sending.written, timeout=first, follow_redirects=False) as response,
            ):
                async for piece in response.aiter_bytes():
                    body.add(piece)
            return sending.parse(response, body)


async def _close_with_loop(client: httpx.AsyncClient) -> AsyncIterator[None]:
    """Close a client when its event loop ends: ``asyncio.run`` closes the loop's generators then."""
    try:
        yield
    finally:
        await client.aclose()


class _Idle:
    """HTTP clients of one connection each, for calls that come. The one that was used last is taken first.

    httpx has a pool, too, but searches all of it for each request: with 60 connections, that takes longer than
    the request. It also closes connections that another thread has just taken. This is safe in threads.
    """

    def __init__(self) -> None:
        self._clients: deque[tuple[float, httpx.Client]] = deque()
        self._is_closed = False

    def take(self) -> httpx.Client | None:
        """Return a client for one call, or None if there is none."""
        if self._is_closed:
            raise _closed()
        with suppress(IndexError):
            return self._clients.pop()[1]
        return None

    def put(self, client: httpx.Client) -> None:
        """Keep a client for another call, and close those that nobody has needed for a while."""
        now = time.monotonic()
        self._clients.append((now, client))
        with suppress(IndexError):  # others may take the last one meanwhile
            while self._is_closed or self._clients[0][0] < now - KEEPALIVE:
                self._clients.popleft()[1].close()

    def close(self) -> None:
        """Close all clients, and those in use as they come back."""
        self._is_closed = True
        with suppress(IndexError):
            while True:
                self._clients.pop()[1].close()


def _closed() -> RuntimeError:
    return RuntimeError("This client was closed. Make another one.")


async def _resolve(token: AsyncToken) -> str | None:
    value = token() if callable(token) else token
    return await value if inspect.isawaitable(value) else value


class _Sending:
    """A request with its repetitions, which all have one deadline."""

    def __init__(self, endpoint: Endpoint, request: ApiRequest, tokens: Mapping[str, str | None]) -> None:
        self.written: dict[str, Any] = endpoint.write(request, tokens)
        self._endpoint = endpoint
        self._request = request
        self._seconds = request.wait + min(endpoint.timeout, request.time_limit or endpoint.timeout)
        self.until: float = time.monotonic() + self._seconds
        self._may_be_done = False

    def policy(self) -> dict[str, Any]:
        """Return tenacity's arguments. What may pass is repeated if that is safe, and if the deadline leaves time."""
        request = self._request
        may_repeat = request.time_limit is None and (request.is_idempotent or request.method in _IDEMPOTENT_METHODS)
        jitter = wait_random_exponential(multiplier=FIRST_PAUSE, max=LONGEST_PAUSE)

        def choose_pause(state: RetryCallState) -> float:
            error = state.outcome and state.outcome.exception()
            asked = error.retry_after if isinstance(error, Unavailable) else None
            return jitter(state) + (asked.total_seconds() if asked else 0.0)

        return {
            "retry": retry_if_exception(lambda error: isinstance(error, Unavailable) and error.is_retryable),
            "stop": stop_after_attempt(1 + self._endpoint.max_retries * may_repeat) | stop_before_delay(self._seconds),
            "wait": choose_pause,
            "reraise": True,
        }

    def left(self) -> float:
        """Return the seconds that are left. Raises TimeoutError if there are none."""
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    @contextmanager
    def attempt(self) -> Iterator[BodyCollector]:
        """Collect a response. Raises Unavailable if there is none of the API, which says how to repeat the request."""
        try:
            yield BodyCollector(self._endpoint.server)
        except Unavailable as error:
            self._may_be_done = True
            self._say_how_to_repeat(error)
            raise
        except (TimeoutError, httpx.TimeoutException) as error:
            self._may_be_done |= not isinstance(error, _NOTHING_SENT)
            late = Unavailable(self._endpoint.server, f"there was no complete answer within {self._seconds:g} s")
            self._say_how_to_repeat(late)
            raise late from error
        except _NETWORK_ERRORS as error:
            self._may_be_done |= not isinstance(error, _NOTHING_SENT)
            explained = self._endpoint.explain(error)
            if isinstance(explained, Unavailable):
                self._say_how_to_repeat(explained)
            raise explained from error

    def parse(self, response: httpx.Response, body: BodyCollector) -> JsonResponse:
        """Return the API's response. See `parse_response`.

        A deletion that finds nothing counts as done if an earlier attempt may have deleted it.
        """
        complete = HttpResponse(response.status_code, response.reason_phrase, response.headers, body.to_bytes())
        try:
            return parse_response(complete, self._endpoint.server)
        except NotFound:
            if self._request.method != "DELETE" or not self._may_be_done:
                raise
            return JsonResponse(self._endpoint.server, {}, "")

    def _say_how_to_repeat(self, error: Unavailable) -> None:
        request = self._request
        if request.method == "GET":
            return
        error.idempotency_key = key = request.repeat_key or request.headers.get(KEY_HEADER)
        if error.is_retryable and key is not None:
            error.args = (f"{error}. Repeat it with idempotency_key={key!r}, then it is done once.",)
        elif error.is_retryable and request.is_idempotent:
            error.args = (f"{error}. It is safe to repeat.",)


_DEADLINE: ContextVar[float] = ContextVar("_DEADLINE")
"""The end of the present call of this thread, on the monotonic clock."""


class DeadlineTransport(httpx.HTTPTransport):
    """A transport that keeps the deadline of the call also while single bytes arrive, one after the other."""

    def __init__(self, proxy: httpx.Proxy | None = None) -> None:
        way: httpcore.Proxy | None = None
        if proxy is not None:
            way = httpcore.Proxy(str(proxy.url), proxy.raw_auth, ssl_context=proxy.ssl_context)
        self._pool = httpcore.ConnectionPool(
            ssl_context=_ssl_context(),
            proxy=way,
            network_backend=_DeadlineBackend(),
            max_connections=1,
            keepalive_expiry=KEEPALIVE,
        )


class _DeadlineStream(httpcore.NetworkStream):
    """A connection on which whatever is read or written ends with the call."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _limit(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for begin in range(0, len(buffer), _WRITTEN_AT_ONCE):
            self._stream.write(buffer[begin : begin + _WRITTEN_AT_ONCE], _limit(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _DeadlineStream(self._stream.start_tls(ssl_context, server_hostname, _limit(timeout)))

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
        left = _limit(timeout)
        if left is not None:  # each address of a host is tried for that long
            left /= len(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        return _DeadlineStream(super().connect_tcp(host, port, left, local_address, socket_options))


_WRITTEN_AT_ONCE = 65_536


def _limit(timeout: float | None) -> float | None:
    """Return the seconds that one reading or writing may take."""
    until = _DEADLINE.get(None)
    if until is None:
        return timeout
    left = until - time.monotonic()
    if left <= 0:
        raise httpcore.ReadTimeout
    return left


@cache
def _ssl_context() -> ssl.SSLContext:
    """Return the SSL context of all connections. Reading the certificates takes longer than a request."""
    return httpx.create_ssl_context()


@cache
def _own_headers() -> dict[str, str]:
    return {"User-Agent": f"cloudsched-python/{version('cloudsched')}"}


def _walk_causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _not_of_this_process() -> Misconfigured:
    return Misconfigured(
        "The `transport` or `http_client` that you gave belongs to the process that made it, and this is a fork: both "
        "would read from the same connections. Make another client here."
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _require_one(transport: object, kind: type, http_client: object, client_kind: type) -> None:
    """Check what a caller sends requests with. Raises InvalidArgument or Misconfigured."""
    for name, value, wanted in (("transport", transport, kind), ("http_client", http_client, client_kind)):
        if value is not None and not isinstance(value, wanted):
            raise InvalidArgument(name, f"is of the class {type(value).__name__}", f"Give an httpx.{wanted.__name__}.")
    if transport is not None and http_client is not None:
        raise Misconfigured("Give `transport` or `http_client`, not both: an HTTP client has a transport.")


def require_address(url: str) -> None:
    """Check that a text is an HTTP or HTTPS URL. Raises Misconfigured."""
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0 and url.isprintable()
        httpx.URL(url)
    except (ValueError, httpx.InvalidURL):  # such as a port that is not a number
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
