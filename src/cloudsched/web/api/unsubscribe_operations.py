"""The operations of the links that end mails, for which nobody signs in.

A link opens a page with a button: mail programs and their scanners open links by themselves, so only the button, a
POST, changes anything.
"""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from werkzeug.wrappers import Response

from cloudsched.errors import NotFound
from cloudsched.web.api.operation import operation
from cloudsched.web.api.parse import read_body

if TYPE_CHECKING:
    from cloudsched.web.api.operation import ApiCall


_STYLE = "body{font:16px/1.5 system-ui,sans-serif;max-width:32rem;margin:4rem auto;padding:0 1rem}button{font:inherit}"
_TOKEN = re.compile(r"[A-Za-z0-9_.-]{1,2000}")
_OVER = "This link is over, or was not copied whole."


@operation(
    "GET",
    "/v1/links/unsubscribe/{linkToken}",
    "Links",
    right=None,
    is_link=True,
    response_schema="text/html",
    error_statuses=(404,),
)
def show_unsubscribe_link(call: ApiCall) -> Response:
    """Show a page to end mails.

    Changes nothing.
    """
    if not _TOKEN.fullmatch(call.path["linkToken"]):
        return _page("Not unsubscribed", _OVER, status=404)
    return _page("Unsubscribe", "Do you want no more mails of this kind?", "Unsubscribe")


@operation(
    "POST",
    "/v1/links/unsubscribe/{linkToken}",
    "Links",
    right=None,
    is_link=True,
    response_schema="text/html",
    error_statuses=(404,),
)
def follow_unsubscribe_link(call: ApiCall) -> Response:
    """End mails of one category.

    One click in a mail program (RFC 8058), or the button of the page. Safe to repeat.
    """
    read_body(call.request)
    try:
        category = call.app.container.unsubscribe_links.follow(call.path["linkToken"])
    except NotFound:
        return _page("Not unsubscribed", _OVER, status=404)
    return _page("Unsubscribed", f"You get no more mails of the kind {category.lower()}.")


def _page(title: str, text: str, button: str | None = None, status: int = 200) -> Response:
    form = "" if button is None else f'<form method="post"><button>{escape(button)}</button></form>'
    html = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style><h1>{escape(title)}</h1><p>{escape(text)}</p>{form}</html>"
    )
    headers = {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
        "frame-ancestors 'none'",
        "Cache-Control": "no-store",
        "Referrer-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
        "X-Robots-Tag": "noindex",
    }
    return Response(html, status, headers)
