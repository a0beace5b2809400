"""A gRPC server for unary calls, on one asyncio connection, with HTTP/2 by the `h2` package.

Our own rather than grpcio's, because gRPC and REST can then share one port without a proxy between them,
and a call needs no other thread or event loop (docs/contributors/benchmarks.md has the figures). Source:
https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md over RFC 9113.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.exceptions import H2Error
from h2.settings import SettingCodes, Settings
from hyperframe.exceptions import HyperframeError

from cloudsched.emulator.api.protos import write_status
from cloudsched.emulator.model.errors import Code, RpcError

Serve = Callable[[str, bytes], bytes]
"""Takes an RPC's path and request message and returns the response message. Raises `RpcError`."""

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
MAX_MESSAGE_BYTES: Final = 32 * 1024 * 1024
_MAX_STREAMS: Final = 1000
_MAX_HEADER_BYTES: Final = 128 * 1024
_INITIAL_WINDOW: Final = 65535
_MAX_WINDOW: Final = 2**31 - 1
_WINDOW_STEP: Final = 2**24
_PREFIX: Final = 5
_CONTENT: Final = [(b":status", b"200"), (b"content-type", b"application/grpc")]
_SUCCESS: Final = [(b"grpc-status", b"0")]
_CONFIG: Final = H2Configuration(
    client_side=False,
    header_encoding=None,
    validate_outbound_headers=False,  # ours are valid; checking them would be an eighth of a call
    normalize_outbound_headers=False,
)
_log: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class _GrpcStream:
    number: int
    path: str
    compression: str
    body: bytearray = field(default_factory=bytearray)
    is_complete: bool = False
    unsent: memoryview = field(default_factory=lambda: memoryview(b""))


class GrpcConnection(asyncio.Protocol):
    """One client's connection."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._transport: asyncio.Transport | None = None
        self._http2 = H2Connection(_CONFIG)
        self._http2.local_settings = Settings(
            client=False,
            initial_values={
                SettingCodes.MAX_CONCURRENT_STREAMS: _MAX_STREAMS,
                SettingCodes.INITIAL_WINDOW_SIZE: _MAX_WINDOW,
                SettingCodes.MAX_HEADER_LIST_SIZE: _MAX_HEADER_BYTES,
            },
        )
        self._streams: dict[int, _GrpcStream] = {}
        self._blocked: deque[_GrpcStream] = deque()
        self._received = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send our settings to the client."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - what asyncio gives to a TCP server
        self._transport = transport
        transport.set_write_buffer_limits(high=_MAX_WINDOW)  # flow control is HTTP/2's
        self._http2.initiate_connection()
        self._http2.increment_flow_control_window(_MAX_WINDOW - _INITIAL_WINDOW)
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Forget the RPCs of a client that is gone."""
        self._transport = None
        self._streams.clear()

    def data_received(self, data: bytes) -> None:
        """Handle received bytes. All responses to them leave in one write."""
        try:
            for event in self._http2.receive_data(data):
                handle = _HANDLERS.get(type(event))
                if handle is not None:
                    handle(self, event)
        except (H2Error, HyperframeError) as error:
            _log.debug("a gRPC connection ends: %s", error)
            self._flush()
            self.close()
        else:
            self._flush()

    def close(self) -> None:
        """Close the connection after flushing what was written."""
        if self._transport is not None:
            self._transport.close()

    def _flush(self) -> None:
        out = self._http2.data_to_send()
        if out and self._transport is not None:
            self._transport.write(out)

    def on_request(self, event: events.RequestReceived) -> None:
        """Begin an RPC."""
        headers = dict(event.headers)
        if not headers.get(b"content-type", b"").startswith(b"application/grpc"):
            self._http2.send_headers(event.stream_id, [(b":status", b"415")], end_stream=True)
            return
        self._streams[event.stream_id] = _GrpcStream(
            number=event.stream_id,
            path=headers.get(b":path", b"").decode("latin-1"),
            compression=headers.get(b"grpc-encoding", b"identity").decode("latin-1"),
        )

    def on_data(self, event: events.DataReceived) -> None:
        """Take a part of an RPC's request message."""
        self._received += event.flow_controlled_length
        if self._received >= _WINDOW_STEP:
            self._http2.increment_flow_control_window(self._received)
            self._received = 0
        stream = self._streams.get(event.stream_id)
        if stream is None or stream.is_complete:
            return
        stream.body += event.data
        if len(stream.body) > MAX_MESSAGE_BYTES + _PREFIX:
            stream.body.clear()
            self._refuse(
                stream,
                RpcError(Code.RESOURCE_EXHAUSTED, f"The message is over {MAX_MESSAGE_BYTES} bytes."),
            )

    def on_end(self, event: events.StreamEnded) -> None:
        """Run an RPC whose request is complete."""
        stream = self._streams.get(event.stream_id)
        if stream is not None and not stream.is_complete:
            self._call(stream)

    def on_reset(self, event: events.StreamReset) -> None:
        """Forget an RPC."""
        self._streams.pop(event.stream_id, None)

    def on_goaway(self, _event: events.ConnectionTerminated) -> None:
        """End the connection of a client that is leaving. HTTP/2 allows no frames to it from now on."""
        self._streams.clear()
        self.close()

    def on_window(self, _event: events.Event) -> None:
        """Send what waited for a window."""
        for _ in range(len(self._blocked)):
            stream = self._blocked.popleft()
            if stream.number in self._streams and not self._send(stream):
                self._blocked.append(stream)

    def _call(self, stream: _GrpcStream) -> None:
        stream.is_complete = True
        try:
            reply = self._serve(stream.path, _unwrap(bytes(stream.body), stream.compression))
        except RpcError as error:
            self._refuse(stream, error)
        except Exception:  # noqa: BLE001 - a bug fails one RPC, not all others on the connection
            _log.exception("%s failed", stream.path)
            self._refuse(stream, RpcError(Code.INTERNAL, "Internal error in the emulator; see its log."))
        else:
            stream.unsent = memoryview(b"\0" + len(reply).to_bytes(4, "big") + reply)
            self._http2.send_headers(stream.number, _CONTENT)
            if not self._send(stream):
                self._blocked.append(stream)

    def _refuse(self, stream: _GrpcStream, error: RpcError) -> None:
        del self._streams[stream.number]
        text = quote(error.message, safe=" !\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~")
        trailers = [*_CONTENT, (b"grpc-status", b"%d" % error.code), (b"grpc-message", text.encode("ascii"))]
        if error.details:
            status = base64.b64encode(write_status(error).SerializeToString())
            trailers.append((b"grpc-status-details-bin", status))
        self._http2.send_headers(stream.number, trailers, end_stream=True)

    def _send(self, stream: _GrpcStream) -> bool:
        """Send as much as the windows allow, and return whether everything was sent."""
        while stream.unsent:
            window = self._http2.local_flow_control_window(stream.number)
            size = min(len(stream.unsent), self._http2.max_outbound_frame_size, window)
            if size <= 0:
                return False
            self._http2.send_data(stream.number, bytes(stream.unsent[:size]))
            stream.unsent = stream.unsent[size:]
        self._http2.send_headers(stream.number, _SUCCESS, end_stream=True)
        del self._streams[stream.number]
        return True


def _unwrap(body: bytes, compression: str) -> bytes:
    """Return the one message of a unary RPC. Raises INTERNAL or UNIMPLEMENTED, as gRPC prescribes."""
    if len(body) < _PREFIX or len(body) - _PREFIX != int.from_bytes(body[1:_PREFIX], "big"):
        raise RpcError(Code.INTERNAL, "The request is not exactly one message.")
    message = body[_PREFIX:]
    if not body[0]:
        return message
    if compression not in {"gzip", "deflate"}:
        raise RpcError(Code.UNIMPLEMENTED, f"The compression {compression!r} is not supported.")
    unpacker = zlib.decompressobj(wbits=31 if compression == "gzip" else 15)
    try:
        message = unpacker.decompress(message, MAX_MESSAGE_BYTES)
    except zlib.error:
        raise RpcError(Code.INTERNAL, "The message cannot be decompressed.") from None
    if unpacker.unconsumed_tail:
        raise RpcError(Code.RESOURCE_EXHAUSTED, f"The message is over {MAX_MESSAGE_BYTES} bytes.")
    return message


_HANDLERS: Final[dict[type[events.Event], Callable[[GrpcConnection, Any], None]]] = {
    events.RequestReceived: GrpcConnection.on_request,
    events.DataReceived: GrpcConnection.on_data,
    events.StreamEnded: GrpcConnection.on_end,
    events.StreamReset: GrpcConnection.on_reset,
    events.ConnectionTerminated: GrpcConnection.on_goaway,
    events.WindowUpdated: GrpcConnection.on_window,
    events.RemoteSettingsChanged: GrpcConnection.on_window,
}
