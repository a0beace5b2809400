"""Verification: an address is proved to be the person's, by a link and a code, and a webhook to want messages.

* Link and code are random and stored as hashes, so they survive a rotation of the secret, and who reads the store
  learns neither.
* The code is for the person who is signed in; it has eight digits, five tries and an hour. The link has 256 bits and a
  day, and works where nobody is signed in.
* Both confirm the address that they were sent to, if it still is the person's.
* Anybody can write down a stranger's URL. So an endpoint is asked before it gets a message: a signed POST of the type
  ``webhook.verification`` has a challenge, and the answer has to be that challenge and nothing else, as text or as
  ``{"challenge": "…"}``. Servers that merely repeat what they are sent repeat more than that.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import secrets
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from cloudsched.domain.documents.person import ContactSecrets, Verification, secret_hash
from cloudsched.engine.people.record_changes import retry_conflicts
from cloudsched.engine.ports.sender import Message, Recipient
from cloudsched.engine.state.recent_counts import count_recent
from cloudsched.errors import DeliveryDelayed, DeliveryRefused, InvalidInput, Misconfigured, NotFound, QuotaExceeded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from cloudsched.engine.people.people import People
    from cloudsched.engine.ports.authority import Authority
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore
    from cloudsched.engine.ports.sender import Asker, Sender


MAX_TO_ADDRESS: Final = 5
"""How many mails of this kind one address gets within a day."""
MAX_FOR_OWNER: Final = 10
"""How many one owner causes within a day."""
INTERVAL: Final = timedelta(minutes=1)
"""How long to wait between two."""
_DAY: Final = timedelta(days=1)


class MailLimits:
    """Counts mails before they are sent.

    Args:
        records: Where they are counted.
        clock: The current time.
        kind: What is counted, if it is no mail: each kind has limits of its own.
    """

    def __init__(self, records: RecordStore, clock: Clock, kind: str = "") -> None:
        self._records = records
        self._clock = clock
        self._kind = kind

    def count(self, owner: str, address: str) -> None:
        """Count one more mail for an owner to an address.

        Raises:
            QuotaExceeded: There were enough; it says when the next one may be sent.
        """
        self._count(secret_hash(f"{self._kind}owner", owner), MAX_FOR_OWNER)
        self._count(secret_hash(f"{self._kind}address", address.casefold()), MAX_TO_ADDRESS)

    def _count(self, key: str, limit: int) -> None:
        count_recent(self._records, self._clock, key, _DAY, partial(_require_room, limit=limit))


def _require_room(recent: Sequence[datetime], now: datetime, *, limit: int) -> None:
    frees_at = now
    if recent and now - recent[-1] < INTERVAL:
        frees_at = recent[-1] + INTERVAL
    if len(recent) >= limit:
        frees_at = max(frees_at, recent[-limit] + _DAY)
    if frees_at > now:
        seconds = -(-(frees_at - now) // timedelta(seconds=1))
        hint = f"Each is sent a minute after the last at the earliest. Try again in {seconds} seconds."
        raise QuotaExceeded("such mails a day", limit, hint, seconds)


CODE_TRIES: Final = 5
CODE_LIFETIME: Final = timedelta(hours=1)
LINK_LIFETIME: Final = timedelta(days=1)
_DIGITS: Final = 8


class EmailVerification:
    """Sends such mails, and confirms what comes back.

    Args:
        records: Where the hashes are stored.
        clock: The current time.
        people: Whose addresses they are.
        sender: Returns what sends mail; None if that is not set up.
    """

    def __init__(self, records: RecordStore, clock: Clock, people: People, sender: Callable[[], Sender | None]) -> None:
        self._records = records
        self._clock = clock
        self._people = people
        self._sender = sender
        self._limits = MailLimits(records, clock)

    def start(self, owner: str, root: str | None, *, by: Authority) -> str:
        """Send a mail to a person's address; return the address. An earlier mail is worth nothing from then on.

        Args:
            owner: The person.
            by: Who asks for it.
            root: What the link begins with. None sends only a code: the address under which people reach the API is
                not known, and what a request says about it (``Host``) would let its sender read others' links.

        Raises:
            NotFound: There is no such person.
            InvalidInput: The person has no address, or the mail server refuses it.
            QuotaExceeded: Enough mails were sent.
            DeliveryDelayed: The mail server does not take it now.
            Misconfigured: Nothing sends mail here.
        """
        by.require_owner(owner)
        person = self._people.get(owner)
        if person.email is None:
            raise InvalidInput("email", "is not set", "Set the address first.")
        if person.email.verified:
            return person.email.address
        sender = self._sender()
        if sender is None:
            raise Misconfigured("No mail can be sent: set CLOUDSCHED_SMTP_URL and CLOUDSCHED_MAIL_FROM.")
        address = person.email.address
        self._limits.count(owner, address)
        secret, code = secrets.token_urlsafe(32), f"{secrets.randbelow(10**_DIGITS):0{_DIGITS}}"
        self._store(owner, address, secret, code)
        link = "" if root is None else _LINK.format(link=f"{root}/v1/links/verify/{_encode(owner)}.{secret}")
        message = Message(
            id=secrets.token_urlsafe(24),
            thread=secrets.token_urlsafe(24),
            title="Confirm your e-mail address",
            body=_BODY.format(link=link, code=code),
            created_at=self._clock.now(),
            kind="verification",
        )
        try:
            sender.send(message, Recipient(address=address, name=person.name))
        except DeliveryRefused as error:
            raise InvalidInput("email.address", f"takes no mail: {error}", "Check it for typing errors.") from error
        return address

    def confirm_code(self, owner: str, code: str, *, by: Authority) -> None:
        """Record that a person's address is theirs.

        Raises:
            InvalidInput: It is not the code that was sent, or it is no longer valid.
        """
        by.require_owner(owner)

        def take() -> str | None:
            now = self._clock.now()
            stored = self._records.load(ContactSecrets, owner)
            pending = None if stored is None else stored.record.verification
            if stored is None or pending is None or pending.code_until <= now or pending.code_tries_left <= 0:
                return None
            is_right = hmac.compare_digest(pending.code_hash, secret_hash(pending.link_hash, code))
            left = None if is_right else pending.model_copy(update={"code_tries_left": pending.code_tries_left - 1})
            changed = stored.record.model_copy(update={"verification": left, "updated_at": now})
            self._records.write(changed, stored.version)  # a wrong code is counted before it is answered
            return pending.address if is_right else None

        address = retry_conflicts(f"verification of {owner}", take)
        if address is None or not self._people.verify_address(owner, address):
            hint = f"It has {_DIGITS} digits, {CODE_TRIES} tries and an hour. Have another mail sent."
            raise InvalidInput("code", "is not the code that was sent to this address, or it is over", hint)

    def confirm_link(self, token: str) -> None:
        """Record that an address is somebody's, by the last part of a link's path.

        Raises:
            NotFound: No such link was sent, or it is over.
        """
        encoded, _, secret = token.partition(".")
        owner = _decode(encoded)
        stored = None if owner is None else self._records.load(ContactSecrets, owner)
        pending = None if stored is None else stored.record.verification
        if owner is None or pending is None or pending.link_until <= self._clock.now():
            raise NotFound("link", "…")
        is_right = hmac.compare_digest(pending.link_hash, secret_hash(secret))
        # The link stays valid for its day: its answer may have been lost, and the person presses the button again.
        if not is_right or not self._people.verify_address(owner, pending.address):
            raise NotFound("link", "…")

    def _store(self, owner: str, address: str, secret: str, code: str) -> None:
        def write() -> None:
            now = self._clock.now()
            stored = self._records.load(ContactSecrets, owner)
            empty = ContactSecrets(id=owner, owner=owner, created_at=now, updated_at=now)
            link_hash = secret_hash(secret)
            pending = Verification(
                address=address,
                link_hash=link_hash,
                code_hash=secret_hash(link_hash, code),
                code_tries_left=CODE_TRIES,
                code_until=now + CODE_LIFETIME,
                link_until=now + LINK_LIFETIME,
            )
            known = empty if stored is None else stored.record
            changed = known.model_copy(update={"verification": pending, "updated_at": now})
            self._records.write(changed, None if stored is None else stored.version)

        retry_conflicts(f"verification of {owner}", write)


_BODY: Final = """Somebody has given this address for messages about their tasks.

If it was you, {link}enter this code within one hour: {code}

If it was not you, do nothing: nothing else is sent to this address."""
_LINK: Final = """open this link within a day:

{link}

or """


def _encode(owner: str) -> str:
    return base64.urlsafe_b64encode(owner.encode()).decode().rstrip("=")


def _decode(text: str) -> str | None:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (binascii.Error, ValueError):
        return None


WEBHOOK_KIND: Final = "webhook.verification"
_HINT: Final = "It has to answer 2xx with the challenge in `data`, as text or as a JSON object of it alone."


class WebhookVerification:
    """Asks endpoints, and records those that want messages.

    Args:
        records: Where it is counted how often a host is asked.
        clock: The current time.
        people: Whose webhooks they are.
        asker: Returns what posts to an endpoint.
    """

    def __init__(self, records: RecordStore, clock: Clock, people: People, asker: Callable[[], Asker]) -> None:
        self._limits = MailLimits(records, clock, "webhook ")
        self._clock = clock
        self._people = people
        self._asker = asker

    def verify(self, owner: str, *, by: Authority) -> None:
        """Ask a person's endpoint whether it wants their messages, and record that it does.

        Raises:
            NotFound: There is no such person.
            InvalidInput: The person has no webhook, or it gives another answer, or none.
            QuotaExceeded: It was asked often enough: once a minute, ten times a day for an owner, five for a host.
        """
        by.require_owner(owner)
        webhook = self._people.get(owner).webhook
        if webhook is None:
            raise InvalidInput("webhook", "is not set", "Set it first.")
        if webhook.verified:
            return
        self._limits.count(owner, urlsplit(webhook.url).hostname or "")  # whatever port is asked
        challenge = secrets.token_urlsafe(32)
        if not _is_answer(self._ask(owner, webhook.url, challenge), challenge):
            raise InvalidInput("webhook.url", "does not answer with the challenge", _HINT)
        if not self._people.verify_webhook(owner, webhook.url):
            raise InvalidInput("webhook.url", "has changed meanwhile", "Verify the new one.")

    def _ask(self, owner: str, url: str, challenge: str) -> str:
        message = Message(
            id=secrets.token_urlsafe(24),
            thread=secrets.token_urlsafe(24),
            title="Do you want these messages?",
            body="Answer with the challenge, and nothing else, to get the messages of a person's tasks.",
            created_at=self._clock.now(),
            kind=WEBHOOK_KIND,
            data={"challenge": challenge},
        )
        recipient = Recipient(address=url, secrets=self._people.webhook_secrets.current(owner))
        try:
            return self._asker().ask(message, recipient)
        except (DeliveryDelayed, DeliveryRefused) as error:
            raise InvalidInput("webhook.url", f"does not prove that it wants messages: {error}", _HINT) from error


def _is_answer(text: str, challenge: str) -> bool:
    try:
        content: Any = json.loads(text)
    except ValueError:
        content = text.strip()
    if isinstance(content, dict) and len(content) == 1:
        content = content.get("challenge")
    return isinstance(content, str) and hmac.compare_digest(content.encode("utf-8", "replace"), challenge.encode())
