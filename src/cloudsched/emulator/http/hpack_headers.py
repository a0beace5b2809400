"""The header blocks of HTTP/2, by the `hpack` package (RFC 7541): bounded, and with one error for all that is wrong."""

from __future__ import annotations

from typing import Final

import hpack

Header = tuple[bytes, bytes]

_MAX_TABLE_BYTES: Final = 4096
MAX_HEADER_BYTES: Final = 128 * 1024
"""The most that one block may unpack to; the task's own headers travel in the body, so this is generous."""


class HeaderError(ValueError):
    """A header block that cannot be read; the connection's shared table is lost with it."""


class Decoder:
    """Reads the header blocks of one connection, in their order."""

    def __init__(self) -> None:
        self._decoder = hpack.Decoder(max_header_list_size=MAX_HEADER_BYTES)
        self._decoder.max_allowed_table_size = _MAX_TABLE_BYTES

    def decode(self, block: bytes) -> list[Header]:
        """Return the headers of one block.

        Raises:
            HeadersBroken: if the block is malformed or unpacks to too much.
        """
        try:
            return [(bytes(name), bytes(value)) for name, value in self._decoder.decode(block, raw=True)]
        except hpack.HPACKError as error:
            raise HeaderError(str(error) or type(error).__name__) from error


def encode(headers: list[tuple[str, str]]) -> bytes:
    """Write headers as literals that touch no table, so that a block can be made once and sent on any connection."""
    literals = [hpack.NeverIndexedHeaderTuple(name.encode("ascii"), value.encode("ascii")) for name, value in headers]
    return hpack.Encoder().encode(literals, huffman=False)
