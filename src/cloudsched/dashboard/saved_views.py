"""Views that somebody has named: the addresses of lists with their filters, kept in their browser."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlencode

from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from werkzeug.wrappers import Request, Response

LISTS: Final = ("tasks", "runs")
"""The views of which an address may be kept."""
COOKIE: Final = "cloudsched-views"
MOST: Final = 12
_LONGEST_NAME, _LONGEST_ADDRESS, _MOST_BYTES = 40, 400, 3500
_YEAR: Final = 365 * 24 * 3600
_FLEETING: Final = frozenset({"page", "done"})


@dataclass(frozen=True, slots=True)
class SavedView:
    """A view that somebody has named."""

    name: str
    path: str
    """Below the mount, such as ``runs?within=P1D``."""


def read_views(request: Request) -> list[SavedView]:
    """Return what the browser has kept; nothing of what is no address of a list."""
    try:
        kept = json.loads(base64.urlsafe_b64decode(request.cookies.get(COOKIE, "")))
        found = [SavedView(str(name), str(path)) for name, path in kept]
    except (ValueError, TypeError):
        return []
    return [each for each in found if _is_of_list(each.path)][:MOST]


def change_views(request: Request, response: Response, form: Mapping[str, str]) -> None:
    """Keep the view that a form names, or forget it.

    Raises:
        InvalidInput: It has no name, or is no list; or there is no room for more.
    """
    name, path = form.get("name", "").strip(), form.get("at", "")
    others = [each for each in read_views(request) if each.name != name]
    if form.get("verb") == "forget":
        _store(request, response, others)
        return
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise InvalidInput("name", f"is not a name of 1 to {_LONGEST_NAME} characters", "Give the view another name.")
    if not _is_of_list(path):
        raise InvalidInput("at", "is not the address of a list", "Save the view from its own page.")
    views = [*others, SavedView(name, clean_address(path))]
    if len(views) > MOST or len(_encode(views)) > _MOST_BYTES:
        raise InvalidInput("name", "is one view too many for a browser to keep", "Forget another one first.")
    _store(request, response, views)


def _is_of_list(path: str) -> bool:
    return path.partition("?")[0] in LISTS and len(path) <= _LONGEST_ADDRESS and path.isascii() and path.isprintable()


def clean_address(path: str) -> str:
    """Return the address of a list without its page, and without what was just done."""
    name, _, query = path.partition("?")
    kept = [(key, text) for key, text in parse_qsl(query) if key not in _FLEETING]
    return f"{name}?{urlencode(kept)}" if kept else name


def _encode(views: Sequence[SavedView]) -> str:
    kept = [[each.name, each.path] for each in views]
    return base64.urlsafe_b64encode(json.dumps(kept, ensure_ascii=False).encode()).decode()


def _store(request: Request, response: Response, views: Sequence[SavedView]) -> None:
    response.set_cookie(
        COOKIE,
        _encode(views) if views else "",
        max_age=_YEAR if views else 0,
        path=f"{request.root_path}/",
        secure=request.is_secure,
        httponly=True,
        samesite="Strict",
    )
