"""A deadline for a complete response over blocking connections.

The timeout of httpx applies to each read, so a response that sends a byte a second never reaches it. Here the same
number of seconds limits the whole response, from its first line to its last byte. (On an event loop,
`asyncio.timeout` does that.)
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import httpcore
import httpx

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable, Iterator

CORE_ERRORS = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
)
"""What `DeadlineTransport` raises if there is no complete response."""


class DeadlineTransport(httpx.BaseTransport):
    """A transport whose read timeout is one for the complete response.

    Args:
        ssl_context: What is trusted.
    """

    def __init__(self, ssl_context: ssl.SSLContext) -> None:
        self._pool = httpcore.ConnectionPool(ssl_context=ssl_context, network_backend=_DeadlineBackend())

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, and return the response once its headers are there."""
        assert isinstance(request.stream, httpx.SyncByteStream)  # noqa: S101 - the client is not asynchronous
        url = request.url
        response = self._pool.handle_request(
            httpcore.Request(
                method=request.method,
                url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
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
    """A connection on which everything that is read after a write has one timeout together."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream
        self._until: float | None = None

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if timeout is None:
            return self._stream.read(max_bytes)
        now = time.monotonic()
        self._until = now + timeout if self._until is None else self._until
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
