"""The way in for what mail providers report: bounces, complaints, and that a mail has arrived."""

from __future__ import annotations

import hmac
import json
import logging
from typing import TYPE_CHECKING

from cloudsched.domain.documents.delivery import MailEvents
from cloudsched.domain.documents.responses import MailEventCount
from cloudsched.errors import Forbidden, InvalidInput, Unauthenticated
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.operation import operation
from cloudsched.web.api.parse import read_body
from cloudsched.web.api.responses import json_response

if TYPE_CHECKING:
    from werkzeug.wrappers import Request, Response

    from cloudsched.web.api.operation import ApiCall

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
