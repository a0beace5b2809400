"""Parse requests so strictly that a proxy and this server cannot disagree on where one ends (request smuggling).

The rules are those of RFC 9110, section 5.3, and RFC 9112, section 6.3. waitress is laxer.
"""

from __future__ import annotations

from typing import Final

from cloudsched.config.imports import require_extra

with require_extra("An app that runs its own tasks", "server"):
    from waitress.parser import HTTPRequestParser, ParsingError
    from waitress.receiver import ChunkedReceiver
    from waitress.utilities import BadRequest

MAX_HEADER_BYTES: Final = 32 * 1024
"""The most bytes of a request line with all headers."""
MAX_BODY_BYTES: Final = 2 * 1024 * 1024
"""The most bytes of a body, with chunk headers. The API accepts half of it, and says so in its own words."""
_MAX_CHUNK_LINE_BYTES: Final = 4 * 1024
"""The most bytes of a chunk's size with its extensions, and of what follows the last chunk."""
_REPEATABLE: Final = frozenset(
    b"accept accept-charset accept-encoding accept-language accept-ranges allow cache-control connection "
    b"content-encoding content-language expect forwarded if-match if-none-match pragma te trailer upgrade vary "
    b"via warning".split()
)
"""The headers whose value is a list, which a client or a proxy may give in parts (RFC 9110, section 5.3)."""


class RequestParser(HTTPRequestParser):
    """Parses a request, and refuses one that is ambiguous or too large."""

    # of what cannot be parsed
    version = "1.1"
    path = ""

    def parse_header(self, header_plus: bytes) -> None:
        """Read the request line and the headers."""
        first, *rest = header_plus.split(b"\r\n")
        values = _read_headers([line for line in rest if line])
        if first.rstrip().endswith(b"HTTP/1.1") and b"host" not in values:
            raise ParsingError("The header Host is missing.")

        coding = values.get(b"transfer-encoding")
        if coding is not None:
            if b"content-length" in values:
                raise ParsingError("Content-Length and Transfer-Encoding exclude each other.")
            if coding.strip() != b"chunked" or not first.endswith(b"HTTP/1.1"):
                raise ParsingError("The only Transfer-Encoding is chunked, in HTTP/1.1.")
        try:
            super().parse_header(header_plus)
        except ValueError as error:  # waitress would log it, and leave the client without an answer
            raise ParsingError("The address or a number in the headers is malformed.") from error

    def received(self, data: bytes) -> int:
        """Read a part of a request.

        Refuse a chunk that is larger than any body, or said to be in endless words.
        """
        taken: int = super().received(data)
        if self._has_large_chunk():
            self.fail("A chunk is too large.")
        if self.completed:  # waitress would ask for a body, and take the next request for it
            self.expect_continue = False
        return taken

    def fail(self, reason: str) -> None:
        """Answer the request with 400."""
        self.error: BadRequest = BadRequest(reason)
        self.completed = True

    def _has_large_chunk(self) -> bool:
        body = self.body_rcv
        if not isinstance(body, ChunkedReceiver):
            return False
        line_bytes = len(body.control_line + body.trailer)
        return body.chunk_remainder > MAX_BODY_BYTES or line_bytes > _MAX_CHUNK_LINE_BYTES


def _read_headers(lines: list[bytes]) -> dict[bytes, bytes]:
    values = dict[bytes, bytes]()
    for line in lines:
        name, _, value = line.lower().partition(b":")
        if name in values and name not in _REPEATABLE and not name.startswith(b"x-forwarded-"):
            raise ParsingError(f"The header {name[:80].decode('latin-1')} is given twice.")
        values[name] = value
    return values
