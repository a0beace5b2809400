"""The operations about mails, for which nobody signs in: links that recipients follow, and what providers report.

The links prove addresses, or end mails. Each opens a page with a button: mail programs and their scanners open
links by themselves, so only the button, a POST, changes anything. Providers report bounces, complaints, and that a mail
has arrived.
"""

from __future__ import annotations

import hmac
import json
import logging
import re
from html import escape
from typing import TYPE_CHECKING

from werkzeug.wrappers import Response

from cloudsched.domain.documents.delivery import MailEvents
from cloudsched.domain.documents.responses import MailEventCount
from cloudsched.errors import Forbidden, InvalidInput, NotFound, Unauthenticated
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.operation import operation
from cloudsched.web.api.parse import read_body
from cloudsched.web.api.responses import json_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from werkzeug.wrappers import Request

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


log = logging.getLogger(__name__)


@operation(
    "POST",
    "/v1/mail-events",
    "Links",
    right=None,
    is_link=True,
    query=bodies.MailEventsQuery,
    content=MailEvents,
    response_schema="MailEventCount",
    error_statuses=(401, 403),
)
def record_mail_events(call: ApiCall, query: bodies.MailEventsQuery) -> Response:
    """Take what a mail provider reports.

    The caller proves itself with `CLOUDSCHED_MAIL_EVENTS_SECRET`, as the password of HTTP Basic (under any name) or as
    a bearer token. `?provider=` names whose form the body has: that of Amazon SES (by SNS), SendGrid, Mailgun or
    Postmark, or without it the one below. A permanent bounce or a complaint ends mail to the address until it is
    verified again. Mails that were not sent from here are passed over. Safe to repeat.
    """
    from cloudsched.adapters.delivery.mail_reports import read_report  # noqa: PLC0415 - few APIs get any

    _require_secret(call.request, call.app.container.settings.mail_events_secret)
    report = read_report(query.provider, _read_json(call.request))
    if report.confirm_url is not None:
        log.warning("open this address, so that the mail provider reports here: %s", report.confirm_url)
    record = call.app.container.mail_events.record
    count = sum([record(each) for each in report.events])
    return json_response(MailEventCount(recorded=count).to_wire())


def _require_secret(request: Request, secret: str | None) -> None:
    if secret is None:
        raise Forbidden("Nothing is taken from mail providers here: set CLOUDSCHED_MAIL_EVENTS_SECRET.")
    authorization = request.authorization
    given = "" if authorization is None else authorization.token or authorization.password or ""
    if not hmac.compare_digest(given.encode("utf-8", "surrogatepass"), secret.encode()):
        raise Unauthenticated("Mail providers report with CLOUDSCHED_MAIL_EVENTS_SECRET as the password (HTTP Basic).")


def _read_json(request: Request) -> object:
    try:
        return json.loads(read_body(request).decode())
    except (ValueError, RecursionError) as error:
        raise InvalidInput("(body)", "is not JSON", "Send what the provider is documented to send.") from error
