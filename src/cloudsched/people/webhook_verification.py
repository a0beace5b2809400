"""Verification of webhooks: an endpoint is asked whether it wants a person's messages.

A person may name a stranger's URL. So the endpoint is asked before it gets a message. A signed POST of the
type ``webhook.verification`` has a challenge. The answer has to be that challenge and nothing else, as text or
as ``{"challenge": "…"}``: a server that merely echoes requests repeats more than that.
"""

from __future__ import annotations

import hmac
import json
import secrets
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from cloudsched.domain.documents.record import secret_hash
from cloudsched.engine.ports.sender import Asker, OutgoingMessage, Recipient
from cloudsched.engine.state.record_changes import count_recent
from cloudsched.errors import DeliveryDelayed, DeliveryRefused, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.engine.authority import Authority
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore
    from cloudsched.people.people import People

MAX_TO_HOST: Final = 5
"""The most questions to one host within a day."""
MAX_FOR_OWNER: Final = 10
"""The most questions to hosts for one owner within a day."""
INTERVAL: Final = timedelta(minutes=1)
"""The least time between two questions."""
WEBHOOK_KIND: Final = "webhook.verification"
_HINT: Final = "It has to answer 2xx with the challenge in `data`, as text or as a JSON object of it alone."


class WebhookVerification:
    """Asks endpoints, and records those that want messages."""

    def __init__(
        self,
        records: RecordStore,
        clock: Clock,
        people: People,
        asker: Callable[[], Asker],
    ) -> None:
        self._records = records
        self._clock = clock
        self._people = people
        self._asker = asker

    def verify(self, owner: str, *, by: Authority) -> None:
        """Ask a person's endpoint whether it wants their messages, and record that it does.

        It is asked once a minute, ten times a day for an owner, five for a host. Raises NotFound,
        InvalidInput or QuotaExceeded.
        """
        by.require_owner(owner)
        webhook = self._people.get(owner).webhook
        if webhook is None:
            raise InvalidInput("webhook", "is not set", "Set it first.")
        if webhook.verified:
            return
        self._count("owner", owner, MAX_FOR_OWNER)
        host = urlsplit(webhook.url).hostname or ""  # whatever the port
        self._count("address", host.casefold(), MAX_TO_HOST)

        challenge = secrets.token_urlsafe(32)
        if not _is_answer(self._ask(owner, webhook.url, challenge), challenge):
            raise InvalidInput("webhook.url", "does not answer with the challenge", _HINT)
        if not self._people.verify_webhook(owner, webhook.url):
            raise InvalidInput("webhook.url", "has changed meanwhile", "Verify the new one.")

    def _count(self, kind: str, name: str, limit: int) -> None:
        count_recent(
            self._records,
            self._clock,
            secret_hash(f"webhook {kind}", name),
            limit=limit,
            span=timedelta(days=1),
            quota="questions to webhooks a day",
            hint="Each is asked a minute after the last at the earliest.",
            interval=INTERVAL,
        )

    def _ask(self, owner: str, url: str, challenge: str) -> str:
        message = OutgoingMessage(
            id=secrets.token_urlsafe(24),
            thread=secrets.token_urlsafe(24),
            title="Do you want these messages?",
            body="Answer with the challenge, and nothing else, to get the messages of a person's tasks.",
            created_at=self._clock.now(),
            kind=WEBHOOK_KIND,
            data={"challenge": challenge},
        )
        recipient = Recipient(address=url, secrets=self._people.webhook_secrets.current(owner, url))
        try:
            return self._asker().ask(message, recipient)
        except (DeliveryDelayed, DeliveryRefused) as error:
            problem = f"does not prove that it wants messages: {error}"
            raise InvalidInput("webhook.url", problem, _HINT) from error


def _is_answer(text: str, challenge: str) -> bool:
    try:
        content: Any = json.loads(text)
    except ValueError:
        content = text.strip()
    if isinstance(content, dict) and len(content) == 1:
        content = content.get("challenge")
    return isinstance(content, str) and hmac.compare_digest(
        content.encode("utf-8", "replace"),
        challenge.encode(),
    )
