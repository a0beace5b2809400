"""Record what a mail provider says of a mail after it has taken it, and end mail to addresses that take none.

A report counts for the delivery whose mail has its Message-ID: that begins with the delivery's id, so that it is found
without a list, and goes on with what nobody can guess, so that nobody makes one up. Reports may come twice and in any
order:

* what is worse stays: BOUNCED is not undone by a late DELIVERED, nor COMPLAINED by anything;
* a report that is known already changes nothing, not even an address that was verified again meanwhile.
"""

from __future__ import annotations

import hmac
import logging
import re
from typing import TYPE_CHECKING, Final

from cloudsched.domain.closed_sets import complete_table
from cloudsched.domain.documents.channel import DeliveryChannel
from cloudsched.domain.documents.delivery import MAX_REASON, DeliveryStatus, MailEventType, read_delivery_id
from cloudsched.domain.documents.json_limits import truncate
from cloudsched.domain.documents.person import AddressProblem
from cloudsched.domain.people.contacts import with_rejected_email
from cloudsched.engine.ports.store import Commit
from cloudsched.engine.state.commits import compare_and_set

if TYPE_CHECKING:
    from cloudsched.domain.documents.delivery import Delivery, MailEvent
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.people.people import People
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store, VersionedTask

log = logging.getLogger(__name__)

_STATUSES: Final = complete_table(
    MailEventType,
    {
        MailEventType.DELIVERED: DeliveryStatus.DELIVERED,
        MailEventType.BOUNCED: DeliveryStatus.BOUNCED,
        MailEventType.COMPLAINED: DeliveryStatus.COMPLAINED,
    },
)
_RANKS: Final = {status: rank for rank, status in enumerate((None, *_STATUSES.values()))}
_PROBLEMS: Final = complete_table(
    MailEventType,
    {
        MailEventType.DELIVERED: None,
        MailEventType.BOUNCED: AddressProblem.BOUNCED,
        MailEventType.COMPLAINED: AddressProblem.COMPLAINED,
    },
)
_MESSAGE_ID: Final = re.compile(r"\s*<?([A-Za-z0-9_-]{1,200})(?:@[^\s<>]*)?>?\s*")


class MailEventLog:
    """Takes providers' reports, also where there is no secret for dispatches: in the public service of links.

    Args:
        store: Has the deliveries.
        clock: The current time.
        people: Whose addresses they are about.
    """

    def __init__(self, store: Store, clock: Clock, people: People) -> None:
        self._store = store
        self._clock = clock
        self._people = people

    def record(self, event: MailEvent) -> bool:
        """Record a report; return whether it is about a mail that was sent from here. Safe to repeat."""
        found = _MESSAGE_ID.fullmatch(event.message_id)
        delivery_id = None if found is None else read_delivery_id(found[1])
        if found is None or delivery_id is None:
            return False
        stored = self._store.load_many([delivery_id])
        if not stored or (delivery := _read_mail(stored[0].task)) is None:
            return False
        if not _is_same(delivery.message_id, found[1]):
            return False
        self._record_one(delivery_id, event)
        return True

    def _record_one(self, delivery_id: str, event: MailEvent) -> bool:
        """Record a report of one delivery, and what follows from it for the address; return whether it is news."""

        def load() -> VersionedTask | None:
            return next(iter(self._store.load_many([delivery_id])), None)

        def change(stored: VersionedTask | None) -> bool:
            delivery = None if stored is None else _read_mail(stored.task)
            if stored is None or delivery is None or _RANKS[_STATUSES[event.type]] <= _RANKS[delivery.provider_status]:
                return False
            self._reject(stored.task.owner, event)  # first: a process that dies in between does it again
            reason = None if event.reason is None else truncate(event.reason, MAX_REASON)
            changed = delivery.model_copy(
                update={"provider_status": _STATUSES[event.type], "provider_reason": reason},
            )
            task = stored.task.model_copy(update={"delivery": changed, "updated_at": self._clock.now()})
            self._store.commit(Commit(task, stored))
            fields = {"action": "provider-report", "taskId": delivery_id, "status": str(event.type)}
            log.info("the mail provider reports %s", event.type, extra=fields)
            return True

        return compare_and_set(f"delivery {delivery_id}", load, change)

    def _reject(self, owner: str, event: MailEvent) -> None:
        problem = _PROBLEMS[event.type]
        if problem is None or event.address is None or not event.is_permanent:
            return
        address = event.address
        self._people.change(owner, lambda person: with_rejected_email(person, address, problem))


def _read_mail(task: Task) -> Delivery | None:
    is_mail = task.delivery is not None and task.delivery.channel == DeliveryChannel.EMAIL and task.deleted_at is None
    return task.delivery if is_mail else None


def _is_same(known: str, given: str) -> bool:
    return hmac.compare_digest(known.encode(), given.encode())
