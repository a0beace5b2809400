"""The files that browsers keep: the stylesheet, the icon and the scripts.

Their addresses have a hash of all of them, so browsers never ask again for what they have, and never keep what is old.
"""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
import zlib
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final

from werkzeug.wrappers import Response

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from werkzeug.wrappers import Request

_FOLDER: Final = Path(__file__).parent / "static"
_KEPT: Final = "public, max-age=31536000, immutable"


@cache
def find_folder() -> str:
    """Return the address of the files below the mount. Another release of them has another one."""
    whole = hashlib.sha256()
    for file in sorted(_FOLDER.iterdir()):
        whole.update(f"{file.name} {file.stat().st_size} ".encode() + file.read_bytes())
    return f"static/{whole.hexdigest()[:12]}/"


def serve_file(path: str) -> Response:
    """Return a file below ``static/``. Only at this release's address do browsers keep it."""
    version, _, name = path.rpartition("/")
    file = _FOLDER / name
    if "/" in version or not file.is_file():
        return Response("There is no such file.", status=HTTPStatus.NOT_FOUND, mimetype="text/plain")
    kept = _KEPT if f"static/{version}/" == find_folder() else "no-store"
    type_ = mimetypes.guess_type(name)[0]
    return Response(file.read_bytes(), mimetype=type_, headers={"Cache-Control": kept})


_TYPES: Final = frozenset({"text/html", "text/css", "text/csv", "text/javascript", "application/json", "image/svg+xml"})
_LEAST: Final = 1000
"""The size below which it is not worth it."""
_LEVEL: Final = 5
_GZIP: Final = 16 + zlib.MAX_WBITS
_OWN_SITES: Final = frozenset({"", "same-origin", "none"})


def compress(request: Request, response: Response) -> Response:
    """Compress an answer, unless it is small, or cannot be, or another site asks. What is streamed goes on being so."""
    if response.mimetype not in _TYPES or response.content_encoding:
        return response
    response.vary.add("Accept-Encoding")
    if request.headers.get("Sec-Fetch-Site", "") not in _OWN_SITES or not request.accept_encodings["gzip"]:
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
