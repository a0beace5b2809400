"""HPACK, as far as a server of unary gRPC needs it: full decoding, and encoding of literals (RFC 7541).

The Huffman code is canonical, so the lengths of its codes (appendix B) say all of it.
"""

from __future__ import annotations

from collections import deque
from functools import lru_cache
from typing import Final

Header = tuple[bytes, bytes]

_STATIC_TEXT: Final = (
    ":authority\n:method GET\n:method POST\n:path /\n:path /index.html\n:scheme http\n:scheme https\n:status 200\n"
    ":status 204\n:status 206\n:status 304\n:status 400\n:status 404\n:status 500\naccept-charset\n"
    "accept-encoding gzip, deflate\naccept-language\naccept-ranges\naccept\naccess-control-allow-origin\nage\nallow\n"
    "authorization\ncache-control\ncontent-disposition\ncontent-encoding\ncontent-language\ncontent-length\n"
    "content-location\ncontent-range\ncontent-type\ncookie\ndate\netag\nexpect\nexpires\nfrom\nhost\nif-match\n"
    "if-modified-since\nif-none-match\nif-range\nif-unmodified-since\nlast-modified\nlink\nlocation\nmax-forwards\n"
    "proxy-authenticate\nproxy-authorization\nrange\nreferer\nrefresh\nretry-after\nserver\nset-cookie\n"
    "strict-transport-security\ntransfer-encoding\nuser-agent\nvary\nvia\nwww-authenticate"
)
STATIC: Final[tuple[Header, ...]] = tuple(
    (name.encode(), value.encode()) for name, _, value in (line.partition(" ") for line in _STATIC_TEXT.split("\n"))
)
_CODE_LENGTHS: Final = bytes.fromhex(
    "0d171c1c1c1c1c1c1c181e1c1c1e1c1c1c1c1c1c1c1c1e1c1c1c1c1c1c1c1c1c060a0a0c0d06080b0a0a080b080606060505050606060606"
    "060607080f060c0a0d06070707070707070707070707070707070707070707070807080d130d0e060f050605060506060605070706060605"
    "06070605050607070707070f0b0e0d1c14161414161616171617171717171817181816171817171717151617161717181615141616171715"
    "1716161815161717151516151716171714161616171616171a1a1413161716191a1a1a1b1b1a181913151a1b1b1a1b1815151a1a1c1b1b1b"
    "14181415161515171616191918181a171a1b1a1a1b1b1b1b1b1c1b1b1b1b1b1a1e"
)
_END_OF_STRING: Final = 256
_MAX_TABLE_BYTES: Final = 4096
_ENTRY_OVERHEAD: Final = 32
MAX_HEADER_BYTES: Final = 128 * 1024
"""The most that one block may unpack to; the task's own headers travel in the body, so this is generous."""


class HpackError(ValueError):
    """A header block that cannot be read; the connection's shared table is lost with it."""


class Decoder:
    """Reads the header blocks of one connection, in their order."""

    def __init__(self) -> None:
        self._dynamic: deque[Header] = deque()
        self._size = 0
        self._limit = _MAX_TABLE_BYTES

    def decode(self, block: bytes) -> list[Header]:
        """Return the headers of one block.

        Raises:
            HpackError: if the block is malformed or unpacks to too much.
        """
        headers: list[Header] = []
        at, total = 0, 0
        try:
            while at < len(block):
                first = block[at]
                if first & 0x80:
                    index, at = _integer(block, at, 7)
                    header = self._entry(index)
                elif first & 0xE0 == 0x20:  # noqa: PLR2004 - RFC 7541, 6.3
                    if headers:
                        raise HpackError("a table size update after a header")
                    limit, at = _integer(block, at, 5)
                    self._resize(limit)
                    continue
                else:
                    keep = bool(first & 0x40)
                    index, at = _integer(block, at, 6 if keep else 4)
                    if index:
                        name = self._entry(index)[0]
                    else:
                        name, at = _string(block, at)
                    value, at = _string(block, at)
                    header = (name, value)
                    if keep:
                        self._remember(header)
                total += len(header[0]) + len(header[1])
                if total > MAX_HEADER_BYTES:
                    raise HpackError("too many headers")
                headers.append(header)
        except IndexError:
            raise HpackError("the block ends too early") from None
        return headers

    def _entry(self, index: int) -> Header:
        if 1 <= index <= len(STATIC):
            return STATIC[index - 1]
        position = index - len(STATIC) - 1
        if not 0 <= position < len(self._dynamic):
            raise HpackError(f"there is no entry {index}")
        return self._dynamic[position]

    def _remember(self, header: Header) -> None:
        self._dynamic.appendleft(header)
        self._size += len(header[0]) + len(header[1]) + _ENTRY_OVERHEAD
        self._shrink()

    def _resize(self, limit: int) -> None:
        if limit > _MAX_TABLE_BYTES:
            raise HpackError("the table may not be that large")
        self._limit = limit
        self._shrink()

    def _shrink(self) -> None:
        while self._size > self._limit:
            name, value = self._dynamic.pop()
            self._size -= len(name) + len(value) + _ENTRY_OVERHEAD


def encode(headers: list[tuple[str, str]]) -> bytes:
    """Write headers as literals that touch no table, so that a block can be made once and sent on any connection."""
    block = bytearray()
    for name, value in headers:
        block.append(0)
        for text in (name.encode("ascii"), value.encode("ascii")):
            block += _length(len(text))
            block += text
    return bytes(block)


def _length(length: int) -> bytes:
    if length < 0x7F:  # noqa: PLR2004 - a seven-bit prefix
        return bytes([length])
    rest = length - 0x7F
    out = bytearray([0x7F])
    while rest >= 0x80:  # noqa: PLR2004 - seven bits a byte
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _integer(block: bytes, at: int, bits: int) -> tuple[int, int]:
    most = (1 << bits) - 1
    value = block[at] & most
    at += 1
    if value < most:
        return value, at
    shift = 0
    while True:
        byte = block[at]
        at += 1
        value += (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, at
        shift += 7
        if shift > 28:  # noqa: PLR2004 - longer integers than any header needs
            raise HpackError("an integer is too long")


def _string(block: bytes, at: int) -> tuple[bytes, int]:
    coded = block[at] & 0x80
    length, at = _integer(block, at, 7)
    end = at + length
    if end > len(block):
        raise HpackError("a string ends too late")
    text = block[at:end]
    return (huffman_decode(text) if coded else text), end


def _build_tree() -> list[list[int]]:
    """A node is [left, right]; a child below zero is the symbol ~child."""
    tree: list[list[int]] = [[0, 0]]
    code, previous = 0, 0
    for symbol in sorted(range(len(_CODE_LENGTHS)), key=lambda s: (_CODE_LENGTHS[s], s)):
        length = _CODE_LENGTHS[symbol]
        code = (code + 1) << (length - previous) if previous else 0
        previous = length
        node = 0
        for bit in range(length - 1, 0, -1):
            side = code >> bit & 1
            if not tree[node][side]:
                tree.append([0, 0])
                tree[node][side] = len(tree) - 1
            node = tree[node][side]
        tree[node][code & 1] = ~symbol
    return tree


_TREE: Final = _build_tree()


@lru_cache(maxsize=1024)
def huffman_decode(text: bytes) -> bytes:
    """Undo the Huffman code of a string.

    Raises:
        HpackError: if it holds the end-of-string symbol, or padding that is not the beginning of that.
    """
    out = bytearray()
    node, depth, ones = 0, 0, True
    for byte in text:
        for bit in (7, 6, 5, 4, 3, 2, 1, 0):
            side = byte >> bit & 1
            child = _TREE[node][side]
            if child < 0:
                symbol = ~child
                if symbol == _END_OF_STRING:
                    raise HpackError("a string holds the end-of-string symbol")
                out.append(symbol)
                node, depth, ones = 0, 0, True
            else:
                node, depth, ones = child, depth + 1, ones and bool(side)
    if depth > 7 or not ones:  # noqa: PLR2004 - padding is shorter than a byte
        raise HpackError("a string is padded wrongly")
    return bytes(out)
