"""The files that browsers keep: the stylesheet, the icon and the scripts.

Their addresses have a hash of all of them, so browsers never ask again for what they have, and never keep what is old.
The modules that `page.js` imports are sent within it, since each request costs more than its bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
import re
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final

from werkzeug.wrappers import Response

from cloudsched.dashboard.compression import may_compress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from werkzeug.wrappers import Request

_FOLDER: Final = Path(__file__).parent / "static"
_ENTRY: Final = "page"
"""The module that imports the others, by its name."""
_IMPORT: Final = re.compile(r'^import \{([^}]+)\} from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(?:async )?(?:function|const) (\w+))", re.MULTILINE)
_KEPT: Final = {"Cache-Control": "public, max-age=31536000, immutable"}
_MOVED: Final = {"Cache-Control": "no-store"}


@cache
def read_files() -> Mapping[str, bytes]:
    """Return the files by their names, read once."""
    files = {file.name: file.read_bytes() for file in sorted(_FOLDER.iterdir()) if file.is_file()}
    modules = {name.removesuffix(".js"): text.decode() for name, text in files.items() if name.endswith(".js")}
    return {**files, f"{_ENTRY}.js": bundle(modules, _ENTRY).encode()}


@cache
def find_folder() -> str:
    """Return the address of the files below the mount. Another release of them has another one."""
    whole = hashlib.sha256()
    for name, content in read_files().items():
        whole.update(f"{name} {len(content)} ".encode() + content)
    return f"static/{whole.hexdigest()[:12]}/"


@cache
def _zip(name: str) -> bytes:
    return gzip.compress(read_files()[name], mtime=0)


def serve_file(path: str, request: Request) -> Response:
    """Return a file below ``static/``, or a redirect to it from the address that it had in another release."""
    version, _, name = path.rpartition("/")
    if name not in read_files() or "/" in version:
        return Response("There is no such file.", status=HTTPStatus.NOT_FOUND, mimetype="text/plain")
    folder = find_folder().strip("/").rpartition("/")[2]
    if version != folder:
        location = f"{'../' if version else './'}{folder}/{name}"
        return Response(status=HTTPStatus.FOUND, headers={"Location": location, **_MOVED})
    response = Response(mimetype=mimetypes.guess_type(name)[0] or "application/octet-stream", headers=_KEPT)
    response.vary.add("Accept-Encoding")
    if may_compress(request):
        response.set_data(_zip(name))
        response.content_encoding = "gzip"
    else:
        response.set_data(read_files()[name])
    return response


def bundle(modules: Mapping[str, str], entry: str) -> str:
    """Return a module with those that it imports as one, each in a function of its own, and before its importers.

    Modules import names of each other, in no circle, and export functions and constants.
    """
    parts: dict[str, str] = {}

    def add(name: str) -> None:
        text = modules[name]
        for _, other in _IMPORT.findall(text):
            if other not in parts:
                add(other)
        body = _EXPORT.sub("", _IMPORT.sub(r"const {\1} = $\2;\n", text))
        given = ", ".join(_EXPORT.findall(text))
        parts[name] = f"const ${name} = (() => {{\n{body}return {{ {given} }};\n}})();\n"

    add(entry)
    return "".join(parts.values())
