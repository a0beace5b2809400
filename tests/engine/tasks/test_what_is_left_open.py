"""What a call leaves out stays as it is, or is told, or is refused: zones, owners, and parts of payloads and locks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from tests.engine.harness import DAY

from cloudsched import App, Schedule, Task
from cloudsched.errors import InvalidInput
from cloudsched.testing import Simulation

PARIS = "Europe/Paris"


class Address(BaseModel):
    city: str
    floor: int = 0


class Dose(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    drug_name: str
    dose: str = "1"
    address: Address = Field(default_factory=lambda: Address(city="Rome"))


@dataclass
class Plain:
    name: str
    loud: bool = False


@pytest.fixture
def app() -> Iterator[App]:
    app = App()

    @app.handler("take")
    def take(payload: Dose) -> None: ...

    @app.handler("plain")
    def plain(payload: Plain) -> None: ...

    @app.handler("any")
    def take_any(payload: dict[str, Any]) -> None: ...

    with Simulation(app):
        yield app


def create(app: App, **fields: Any) -> Task:
    payload = {"drugName": "x", "dose": "250", "address": {"city": "Oslo", "floor": 3}}
    return app.create(**{"owner": "ada", "handler": "take", "payload": payload, **fields})


AT = datetime(2027, 6, 1, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule(rrule="FREQ=DAILY;BYHOUR=10"),
        Schedule.every(DAY),
        Schedule.parse("0 10 * * *"),
        Schedule.parse("FREQ=DAILY;BYHOUR=10"),
        Schedule.once(AT),
        Schedule.after(DAY),
        AT,
        "every day at 10",
        "0 10 * * *",
        {"rrule": "FREQ=DAILY;BYHOUR=10"},
        {"dtstart": "2027-06-01T09:00:00", "rdates": ["2027-06-02T09:00:00"]},
        {"local": "2027-06-01T09:00:00"},
    ],
    ids=str,
)
def test_a_schedule_without_a_zone_stays_in_the_tasks(app: App, schedule: Any) -> None:  # noqa: ANN401 - in any form
    """In each form in which it is given, and the answer says so."""
    task = create(app, schedule="every day at 9", timezone=PARIS)
    edited = app.update(task.id, schedule=schedule)
    assert edited.timezone == PARIS
    assert f"The time zone stays {PARIS}." in edited.assumed


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule(rrule="FREQ=DAILY;BYHOUR=10", timezone="UTC"),
        Schedule.every(DAY, timezone="UTC"),
        Schedule.parse("0 10 * * *", "UTC"),
        {"rrule": "FREQ=DAILY;BYHOUR=10", "timezone": "UTC"},
        {"rrule": "FREQ=DAILY;BYHOUR=10", "timezone": None},
    ],
    ids=str,
)
def test_a_zone_that_is_named_is_taken(app: App, schedule: Any) -> None:  # noqa: ANN401 - as above
    """UTC, too, and null resets it."""
    task = create(app, schedule="every day at 9", timezone=PARIS)
    assert app.update(task.id, schedule=schedule).timezone == "UTC"


def test_a_schedule_that_follows_its_owner_goes_on_following(app: App) -> None:
    """But an instant, or a delay, is the same everywhere."""
    app.put_person("ada", timezone=PARIS)
    task = create(app, schedule="every day at 9", timezone="owner")
    edited = app.update(task.id, schedule={"rrule": "FREQ=DAILY;BYHOUR=10"})
    assert (edited.schedule.follows_owner, edited.timezone) == (True, PARIS)
    assert not app.update(task.id, schedule=AT).schedule.follows_owner


@pytest.mark.parametrize("zone", ["Etc/GMT+2", "Etc/GMT-2"])
@pytest.mark.parametrize(
    "when",
    [
        lambda zone: {"schedule": Schedule(rrule="FREQ=DAILY", timezone=zone)},
        lambda zone: {"schedule": "0 9 * * *", "timezone": zone},
        lambda zone: {"schedule": "every day at 9 am", "timezone": zone},
        lambda zone: {"schedule": f"every day at 9 am {zone}"},
        lambda zone: {"schedule": {"rrule": "FREQ=DAILY", "timezone": zone}},
    ],
)
def test_a_zone_that_counts_west_is_told(app: App, zone: str, when: Callable[[str], dict[str, Any]]) -> None:
    """Once, with what it means, in each form."""
    side = "behind" if "+" in zone else "ahead of"
    assert create(app, **when(zone)).assumed.count(f"{zone} is 2 hours {side} UTC.") == 1


@pytest.mark.parametrize(
    ("payload", "lost"),
    [
        ({"drugName": "y"}, "address, dose"),
        ({"drug_name": "y", "dose": "250"}, "address"),
        ({"drugName": "y", "dose": "2", "address": {"city": "Oslo"}}, "address.floor"),
        ({"drugName": "y", "dose": None, "address": {"city": "Oslo"}}, "address.floor"),
    ],
)
def test_a_part_of_a_payload_is_refused(app: App, payload: dict[str, Any], lost: str) -> None:
    """It names what would be lost, in nested models too, and changes nothing."""
    task = create(app)
    with pytest.raises(InvalidInput, match=f"leaves out {lost}, which"):
        app.update(task.id, payload=payload, title="Other")
    assert app.get(task.id) == task


@pytest.mark.parametrize(
    "payload",
    [
        None,
        {"drugName": "y", "dose": "5", "address": {"city": "Oslo", "floor": 4}},
        {"drugName": "y", "dose": None, "address": None},
        {"drugName": "y", "dose": None, "address": {"city": "Oslo", "floor": None}},
        Dose(drug_name="y"),
    ],
    ids=str,
)
def test_a_whole_payload_or_one_with_null_is_taken(app: App, payload: object) -> None:
    """Null resets a field, and null for the payload all of them. A model's object is whole."""
    task = create(app, payload={"drugName": "x", "dose": "250", "address": {"city": "Oslo", "floor": 3}})
    if payload is None:  # a required field has no default
        with pytest.raises(InvalidInput, match="Field required"):
            app.update(task.id, payload=None)
        return
    app.update(task.id, payload=payload)


def test_what_is_not_lost_may_be_left_out(app: App) -> None:
    """A field with its default's value, the fields of another handler, and those of JSON without a model."""
    task = create(app, payload={"drugName": "x", "dose": "1"})
    assert app.update(task.id, payload={"drugName": "y"}).payload == {"drugName": "y"}
    assert app.update(task.id, handler="any", payload={"a": 1}).payload == {"a": 1}
    assert app.update(task.id, payload={"b": 1}).payload == {"b": 1}
    app.update(task.id, handler="plain", payload={"name": "Ada", "loud": True})
    with pytest.raises(InvalidInput, match="leaves out loud"):
        app.update(task.id, payload={"name": "Bob"})


def test_the_details_of_a_lock_end_with_it(app: App) -> None:
    """An edit that takes the key away takes its limit along, and a limit alone is refused by each way to write it."""
    task = create(app, lock_key="printer", lock_limit=3)
    assert app.update(task.id, lock_key=None).lock_limit == 1
    for change in ({"lock_limit": 2}, {"lock_scope": "owner"}):
        with pytest.raises(InvalidInput, match="Give a lock_key"):
            app.update(task.id, **change)
        with pytest.raises(InvalidInput, match="Give a lock_key"):
            create(app, **change)
    with pytest.raises(InvalidInput, match="no meaning without a lockKey"):
        create(app, handler=None, payload={}, children=[{"handler": "any", "lockScope": "owner"}])


def test_a_task_without_an_owner_says_so(app: App) -> None:
    """By each way to create one. Nobody is asked for work that is nobody's, and `system` may be meant."""
    created = [
        app.create(handler="any"),
        app.run_now("any"),
        app.create(handler="any", schedule="every day at 9 am"),
        app.create(handler="any", schedule=AT),
    ]
    for task in created:
        assert "No owner was given, so it belongs to system." in task.assumed
    meant = app.create(handler="any", owner="system", delivery_channels=["WEB"])
    assert not any("owner" in each for each in meant.assumed)
    assert app.create(handler="any", delivery_channels=["OPERATOR"]).owner == "system"


@pytest.mark.parametrize("name", ["password", "smtpPassword", "api_key", "apiKey", "access_token", "client_secret"])
def test_a_secret_as_text_is_told(app: App, name: str) -> None:
    """The name of a field tells; other fields, and what is no text, say nothing."""
    told = app.create(owner="ada", handler="any", payload={name: "hunter2", "passwords": 2, "secretary": "Ada"}).assumed
    assert [each.split()[0] for each in told if "secret" in each] == [f"payload.{name}"]
    assert "hunter2" not in str(told)
    many = {f"a{number}_{name}": "x" for number in range(2_000)}
    assert len(app.create(owner="ada", handler="any", payload=many).assumed) < 100


@pytest.mark.parametrize(
    ("more", "is_told"), [({}, True), ({"delivery_channels": []}, False), ({"owner": "system"}, False)]
)
def test_a_reminder_that_is_sent_to_nobody_says_so(app: App, more: dict[str, Any], is_told: bool) -> None:  # noqa: FBT001 - a case
    """It has no channel. Whoever means that gives an empty list; what belongs to nobody tells nobody."""
    app.handler("remind", draft="A reminder")(lambda: "Tea")
    for fields in ({"handler": "remind", "payload": {}}, {"category": "REMINDER"}):
        told = [each for each in create(app, **fields, **more).assumed if 'give delivery_channels=["WEB"]' in each]
        assert bool(told) == is_told
