"""What comes in quiet hours or for a digest is held, and then sent in one piece, once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from cloudsched import App, Settings
from cloudsched.domain.documents.person import HeldBatch, PersonSpec
from cloudsched.engine.delivery.batches import HeldBatches
from cloudsched.engine.ports.authority import OWN_CODE
from cloudsched.engine.ports.task_query import TaskQuery
from cloudsched.errors import DeliveryDelayed
from cloudsched.testing import Simulation

if TYPE_CHECKING:
    from collections.abc import Iterator

app = App(Settings())
HOUR = timedelta(hours=1)
PERSON: dict[str, Any] = {
    "name": "Ada",
    "email": {"address": "ada@example.com", "verified": True},
    "devices": [{"token": "t"}],
}


@app.handler("say")
def say(payload: dict[str, str]) -> str:
    """Return what is delivered."""
    return payload["text"]


@pytest.fixture
def sim() -> Iterator[Simulation]:
    """It is midnight in UTC."""
    with Simulation(app) as simulation:
        yield simulation


def put(sim: Simulation, **fields: Any) -> None:
    sim.app.container.people.put("ada", PersonSpec.model_validate({**PERSON, **fields}), by=OWN_CODE)


def tell(sim: Simulation, text: str, after: timedelta, channel: str = "EMAIL", category: str = "REMINDER") -> None:
    sim.app.create(
        owner="ada",
        title=text,
        handler="say",
        payload={"text": f"{text}!"},
        schedule=sim.now + after,
        delivery_channels=[channel],
        category=category,
    )


@pytest.mark.parametrize(
    ("channel", "fields"),
    [
        ("EMAIL", {"digest": "every day at 8:00"}),
        ("EMAIL", {"quietHours": {"from": "22:00", "until": "08:00"}}),
        ("MOBILE", {"quietHours": {"from": "22:00", "until": "08:00"}}),
    ],
)
def test_what_was_held_is_one_message(sim: Simulation, channel: str, fields: dict[str, Any]) -> None:
    """With all that came, in its order, when the wait is over; what comes later is for the next time."""
    put(sim, **fields)
    for number, text in enumerate(("First", "Second", "Third"), 1):
        tell(sim, text, number * HOUR, channel)
    sim.advance(7 * HOUR)
    assert not sim.sent(channel)
    sim.advance(2 * HOUR)
    (sent,) = sim.sent(channel, to="ada")
    assert sent.title == "3 messages: First, Second, Third"
    assert [sent.body.index(text) for text in ("First!", "Second!", "Third!")] == sorted(
        sent.body.index(text) for text in ("First!", "Second!", "Third!")
    )
    sim.advance(48 * HOUR)
    assert len(sim.sent(channel)) == 1


@pytest.mark.parametrize(
    ("evening", "changes"),
    [
        (datetime(2027, 3, 27, 19, tzinfo=UTC), timedelta(hours=-1)),
        (datetime(2027, 10, 30, 18, tzinfo=UTC), timedelta(hours=1)),
    ],
)
def test_a_digest_comes_at_8_by_the_clock_on_the_wall_when_that_changes(evening: datetime, changes: timedelta) -> None:
    """In Paris it is 20:00, and the night has 11 or 13 hours until 8:00; so the digest is an hour earlier or later."""
    with Simulation(app, evening) as sim:
        put(sim, timezone="Europe/Paris", digest="every day at 8:00")
        tell(sim, "First", HOUR)
        tell(sim, "Second", 2 * HOUR)
        night = 12 * HOUR + changes
        sim.advance(night - timedelta(minutes=1))
        assert not sim.sent("EMAIL")
        sim.advance(timedelta(minutes=2))
        assert [each.title for each in sim.sent("EMAIL")] == ["2 messages: First, Second"]
        tell(sim, "Third", HOUR)
        sim.advance(24 * HOUR)
        paris = ZoneInfo("Europe/Paris")
        assert [f"{each.at.astimezone(paris):%H:%M}" for each in sim.sent("EMAIL", to="ada")] == ["08:00", "08:00"]


def test_a_single_message_stays_as_it_is(sim: Simulation) -> None:
    """Nothing says that it has waited."""
    put(sim, digest="every day at 8:00")
    tell(sim, "Only", HOUR)
    sim.advance(9 * HOUR)
    (sent,) = sim.sent("EMAIL")
    assert (sent.title, sent.body) == ("Only", "Only!")


def test_a_late_opt_out_takes_a_message_out_of_the_piece(sim: Simulation) -> None:
    """Only what is still wanted when it is sent."""
    put(sim, digest="every day at 8:00")
    tell(sim, "Wanted", HOUR)
    tell(sim, "Also", HOUR)
    tell(sim, "Unwanted", HOUR, category="REPORT")
    sim.advance(7 * HOUR)
    put(sim, digest="every day at 8:00", channels={"REPORT": []})
    sim.advance(2 * HOUR)
    (sent,) = sim.sent("EMAIL")
    assert "Wanted!" in sent.body
    assert "Also!" in sent.body
    assert "Unwanted" not in sent.title + sent.body


def test_a_channel_that_fails_delays_the_piece(sim: Simulation) -> None:
    """It is sent once, whole, when the channel works again."""
    put(sim, digest="every day at 8:00")
    for text in ("First", "Second"):
        tell(sim, text, HOUR)
    sim.channel("EMAIL").fails(2)
    sim.advance(30 * HOUR)
    (sent,) = sim.sent("EMAIL")
    assert sent.title.startswith("2 messages")


def test_a_process_that_dies_after_sending_repeats_the_same_message(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most once more, under the same id, by which receivers know it."""
    put(sim, digest="every day at 8:00")
    for text in ("First", "Second"):
        tell(sim, text, HOUR)
    sim.advance(7 * HOUR)
    finish, deaths = HeldBatches.finish, [1]

    def die(self: HeldBatches, key: str, message_id: str) -> None:
        if deaths:
            deaths.pop()
            raise RuntimeError("it dies")
        finish(self, key, message_id)

    monkeypatch.setattr(HeldBatches, "finish", die)
    sim.advance(24 * HOUR)
    sent = sim.sent("EMAIL")
    assert len(sent) == 2
    assert len({(each.title, each.message.id) for each in sent}) == 1


def test_the_first_id_under_which_a_batch_was_sent_stays(sim: Simulation) -> None:
    """Of two senders of one batch, the second one's claim having run out meanwhile: their records name one message."""
    put(sim, digest="every day at 8:00")
    tell(sim, "Only", HOUR)
    sim.advance(24 * HOUR)
    container = sim.app.container
    (batch,) = container.store.records.list(HeldBatch, "ada", limit=10)
    HeldBatches(container.store.records, container.clock).finish(batch.id, "another")
    assert container.store.records.list(HeldBatch, "ada", limit=10) == [batch]
    assert batch.sent_as not in {None, "another"}


@pytest.mark.parametrize("texts", [["Only"], ["First", "Second"]])
def test_a_record_names_the_message_as_its_sender_did(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch, texts: list[str]
) -> None:
    """Also that of a delivery whose process died once the batch was finished, and of those that sent nothing."""
    put(sim, digest="every day at 8:00")
    for text in texts:
        tell(sim, text, HOUR)
    sim.advance(7 * HOUR)
    finish, deaths = HeldBatches.finish, [1]

    def die(self: HeldBatches, key: str, message_id: str) -> None:
        finish(self, key, message_id)
        if deaths:
            deaths.pop()
            raise RuntimeError("it dies")

    monkeypatch.setattr(HeldBatches, "finish", die)
    sim.advance(24 * HOUR)
    (sent,) = sim.sent("EMAIL")
    deliveries = sim.app.container.store.list_tasks(TaskQuery(owner="ada", is_delivery=True), limit=10).items
    records = [record for each in deliveries for record in sim.executions(each.id)]
    assert [each.content for each in records] == [{"messageId": sent.id}] * len(texts)


def test_a_mail_can_be_ended_with_one_click() -> None:
    """Its link ends the category; where the API has no address that people reach, there is none."""
    with Simulation(app, public_url="https://api.example") as sim:
        put(sim)
        tell(sim, "First", HOUR)
        sim.advance(2 * HOUR)
        (sent,) = sim.sent("EMAIL")
        url = sent.message.unsubscribe_url
        assert url is not None
        assert url.startswith("https://api.example/v1/links/unsubscribe/")
        sim.app.container.unsubscribe_links.follow(url.rpartition("/")[2])
        tell(sim, "Second", HOUR)
        tell(sim, "Report", HOUR, category="REPORT")
        sim.advance(2 * HOUR)
        assert [each.title for each in sim.sent("EMAIL")] == ["First", "Report"]


@pytest.mark.parametrize("asked", [timedelta(seconds=1), timedelta(hours=2)])
def test_a_channel_that_says_when_it_can_is_asked_then(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch, asked: timedelta
) -> None:
    """And not before the policy's own pause: a short one would use the attempts up."""
    put(sim)
    calls: list[datetime] = []

    def send(*_: object) -> str:
        calls.append(sim.now)
        if len(calls) == 1:
            raise DeliveryDelayed("The mail server", "it is busy", asked)
        return "1"

    monkeypatch.setattr(sim.channel("EMAIL"), "send", send)
    tell(sim, "Only", HOUR)
    sim.advance(5 * HOUR)
    assert len(calls) == 2
    least = max(asked, timedelta(seconds=4))  # five, less a tenth that is left to chance
    assert least <= calls[1] - calls[0] < least + timedelta(minutes=1)
