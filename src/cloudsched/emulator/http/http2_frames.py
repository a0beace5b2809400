"""HTTP/2 frames (RFC 9113): taken out of a stream of bytes, and written."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
MAX_FRAME_BYTES: Final = 16384
"""What both sides may send unless they agree on more; this server never does."""
INITIAL_WINDOW: Final = 65535
MAX_WINDOW: Final = 2**31 - 1

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)

ACK: Final = 0x1
END_STREAM: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
PRIORITIZED: Final = 0x20

SETTING_MAX_CONCURRENT_STREAMS: Final = 3
SETTING_INITIAL_WINDOW: Final = 4

NO_ERROR: Final = 0
PROTOCOL_ERROR: Final = 1
FLOW_CONTROL_ERROR: Final = 3
FRAME_SIZE_ERROR: Final = 6
COMPRESSION_ERROR: Final = 9

_HEAD: Final = struct.Struct(">HBBBI")
_SETTING: Final = struct.Struct(">HI")
_HEAD_BYTES: Final = 9


class ProtocolError(Exception):
    """The peer broke the protocol; the connection ends with that code."""

    def __init__(self, code: int, reason: str) -> None:
        self.code = code
        super().__init__(reason)


class Frame(NamedTuple):
    """One frame, its padding and priority still in it."""

    type: int
    flags: int
    stream: int
    payload: bytes

    def strip_padding(self) -> bytes:
        """The payload of a DATA or HEADERS frame without padding and priority.

        Raises:
            ConnectionBroken: if it is padded beyond its length.
        """
        payload = self.payload
        start, padding = 0, 0
        if self.flags & PADDED:
            padding = payload[0] if payload else 1
            start = 1
        if self.type == HEADERS and self.flags & PRIORITIZED:
            start += 5
        if start + padding > len(payload):
            raise ProtocolError(PROTOCOL_ERROR, "a frame is padded beyond its length")
        return payload[start : len(payload) - padding] if start or padding else payload


def read_frames(buffer: bytearray) -> Iterator[Frame]:
    """Take every whole frame out of the buffer.

    Raises:
        ConnectionBroken: if a frame is longer than was agreed.
    """
    at, end = 0, len(buffer)
    try:
        while end - at >= _HEAD_BYTES:
            high, low, kind, flags, stream = _HEAD.unpack_from(buffer, at)
            length = high << 8 | low
            if length > MAX_FRAME_BYTES:
                raise ProtocolError(FRAME_SIZE_ERROR, f"a frame of {length} bytes")
            if end - at - _HEAD_BYTES < length:
                return
            start = at + _HEAD_BYTES
            at = start + length
            yield Frame(kind, flags, stream & 0x7FFFFFFF, bytes(buffer[start:at]))
    finally:
        del buffer[:at]


def encode_frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """The bytes of one frame."""
    length = len(payload)
    return _HEAD.pack(length >> 8, length & 0xFF, kind, flags, stream) + payload


def encode_settings(settings: dict[int, int]) -> bytes:
    """The bytes of a SETTINGS frame."""
    return encode_frame(SETTINGS, 0, 0, b"".join(_SETTING.pack(key, value) for key, value in settings.items()))


def decode_settings(payload: bytes) -> dict[int, int]:
    """What a SETTINGS frame says.

    Raises:
        ConnectionBroken: if its length is wrong or the window too large.
    """
    if len(payload) % _SETTING.size:
        raise ProtocolError(FRAME_SIZE_ERROR, "a SETTINGS frame of the wrong length")
    settings = dict(_SETTING.iter_unpack(payload))
    if settings.get(SETTING_INITIAL_WINDOW, 0) > MAX_WINDOW:
        raise ProtocolError(FLOW_CONTROL_ERROR, "a window that is too large")
    return settings


def encode_number(kind: int, stream: int, number: int) -> bytes:
    """The bytes of a RST_STREAM or WINDOW_UPDATE frame."""
    return encode_frame(kind, 0, stream, number.to_bytes(4, "big"))


def encode_goaway(last_stream: int, code: int) -> bytes:
    """The bytes of a GOAWAY frame."""
    return encode_frame(GOAWAY, 0, 0, last_stream.to_bytes(4, "big") + code.to_bytes(4, "big"))
