"""The invariants of deliveries, which carry results to a person who changes their mind, by senders that fail.

D1  The commit that records a success which says something, or a failure that is told, creates one delivery for each
    channel that its task names, if it does not exist yet; the commit that ends an execution creates the callback; and
    no other commit creates any.
D2  What was recorded as sent is not sent again by anything that starts after that; without faults nothing is sent
    twice. All repeats have the same id and the same text, but for how late they are.
D3  Nothing is sent to a person who did not want it when the attempt began.
D4  In the end each delivery has ended with one record, and what is recorded as sent was sent, under that name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tests.simulation.actors_channels import name_sent
from tests.simulation.invariants_runs import fail

from cloudsched import Execution, Task
from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.delivery_channels import COMPLETION, NOT_DELIVERED, DeliveryChannel, derive_delivery_id
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.execution import Message as InboxMessage
from cloudsched.domain.documents.person import Person, is_wanted
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.transitions.commit import TaskWrite
from cloudsched.domain.transitions.notices import says_nothing
from cloudsched.engine.ports.sender import OutgoingMessage, Recipient

if TYPE_CHECKING:
    from tests.simulation.world import Process, World


class ChannelInvariants:
    """Watches the commits and the senders of a world, and raises as soon as a rule does not hold."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._made: dict[str, Task] = {}
        """The deliveries by their ids."""
        self._ended: set[tuple[str, object, str, ExecutionStatus]] = set()
        """What has ended, and how: what is recorded of it again says what became of its deliveries."""
        self._texts: dict[str, tuple[str, str, str]] = {}
        """What was sent under an id, and to whom."""
        self._recorded: dict[str, int] = {}
        """The ids that were recorded as sent, and how many processes there were by then."""
        self._people: list[tuple[int, Person]] = []
        """How the person wanted to be reached, since how many processes there were."""
        self.sent: list[str] = []
        """The ids of all messages, in order."""

    def on_person(self, person: Person) -> None:
        """Note how a person wants to be reached from now on."""
        self._people.append((self._world.process_count, person))

    def on_commit(
        self,
        task: Task,
        executions: Sequence[Execution],
        others: Sequence[TaskWrite],
        messages: Sequence[InboxMessage],
    ) -> None:
        if not self._world.fault_profile.has_channels:
            return
        expected = {} if task.delivery else dict(self._expect(task, executions, messages))
        for other in others:
            if other.task.delivery is not None:
                if other.task.id not in expected or other.task.id in self._made:
                    fail(f"D1: {other.task.id} came with {task.id}, which has nothing to deliver by it")
                self._made[other.task.id] = other.task
        for delivery_id, what in expected.items():
            if delivery_id not in self._made:
                fail(f"D1: {what} ended without its delivery {delivery_id}")
        if task.delivery is not None and task.status is TaskStatus.COMPLETED:
            for each in executions:
                self._recorded.setdefault(_recorded_name(each), self._world.process_count)

    def _expect(
        self, task: Task, executions: Sequence[Execution], messages: Sequence[InboxMessage]
    ) -> Sequence[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for each in executions:
            ended = (task.id, task.created_at, each.id, each.status)
            if ended in self._ended and (each.message or "").startswith(NOT_DELIVERED):
                continue  # its task may name other channels by now
            if each.status.is_final:
                self._ended.add(ended)
            channels: list[str] = []
            said = [message.id for message in messages if message.execution_id == each.id]
            named = [channel for channel in task.delivery_channels if channel is not DeliveryChannel.WEB]
            if each.status is ExecutionStatus.SUCCEEDED and (said or not says_nothing(each.content)):
                channels += named
            elif f"{task.id}-{each.id}-0" in said:
                channels += [f"FAILURE {channel}" for channel in named]
            if each.status.is_final and task.on_completion is not None:
                channels.append(COMPLETION)
            for channel in channels:
                key = derive_delivery_id(task.id, task.created_at, each.id, channel, task.owner)
                found.append((key, f"{task.id}'s {each.id}, {each.status}, by {channel}"))
        return found

    def on_sent(self, channel: str, message: OutgoingMessage, recipient: Recipient) -> None:
        process = self._world.current
        assert process
        text = (message.title, re.sub(r"^\d+ \w+ late\.\n\n", "", message.body), recipient.address)
        if self._texts.setdefault(message.id, text) != text:
            fail(f"D2: {message.id} is {text}, and was {self._texts[message.id]}")
        if message.id in self.sent and self._world.fault_profile.is_fault_free:
            fail(f"D2: {message.id} is sent twice, and nothing has failed")
        if self._recorded.get(name_sent(message.id), process.number) < process.number:
            fail(f"D2: {message.id} is sent again, although it was recorded as sent")
        if message.id not in {each.delivery.message_id for each in self._made.values() if each.delivery}:
            fail(f"D1: {message.id} is of no delivery")
        self.sent.append(message.id)
        if channel != COMPLETION:
            self._check_wanted(DeliveryChannel(channel), process)

    def _check_wanted(self, channel: DeliveryChannel, process: Process) -> None:
        before = [person for since, person in self._people if since < process.number]
        while_it_ran = [person for since, person in self._people if since >= process.number]
        states = [*before[-1:], *while_it_ran]
        if not any(is_wanted(person, Category.REMINDER, channel) for person in states):
            fail(f"D3: the person did not want {channel} when {process.name} began")

    def check_end_state(self) -> None:
        """Check that every delivery has ended, and that its record says what has happened."""
        store = self._world.real_store
        for delivery_id, made in self._made.items():
            stored = store.load(delivery_id)
            if stored is None or stored.task.deleted_at is not None:
                origin = made.parent and store.load(made.parent.task_id)
                if origin and origin.task.created_at <= made.created_at and not origin.task.deleted_at:
                    fail(f"D4: {delivery_id} is gone, and its task is not")
                continue
            records = store.search.list_executions(delivery_id, limit=10).items
            if not stored.task.has_ended or len(records) != 1 or not records[0].status.is_final:
                fail(f"D4: {delivery_id} is {stored.task.status} with {[each.status for each in records]}")
            is_sent = stored.task.status is TaskStatus.COMPLETED
            if is_sent and _recorded_name(records[0]) not in map(name_sent, self.sent):
                fail(f"D4: {delivery_id} is recorded as sent, and was not")


def _recorded_name(record: Execution) -> str:
    content: Any = record.content
    return str(content["messageId"]) if isinstance(content, dict) else ""
