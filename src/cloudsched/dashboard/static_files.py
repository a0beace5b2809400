"""The stylesheet, the icon and our own scripts, as they lie in the folder."""

from __future__ import annotations

import mimetypes
from pathlib import Path
from typing import Final

from werkzeug.wrappers import Request, Response

_FOLDER: Final = Path(__file__).parent / "static"


def serve_file(name: str, request: Request) -> Response:
    """Return a file, or that the browser has it already; 404 for everything that is not directly in the folder."""
    file = _FOLDER / name
    if "/" in name or file.parent != _FOLDER or not file.is_file():
        return Response("There is no such file.", status=404, mimetype="text/plain")
    response = Response(file.read_bytes(), mimetype=mimetypes.guess_type(name)[0] or "application/octet-stream")
    response.headers["Cache-Control"] = "no-cache"
    response.add_etag()
    return response.make_conditional(request)
