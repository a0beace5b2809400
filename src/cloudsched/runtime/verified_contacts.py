"""What is learned of people's contacts: endpoints that want messages, and addresses that take none any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.engine.delivery.mail_events import MailEventLog
from cloudsched.engine.people.webhook_verification import WebhookVerification
from cloudsched.runtime.senders import open_webhooks

if TYPE_CHECKING:
    from cloudsched.config.settings import Settings
    from cloudsched.engine.people.people import People
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store


class VerifiedContacts:
    """The parts of an app that learn such things.

    Attributes:
        webhooks: Asks endpoints whether they want messages.
        mail_events: Takes mail providers' reports.
    """

    def __init__(self, store: Store, clock: Clock, people: People, settings: Settings) -> None:
        self.webhooks = WebhookVerification(store.records, clock, people, lambda: open_webhooks(settings))
        self.mail_events = MailEventLog(store, clock, people)
