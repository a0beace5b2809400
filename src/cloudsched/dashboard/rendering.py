"""What pages are made of: templates, and addresses relative to the mount."""

from __future__ import annotations

import re
from http import HTTPStatus
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.ext import Extension
from markupsafe import Markup, escape
from werkzeug.wrappers import Request, Response

from cloudsched.dashboard.isolation import FILTERS, Isolation, isolate
from cloudsched.dashboard.static_files import find_folder
from cloudsched.dashboard.status import SHAPES, Status, show_status
from cloudsched.dashboard.times import ShownInstant, write_took
from cloudsched.dashboard.words import write_count
from cloudsched.features.table import FEATURES

if TYPE_CHECKING:
    from datetime import datetime

    from jinja2.runtime import Context

    from cloudsched.dashboard.visit import Visit

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


def _show_look(status: Status | str) -> Status:
    if isinstance(status, Status):
        return status
    return show_status(status)


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
TEMPLATES.filters |= FILTERS | {
    "moment": _show_moment,
    "look": _show_look,
    "count": write_count,
    "dates": _hold_dates,
    "n": "{:,}".format,
    "took": write_took,
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
