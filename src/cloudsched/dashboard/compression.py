"""Answers are compressed where the browser takes it.

A stranger who sees how long encrypted answers are, and makes a browser ask for pages with guesses in their addresses,
could find out what else stands in them (BREACH, breachattack.com). No page has a credential: the key stays on the
server, forms are checked by their origin and not by a token in them, and other sites' requests carry no session
(``SameSite=Strict``). A web app that says who looks may have other cookies, so what a browser asks for on behalf of
another site is never compressed.
"""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from werkzeug.wrappers import Request, Response

_TYPES: Final = frozenset({"text/html", "text/css", "text/csv", "text/javascript", "application/json", "image/svg+xml"})
_LEAST: Final = 1000
"""The size below which it is not worth it."""
_LEVEL: Final = 5
_GZIP: Final = 16 + zlib.MAX_WBITS
_OWN_SITES: Final = frozenset({"", "same-origin", "none"})


def may_compress(request: Request) -> bool:
    """Return whether the browser takes gzip, and no other site makes it ask."""
    return request.headers.get("Sec-Fetch-Site", "") in _OWN_SITES and request.accept_encodings["gzip"] > 0


def compress(request: Request, response: Response) -> Response:
    """Compress an answer, unless it is small, or cannot be. One that is streamed goes on being so."""
    if response.mimetype not in _TYPES or response.content_encoding:
        return response
    response.vary.add("Accept-Encoding")
    if not may_compress(request):
        return response
    if response.is_streamed:
        response.response = _compress_parts(response.iter_encoded())
    elif (response.content_length or 0) < _LEAST:
        return response
    else:
        response.set_data(gzip.compress(response.get_data(), _LEVEL, mtime=0))
    response.content_encoding = "gzip"
    return response


def _compress_parts(parts: Iterable[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(_LEVEL, wbits=_GZIP)
    for part in parts:
        if packed := packer.compress(part):
            yield packed
    yield packer.flush()
