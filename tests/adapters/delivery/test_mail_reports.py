"""What mail providers are documented to send is understood, and nothing else is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import try_each

from cloudsched.adapters.delivery.mail_reports import read_report
from cloudsched.domain.documents.delivery import MailEvent
from cloudsched.errors import InvalidInput
from cloudsched.web.api.request_bodies import MailEventsQuery

PROVIDERS = MailEventsQuery.model_json_schema()["properties"]["provider"]["enum"]
"""Those that the API names."""
MAIL = {
    "timestamp": "2018-10-08T14:05:45 +0000",
    "messageId": "000001378603177f-7a5433e7-8edb-42ae-af10-f0181f34d6ee-000000",
    "source": "sender@example.com",
    "destination": ["recipient1@example.com"],
    "headersTruncated": False,
    "headers": [
        {"name": "From", "value": "Sender Name <sender@example.com>"},
        {"name": "Message-ID", "value": "<m1@example.com>"},
    ],
    "commonHeaders": {"subject": "Message sent using Amazon SES", "messageId": "<m1@example.com>"},
}
SES_BOUNCE = {
    "notificationType": "Bounce",
    "bounce": {
        "bounceType": "Permanent",
        "bounceSubType": "General",
        "bouncedRecipients": [
            {
                "emailAddress": "recipient1@example.com",
                "action": "failed",
                "status": "5.1.1",
                "diagnosticCode": "smtp; 550 5.1.1 <recipient1@example.com>... User unknown",
            }
        ],
        "reportingMTA": "dns; email.example.com",
        "timestamp": "2016-01-27T14:59:38.237Z",
        "feedbackId": "00000138111222aa-33322211-cccc-cccc-cccc-ddddaaaa068a-000000",
    },
    "mail": MAIL,
}
SES_COMPLAINT = {
    "notificationType": "Complaint",
    "complaint": {
        "userAgent": "AnyCompany Feedback Loop (V0.01)",
        "complainedRecipients": [{"emailAddress": "recipient1@example.com"}],
        "complaintFeedbackType": "abuse",
        "feedbackId": "000001378603177f-18c07c78-fa81-4a58-9dd1-fedc3cb8f49a-000000",
    },
    "mail": MAIL,
}
SES_DELIVERY = {
    "eventType": "Delivery",
    "mail": MAIL,
    "delivery": {
        "timestamp": "2016-01-27T14:59:38.237Z",
        "recipients": ["recipient1@example.com"],
        "smtpResponse": "250 ok:  Message 64111812 accepted",
        "reportingMTA": "a8-70.smtp-out.amazonses.com",
    },
}


def by_sns(message: object) -> dict[str, str]:
    """Return a message as SNS delivers it."""
    return {
        "Type": "Notification",
        "MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
        "TopicArn": "arn:aws:sns:us-west-2:123456789012:MyTopic",
        "Message": json.dumps(message),
        "SignatureVersion": "1",
        "Signature": "EXAMPLEw6JRN...",
    }


def by_mailgun(event: str, **more: object) -> dict[str, Any]:
    """Return an event as Mailgun posts it."""
    data = {
        "event": event,
        "timestamp": 1521472262.908181,
        "recipient": "alice@example.com",
        "message": {"headers": {"to": "Alice <alice@example.com>", "message-id": "m1@example.com"}},
        "delivery-status": {"message": "", "code": 605, "description": "Not delivering to previously bounced address"},
        **more,
    }
    signature = {"token": "68fcc4e7", "timestamp": "1558469581", "signature": "bbc4c4a7"}
    return {"signature": signature, "event-data": data}


def by_postmark(kind: str, **more: object) -> dict[str, Any]:
    """Return an event as Postmark posts it."""
    known = {"ServerID": 23, "MessageStream": "outbound", "MessageID": "883953f4-6105-42a2-a16a-77a8eac79483"}
    return {"RecordType": kind, **known, "Metadata": {"cloudsched": "m1"}, **more}


SENDGRID = {"email": "example@test.com", "timestamp": 1669651200, "smtp-id": "<m1@example.com>", "sg_event_id": "x"}
RECIPIENT, ALICE, TEST, JOHN = "recipient1@example.com", "alice@example.com", "example@test.com", "john@example.com"


DOCUMENTED: list[tuple[str, object, tuple[str, str, bool] | None]] = [
    ("ses", SES_BOUNCE, ("BOUNCED", RECIPIENT, True)),
    ("ses", by_sns(SES_BOUNCE), ("BOUNCED", RECIPIENT, True)),
    (
        "ses",
        {**SES_BOUNCE, "bounce": {**SES_BOUNCE["bounce"], "bounceType": "Transient"}},  # type: ignore[dict-item]
        ("BOUNCED", RECIPIENT, False),
    ),
    ("ses", by_sns(SES_COMPLAINT), ("COMPLAINED", RECIPIENT, True)),
    ("ses", by_sns(SES_DELIVERY), ("DELIVERED", RECIPIENT, True)),
    ("ses", by_sns({"eventType": "Open", "mail": MAIL, "open": {}}), None),
    ("sendgrid", [{**SENDGRID, "event": "bounce", "type": "bounce", "reason": "500"}], ("BOUNCED", TEST, True)),
    ("sendgrid", [{**SENDGRID, "event": "bounce", "type": "blocked", "reason": "4"}], ("BOUNCED", TEST, False)),
    ("sendgrid", [{**SENDGRID, "event": "dropped", "reason": "Bounced Address"}], ("BOUNCED", TEST, True)),
    ("sendgrid", [{**SENDGRID, "event": "dropped", "reason": "Invalid SMTPAPI"}], ("BOUNCED", TEST, False)),
    ("sendgrid", [{**SENDGRID, "event": "spamreport"}], ("COMPLAINED", TEST, True)),
    ("sendgrid", [{**SENDGRID, "event": "delivered", "response": "250 OK"}], ("DELIVERED", TEST, True)),
    ("sendgrid", [{**SENDGRID, "event": "deferred", "response": "400 try again"}], None),
    ("sendgrid", [{**SENDGRID, "event": "open"}], None),
    ("mailgun", by_mailgun("failed", severity="permanent", reason="suppress-bounce"), ("BOUNCED", ALICE, True)),
    ("mailgun", by_mailgun("failed", severity="permanent", reason="old"), ("BOUNCED", ALICE, False)),
    ("mailgun", by_mailgun("failed", severity="temporary", reason="generic"), None),
    ("mailgun", by_mailgun("complained"), ("COMPLAINED", ALICE, True)),
    ("mailgun", by_mailgun("delivered"), ("DELIVERED", ALICE, True)),
    ("mailgun", by_mailgun("opened"), None),
    ("postmark", by_postmark("Bounce", Type="HardBounce", Email=JOHN, Details="Test"), ("BOUNCED", JOHN, True)),
    ("postmark", by_postmark("Bounce", Type="SoftBounce", Email=JOHN), ("BOUNCED", JOHN, False)),
    ("postmark", by_postmark("SpamComplaint", Type="SpamComplaint", Email=JOHN), ("COMPLAINED", JOHN, True)),
    ("postmark", by_postmark("Delivery", Recipient=JOHN, Details="Test"), ("DELIVERED", JOHN, True)),
    ("postmark", by_postmark("Open", Recipient=JOHN), None),
    ("postmark", {**by_postmark("Delivery", Recipient=JOHN), "Metadata": {}}, None),
    (
        "plain",
        {"events": [{"type": "BOUNCED", "messageId": "m1", "address": JOHN, "isPermanent": False}]},
        ("BOUNCED", JOHN, False),
    ),
]


@try_each("provider, content, expected", DOCUMENTED)
def test_a_documented_report_is_understood(
    provider: str, content: object, expected: tuple[str, str, bool] | None
) -> None:
    """Kind, recipient and whether the address is of no use; what is no end of a mail is left out."""
    events = read_report(provider, content).events
    assert [(each.type, each.address, each.is_permanent) for each in events] == ([expected] if expected else [])
    assert all(each.message_id.strip("<>").removesuffix("@example.com") == "m1" for each in events)


def test_sns_asks_to_be_confirmed() -> None:
    """Its address is for the operator to open; no event is made of it."""
    url = "https://sns.us-west-2.amazonaws.com/?Action=ConfirmSubscription&Token=2336412f37"
    report = read_report("ses", {"Type": "SubscriptionConfirmation", "Token": "2336412f37", "SubscribeURL": url})
    assert report == ((), url)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["Message", "mail", "bounce", "event", "event-data", "message", "headers", "RecordType"])
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(content=anything, provider=st.sampled_from(PROVIDERS))
def test_anything_else_is_refused(content: object, provider: str) -> None:
    """As the caller's mistake, never as an error of ours."""
    try:
        report = read_report(provider, content)
    except InvalidInput:
        return
    assert all(isinstance(each, MailEvent) for each in report.events)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_each_provider_that_the_api_names_is_read(provider: str) -> None:
    """Its documented reports are among those above."""
    assert any(provider in each for each in DOCUMENTED)


def test_too_many_events_are_refused() -> None:
    """One request is not a way to keep the API busy."""
    with pytest.raises(InvalidInput, match="1000"):
        read_report("sendgrid", [{**SENDGRID, "event": "delivered"}] * 1001)
