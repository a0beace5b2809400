"""Templates and their filters, which isolate texts of people, and addresses relative to the mount."""

from __future__ import annotations

import re
import unicodedata
from http import HTTPStatus
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.ext import Extension
from jinja2.lexer import Token
from markupsafe import Markup, escape
from werkzeug.wrappers import Request, Response

from cloudsched.dashboard.forms.fields import name_field
from cloudsched.dashboard.static_files import find_folder
from cloudsched.dashboard.status import SHAPES, shorten_error, show_status
from cloudsched.dashboard.times import ShownInstant, write_took
from cloudsched.dashboard.words import fold_deliveries, only_if, show_unseen, write_count
from cloudsched.features.table import FEATURES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from jinja2.lexer import TokenStream
    from jinja2.runtime import Context

    from cloudsched.dashboard.visit import Visit

_PLAIN: Final = frozenset({"title", "textarea", "option", "script", "style"})
"""The elements in which a browser reads no tags."""
_SPOKEN: Final = frozenset({"title", "aria-label", "placeholder", "data-abs"})
"""The attributes whose texts are shown or read out, and never sent back."""
_TAG: Final = re.compile(r'<(/?)([a-zA-Z][a-zA-Z0-9]*)|>|(?:([a-z-]+)=)?"')


def isolate(value: object) -> object:
    """Return a text as it is shown between tags. Markup and numbers are returned as they are."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    if value.isascii() and value.isprintable():
        return value
    text = show_unseen(value)
    if text == value and not _runs_left(text):
        return value
    return Markup("<bdi>{}</bdi>").format(text)


def _runs_left(text: str) -> bool:
    """Return whether a text has letters that run from right to left."""
    return not text.isascii() and any(unicodedata.bidirectional(each) in {"R", "AL", "AN"} for each in text)


class Isolation(Extension):
    """Passes each value that a template prints between tags through `isolate`.

    In ``<title>`` and in attributes that are shown, it passes through `show_unseen`. Values in other attributes and in
    text areas stay as they are, because they are sent back.
    """

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        """Yield a template's tokens, with a filter around each value."""
        place = _Place()
        name = ""
        for token in stream:
            if token.type == "data":
                place.read(token.value)
            if token.type == "variable_end" and name:
                yield Token(token.lineno, "rparen", ")")
                yield Token(token.lineno, "pipe", "|")
                yield Token(token.lineno, "name", name)
            yield token
            if token.type == "variable_begin":
                name = place.name_filter()
                if name:
                    yield Token(token.lineno, "lparen", "(")


class _Place:
    """Where a template's text has come to: in a tag, in one of its attributes, or between tags."""

    def __init__(self) -> None:
        self._is_in_tag = False
        self._is_quoted = False
        self._attribute = ""
        self._plain = ""

    def read(self, html: str) -> None:
        """Go on by a piece of HTML."""
        for found in _TAG.finditer(html):
            if found[0].endswith('"'):
                self._is_quoted = self._is_in_tag and not self._is_quoted
                self._attribute = only_if(self._is_quoted, found[3] or "")
            elif found[0] == ">":
                self._is_in_tag = self._is_in_tag and self._is_quoted
            elif not self._is_in_tag:
                self._is_in_tag = True
                if (tag := found[2].lower()) in _PLAIN:
                    self._plain = only_if(not found[1], tag)

    def name_filter(self) -> str:
        """Return the filter for a value that is printed here. Empty for none."""
        if self._attribute in _SPOKEN:
            return "unseen"
        if self._is_in_tag or self._plain in {"textarea", "script", "style"}:
            return ""
        return "unseen" if self._plain else "isolate"


_FOLDER: Final = Path(__file__).parent
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d|\d{1,2} [A-Z][a-z]+ \d{4}")


class _Unindent(Extension):
    """Drops the indentation of a template's lines, and the line breaks after ``{% … %}``."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        del name, filename
        return re.sub(r"\n[ \t]+", "\n", source)


@pass_context
def _show_moment(context: Context, at: ShownInstant | str | datetime) -> ShownInstant:
    if isinstance(at, ShownInstant):
        return at
    visit: Visit = context["visit"]
    return visit.moment(at)


def _hold_dates(text: str) -> Markup:
    """Return a text whose dates stay on one line, such as ``2027-03-24`` and ``24 March 2027``."""
    return Markup(_DATE.sub(r'<span class="whole">\g<0></span>', str(escape(isolate(text)))))  # noqa: S704 - escaped before


def _list_folders() -> list[Path]:
    """Return the folders with templates: of the dashboard, and of the features that have pages."""
    packages = {row.pages.partition(":")[0].rpartition(".")[0] for row in FEATURES if row.pages}
    return [_FOLDER / "templates", *(Path(str(import_module(name).__file__)).parent for name in sorted(packages))]


TEMPLATES: Final = Environment(
    loader=FileSystemLoader(_list_folders()),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    extensions=[_Unindent, Isolation],
)
"""Compiled once for all who are signed in. Each has a `Dashboard` of their own."""
TEMPLATES.filters |= {
    "isolate": isolate,
    "unseen": show_unseen,
    "moment": _show_moment,
    "look": show_status,
    "count": write_count,
    "fold": fold_deliveries,
    "dates": _hold_dates,
    "n": "{:,}".format,
    "took": write_took,
    "brief": shorten_error,
    "field": name_field,
}
TEMPLATES.globals |= {"static": find_folder(), "shapes": SHAPES}


def send_page(text: str, status: int = HTTPStatus.OK) -> Response:
    """Return a page, which no browser keeps."""
    return Response(text, status=status, mimetype="text/html", headers={"Cache-Control": "no-store"})


def find_entrance(request: Request) -> Response | None:
    """Return a redirect from the mount's path to its root, ``/ops`` to ``/ops/``, to which addresses are relative."""
    if request.path.strip("/") or request.environ.get("PATH_INFO"):
        return None
    location = f"{request.root_path.rpartition('/')[2]}/"
    return Response(status=HTTPStatus.PERMANENT_REDIRECT, headers={"Location": location})


def find_root(request: Request) -> str:
    """Return the relative path from this address to the mount, so that the dashboard can be mounted anywhere."""
    depth = request.path.strip("/").count("/")
    return "../" * depth or "./"


def find_address(request: Request) -> str:
    """Return the address of the page that is shown, not the one to which a refused form was sent. Empty for its own."""
    if request.method == "GET":
        return ""
    path = request.path.strip("/").partition("/verbs/")[0]
    return f"{find_root(request)}{path}"


def redirect(request: Request, path: str) -> Response:
    """Return a redirect to a path below the mount, after a form was carried out."""
    return Response(status=HTTPStatus.SEE_OTHER, headers={"Location": f"{find_root(request)}{path}"})
