"""Decode and encode HTTP/2 frames (RFC 9113)."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
MAX_FRAME_BYTES: Final = 16384
"""The protocol's default maximum; this server never negotiates more."""
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
    """The peer violated the protocol; the connection is closed with this code."""

    def __init__(self, code: int, reason: str) -> None:
        self.code = code
        super().__init__(reason)


class Frame(NamedTuple):
    """One frame, with its padding and priority."""

    type: int
    flags: int
    stream: int
    payload: bytes

    def strip_padding(self) -> bytes:
        """Return the payload of a DATA or HEADERS frame without padding and priority.

        Raises:
            ProtocolError: if the padding is longer than the frame.
        """
        payload = self.payload
        start, padding = 0, 0
        if self.flags & PADDED:
            padding = payload[0] if payload else 1
            start = 1
        if self.type == HEADERS and self.flags & PRIORITIZED:
            start += 5
        if start + padding > len(payload):
            raise ProtocolError(PROTOCOL_ERROR, "the padding is longer than the frame")
        return payload[start : len(payload) - padding] if start or padding else payload


def read_frames(buffer: bytearray) -> Iterator[Frame]:
    """Remove every complete frame from the buffer and yield it.

    Raises:
        ProtocolError: if a frame is longer than `MAX_FRAME_BYTES`.
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
    """Encode one frame."""
    length = len(payload)
    return _HEAD.pack(length >> 8, length & 0xFF, kind, flags, stream) + payload


def encode_settings(settings: dict[int, int]) -> bytes:
    """Encode a SETTINGS frame."""
    return encode_frame(SETTINGS, 0, 0, b"".join(_SETTING.pack(key, value) for key, value in settings.items()))


def decode_settings(payload: bytes) -> dict[int, int]:
    """Decode the payload of a SETTINGS frame.

    Raises:
        ProtocolError: if its length is invalid or the window too large.
    """
    if len(payload) % _SETTING.size:
        raise ProtocolError(FRAME_SIZE_ERROR, "a SETTINGS frame of the wrong length")
    settings = dict(_SETTING.iter_unpack(payload))
    if settings.get(SETTING_INITIAL_WINDOW, 0) > MAX_WINDOW:
        raise ProtocolError(FLOW_CONTROL_ERROR, "a window that is too large")
    return settings


def encode_number(kind: int, stream: int, number: int) -> bytes:
    """Encode a RST_STREAM or WINDOW_UPDATE frame."""
    return encode_frame(kind, 0, stream, number.to_bytes(4, "big"))


def encode_goaway(last_stream: int, code: int) -> bytes:
    """Encode a GOAWAY frame."""
    return encode_frame(GOAWAY, 0, 0, last_stream.to_bytes(4, "big") + code.to_bytes(4, "big"))
