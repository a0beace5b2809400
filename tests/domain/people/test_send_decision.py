"""Whether a message may be sent now: what the person wants, has and is doing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.channel import DeliveryChannel
from cloudsched.domain.documents.person import HeldItem, Person
from cloudsched.domain.people.send_decision import (
    Hold,
    SendNow,
    Suppress,
    decide_sending,
    default_channels,
    is_wanted,
    quiet_until,
    without_channel,
)
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.engine.delivery.batches import compose_digest

NOON = datetime(2027, 6, 1, 10, tzinfo=UTC)
"""Noon in Paris."""
MAIL, PUSH, WEB = DeliveryChannel.EMAIL, DeliveryChannel.MOBILE, DeliveryChannel.WEB
EVERY_DAY_AT_8 = Schedule(rrule="FREQ=DAILY", dtstart="2025-01-01T08:00:00", timezone="Europe/Paris")
NIGHT = {"from": "22:00", "until": "07:00"}


def make_person(**fields: Any) -> Person:
    known = {
        "id": "ada",
        "owner": "ada",
        "createdAt": NOON,
        "updatedAt": NOON,
        "timezone": "Europe/Paris",
        "email": {"address": "ada@example.com", "verified": True},
        "devices": [{"token": "t"}],
        **fields,
    }
    return Person.model_validate(known)


def decide(person: Person | None, channel: DeliveryChannel = MAIL, at: datetime = NOON, **more: Any) -> object:
    return decide_sending(person, Category.REMINDER, channel, at, **more)


@pytest.mark.parametrize(
    ("person", "channel", "reason"),
    [
        (None, MAIL, "No contacts"),
        (make_person(email=None), MAIL, "no e-mail address"),
        (make_person(email={"address": "ada@example.com"}), MAIL, "not verified"),
        (make_person(email={"address": "ada@example.com", "verified": False}), MAIL, "not verified"),
        (make_person(devices=[]), PUSH, "no device"),
        (make_person(channels={"REMINDER": ["WEB"]}), MAIL, "does not want REMINDER by EMAIL"),
        (make_person(channels={"REMINDER": []}), PUSH, "does not want"),
    ],
)
def test_what_cannot_or_should_not_be_sent_is_suppressed(
    person: Person | None, channel: DeliveryChannel, reason: str
) -> None:
    """With the reason; the inbox gets it all the same."""
    decision = decide(person, channel)
    assert isinstance(decision, Suppress)
    assert reason in decision.reason
    assert decide(person, WEB) == SendNow()


def test_what_is_wanted_is_sent() -> None:
    """A category that is listed, by its channels; one that is not, by all."""
    assert decide(make_person()) == SendNow()
    assert decide(make_person(channels={"REMINDER": ["EMAIL"]})) == SendNow()
    assert decide(make_person(channels={"REPORT": []})) == SendNow()


def test_quiet_hours_hold_mail_and_push() -> None:
    """Until they end, the same instant for all; a person's program is not held."""
    person = make_person(quietHours=NIGHT)
    late = datetime(2027, 6, 1, 21, tzinfo=UTC)
    morning = datetime(2027, 6, 2, 5, tzinfo=UTC)
    for channel in (MAIL, PUSH):
        for at in (late, late + timedelta(hours=3, microseconds=5)):
            decision = decide(person, channel, at)
            assert isinstance(decision, Hold)
            assert (decision.until, "quiet" in decision.reason) == (morning, True)
        assert decide(person, channel, morning, held_until=morning) == SendNow()
        assert decide(person, channel) == SendNow()


def test_a_digest_holds_mail_until_its_next_time() -> None:
    """And not again once it has waited; push is not held."""
    person = make_person(digest_schedule=EVERY_DAY_AT_8)
    at_8 = datetime(2027, 6, 2, 6, tzinfo=UTC)
    decision = decide(person)
    assert isinstance(decision, Hold)
    assert decision.until == at_8
    assert decide(person, PUSH) == SendNow()
    assert decide(person, at=at_8 + timedelta(seconds=3), held_until=at_8) == SendNow()
    assert isinstance(decide(person, at=at_8 - timedelta(seconds=1), held_until=at_8), Hold)
    again = decide(person, at=at_8 + timedelta(seconds=3))
    assert isinstance(again, Hold)
    assert again.until == at_8 + timedelta(days=1)


def test_a_digest_in_quiet_hours_waits_for_their_end() -> None:
    """What is to be sent at 8:00 of a person who sleeps until 9:30 is sent at 9:30."""
    person = make_person(digest_schedule=EVERY_DAY_AT_8, quietHours={"from": "23:00", "until": "09:30"})
    decision = decide(person)
    assert isinstance(decision, Hold)
    assert decision.until == datetime(2027, 6, 2, 7, 30, tzinfo=UTC)


def test_a_late_opt_out_counts() -> None:
    """What was held is suppressed if the person no longer wants it when the wait is over."""
    at = datetime(2027, 6, 2, 5, tzinfo=UTC)
    assert isinstance(decide(make_person(channels={"REMINDER": []}), at=at, held_until=at), Suppress)


@given(
    at=st.datetimes(datetime(2026, 1, 1), datetime(2029, 1, 1)).map(lambda each: each.replace(tzinfo=UTC)),  # noqa: DTZ001
    zone=st.sampled_from(["Europe/Paris", "America/New_York", "Pacific/Auckland", "Asia/Kolkata"]),
    has_digest=st.booleans(),
)
def test_a_wait_ends(at: datetime, zone: str, *, has_digest: bool) -> None:
    """A hold ends later than now, within two days, outside of quiet hours; and then the message is sent."""
    digest = EVERY_DAY_AT_8.model_copy(update={"timezone": zone}) if has_digest else None
    person = make_person(quietHours=NIGHT, timezone=zone, digest_schedule=digest)
    decision = decide(person, at=at)
    if isinstance(decision, Hold):
        assert at < decision.until < at + timedelta(days=2)
        assert person.quiet_hours is not None
        assert quiet_until(person.quiet_hours, zone, decision.until) == decision.until
        assert decide(person, at=decision.until, held_until=decision.until) == SendNow()
    else:
        assert decision == SendNow()


@given(listed=st.sets(st.sampled_from(DeliveryChannel)) | st.none(), dropped=st.sampled_from([MAIL, PUSH]))
def test_without_a_channel_the_others_stay(listed: set[DeliveryChannel] | None, dropped: DeliveryChannel) -> None:
    """Ending mails about one category ends nothing else."""
    person = make_person(channels={} if listed is None else {"REMINDER": sorted(listed)})
    after = person.model_copy(update={"channels": without_channel(person, Category.REMINDER, dropped)})
    for category in Category:
        for channel in DeliveryChannel:
            expected = is_wanted(person, category, channel) and (category, channel) != (Category.REMINDER, dropped)
            assert is_wanted(after, category, channel) == expected


def test_preferences_are_the_defaults_of_a_task() -> None:
    """Those of its category; none without preferences."""
    person = make_person(channels={"REMINDER": ["EMAIL", "WEB"]})
    assert default_channels(person, Category.REMINDER) == (MAIL, WEB)
    assert default_channels(person, Category.REPORT) == default_channels(None, Category.REMINDER) == ()


def test_several_messages_become_one() -> None:
    """In the order in which they came; a single one stays as it is."""
    items = [
        HeldItem(delivery_id=str(number), title=f"T{number}", body=f"B{number}", created_at=NOON - timedelta(number))
        for number in range(5)
    ]
    assert compose_digest(items[:1]) == ("T0", "B0")
    title, body = compose_digest(items)
    assert title == "5 messages: T4, T3, T2 and 2 more"
    assert [line for line in body.splitlines() if line] == [f"{kind}{n}" for n in (4, 3, 2, 1, 0) for kind in "TB"]
