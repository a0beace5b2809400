"""The people of a history, who change how they want to be reached, and the senders, which fail like everything else."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.engine.harness import MINUTE

from cloudsched import App
from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.delivery_channels import COMPLETION, DeliveryChannel
from cloudsched.domain.documents.person import Person
from cloudsched.engine.ports.sender import OutgoingMessage, Recipient
from cloudsched.engine.state.record_changes import change_person
from cloudsched.errors import DeliveryDelayed, DeliveryRefused, NotAllowed, NotFound

if TYPE_CHECKING:
    from tests.simulation.world import World


OWNER = "ada"
PERSON_SHARE = 0.3
"""The probability that a change is one of a person's preferences."""
_CHANNELS = (DeliveryChannel.EMAIL, DeliveryChannel.MOBILE, DeliveryChannel.WEBHOOK)
_LENGTH_OF_SLOWNESS = 90.0


def add_person(world: World) -> None:
    """Store the owner of all tasks, who has an address in every channel."""
    contacts = {
        "email": {"address": "ada@example.com", "verified": True},
        "devices": [{"token": "phone"}],
        "webhook": {"url": "https://example.com/hook", "verified": True},
    }
    known = {"id": OWNER, "owner": OWNER, "createdAt": world.now, "updatedAt": world.now}
    person = Person.model_validate({**known, **contacts})
    world.real_store.records.write(person, None)
    world.channels.on_person(person)


def change_preferences(world: World, app: App) -> None:
    allowed = tuple(each for each in _CHANNELS if world.random.random() < 0.6)
    changes = {"channels": world.random.choice([dict.fromkeys(Category, allowed), {}])}
    parts = app.container
    change_person(parts.store.records, parts.clock, OWNER, lambda person: person.model_copy(update=changes))


def cancel_all(world: World) -> None:
    """Cancel all tasks but deliveries, each in a process of its own."""

    def cancel(app: App, task_id: str) -> None:
        with suppress(NotFound, NotAllowed):
            app.cancel(task_id)

    for task in world.tasks():
        if task.delivery is None:
            world.start_process("client", world.apps[3], partial(cancel, world.apps[3], task.id))


class FaultySender:
    """A sender that fails before or after it took a message, is slow, or dies with its process."""

    def __init__(self, world: World, channel: str) -> None:
        self._world = world
        self._channel = channel

    def send(self, message: OutgoingMessage, recipient: Recipient) -> str:
        """Take a message, and say so or not. It gives what it has taken a name of its own, as mail servers do."""
        world = self._world
        world.yield_control()
        if world.is_faulty():
            world.log(f"{self._channel} does not answer")
            wait = world.random.choice([None, None, 20 * MINUTE])
            raise DeliveryDelayed(self._channel, "it did not answer", wait)
        if world.is_faulty() and world.random.random() < 0.3:
            world.log(f"{self._channel} refuses {message.id}")
            raise DeliveryRefused("It is refused.")
        if world.is_faulty():
            world.log(f"{self._channel} is slow")
            world.wait(_LENGTH_OF_SLOWNESS * 3 * world.random.random())
        world.log(f"{self._channel} takes {message.id} for {recipient.address}")
        world.channels.on_sent(self._channel, message, recipient)
        world.maybe_crash("after it was sent")
        if world.is_faulty():
            world.log(f"{self._channel}'s answer is lost")
            raise DeliveryDelayed(self._channel, "its answer was lost")
        return name_sent(message.id)


def name_sent(message_id: str) -> str:
    """Return the name under which a sender has taken a message."""
    return f"<{message_id}@example>"


def make_senders(world: World) -> dict[str, FaultySender]:
    return {channel: FaultySender(world, channel) for channel in (*map(str, _CHANNELS), COMPLETION)}


def pick_channels(world: World) -> dict[str, Any]:
    choose = world.random.choice
    callback = choose([None, None, {"webhook": "https://example.com/done"}])
    channels = choose([(), ("EMAIL",), ("EMAIL", "WEB"), ("EMAIL", "MOBILE"), ("MOBILE", "WEBHOOK")])
    return {"delivery_channels": channels, "on_completion": callback}
