"""The built-in handler of deliveries: look up the recipient, send once, and interpret the answer.

Tasks have everything else: the lease, the retries, the expiration, the sweep. If the process dies between
sending and recording, the message is sent once more, under the same id.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.delivery_channels import CALLBACKS, PING, Delivery, DeliveryChannel
from cloudsched.domain.documents.run_counts import LATE
from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.transitions.notices import say_late
from cloudsched.domain.transitions.outcome import Cancel, Done, Fail, Outcome, Retry, Unreached
from cloudsched.engine.ports.sender import OutgoingMessage, Recipient, Sender, Suppress
from cloudsched.errors import AddressGone, DeliveryDelayed, DeliveryRefused
from cloudsched.features.deliveries.fields import PingEvent
from cloudsched.people.reach import say_not_set_up

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from random import Random

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.handlers.context import Context
    from cloudsched.people.recipients import PeopleRecipients

log: Final = own_logger(__name__)

_START: Final = f"ping.{PingEvent.START}"
MAX_WAIT: Final = timedelta(days=1)
"""The longest wait that a receiver may ask for."""


class DeliveryHandler:
    """Sends deliveries."""

    def __init__(
        self,
        senders: Callable[[], Mapping[str, Sender]],
        recipients: Callable[[], PeopleRecipients],
        find_answer_url: Callable[[str, str, datetime], str | Suppress | None],
        random: Random,
        has_ended: Callable[[str, str], bool],
    ) -> None:
        self._has_ended = has_ended
        self._random = random
        self._senders = senders
        self._recipients = recipients
        self._find_answer_url = find_answer_url

    def run(self, context: Context, payload: dict[str, Any]) -> Outcome:
        """Send a delivery."""
        task = context.task
        delivery = task.delivery
        if delivery is None:
            return Fail("The task is not the delivery of an execution.")
        sender = self._senders().get(delivery.channel)
        if sender is None:
            return Fail(say_not_set_up(delivery.channel))
        found = self._find(task, delivery, payload)
        if isinstance(found, Suppress):
            return (Unreached if found.is_unreached else Cancel)(found.reason)

        message = _to_message(delivery, payload)
        if delivery.channel not in CALLBACKS:
            message = self._complete_for_person(message, task.owner, delivery, context.durable_run.clock_now())
        if delivery.asks is not None and delivery.asked_at is not None:
            url = self._find_answer_url(task.owner, delivery.asks, delivery.asked_at)
            if isinstance(url, Suppress):
                return Cancel(url.reason)
            more = {} if url is None else {"answerUrl": url}
            message = replace(message, question_id=task.id, answer_url=url, data={**message.data, **more})
        return self._send_to_all(sender, message, task, delivery, found)

    def _complete_for_person(
        self, message: OutgoingMessage, owner: str, delivery: Delivery, now: datetime
    ) -> OutgoingMessage:
        """Return a message with what only people read: how late it is, and how to end such messages."""
        late = (delivery.late or timedelta(0)) + now - delivery.created_at
        if late > LATE:
            message = _say_lateness(message, late)
        if DeliveryChannel(delivery.channel).traits.has_unsubscribe:
            url = self._recipients().unsubscribe_url(owner, delivery.category)
            message = replace(message, unsubscribe_url=url)
        return message

    def _find(self, task: Task, delivery: Delivery, payload: dict[str, Any]) -> tuple[Recipient, ...] | Suppress:
        is_start = delivery.channel == PING and payload.get("kind") == _START
        if is_start and self._has_ended(delivery.task_id, delivery.execution_id):
            return Suppress("The execution has ended, and the ping of its end is sent instead.")
        return self._recipients().find_for(task.owner, delivery)

    def _send_to_all(
        self,
        sender: Sender,
        message: OutgoingMessage,
        task: Task,
        delivery: Delivery,
        recipients: tuple[Recipient, ...],
    ) -> Outcome:
        ids: list[str] = []
        delayed: list[DeliveryDelayed] = []
        refusals: list[DeliveryRefused] = []
        for each in recipients:
            try:
                ids.append(sender.send(message, each))
            except AddressGone as error:
                self._recipients().remove(task.owner, delivery.channel, each.address)
                refusals.append(error)
            except DeliveryRefused as error:
                refusals.append(error)
            except DeliveryDelayed as error:
                if error.is_busy:
                    raise
                delayed.append(error)

        # A delay comes first: the next attempt sends to all again, and receivers know a repeat by its id.
        if delayed:
            return self._retry(task, delivery, delayed)
        if ids:
            return Done({"messageId": ids[0]})
        if not refusals:
            return Fail("There is nobody to send it to.")
        if all(isinstance(each, AddressGone) for each in refusals):
            return Unreached(str(refusals[0]))
        return Fail(str(refusals[0]))

    def _retry(self, task: Task, delivery: Delivery, delayed: Sequence[DeliveryDelayed]) -> Retry:
        """Return a retry after the longest wait asked for. A shorter one than the policy's would use up attempts."""
        reason = str(delayed[0])
        about = {"action": "delivery_delayed", "taskId": delivery.task_id, "executionId": delivery.execution_id}
        log.warning("Not delivered by %s yet: %s", delivery.channel, reason, extra=about)

        waits = [each.retry_after for each in delayed if each.retry_after is not None]
        if not waits:
            return Retry(reason, None)
        failures = max((run.attempt for run in task.runs), default=1)
        return Retry(reason, max(min(max(waits), MAX_WAIT), task.retry.delay(failures, self._random)))


def _say_lateness(message: OutgoingMessage, late: timedelta) -> OutgoingMessage:
    seconds = int(late.total_seconds())
    return replace(message, body=say_late(late, message.body), data={**message.data, "late": seconds})


def _to_message(delivery: Delivery, payload: dict[str, Any]) -> OutgoingMessage:
    data = payload.get("data")
    return OutgoingMessage(
        id=delivery.message_id,
        thread=delivery.thread,
        title=str(payload.get("title", "")),
        body=str(payload.get("body", "")),
        created_at=delivery.created_at,
        kind=str(payload.get("kind", "notification")),
        data=data if isinstance(data, dict) else {},
    )
