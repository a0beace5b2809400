"""The one port: detects gRPC or HTTP/1.1 from a connection's first bytes, and serves both.

A `Gate` says which HTTP requests are answered: none that a page elsewhere makes a browser send, and
control only with its key. A page anywhere can make its reader's browser send requests to this machine. It
cannot read the answers, but a request that moves the clock or creates a task has done its work by then.
Under a name that the page's owner lets point to this machine (DNS rebinding), it can read them as well.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from cloudsched.domain.local_requests import (
    find_detour,
    find_foreign_name,
    find_foreign_page,
    is_loopback,
    read_host_name,
)
from cloudsched.emulator.http.grpc import MAX_MESSAGE_BYTES, PREFACE, GrpcConnection
from cloudsched.emulator.http.rest import Reply, RestGateway, error_reply, not_found_reply, refuse
from cloudsched.emulator.model.errors import Code, RpcError, invalid_argument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cloudsched.emulator.api.protos import Proto
    from cloudsched.emulator.api.tasks_service import RpcMethod
    from cloudsched.emulator.http.control import Control

_PUBLIC: Final = frozenset({"/healthz", "/oauth2/v3/certs", "/oauth2/v1/certs"})
"""The paths that need no key: a probe, and the public keys of tokens."""


class Gate:
    """Refuses requests of pages elsewhere and, if there is a key, those for the control API without it."""

    def __init__(self, host: str, key: str = "") -> None:
        self._host = host.lower()
        self._key = key

    def find_refusal(self, method: str, headers: Mapping[str, str]) -> Reply | None:
        """Return the answer to a request that a page elsewhere may have caused, None if it is welcome.

        A server on a loopback address is called by a name of this machine, and by no proxy. On any other
        address a program may use what name it likes, and a browser an address or a name of this machine.
        """
        host = headers.get("Host", "")
        if is_loopback(self._host):
            refusal = find_foreign_name(host) or find_detour(headers)
        else:
            refusal = None
            is_from_browser = "Origin" in headers or "Sec-Fetch-Site" in headers
            if is_from_browser and not self._is_own(read_host_name(host)):
                refusal = find_foreign_name(host)
        refusal = refusal or find_foreign_page(method, headers)
        return None if refusal is None else refuse(403, refusal)

    def check_key(self, path: str, headers: Mapping[str, str]) -> Reply | None:
        """Return the answer to a request for the control API without its key. None if it may pass."""
        if not self._key or path in _PUBLIC:
            return None
        given = headers.get("X-Api-Key", "")
        scheme, _, token = headers.get("Authorization", "").partition(" ")
        if not given and scheme.lower() == "bearer":
            given = token.strip()
        if hmac.compare_digest(given.encode(errors="surrogateescape"), self._key.encode()):
            return None
        return refuse(401, "The control API requires its key, as X-Api-Key or as a bearer token.")

    def _is_own(self, name: str) -> bool:
        return name == self._host or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True


_SHUTDOWN_SECONDS: Final = 0.1
_DECIDING: Final = PREFACE[:3]
"""The first bytes of a gRPC connection. No HTTP/1.1 request begins with them."""


class EmulatorServer:
    """Serves the RPCs over gRPC and REST, and the control API."""

    def __init__(
        self,
        methods: Iterable[RpcMethod],
        rest: RestGateway,
        control: Control,
        gate: Gate,
        after_call: Callable[[], None],
    ) -> None:
        self._methods = {method.grpc: method for method in methods}
        self._rest = rest
        self._control = control
        self._gate = gate
        self._after_call = after_call
        self._web = web.Server(self._serve_http, request_factory=_make_request, access_log=None)
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.BaseTransport] = set()

    async def listen(self, host: str, port: int) -> int:
        """Start listening, and return the port."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _ProtocolSniffer(self), host, port, backlog=1024)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def close(self) -> None:
        """Stop listening and close all connections."""
        if self._server is not None:
            self._server.close()
        for transport in tuple(self._connections):
            transport.close()
        await asyncio.sleep(0)  # let connection_lost run
        await self._web.shutdown(_SHUTDOWN_SECONDS)
        if self._server is not None:
            await self._server.wait_closed()

    def select_protocol(self, transport: asyncio.Transport, data: bytes) -> None:
        """Pass a connection on to the protocol that its first bytes announce."""
        protocol = GrpcConnection(self._serve_grpc) if data.startswith(_DECIDING) else self._web()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        protocol.data_received(data)

    def track_connection(self, transport: asyncio.BaseTransport) -> None:
        """Remember a connection, so that `close` can close it."""
        self._connections = {known for known in self._connections if not known.is_closing()}
        self._connections.add(transport)

    def _serve_grpc(self, path: str, message: bytes) -> bytes:
        method = self._methods.get(path)
        if method is None:
            raise RpcError(Code.UNIMPLEMENTED, f"Unknown method {path}.")
        try:
            request = method.request.FromString(message)
        except DecodeError:
            raise invalid_argument("The message is not a well-formed request.") from None
        reply: bytes = method.call(request).SerializeToString()
        self._after_call()
        return reply

    async def _serve_http(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            reply = error_reply(invalid_argument(f"The request is over {MAX_MESSAGE_BYTES} bytes."))
            return _json_response(reply.status, reply.body)
        except ConnectionError:  # the client disconnected; nobody reads this
            return web.Response(status=400)

        route = self._rest.find(request.method, request.path)
        refusal = self._gate.find_refusal(request.method, request.headers)
        if refusal is None and route is None:
            refusal = self._gate.check_key(request.path, request.headers)
        if refusal is not None:
            return _json_response(refusal.status, refusal.body)
        if route is None:
            control_reply = await self._control.handle(request.method, request.path, request.query, body)
            reply = control_reply or not_found_reply(request.method, request.path)
            return _json_response(reply.status, reply.body)

        method, version, filled = route
        try:
            message: Proto = self._rest.read(method, version, filled, request.query, body)
            shown = self._rest.write(method, version, method.call(message), request.query)
            self._after_call()
        except RpcError as error:
            reply = error_reply(error)
            return _json_response(reply.status, reply.body)
        return _json_response(200, shown)


class _ProtocolSniffer(asyncio.Protocol):
    """Waits for the bytes that identify the protocol."""

    def __init__(self, listener: EmulatorServer) -> None:
        self._listener = listener
        self._transport: asyncio.Transport | None = None
        self._seen = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - what asyncio gives to a TCP server
        self._transport = transport
        self._listener.track_connection(transport)

    def data_received(self, data: bytes) -> None:
        self._seen += data
        may_be_grpc = len(self._seen) < len(_DECIDING) and _DECIDING.startswith(self._seen)
        if self._transport is not None and not may_be_grpc:
            self._listener.select_protocol(self._transport, self._seen)


def _make_request(*arguments: object) -> web.BaseRequest:
    parts: Any = (*arguments, asyncio.get_running_loop())
    return web.BaseRequest(*parts, client_max_size=MAX_MESSAGE_BYTES)


def _json_response(status: int, body: object) -> web.Response:
    return web.Response(
        status=status,
        body=json.dumps(body, ensure_ascii=False).encode(),
        content_type="application/json",
        charset="utf-8",
    )
