"""Whether a message may be sent: what the person wants, and has."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.delivery_channels import DeliveryChannel
from cloudsched.domain.documents.person import Person, is_wanted
from cloudsched.people.reach import drop_channel, find_obstacle

WEBHOOK = {"webhook": {"url": "https://hooks.example.com/in"}}
NOON = datetime(2027, 6, 1, 10, tzinfo=UTC)
MAIL, PUSH, WEB = DeliveryChannel.EMAIL, DeliveryChannel.MOBILE, DeliveryChannel.WEB


def make_person(**fields: Any) -> Person:
    known = {
        "id": "ada",
        "owner": "ada",
        "createdAt": NOON,
        "updatedAt": NOON,
        "email": {"address": "ada@example.com", "verified": True},
        "devices": [{"token": "t"}],
        **fields,
    }
    return Person.model_validate(known)


def find(person: Person | None, channel: DeliveryChannel = MAIL) -> str | None:
    return find_obstacle(person, Category.REMINDER, channel)


@pytest.mark.parametrize(
    ("person", "channel", "reason"),
    [
        (None, MAIL, "No contacts"),
        (make_person(email=None), MAIL, "No e-mail address"),
        (make_person(email={"address": "ada@example.com"}), MAIL, "No verified"),
        (make_person(email={"address": "ada@example.com", "verified": False}), MAIL, "No verified"),
        (make_person(devices=[]), PUSH, "No device"),
        (make_person(channels={"REMINDER": ["WEB"]}), MAIL, "Not wanted by the person: REMINDER by EMAIL"),
        (make_person(channels={"REMINDER": []}), PUSH, "Not wanted"),
    ],
)
def test_what_cannot_or_should_not_be_sent_is_suppressed(
    person: Person | None, channel: DeliveryChannel, reason: str
) -> None:
    """With the reason; the inbox gets it all the same."""
    assert reason in str(find(person, channel))
    assert person is None or find(person, WEB) is None


@given(listed=st.sets(st.sampled_from(DeliveryChannel)) | st.none(), dropped=st.sampled_from([MAIL, PUSH]))
def test_without_a_channel_the_others_stay(listed: set[DeliveryChannel] | None, dropped: DeliveryChannel) -> None:
    """Ending mails about one category ends nothing else."""
    person = make_person(channels={} if listed is None else {"REMINDER": sorted(listed)})
    after = person.model_copy(update={"channels": drop_channel(person, Category.REMINDER, dropped)})
    for category in Category:
        for channel in DeliveryChannel:
            expected = is_wanted(person, category, channel) and (category, channel) != (Category.REMINDER, dropped)
            assert is_wanted(after, category, channel) == expected
