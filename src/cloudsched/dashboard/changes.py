"""What a page asks for again and again: whether anything has changed, and the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from werkzeug.exceptions import HTTPException

from cloudsched.dashboard.api import execution_path
from cloudsched.dashboard.routes import MAP
from cloudsched.dashboard.views.execution import hash_record

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

    from cloudsched.dashboard.api import Api


def find_cursor(api: Api, request: Request) -> str:
    """Return a text that changes once the page that asks should be fetched again.

    An open execution is read itself, since its progress does not change the task. The page names its address below the
    root: behind a proxy, only browsers know its whole path.
    """
    path = request.args.get("at", "").removeprefix(request.root_path).lstrip("/")
    try:
        endpoint, arguments = MAP.bind("").match(f"/{path}", method="GET")
    except HTTPException:
        endpoint = ""
    if endpoint != "execution" or not request.args.get("open"):
        return str(api.get("/v1/changes")["cursor"])
    return hash_record(api.get(execution_path(**arguments)))
