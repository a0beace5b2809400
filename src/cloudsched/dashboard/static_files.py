"""The files that browsers keep: the stylesheet, the icon and the scripts.

Their addresses have a hash of all of them, so browsers never ask again for what they have, and never keep what is old.
"""

from __future__ import annotations

import hashlib
import mimetypes
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Final

from werkzeug.wrappers import Response

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
