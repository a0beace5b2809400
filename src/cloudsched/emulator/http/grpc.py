"""A gRPC server for unary calls, on one asyncio connection.

Our own rather than grpcio's, because gRPC and REST can then share one port without a proxy between them, a call needs
no other thread or event loop, and it costs about a third of the processor time (docs/emulator.md has the figures).
Source: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md over RFC 9113.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import zlib
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from cloudsched.emulator.api.error_status import write_status
from cloudsched.emulator.http import http2_frames
from cloudsched.emulator.http.hpack_headers import Decoder, HeaderError, encode
from cloudsched.emulator.http.http2_frames import Frame, ProtocolError
from cloudsched.emulator.model.errors import Code, RpcError

Serve = Callable[[str, bytes], bytes | Awaitable[bytes]]
"""Takes an RPC's path and request message and returns the response message; raises `RpcError`."""

MAX_MESSAGE_BYTES: Final = 32 * 1024 * 1024
_MAX_STREAMS: Final = 1000
_WINDOW_STEP: Final = 2**24
_MAX_HEADER_BLOCK: Final = 256 * 1024
_PREFIX: Final = 5
_CONTENT: Final = [(":status", "200"), ("content-type", "application/grpc")]
_REPLY_HEAD: Final = encode(_CONTENT)
_REPLY_TAIL: Final = encode([("grpc-status", "0")])
_WRONG_CONTENT: Final = encode([(":status", "415")])
_EMPTY: Final = memoryview(b"")
_log: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class _Stream:
    """One RPC."""

    number: int
    path: str
    compression: str
    window: int
    body: bytearray = field(default_factory=bytearray)
    is_complete: bool = False
    running: asyncio.Task[None] | None = None
    unsent: memoryview = _EMPTY
    trailers: bytes = b""


class GrpcConnection(asyncio.Protocol):
    """One client's connection.

    Args:
        serve: Handles the RPCs.
    """

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._decoder = Decoder()
        self._streams: dict[int, _Stream] = {}
        self._blocked: deque[_Stream] = deque()
        self._block: tuple[Frame, bytearray] | None = None
        self._window = http2_frames.INITIAL_WINDOW
        self._stream_window = http2_frames.INITIAL_WINDOW
        self._received = 0
        self._last_stream = 0
        self._out: list[bytes] | None = None
        self._has_preface = False

    # The connection ----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send our settings to the client."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - what asyncio gives to a TCP server
        self._transport = transport
        transport.set_write_buffer_limits(high=http2_frames.MAX_WINDOW)  # flow control is HTTP/2's
        settings = {
            http2_frames.SETTING_MAX_CONCURRENT_STREAMS: _MAX_STREAMS,
            http2_frames.SETTING_INITIAL_WINDOW: http2_frames.MAX_WINDOW,
        }
        spare = http2_frames.MAX_WINDOW - http2_frames.INITIAL_WINDOW
        transport.write(
            http2_frames.encode_settings(settings) + http2_frames.encode_number(http2_frames.WINDOW_UPDATE, 0, spare)
        )

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Cancel the RPCs of a client that is gone."""
        self._transport = None
        for stream in self._streams.values():
            if stream.running is not None:
                stream.running.cancel()
        self._streams.clear()

    def data_received(self, data: bytes) -> None:
        """Handle received bytes; all responses to them leave in one write."""
        self._buffer += data
        self._out = []
        try:
            if self._has_preface or self._read_preface():
                for frame in http2_frames.read_frames(self._buffer):
                    self._handle(frame)
        except (ProtocolError, HeaderError) as error:
            code = error.code if isinstance(error, ProtocolError) else http2_frames.COMPRESSION_ERROR
            _log.debug("a gRPC connection ends: %s", error)
            self._write(http2_frames.encode_goaway(self._last_stream, code))
            self._flush()
            self.close()
        else:
            self._flush()

    def close(self) -> None:
        """Close the connection after flushing what was written."""
        if self._transport is not None:
            self._transport.close()

    def _read_preface(self) -> bool:
        preface = bytes(self._buffer[: len(http2_frames.PREFACE)])
        if not http2_frames.PREFACE.startswith(preface):
            raise ProtocolError(http2_frames.PROTOCOL_ERROR, "no HTTP/2 preface")
        if len(preface) < len(http2_frames.PREFACE):
            return False
        del self._buffer[: len(http2_frames.PREFACE)]
        self._has_preface = True
        return True

    def _write(self, data: bytes) -> None:
        if self._out is not None:
            self._out.append(data)
        elif self._transport is not None:
            self._transport.write(data)

    def _flush(self) -> None:
        out, self._out = self._out, None
        if out and self._transport is not None:
            self._transport.write(b"".join(out))

    # Frames ------------------------------------------------------------------------------------------------------

    def _handle(self, frame: Frame) -> None:
        if self._block is not None and frame.type != http2_frames.CONTINUATION:
            raise ProtocolError(http2_frames.PROTOCOL_ERROR, "a header block is interrupted")
        handler = _HANDLERS.get(frame.type)
        if handler is not None:  # unknown types are ignored (RFC 9113, 5.5)
            handler(self, frame)

    def on_ping(self, frame: Frame) -> None:
        """PING: echo it."""
        if not frame.flags & http2_frames.ACK:
            self._write(http2_frames.encode_frame(http2_frames.PING, http2_frames.ACK, 0, frame.payload))

    def on_reset(self, frame: Frame) -> None:
        """RST_STREAM: the client cancels an RPC."""
        stream = self._streams.pop(frame.stream, None)
        if stream is not None and stream.running is not None:
            stream.running.cancel()

    def on_push(self, _frame: Frame) -> None:
        """PUSH_PROMISE: clients must not send it."""
        raise ProtocolError(http2_frames.PROTOCOL_ERROR, "a client may not push")

    def on_settings(self, frame: Frame) -> None:
        """SETTINGS: adopt the client's initial window."""
        if frame.flags & http2_frames.ACK:
            return
        window = http2_frames.decode_settings(frame.payload).get(http2_frames.SETTING_INITIAL_WINDOW)
        if window is not None:
            for stream in self._streams.values():
                stream.window += window - self._stream_window
            self._stream_window = window
        self._write(http2_frames.encode_frame(http2_frames.SETTINGS, http2_frames.ACK, 0))
        self._send_blocked()

    def on_window(self, frame: Frame) -> None:
        """WINDOW_UPDATE: the client can receive more."""
        step = int.from_bytes(frame.payload, "big") & 0x7FFFFFFF
        if len(frame.payload) != 4 or step == 0:  # noqa: PLR2004 - RFC 9113, 6.9
            raise ProtocolError(http2_frames.PROTOCOL_ERROR, "a malformed WINDOW_UPDATE")
        if frame.stream == 0:
            self._window += step
        elif (stream := self._streams.get(frame.stream)) is not None:
            stream.window += step
        if max(self._window, 0) > http2_frames.MAX_WINDOW:
            raise ProtocolError(http2_frames.FLOW_CONTROL_ERROR, "a window that is too large")
        self._send_blocked()

    def on_headers(self, frame: Frame) -> None:
        """HEADERS: an RPC begins, or its trailers end it."""
        content = frame.strip_padding()
        if frame.stream % 2 == 0:
            raise ProtocolError(http2_frames.PROTOCOL_ERROR, "a client's streams have odd numbers")
        if frame.flags & http2_frames.END_HEADERS:
            self._start_stream(frame, content)
        else:
            self._block = (frame, bytearray(content))

    def on_continuation(self, frame: Frame) -> None:
        """CONTINUATION: more of a header block."""
        if self._block is None or self._block[0].stream != frame.stream:
            raise ProtocolError(http2_frames.PROTOCOL_ERROR, "a CONTINUATION without HEADERS")
        first, block = self._block
        block += frame.payload
        if len(block) > _MAX_HEADER_BLOCK:
            raise ProtocolError(http2_frames.PROTOCOL_ERROR, "a header block that is too long")
        if frame.flags & http2_frames.END_HEADERS:
            self._block = None
            self._start_stream(first, bytes(block))

    def _start_stream(self, frame: Frame, block: bytes) -> None:
        headers = dict(self._decoder.decode(block))
        stream = self._streams.get(frame.stream)
        if stream is None:
            if frame.stream <= self._last_stream:
                return  # trailers of an RPC that has finished
            self._last_stream = frame.stream
            stream = _Stream(
                number=frame.stream,
                path=headers.get(b":path", b"").decode("latin-1"),
                compression=headers.get(b"grpc-encoding", b"identity").decode("latin-1"),
                window=self._stream_window,
            )
            self._streams[frame.stream] = stream
            if not headers.get(b"content-type", b"").startswith(b"application/grpc"):
                stream.is_complete = True
                flags = http2_frames.END_HEADERS | http2_frames.END_STREAM
                self._write(http2_frames.encode_frame(http2_frames.HEADERS, flags, stream.number, _WRONG_CONTENT))
                del self._streams[frame.stream]
                return
        if frame.flags & http2_frames.END_STREAM:
            self._call(stream)

    def on_data(self, frame: Frame) -> None:
        """DATA: a part of an RPC's request message."""
        self._received += len(frame.payload)
        if self._received >= _WINDOW_STEP:
            self._write(http2_frames.encode_number(http2_frames.WINDOW_UPDATE, 0, self._received))
            self._received = 0
        stream = self._streams.get(frame.stream)
        if stream is None or stream.is_complete:
            if frame.stream == 0 or frame.stream > self._last_stream:
                raise ProtocolError(http2_frames.PROTOCOL_ERROR, "DATA without HEADERS")
            return
        stream.body += frame.strip_padding()
        if len(stream.body) > MAX_MESSAGE_BYTES + _PREFIX:
            stream.body.clear()
            self._refuse(stream, RpcError(Code.RESOURCE_EXHAUSTED, f"The message is over {MAX_MESSAGE_BYTES} bytes."))
        elif frame.flags & http2_frames.END_STREAM:
            self._call(stream)

    # Calls -------------------------------------------------------------------------------------------------------

    def _call(self, stream: _Stream) -> None:
        stream.is_complete = True
        try:
            reply = self._serve(stream.path, _unwrap(bytes(stream.body), stream.compression))
        except RpcError as error:
            self._refuse(stream, error)
        except Exception:  # noqa: BLE001 - a bug fails one RPC, not all others on the connection
            _log.exception("%s failed", stream.path)
            self._refuse(stream, RpcError(Code.INTERNAL, "Internal error in the emulator; see its log."))
        else:
            if isinstance(reply, bytes):
                self._reply(stream, reply)
            else:
                stream.running = asyncio.ensure_future(self._finish(stream, reply))

    async def _finish(self, stream: _Stream, reply: Awaitable[bytes]) -> None:
        try:
            self._reply(stream, await reply)
        except RpcError as error:
            self._refuse(stream, error)
        except Exception:  # noqa: BLE001 - a bug fails one RPC, not all others on the connection
            _log.exception("%s failed", stream.path)
            self._refuse(stream, RpcError(Code.INTERNAL, "Internal error in the emulator; see its log."))

    def _refuse(self, stream: _Stream, error: RpcError) -> None:
        if self._streams.pop(stream.number, None) is None:
            return
        stream.is_complete = True
        text = quote(error.message, safe=" !\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~")
        trailers = [*_CONTENT, ("grpc-status", str(int(error.code))), ("grpc-message", text)]
        if error.details:
            status = base64.b64encode(write_status(error).SerializeToString()).decode()
            trailers.append(("grpc-status-details-bin", status))
        block = encode(trailers)
        self._write(
            http2_frames.encode_frame(
                http2_frames.HEADERS, http2_frames.END_HEADERS | http2_frames.END_STREAM, stream.number, block
            )
        )

    def _reply(self, stream: _Stream, reply: bytes) -> None:
        if stream.number not in self._streams:
            return
        stream.unsent = memoryview(b"\0" + len(reply).to_bytes(4, "big") + reply)
        stream.trailers = http2_frames.encode_frame(
            http2_frames.HEADERS, http2_frames.END_HEADERS | http2_frames.END_STREAM, stream.number, _REPLY_TAIL
        )
        self._write(
            http2_frames.encode_frame(http2_frames.HEADERS, http2_frames.END_HEADERS, stream.number, _REPLY_HEAD)
        )
        if not self._send(stream):
            self._blocked.append(stream)

    def _send(self, stream: _Stream) -> bool:
        """Send as much as the windows allow; return whether everything was sent."""
        while stream.unsent:
            size = min(len(stream.unsent), http2_frames.MAX_FRAME_BYTES, self._window, stream.window)
            if size <= 0:
                return False
            self._write(http2_frames.encode_frame(http2_frames.DATA, 0, stream.number, bytes(stream.unsent[:size])))
            stream.unsent = stream.unsent[size:]
            stream.window -= size
            self._window -= size
        self._write(stream.trailers)
        del self._streams[stream.number]
        return True

    def _send_blocked(self) -> None:
        for _ in range(len(self._blocked)):
            stream = self._blocked.popleft()
            if stream.number in self._streams and not self._send(stream):
                self._blocked.append(stream)


def _unwrap(body: bytes, compression: str) -> bytes:
    """Return the one message of a unary RPC.

    Raises:
        RpcError: INTERNAL or UNIMPLEMENTED, as gRPC prescribes, if the body is not one message in a known encoding.
    """
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


_HANDLERS: Final[dict[int, Callable[[GrpcConnection, Frame], None]]] = {
    http2_frames.DATA: GrpcConnection.on_data,
    http2_frames.HEADERS: GrpcConnection.on_headers,
    http2_frames.CONTINUATION: GrpcConnection.on_continuation,
    http2_frames.SETTINGS: GrpcConnection.on_settings,
    http2_frames.WINDOW_UPDATE: GrpcConnection.on_window,
    http2_frames.PING: GrpcConnection.on_ping,
    http2_frames.RST_STREAM: GrpcConnection.on_reset,
    http2_frames.PUSH_PROMISE: GrpcConnection.on_push,
}
