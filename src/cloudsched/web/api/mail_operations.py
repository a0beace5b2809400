"""The operations of the links in mails, for which nobody signs in.

The links prove addresses, or end mails. Each opens a page with a button: mail programs and their scanners open links by
themselves, so only the button, a POST, changes anything.
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
    from collections.abc import Callable

    from cloudsched.web.api.operation import ApiCall, Operation


_STYLE = "body{font:16px/1.5 system-ui,sans-serif;max-width:32rem;margin:4rem auto;padding:0 1rem}button{font:inherit}"
_TOKEN = re.compile(r"[A-Za-z0-9_.-]{1,2000}")
_OVER = "This link is over, or was not copied whole."


def _link_operation(method: str, path: str, *statuses: int) -> Callable[[Callable[[ApiCall], Response]], Operation]:
    """Make a function an operation of a link in a mail: whoever has the link may use it, and gets a page."""
    return operation(
        method, path, "Links", right=None, is_link=True, response_schema="text/html", error_statuses=statuses
    )


@_link_operation("GET", "/v1/links/verify/{linkToken}", 404)
def show_verify_link(call: ApiCall) -> Response:
    """Show a page to confirm an e-mail address.

    Changes nothing.
    """
    if not _TOKEN.fullmatch(call.path["linkToken"]):
        return _page("Not confirmed", _OVER, status=404)
    return _page("Confirm your e-mail address", "Messages about your tasks will come to this address.", "Confirm")


@_link_operation("POST", "/v1/links/verify/{linkToken}", 404)
def follow_verify_link(call: ApiCall) -> Response:
    """Confirm an e-mail address, from the mail that was sent to it.

    Safe to repeat.
    """
    read_body(call.request)
    try:
        call.app.container.email_verification.confirm_link(call.path["linkToken"])
    except NotFound:
        return _page("Not confirmed", f"{_OVER} Have another mail sent.", status=404)
    return _page("Confirmed", "This address is yours. You can close this page.")


@_link_operation("GET", "/v1/links/unsubscribe/{linkToken}", 404)
def show_unsubscribe_link(call: ApiCall) -> Response:
    """Show a page to end mails.

    Changes nothing.
    """
    if not _TOKEN.fullmatch(call.path["linkToken"]):
        return _page("Not unsubscribed", _OVER, status=404)
    return _page("Unsubscribe", "Do you want no more mails of this kind?", "Unsubscribe")


@_link_operation("POST", "/v1/links/unsubscribe/{linkToken}", 404)
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
