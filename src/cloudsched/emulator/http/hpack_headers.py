"""HTTP/2 header blocks by the `hpack` package (RFC 7541), with bounded size and a single error type."""

from __future__ import annotations

from typing import Final

import hpack

Header = tuple[bytes, bytes]

_MAX_TABLE_BYTES: Final = 4096
MAX_HEADER_BYTES: Final = 128 * 1024
"""The maximum size of a decoded block; a task's own headers travel in the message, so this is generous."""


class HeaderError(ValueError):
    """A header block cannot be decoded; the connection's shared table is no longer usable."""


class Decoder:
    """Decodes the header blocks of one connection, in order."""

    def __init__(self) -> None:
        self._decoder = hpack.Decoder(max_header_list_size=MAX_HEADER_BYTES)
        self._decoder.max_allowed_table_size = _MAX_TABLE_BYTES

    def decode(self, block: bytes) -> list[Header]:
        """Return the headers of one block.

        Raises:
            HeaderError: if the block is malformed or too large when decoded.
        """
        try:
            return [(bytes(name), bytes(value)) for name, value in self._decoder.decode(block, raw=True)]
        except hpack.HPACKError as error:
            raise HeaderError(str(error) or type(error).__name__) from error


def encode(headers: list[tuple[str, str]]) -> bytes:
    """Encode headers as literals that use no table, so that a block can be encoded once and sent on any connection."""
    literals = [hpack.NeverIndexedHeaderTuple(name.encode("ascii"), value.encode("ascii")) for name, value in headers]
    return hpack.Encoder().encode(literals, huffman=False)
