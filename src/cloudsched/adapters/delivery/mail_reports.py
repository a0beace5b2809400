"""Read what mail providers report, each in a form of its own, as events of one form.

Each function is pure: it takes the JSON of a request and returns what it says. What is of another kind, such as an
opened mail, or one that the provider tries again, is left out. Sources:

* Amazon SES by SNS: docs.aws.amazon.com/ses/latest/dg/notification-contents.html, and
  docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html. Switch on "include original headers": SES gives
  mails another Message-ID, and ours is among the headers.
* SendGrid: www.twilio.com/docs/sendgrid/for-developers/tracking-events/event (``smtp-id`` is our Message-ID).
* Mailgun: documentation.mailgun.com/docs/mailgun/user-manual/events/event-structure.
* Postmark: postmarkapp.com/developer/webhooks/webhooks-overview. It gives mails another Message-ID; ours is in the
  metadata ``cloudsched`` with ``CLOUDSCHED_MAIL_IDEMPOTENCY_HEADER=X-PM-Metadata-cloudsched``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cloudsched.domain.documents.delivery import MAX_EVENTS, MailEvent, MailEvents, MailEventType
from cloudsched.domain.documents.json_limits import truncate
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_MAX_ID: Final = 1_000
_MAX_TEXT: Final = 5_000


class Report(NamedTuple):
    """What a request says.

    Attributes:
        events: What has happened to mails.
        confirm_url: What the operator has to open before the provider reports anything.
    """

    events: tuple[MailEvent, ...]
    confirm_url: str | None = None


def read_report(provider: str, content: object) -> Report:
    """Return what a provider's request says.

    Args:
        provider: ``plain``, which is the form of `MailEvents`, ``ses``, ``sendgrid``, ``mailgun`` or ``postmark``.
        content: The request's JSON.

    Raises:
        InvalidInput: It is not what the provider is documented to send.
    """
    url = _as_dict(content).get("SubscribeURL") if provider == "ses" else None
    if isinstance(url, str):
        return Report((), url)
    try:
        found = tuple(each for each in _READERS[provider](content) if each is not None)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(
            "(body)", f"is no report of {provider}", "See docs/how-to/email.md for its settings."
        ) from error
    if len(found) > MAX_EVENTS:
        raise InvalidInput("(body)", f"has {len(found)} events", f"At most {MAX_EVENTS} are taken.")
    return Report(found)


def _read_ses(content: object) -> Iterator[MailEvent | None]:
    body = _as_dict(content)
    if "Message" in body:  # as SNS delivers it, unless "raw message delivery" is on
        body = _as_dict(json.loads(body["Message"]))
    kind = body.get("notificationType") or body["eventType"]
    message_id = _find_header(body["mail"], "message-id")
    if kind == "Bounce":
        bounce = body["bounce"]
        is_permanent = bounce.get("bounceType") == "Permanent"
        for each in bounce["bouncedRecipients"]:
            reason = each.get("diagnosticCode") or bounce.get("bounceSubType")
            yield _event("BOUNCED", message_id, each["emailAddress"], reason, is_permanent=is_permanent)
    elif kind == "Complaint":
        for each in body["complaint"]["complainedRecipients"]:
            reason = body["complaint"].get("complaintFeedbackType")
            yield _event("COMPLAINED", message_id, each["emailAddress"], reason)
    elif kind == "Delivery":
        for address in body["delivery"]["recipients"]:
            yield _event("DELIVERED", message_id, address, body["delivery"].get("smtpResponse"))


def _find_header(mail: dict[str, Any], name: str) -> str | None:
    headers = mail.get("headers") or ()
    values = (each.get("value") for each in headers if str(each.get("name")).lower() == name)
    return next(values, None) or _as_dict(mail.get("commonHeaders")).get("messageId")


def _read_sendgrid(content: object) -> Iterator[MailEvent | None]:
    if not isinstance(content, list):
        raise TypeError
    for each in map(_as_dict, content):
        message_id, address, reason = each.get("smtp-id"), each.get("email"), each.get("reason")
        kind = each["event"]
        if kind == "bounce":
            is_permanent = each.get("type", "bounce") == "bounce"  # "blocked" is about this mail, not the address
            yield _event("BOUNCED", message_id, address, reason, is_permanent=is_permanent)
        elif kind == "dropped":  # the address is on a list of the provider, or the mail was refused
            yield _event("BOUNCED", message_id, address, reason, is_permanent=reason == "Bounced Address")
        elif kind == "spamreport":
            yield _event("COMPLAINED", message_id, address, None)
        elif kind == "delivered":
            yield _event("DELIVERED", message_id, address, each.get("response"))


def _read_mailgun(content: object) -> Iterator[MailEvent | None]:
    data = _as_dict(content)["event-data"]
    message_id, address = data["message"]["headers"]["message-id"], data["recipient"]
    status = _as_dict(data.get("delivery-status"))
    reason = status.get("message") or status.get("description")
    if data["event"] == "failed" and data.get("severity") == "permanent":
        is_permanent = data.get("reason") in {"bounce", "suppress-bounce"}
        yield _event("BOUNCED", message_id, address, reason, is_permanent=is_permanent)
    elif data["event"] == "complained":
        yield _event("COMPLAINED", message_id, address, None)
    elif data["event"] == "delivered":
        yield _event("DELIVERED", message_id, address, reason)


def _read_postmark(content: object) -> Iterator[MailEvent | None]:
    body = _as_dict(content)
    kind, message_id = body["RecordType"], _as_dict(body.get("Metadata")).get("cloudsched")
    if kind == "Bounce":
        is_permanent = body.get("Type") in {"HardBounce", "BadEmailAddress"}
        reason = body.get("Details") or body.get("Description")
        yield _event("BOUNCED", message_id, body.get("Email"), reason, is_permanent=is_permanent)
    elif kind == "SpamComplaint":
        yield _event("COMPLAINED", message_id, body.get("Email"), body.get("Details"))
    elif kind == "Delivery":
        yield _event("DELIVERED", message_id, body.get("Recipient"), body.get("Details"))


def _read_plain(content: object) -> Iterator[MailEvent | None]:
    yield from MailEvents.model_validate(content, by_alias=True, by_name=False).events


_READERS: Final[Mapping[str, Callable[[object], Iterator[MailEvent | None]]]] = {
    "plain": _read_plain,
    "ses": _read_ses,
    "sendgrid": _read_sendgrid,
    "mailgun": _read_mailgun,
    "postmark": _read_postmark,
}


def _event(
    kind: str, message_id: object, address: object, reason: object, *, is_permanent: bool = True
) -> MailEvent | None:
    """Return an event; None if it is about a mail whose Message-ID is not known."""
    if not isinstance(message_id, str) or not 0 < len(message_id) <= _MAX_ID:
        return None
    return MailEvent(
        type=MailEventType(kind),
        message_id=message_id,
        address=address if isinstance(address, str) and len(address) <= _MAX_ID else None,
        is_permanent=is_permanent,
        reason=truncate(reason, _MAX_TEXT) if isinstance(reason, str) else None,
    )


def _as_dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
